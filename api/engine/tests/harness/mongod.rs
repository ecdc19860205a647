//! A mongod of the tests' own: in a container where an engine answers, else as a process.

mod process;
mod shared;
mod stepped_clock;

use std::ffi::OsStr;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mongodb::bson::{Bson, Document, doc};
use pagebucket_engine::ConnectionSettings;
use testcontainers_modules::testcontainers::runners::AsyncRunner;
use testcontainers_modules::testcontainers::{ContainerAsync, ContainerRequest, GenericImage, ImageExt};
use tokio::process::Command;

use process::Process;
pub use shared::shared;
pub use stepped_clock::SteppedClock;

/// Makes a mongod a member of a set, once that is initiated.
const REPLICATION: &[&str] = &["--replSet", "rs0", "--setParameter", QUICK_CLOCK];

/// An idle set's cluster time goes on once a second, not every ten: what is deleted waits for it.
const QUICK_CLOCK: &str = "periodicNoopIntervalSecs=1";

/// Makes a mongod fail on demand, by `configureFailPoint`.
const TEST_COMMANDS: &[&str] = &["--setParameter", "enableTestCommands=1"];
const REPLICATION_AND_TEST_COMMANDS: &[&str] =
    &["--replSet", "rs0", "--setParameter", QUICK_CLOCK, "--setParameter", "enableTestCommands=1"];

/// Its log is truncated after each megabyte, as soon as a checkpoint of every second no longer needs it.
const SMALL_OPLOG: &[&str] = &[
    "--replSet",
    "rs0",
    "--setParameter",
    QUICK_CLOCK,
    "--setParameter",
    "enableTestCommands=1",
    "--oplogSize",
    "1",
    "--syncdelay",
    "1",
];

/// A member of several waits one second, not five, for a silent member from which it copies the log, and does
/// not ask it again: while it waits for a frozen primary, a set of three has no majority.
const MEMBER: &[&str] = &["--replSet", "rs0", "--setParameter", SHORT_WAIT, "--setParameter", NO_RESTART];
const MEMBER_AND_TEST_COMMANDS: &[&str] = &[
    "--replSet",
    "rs0",
    "--setParameter",
    SHORT_WAIT,
    "--setParameter",
    NO_RESTART,
    "--setParameter",
    "enableTestCommands=1",
];
const SHORT_WAIT: &str = "oplogNetworkTimeoutBufferSeconds=1";
const NO_RESTART: &str = "oplogFetcherSteadyStateMaxFetcherRestarts=0";

/// Counters that each mongod would write to its files once a second, which no test reads.
const NO_DIAGNOSTICS: &str = "diagnosticDataCollectionEnabled=false";

/// Used where `MONGO_IMAGE` names none.
const DEFAULT_IMAGE: &str = "mongo:6.0.27";

/// Cache of each mongod of the tests, in GB: several run at once.
const CACHE: &str = "0.3";

/// Files that were not used for a minute are closed, not only those of ten minutes. A mongod that may open no
/// more ends itself, and each test has a database with files of its own.
const FEW_FILES: &str = "file_manager=(close_idle_time=60)";

/// A single-node replica set that can be harmed.
pub struct Mongod {
    uri: String,
    backend: Backend,
}

enum Backend {
    /// `TEST_MONGODB_URI`: not ours.
    Given,
    Container(Box<ContainerAsync<GenericImage>>),
    Process(Box<Process>),
}

/// Where mongods come from in this run.
enum Source {
    Given(String),
    Image(String),
    Binary(PathBuf),
}

impl Source {
    /// An image that `MONGO_IMAGE` names must work; the default one need not be there.
    fn choose() -> Self {
        if let Ok(uri) = std::env::var("TEST_MONGODB_URI") {
            return Self::Given(uri);
        }
        if let Ok(image) = std::env::var("MONGO_IMAGE") {
            return Self::Image(image);
        }
        match pagebucket_embedded::find_mongod(std::env::var_os("MONGOD").map(PathBuf::from).as_deref()) {
            Err(_) if engine_answers() => Self::Image(DEFAULT_IMAGE.to_owned()),
            found => Self::Binary(found.expect("a container engine, or a mongod: see scripts/test")),
        }
    }
}

/// The process of the mongod that runs on this data, by its command line: under Wine, what it writes into its
/// lock is no number of this machine, and it holds no lock that others see.
pub fn mongod_on(data: &Path) -> Option<u32> {
    let data = std::fs::canonicalize(data).ok()?;
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut arguments =
            arguments.split(|byte| *byte == 0).skip_while(|argument| *argument != b"--dbpath");
        let path = arguments.nth(1).map(|path| Path::new(OsStr::from_bytes(path)));
        path.is_some_and(|path| std::fs::canonicalize(path).is_ok_and(|path| path == data))
    })
}

fn engine_answers() -> bool {
    UnixStream::connect("/var/run/docker.sock").is_ok()
}

impl Mongod {
    /// One that a test may harm. It has to be removed.
    pub async fn own() -> Self {
        let mongod = Self::launch(REPLICATION).await;
        mongod.until_primary().await;
        mongod
    }

    /// One that may be initiated, and is not; perhaps still starting. It has to be removed.
    pub async fn fresh_member() -> Self {
        Self::launch(REPLICATION).await
    }

    /// One without replication. It has to be removed.
    pub async fn standalone() -> Self {
        Self::launch(&[]).await.that_answers().await
    }

    /// One whose commands a test may let fail. It has to be removed.
    pub async fn failing() -> Self {
        let mongod = Self::launch(REPLICATION_AND_TEST_COMMANDS).await;
        mongod.until_primary().await;
        mongod
    }

    /// The same with a log that is soon rolled over.
    pub async fn with_small_oplog() -> Self {
        let mongod = Self::launch(SMALL_OPLOG).await;
        mongod.until_primary().await;
        mongod
    }

    /// The same without replication.
    pub async fn failing_standalone() -> Self {
        Self::launch(TEST_COMMANDS).await.that_answers().await
    }

    /// A process whose clock a test steps, with replication or without it. It has to be removed.
    pub async fn with_stepped_clock(replicated: bool) -> (Self, SteppedClock) {
        let binary =
            pagebucket_embedded::find_mongod(std::env::var_os("MONGOD").map(PathBuf::from).as_deref());
        let (port, arguments) = (free_port(), if replicated { REPLICATION } else { &[] });
        let clock = SteppedClock::new(&format!("pagebucket-test-{}-{port}", std::process::id()));
        let process = Process::new(binary.expect("a mongod: see scripts/fetch-mongod"), port, arguments);
        let process = process.with_environment(clock.environment());
        process.start();
        let mongod =
            Self { uri: direct(port), backend: Backend::Process(Box::new(process)) }.that_answers().await;
        if replicated {
            mongod.until_primary().await;
        }
        (mongod, clock)
    }

    async fn that_answers(self) -> Self {
        let ping = doc! { "ping": 1 };
        self.client().await.database("admin").run_command(ping).await.expect("the test's mongod");
        self
    }

    /// Lets this fail point strike, or ends it by the mode `off`. (Server source,
    /// `src/mongo/util/fail_point.h`.)
    pub async fn fail_point(&self, name: &str, mode: impl Into<Bson>, data: Document) {
        let configure = doc! { "configureFailPoint": name, "mode": mode.into(), "data": data };
        self.client().await.database("admin").run_command(configure).await.expect("a fail point");
    }

    /// One of a set of several, not initiated, perhaps still starting. It has to be removed.
    ///
    /// A process where a binary is to be had.
    pub(super) async fn member_of_several(failing: bool) -> Self {
        let arguments = if failing { MEMBER_AND_TEST_COMMANDS } else { MEMBER };
        let port = free_port();
        let binary =
            pagebucket_embedded::find_mongod(std::env::var_os("MONGOD").map(PathBuf::from).as_deref());
        let backend = match (binary, Source::choose()) {
            (Err(_), Source::Image(image)) => {
                let container = container(&image, port, arguments);
                Backend::Container(Box::new(container.start().await.expect("a container of MONGO_IMAGE")))
            }
            (binary, _) => {
                let binary = binary.expect("a mongod to harm: see scripts/fetch-mongod");
                let process = Process::new(binary, port, arguments);
                process.start();
                Backend::Process(Box::new(process))
            }
        };
        Self { uri: direct(port), backend }
    }

    async fn launch(arguments: &'static [&'static str]) -> Self {
        Self::launch_by(arguments, Process::start).await
    }

    /// The same. A process is started by `start`.
    async fn launch_by(arguments: &'static [&'static str], start: fn(&Process)) -> Self {
        let port = free_port();
        let backend = match Source::choose() {
            Source::Image(image) => {
                let container = container(&image, port, arguments);
                Backend::Container(Box::new(container.start().await.expect("a container of MONGO_IMAGE")))
            }
            Source::Binary(binary) => Backend::Process(Box::new(Process::new(binary, port, arguments))),
            Source::Given(_) => {
                let binary = pagebucket_embedded::find_mongod(None)
                    .expect("a mongod to harm: see scripts/fetch-mongod");
                Backend::Process(Box::new(Process::new(binary, port, arguments)))
            }
        };
        let mongod = Self { uri: direct(port), backend };
        if let Backend::Process(process) = &mongod.backend {
            start(process);
        }
        mongod
    }

    pub fn uri(&self) -> &str {
        &self.uri
    }

    pub fn address(&self) -> SocketAddr {
        let hosts = self.uri.strip_prefix("mongodb://").and_then(|rest| rest.split('/').next());
        hosts.expect("a host").parse().expect("an address")
    }

    /// A client beside the service, with no deadline of its own.
    pub async fn client(&self) -> mongodb::Client {
        mongodb::Client::with_uri_str(&self.uri).await.expect("a connection string")
    }

    /// Makes it a set of one node if it is none yet, and waits until it is primary.
    pub async fn until_primary(&self) {
        let connection = ConnectionSettings {
            uri: self.uri.clone(),
            database: "admin".to_owned(),
            pool_size: 2,
            observer: None,
        };
        let mut last = String::new();
        for _ in 0..12 {
            match connection.initiate().await {
                Ok(()) => return,
                Err(error) => last = error.to_string(),
            }
        }
        panic!("the test's mongod is not primary: {last}");
    }

    /// Stops it in order; clients find nobody.
    pub async fn stop(&self) {
        match &self.backend {
            Backend::Given => panic!("the given server is not ours to stop"),
            Backend::Container(container) => {
                container.stop_with_timeout(Some(20)).await.expect("to stop");
            }
            Backend::Process(process) => process.signal("-TERM").await,
        }
    }

    /// Ends it at once, as `kill -9` does.
    pub async fn kill(&self) {
        match &self.backend {
            Backend::Given => panic!("the given server is not ours to kill"),
            Backend::Container(container) => {
                container.stop_with_timeout(Some(0)).await.expect("to kill");
            }
            Backend::Process(process) => process.signal("-KILL").await,
        }
    }

    /// Stops it where it is; its connections stay open, and nothing is answered.
    pub async fn freeze(&self) {
        match &self.backend {
            Backend::Given => panic!("the given server is not ours to freeze"),
            Backend::Container(container) => container.pause().await.expect("to freeze"),
            Backend::Process(process) => process.send("-STOP").await,
        }
    }

    /// Lets it go on where it was.
    pub async fn thaw(&self) {
        match &self.backend {
            Backend::Given => panic!("the given server is not ours to thaw"),
            Backend::Container(container) => container.unpause().await.expect("to thaw"),
            Backend::Process(process) => process.send("-CONT").await,
        }
    }

    /// Starts it again, on the same data and port.
    pub async fn start(&self) {
        match &self.backend {
            Backend::Given => panic!("the given server is not ours to start"),
            Backend::Container(container) => container.start().await.expect("to start"),
            Backend::Process(process) => process.start(),
        }
    }

    /// Ends it, and removes its data.
    pub async fn remove(&self) {
        match &self.backend {
            Backend::Given => {}
            Backend::Container(container) => {
                let mut remove = Command::new("docker");
                quiet(remove.args(["rm", "--force", "--volumes", container.id()])).await;
            }
            Backend::Process(process) => {
                process.signal("-KILL").await;
                std::fs::remove_dir_all(&process.directory).ok();
            }
        }
    }
}

/// On the host's network: members find themselves and each other under the names that clients know, also
/// after a restart, and no proxy stands between.
fn container(image: &str, port: u16, arguments: &[&'static str]) -> ContainerRequest<GenericImage> {
    let (name, tag) = image.rsplit_once(':').unwrap_or((image, "latest"));
    let run = std::env::var("PAGEBUCKET_TEST_RUN").unwrap_or_else(|_| "none".to_owned());
    let port = port.to_string();
    let own = ["--bind_ip", "127.0.0.1", "--port", &port, "--wiredTigerCacheSizeGB", CACHE];
    GenericImage::new(name, tag)
        .with_cmd(
            [
                arguments,
                &own,
                &["--setParameter", NO_DIAGNOSTICS, "--wiredTigerEngineConfigString", FEW_FILES],
            ]
            .concat(),
        )
        .with_network("host")
        .with_label("pagebucket.test-run", run)
        .with_startup_timeout(Duration::from_secs(60))
}

async fn quiet(command: &mut Command) {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().await;
    assert!(status.is_ok_and(|status| status.success()), "{command:?}");
}

fn direct(port: u16) -> String {
    format!("mongodb://127.0.0.1:{port}/?directConnection=true")
}

/// A port on which nobody listens. No other test gets the same one: neither the system nor the service's own
/// mongod uses ports of this range, and each test that runs has a part of it.
pub fn free_port() -> u16 {
    const PORTS: u32 = 10_000;
    const OF_A_TEST: u32 = 300;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let slot = std::env::var("NEXTEST_TEST_GLOBAL_SLOT").map_or(0, |slot| slot.parse().expect("a number"));
    // Two runs at once begin at different ports.
    let first = std::os::unix::process::parent_id().wrapping_mul(1_009).wrapping_add(slot * OF_A_TEST);
    loop {
        let taken = first.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
        let port = 10_000 + (taken % PORTS) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
