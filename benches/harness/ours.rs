//! The real server, in this process.

use std::net::SocketAddr;

use clap::Parser;
use pagebucket::config::ServerArgs;
use pagebucket::domain::Clock;
use pagebucket::server::Server;
use pagebucket::store::Store;
use pagebucket::store::trades::Capacity;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::Result;
use super::mongod::Mongod;

/// A running server.
pub struct Ours {
    pub address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<bool>,
}

/// The flags of `serve`, for their defaults: what is measured is what one gets.
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    server: ServerArgs,
}

impl Ours {
    /// Makes the collections of our store in a database.
    pub async fn prepare(mongod: &Mongod, database: &str) -> Result<Store> {
        let store = Store::connect(mongod.connection(database), Capacity::default(), Clock::system()).await?;
        store.migrate().await?;
        Ok(store)
    }

    /// Serves with the defaults but for `flags`.
    pub async fn start(store: Store, flags: &[&str]) -> Result<Self> {
        let flags = Flags::try_parse_from([&["bench", "--listen", "127.0.0.1:0"], flags].concat())?;
        let server = Server::bind(&flags.server, store, Clock::system()).await?;
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve(async {
            stopped.await.ok();
        }));
        Ok(Self { address, stop, serving })
    }

    /// Tells it to stop, and waits until it has.
    pub async fn stop(self) -> Result<()> {
        drop(self.stop);
        self.serving.await?;
        Ok(())
    }
}
