//! The run's own mongod: a replica set of one node, with its data in a temporary directory.
//!
//! Not `pagebucket_embedded`, whose cache of 0.5 GB suits a desk: here several databases are compared, and
//! none should be slow because the others have filled the cache.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use mongodb::bson::doc;
use mongodb::{Client, Database};
use pagebucket_engine::{Capacity, ConnectionSettings, Store};
use pagebucket_model::definition::Definitions;
use pagebucket_model::domain::Clock;
use tokio::process::{Child, Command};

use super::Result;

/// Connections of each contender's driver.
pub const POOL: u32 = 64;

/// A running mongod. Dropping it kills it and removes its directory.
pub struct Mongod {
    child: Child,
    directory: PathBuf,
    port: u16,
}

impl Mongod {
    /// Starts the one that `MONGOD` names, or that is found, with a cache of so many GB.
    pub async fn start(cache: &str) -> Result<Self> {
        let named = std::env::var_os("MONGOD").map(PathBuf::from);
        let binary = pagebucket_embedded::find_mongod(named.as_deref())?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let directory = std::env::temp_dir().join(format!("pagebucket-bench-{}-{port}", std::process::id()));
        let data = directory.join("data");
        std::fs::create_dir_all(&data)?;
        let child = Command::new(binary)
            .args(["--replSet", "rs0", "--bind_ip", "127.0.0.1", "--port", &port.to_string()])
            .args(["--wiredTigerCacheSizeGB", cache, "--oplogSize", "1024", "--nounixsocket", "--quiet"])
            .args(["--setParameter", "diagnosticDataCollectionEnabled=false"])
            .args(["--setParameter", "shutdownTimeoutMillisForSignaledShutdown=100"])
            .args([Path::new("--dbpath"), &data, Path::new("--logpath"), &directory.join("mongod.log")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let mongod = Self { child, directory, port };
        mongod.connection("admin").initiate().await?;
        Ok(mongod)
    }

    /// Of the process.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// As `MONGODB_URI`.
    pub fn uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}/?directConnection=true", self.port)
    }

    /// The same with the pool and the write concern that our store states with each command, for the peers.
    pub fn peer_uri(&self) -> String {
        format!("{}&w=majority&journal=true&maxPoolSize={POOL}", self.uri())
    }

    fn connection(&self, database: &str) -> ConnectionSettings {
        ConnectionSettings { uri: self.uri(), database: database.to_owned(), pool_size: POOL, observer: None }
    }

    /// Our store of trades on a database, its collections made.
    pub async fn store(&self, database: &str) -> Result<Store> {
        self.store_of(database, Definitions::built_in()).await
    }

    /// The same for other histories.
    pub async fn store_of(&self, database: &str, definitions: Definitions) -> Result<Store> {
        let connection = self.connection(database);
        let store = Store::connect(connection, definitions, Capacity::default(), Clock::system()).await?;
        store.migrate().await?;
        Ok(store)
    }

    /// A database through a client of its own.
    pub async fn database(&self, name: &str) -> Result<Database> {
        Ok(Client::with_uri_str(self.peer_uri()).await?.database(name))
    }

    /// Where the run may keep a file as long as this runs.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub async fn version(&self) -> Result<String> {
        let build = self.database("admin").await?.run_command(doc! { "buildInfo": 1 }).await?;
        Ok(build.get_str("version")?.to_owned())
    }

    /// Ends it, and removes its directory.
    pub async fn remove(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }
}

impl Drop for Mongod {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.start_kill().ok();
        std::fs::remove_dir_all(&self.directory).ok();
    }
}
