//! A whole service in this process: real sockets, a real mongod, a database of its own.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use pagebucket::config::{CorsOrigin, ServerArgs};
use pagebucket::domain::Clock;
use pagebucket::server::Server;
use pagebucket::store::Capacity;
use pagebucket::store::{CommandObserver, Connection, ReadPreference, Store};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{Client, Mongod, shared};

static DATABASES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Names of all databases that services were given.
pub(super) fn databases() -> Vec<String> {
    DATABASES.lock().expect("no test panics here").clone()
}

/// A running service, which ends with this value.
pub struct Service {
    pub client: Client,
    pub database: mongodb::Database,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<bool>,
}

/// How a service differs from the usual one.
pub struct Setup {
    pub connection: Connection,
    pub args: ServerArgs,
    pub capacity: Capacity,
    pub clock: Clock,
    pub read_preference: ReadPreference,
}

impl Setup {
    /// The usual one, on a new database of `mongod`.
    pub fn on(mongod: &Mongod) -> Self {
        Self::at(mongod.uri())
    }

    /// The usual one, on a new database of whatever this connection string leads to.
    pub fn at(uri: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let database = format!("test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        DATABASES.lock().expect("no test panics here").push(database.clone());
        let connection = Connection { uri: uri.to_owned(), database, pool_size: 64, observer: None };
        let args = ServerArgs {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            cors_origins: vec![CorsOrigin::Localhost],
            allowed_hosts: Vec::new(),
            max_requests: 1024,
            max_connections: 4096,
            max_body: 1024 * 1024,
            header_timeout: 30,
            body_timeout: 10,
            write_timeout: 60,
            max_uploads: 64,
            max_exports: 64,
            max_scans: 8,
            drain_delay: 0,
            page_cache: 64 * 1024 * 1024,
            cache_public: false,
        };
        Self {
            connection,
            args,
            capacity: Capacity::default(),
            clock: Clock::system(),
            read_preference: ReadPreference::Primary,
        }
    }

    pub fn observed(
        mut self,
        observe: impl Fn(&str, &mongodb::bson::Document) + Send + Sync + 'static,
    ) -> Self {
        self.connection.observer = Some(CommandObserver::new(observe));
        self
    }

    pub async fn start(self) -> Service {
        pagebucket::telemetry::measure();
        let store = Store::connect(self.connection.clone(), self.capacity, self.clock.clone())
            .await
            .expect("the test's mongod")
            .preferring(self.read_preference);
        store.migrate().await.expect("the migrations");
        let server = Server::bind(&self.args, store, self.clock).await.expect("a free port");
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve(async {
            stopped.await.ok();
        }));
        let client = mongodb::Client::with_uri_str(&self.connection.uri).await.expect("a connection string");
        Service {
            client: Client::new(format!("http://{address}")),
            database: client.database(&self.connection.database),
            address,
            stop: Some(stop),
            serving,
        }
    }
}

impl Service {
    /// The usual one, on the shared mongod.
    pub async fn start() -> Self {
        Setup::on(shared().await).start().await
    }

    /// Another instance on the same database.
    pub async fn sibling(&self, mongod: &Mongod) -> Self {
        let mut setup = Setup::on(mongod);
        setup.connection.database = self.database.name().to_owned();
        setup.start().await
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Tells it to stop; true when every request under way ended in time.
    pub async fn stop(mut self) -> bool {
        self.stop.take();
        (&mut self.serving).await.expect("the server not to panic")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.take();
    }
}
