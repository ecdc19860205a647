//! The binary as a child, which ends with the test, also with one that fails.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::harness::{
    Client, History, Mongod, PATIENCE, Service, Setup, TRADES, eventually, migrations, shared, signal, spawn,
};

/// The binary with these arguments and an empty environment.
pub fn pagebucket(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagebucket"));
    command
        .args(arguments)
        .env_clear()
        // Whatever a command may put where it is run does not land in the sources.
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// A new database on the shared mongod, as the flags that name it.
pub struct Place {
    /// The history that the test is about.
    pub history: &'static History,
    pub uri: String,
    pub name: String,
}

impl Place {
    pub async fn new() -> Self {
        Self::of(TRADES).await
    }

    pub async fn of(history: &'static History) -> Self {
        Self::on(shared().await, history)
    }

    /// A database of another mongod.
    pub fn on(mongod: &Mongod, history: &'static History) -> Self {
        let connection = Setup::on(mongod).store.connection;
        Self { history, uri: connection.uri, name: connection.database }
    }

    /// The database of a service.
    pub async fn of_service(service: &Service) -> Self {
        let (uri, name) = (shared().await.uri().to_owned(), service.database.name().to_owned());
        Self { history: service.history, uri, name }
    }

    /// `command`, on this database.
    pub fn pagebucket(&self, command: &str, arguments: &[&str]) -> Command {
        let database = ["--mongodb-uri", &self.uri, "--database", &self.name];
        let flags = self.history.flags(command);
        pagebucket(&[&[command], &database[..], &flags, arguments].concat())
    }

    /// `serve` on a free port.
    pub async fn serve(&self, arguments: &[&str]) -> Serving {
        let arguments = [&["--listen", "127.0.0.1:0"], arguments].concat();
        Serving::start(self.history, &mut self.pagebucket("serve", &arguments)).await
    }

    pub async fn database(&self) -> mongodb::Database {
        mongodb::Client::with_uri_str(&self.uri).await.expect("a connection string").database(&self.name)
    }
}

/// What a command that has ended left behind.
#[derive(Debug)]
pub struct Ended {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

/// One line each, as `migrate` prints them.
pub fn all_migrations(state: &str) -> String {
    migrations().iter().map(|name| format!("{state}: {name}\n")).collect()
}

/// Runs it to its end.
pub async fn run(command: &mut Command) -> Ended {
    let output = timeout(PATIENCE, command.output()).await;
    let output =
        output.unwrap_or_else(|_| panic!("no end within {PATIENCE:?}: {command:?}")).expect("to run");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Ended { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

impl Ended {
    /// The sentence of a command that ended with this status: the last line it says.
    #[track_caller]
    pub fn sentence(&self, status: i32) -> &str {
        assert_eq!(self.status, Some(status), "{self:?}");
        let last = self.err.lines().last().unwrap_or_default();
        let sentence = last.strip_prefix("pagebucket: ").unwrap_or_else(|| panic!("no sentence: {self:?}"));
        assert!(!sentence.is_empty() && !sentence.contains("Error {"), "for a person to read: {self:?}");
        sentence
    }
}

/// A `serve` that has said its address.
pub struct Serving {
    pub address: SocketAddr,
    pub client: Client,
    child: Child,
    out: Heard,
    err: Heard,
}

impl Serving {
    pub async fn start(history: &'static History, command: &mut Command) -> Self {
        let mut child = command.spawn().expect("to run");
        let mut out = Heard::listen(child.stdout.take().expect("a pipe"));
        let err = Heard::listen(child.stderr.take().expect("a pipe"));
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let url = loop {
            let said = out.so_far();
            if let Some(url) = said.lines().find_map(|line| line.strip_prefix("pagebucket listens on ")) {
                break url.to_owned();
            }
            // A command that says nothing more does not come to serve either.
            let late = tokio::time::Instant::now() > deadline;
            assert!(!late && !out.is_over(), "it does not serve: {said}{}", err.so_far());
            out.more().await;
        };
        let (_, address) = url.split_once("://").expect("a URL");
        let address: SocketAddr = address.parse().expect("an address");
        Self { address, client: Client::new(history, url), child, out, err }
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    pub fn out(&self) -> String {
        self.out.so_far()
    }

    pub fn err(&self) -> String {
        self.err.so_far()
    }

    /// Closes the other end of its standard error.
    pub async fn stop_listening(&mut self) {
        let err = std::mem::replace(&mut self.err, Heard::listen(tokio::io::empty()));
        err.listener.abort();
        err.listener.await.expect_err("it listened");
    }

    pub fn signal(&self, name: &str) {
        signal(name, self.pid());
    }

    /// Waits until it has heard the signal to stop: it says so, or accepts no more connections.
    pub async fn is_stopping(&self) {
        eventually("it is stopping", PATIENCE, || async {
            let asked = self.client.try_send(reqwest::Method::GET, "/readyz", |request| request).await;
            asked.map_or(true, |answer| answer.json()["type"] == "/problems#shutting-down")
        })
        .await;
    }

    /// Waits for its end.
    pub async fn ended(mut self) -> Ended {
        let status = timeout(PATIENCE, self.child.wait()).await;
        let status = status.unwrap_or_else(|_| panic!("no end within {PATIENCE:?}: {}", self.err()));
        Ended {
            status: status.expect("its status").code(),
            out: self.out.whole().await,
            err: self.err.whole().await,
        }
    }

    /// Tells it to stop, and waits for its end.
    pub async fn stop(self) -> Ended {
        self.signal("TERM");
        let ended = self.ended().await;
        assert_eq!(ended.status, Some(0), "{ended:?}");
        ended
    }
}

/// What came out of a pipe so far.
struct Heard {
    text: Arc<Mutex<String>>,
    listener: JoinHandle<()>,
    lines: tokio::sync::watch::Receiver<usize>,
}

impl Heard {
    fn listen(pipe: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let (count, lines) = tokio::sync::watch::channel(0);
        let said = Arc::clone(&text);
        let listener = spawn(async move {
            let mut pipe = BufReader::new(pipe);
            let mut line = String::new();
            while pipe.read_line(&mut line).await.is_ok_and(|length| length > 0) {
                said.lock().expect("no test panics here").push_str(&line);
                line.clear();
                count.send_modify(|lines| *lines += 1);
            }
        });
        Self { text, listener, lines }
    }

    fn so_far(&self) -> String {
        self.text.lock().expect("no test panics here").clone()
    }

    fn is_over(&self) -> bool {
        self.lines.has_changed().is_err()
    }

    /// Waits for a line, the end, or a second.
    async fn more(&mut self) {
        timeout(Duration::from_secs(1), self.lines.changed()).await.ok();
    }

    async fn whole(self) -> String {
        timeout(PATIENCE, self.listener).await.expect("the pipe is closed").expect("no test panics here");
        self.text.lock().expect("no test panics here").clone()
    }
}
