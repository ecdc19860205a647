//! The API as a process of its own, which can be killed and comes back under the same address.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::commands::program::pagebucket;
use crate::harness::{Client, History, PATIENCE, free_port};

/// `pagebucket serve`, which ends with this value.
pub struct ApiProcess {
    history: &'static History,
    uri: String,
    database: String,
    address: SocketAddr,
    child: Option<Child>,
}

impl ApiProcess {
    pub async fn start(history: &'static History, uri: &str, database: &str) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let (uri, database) = (uri.to_owned(), database.to_owned());
        let mut process = Self { history, uri, database, address, child: None };
        process.restart().await;
        process
    }

    /// A new client of it, which outlives it.
    pub fn client(&self) -> Client {
        Client::new(self.history, format!("http://{}", self.address))
    }

    /// The number of the process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().and_then(Child::id).expect("it runs")
    }

    /// `kill -9`.
    pub async fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.start_kill().expect("to kill it");
        child.wait().await.expect("its end");
    }

    /// Starts it, again and again if need be: it refuses to while the database does not answer.
    pub async fn restart(&mut self) {
        let until = Instant::now() + PATIENCE;
        let mut child = self.spawn();
        while TcpStream::connect(self.address).await.is_err() {
            assert!(Instant::now() < until, "it does not serve within {PATIENCE:?}");
            if child.try_wait().expect("its status").is_some() {
                child = self.spawn();
            }
            sleep(Duration::from_millis(20)).await;
        }
        self.child = Some(child);
    }

    fn spawn(&self) -> Child {
        let listen = self.address.to_string();
        let arguments = [
            "serve",
            "--mongodb-uri",
            &self.uri,
            "--database",
            &self.database,
            "--listen",
            &listen,
            "--log",
            "error",
        ];
        let mut command: Command = pagebucket(&arguments);
        command.args(self.history.flags("serve"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("to run")
    }
}
