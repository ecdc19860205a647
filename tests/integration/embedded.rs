//! The embedded mongod, with a real one: starts, restarts, crashes of either side, and who may share it.
//!
//! Each test owns a data directory and the processes on it. Without any mongod to run they are skipped.

pub mod access;

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bson::{Document, doc};
use mongodb::Client;
use pagebucket_embedded::{Embedded, EmbeddedError, Options, Role};
use tokio::time::{sleep, timeout};

use crate::harness::{PATIENCE, mongod_on, skip};

#[tokio::test(flavor = "multi_thread")]
pub async fn starts_in_an_empty_directory() {
    let Some(place) = Place::new() else { return };
    let mongod = place.serve().await;

    let hello = command(mongod.uri(), doc! { "hello": 1 }).await.expect("it answers");
    assert_eq!(hello.get_bool("isWritablePrimary").ok(), Some(true), "{hello}");
    assert_eq!(hello.get_str("setName").ok(), Some("rs0"), "{hello}");
    assert_eq!(hello.get_str("me").ok(), Some(&*format!("127.0.0.1:{}", place.port())), "{hello}");
    let password = fs::read_to_string(place.path().join("password")).expect("a password");
    let (password, port) = (password.trim(), place.port());
    assert_eq!(
        mongod.uri(),
        format!("mongodb://pagebucket:{password}@127.0.0.1:{port}/?directConnection=true")
    );

    mongod.stop().await;
    assert!(place.mongod_is_gone());
}

#[tokio::test(flavor = "multi_thread")]
pub async fn keeps_data_and_port_from_start_to_start() {
    let Some(place) = Place::new() else { return };
    let mongod = place.serve().await;
    let uri = mongod.uri().to_owned();
    store(&uri, 1).await;
    mongod.stop().await;

    let mongod = place.serve().await;
    assert_eq!(mongod.uri(), uri);
    assert_eq!(stored(&uri).await, [1]);
    mongod.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
pub async fn moves_when_its_port_is_taken() {
    let Some(place) = Place::new() else { return };
    let mongod = place.serve().await;
    let port = place.port();
    store(mongod.uri(), 1).await;
    mongod.stop().await;

    // It hangs up on mongod, which asks every member of its set whether that is itself. (One that is
    // silent is asked for 30 s; that works too, and is too slow for a test.)
    let take = || TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    // Under Wine, the port of a program that has ended is free a moment later.
    until("mongod has left its port", || async { take().is_ok() }).await;
    let taker = take().expect("it was free");
    std::thread::spawn(move || taker.incoming().for_each(drop));

    let mongod = place.serve().await;
    assert_ne!(place.port(), port);
    assert_eq!(stored(mongod.uri()).await, [1]);
    let config = command(mongod.uri(), doc! { "replSetGetConfig": 1 }).await.expect("it has one");
    assert!(config.to_string().contains(&format!("127.0.0.1:{}", place.port())), "{config}");
    store(mongod.uri(), 2).await;
    mongod.stop().await;

    // The new port is the one that is kept.
    let kept = place.port();
    let mongod = place.serve().await;
    assert_eq!(place.port(), kept);
    assert_eq!(stored(mongod.uri()).await, [1, 2]);
    mongod.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
pub async fn outlives_a_kill_of_mongod() {
    let Some(place) = Place::new() else { return };
    let mongod = place.serve().await;
    // One client all along, as the server has one: service has to resume under it.
    let client = client(mongod.uri()).await;
    for round in 1..=3 {
        let numbers = client.database("test").collection("numbers");
        until("it takes writes", || async { numbers.insert_one(doc! { "_id": round }).await.is_ok() }).await;
        let before = place.mongod_pid();
        signal("KILL", before);
        until("another is primary", || async {
            place.mongod_pid() != before && is_primary(mongod.uri()).await
        })
        .await;
    }
    assert_eq!(stored(mongod.uri()).await, [1, 2, 3]);
    mongod.stop().await;
    assert!(place.mongod_is_gone());
}

#[tokio::test(flavor = "multi_thread")]
pub async fn replaces_a_mongod_left_behind() {
    let Some(place) = Place::new() else { return };
    let mongod = place.serve().await;
    let uri = mongod.uri().to_owned();
    store(&uri, 1).await;
    mongod.stop().await;
    let orphan = Orphan::run(&place).await;
    store(&uri, 2).await;

    let mongod = place.serve().await;
    assert_ne!(place.mongod_pid(), orphan.pid());
    assert_eq!(mongod.uri(), uri);
    assert_eq!(stored(&uri).await, [1, 2]);
    mongod.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
pub async fn names_a_frozen_mongod_left_behind() {
    let Some(place) = Place::new() else { return };
    place.serve().await.stop().await;
    let orphan = Orphan::run(&place).await;
    signal("STOP", orphan.pid());

    let error = place.start(Role::Server).await.expect_err("the data are in use");
    let said = error.to_string();
    assert!(said.contains("left behind by an earlier run"), "{said}");
    assert!(said.contains(&format!("end it with `kill -9 {}`", orphan.pid())), "{said}");

    // What the sentence says helps.
    drop(orphan);
    place.serve().await.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
pub async fn finishes_what_a_killed_start_began() {
    let Some(place) = Place::new() else { return };
    // A dropped start kills its mongod. An empty directory is primary after some 500 ms, so that these
    // cut it off while it spawns, creates its files, listens, is initiated, elects itself.
    for cut in (25..=600).step_by(25) {
        if cut % 200 == 0 {
            place.clear();
        }
        match timeout(Duration::from_millis(cut), place.start(Role::Server)).await {
            Ok(started) => started.expect("it starts where others were cut off").stop().await,
            Err(_) => until("it is killed", || async { place.mongod_is_gone() }).await,
        }
    }
    let mongod = place.serve().await;
    store(mongod.uri(), 1).await;
    mongod.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
pub async fn refuses_a_second_server() {
    let Some(place) = Place::new() else { return };
    let mongod = place.serve().await;

    let began = Instant::now();
    let error = place.start(Role::Server).await.expect_err("one is enough");
    assert!(began.elapsed() < Duration::from_secs(2), "at once");
    assert_eq!(
        error.to_string(),
        format!(
            "the data directory {} is in use by another `pagebucket serve` (pid {}): stop that process or wait for its \
             end, or name another directory by --data-dir",
            fs::canonicalize(place.path()).expect("it exists").display(),
            std::process::id()
        )
    );
    assert!(is_primary(mongod.uri()).await, "the first is untouched");
    mongod.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
pub async fn lets_a_tool_join_a_server() {
    let Some(place) = Place::new() else { return };
    let server = place.serve().await;
    let tool = place.start(Role::Tool).await.expect("it joins");
    assert_eq!(tool.uri(), server.uri());
    let pid = place.mongod_pid();
    tool.stop().await;
    assert!(is_primary(server.uri()).await && place.mongod_pid() == pid, "the server keeps its mongod");

    // While the server's mongod is away a tool waits for the next one.
    signal("KILL", pid);
    let tool = place.start(Role::Tool).await.expect("it joins the next one");
    store(tool.uri(), 1).await;
    assert_eq!(stored(server.uri()).await, [1]);
    tool.stop().await;
    server.stop().await;

    // Without a server it has its own.
    let tool = place.start(Role::Tool).await.expect("it starts one");
    assert_eq!(stored(tool.uri()).await, [1]);
    tool.stop().await;
    assert!(place.mongod_is_gone());
}

#[tokio::test(flavor = "multi_thread")]
pub async fn refuses_anyone_beside_a_tool() {
    let Some(place) = Place::new() else { return };
    let tool = place.start(Role::Tool).await.expect("it starts one");
    for role in [Role::Server, Role::Tool] {
        let said = place.start(role).await.expect_err("its mongod ends with it").to_string();
        let owner =
            format!("in use by a pagebucket import, export or migration (pid {})", std::process::id());
        assert!(said.contains(&owner), "{said}");
    }
    tool.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
pub async fn dies_with_its_handle() {
    let Some(place) = Place::new() else { return };
    drop(place.serve().await);
    until("it is killed", || async { place.mongod_is_gone() }).await;
    // What watches over mongod lets go of the directory a moment after mongod is gone.
    until("it starts again", || async {
        let Ok(again) = place.start(Role::Server).await else { return false };
        again.stop().await;
        true
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
pub async fn ends_a_frozen_mongod_by_force() {
    let Some(place) = Place::new() else { return };
    let mongod = place.serve().await;
    store(mongod.uri(), 1).await;
    signal("STOP", place.mongod_pid());
    timeout(PATIENCE, mongod.stop()).await.expect("the wait for it is bounded");
    assert!(place.mongod_is_gone());

    let mongod = place.serve().await;
    assert_eq!(stored(mongod.uri()).await, [1]);
    mongod.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
pub async fn tells_why_mongod_does_not_start() {
    let Some(place) = Place::new() else { return };
    place.serve().await.stop().await;
    fs::write(place.path().join("db/WiredTiger.turtle"), "not a turtle").expect("it can be written");
    let error = place.start(Role::Server).await.expect_err("its files are broken");
    let said = error.to_string();
    assert!(said.starts_with("mongod did not start"), "{said}");
    assert!(said.contains("mongod.log\n  mongod: ") && said.contains("WiredTiger"), "{said}");
    assert!(place.mongod_is_gone());
}

/// The sentence for none at all is a unit test, since PATH belongs to the whole process.
#[tokio::test(flavor = "multi_thread")]
pub async fn says_what_to_do_without_a_mongod() {
    let options = options("/nowhere/data".into(), "/nowhere/mongod".into());
    let error = pagebucket_embedded::start(&options, Role::Server).await.expect_err("there is none");
    assert_eq!(
        error.to_string(),
        "--mongod or MONGOD names /nowhere/mongod, which is not an executable file: correct it, or leave it out to \
         search for a mongod"
    );
    assert!(!Path::new("/nowhere").exists(), "nothing is made before it is needed");
}

fn options(data_dir: PathBuf, mongod: PathBuf) -> Options {
    Options { data_dir, mongod: Some(mongod), start_task: |_, work| tokio::spawn(work) }
}

/// A data directory of a test's own, removed at its end, and the mongod to run there.
pub struct Place {
    options: Options,
}

impl Place {
    /// `None`, said aloud, where there is no mongod.
    pub fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let named = std::env::var_os("MONGOD").map(PathBuf::from);
        let mongod = match pagebucket_embedded::find_mongod(named.as_deref()) {
            Ok(mongod) => mongod,
            Err(error) => {
                skip("the private mongod", &error.to_string());
                return None;
            }
        };
        let name =
            format!("pagebucket-embedded-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let data_dir = std::env::temp_dir().join(name);
        Some(Self { options: options(data_dir, mongod) })
    }

    async fn start(&self, role: Role) -> Result<Embedded, EmbeddedError> {
        pagebucket_embedded::start(&self.options, role).await
    }

    pub async fn serve(&self) -> Embedded {
        self.start(Role::Server).await.unwrap_or_else(|error| panic!("it starts: {error}"))
    }

    pub fn path(&self) -> &Path {
        &self.options.data_dir
    }

    /// Its path without links, as messages have it.
    fn real(&self) -> PathBuf {
        fs::canonicalize(self.path()).expect("it exists")
    }

    fn clear(&self) {
        fs::remove_dir_all(self.path()).expect("it can be removed");
    }

    fn port(&self) -> u16 {
        let port = fs::read_to_string(self.path().join("port")).expect("the port is kept");
        port.trim().parse().expect("the port is a number")
    }

    /// Without a password.
    pub fn open_uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}/?directConnection=true", self.port())
    }

    /// The process id of the mongod that runs on the data. Without one it is 0.
    fn mongod_pid(&self) -> u32 {
        mongod_on(&self.path().join("db")).unwrap_or(0)
    }

    fn mongod_is_gone(&self) -> bool {
        self.mongod_pid() == 0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.mongod_is_gone() {
            signal("KILL", self.mongod_pid());
        }
        let _ = fs::remove_dir_all(self.path());
    }
}

/// A mongod on a place's data without an owner, as a killed server leaves one behind.
struct Orphan(Child);

impl Orphan {
    async fn run(place: &Place) -> Self {
        let mongod = place.options.mongod.as_ref().expect("a place has one");
        let mut command = Command::new(mongod);
        command
            .arg("--dbpath")
            .arg(place.path().join("db"))
            .args(["--port", &place.port().to_string(), "--bind_ip", "127.0.0.1"])
            .args(["--replSet", "rs0", "--nounixsocket"])
            .arg("--keyFile")
            .arg(place.path().join("key"))
            .stdout(Stdio::null());
        let orphan = Self(command.spawn().expect("it runs"));
        let uri = place.open_uri();
        until("the orphan listens", || async { TcpStream::connect(address(&uri)).is_ok() }).await;
        until("the orphan is primary", || is_primary(&uri)).await;
        orphan
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Orphan {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn signal(name: &str, pid: u32) {
    assert!(pid > 1, "a process of ours");
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.expect("kill runs").success(), "SIG{name} to {pid}");
}

async fn client(uri: &str) -> Client {
    Client::with_uri_str(format!("{uri}&serverSelectionTimeoutMS=2000")).await.expect("a valid URI")
}

async fn command(uri: &str, command: Document) -> mongodb::error::Result<Document> {
    client(uri).await.database("admin").run_command(command).await
}

fn address(uri: &str) -> &str {
    let hosts = uri.trim_start_matches("mongodb://").split('/').next().unwrap_or_default();
    hosts.rsplit('@').next().unwrap_or_default()
}

async fn is_primary(uri: &str) -> bool {
    TcpStream::connect(address(uri)).is_ok()
        && command(uri, doc! { "hello": 1 })
            .await
            .is_ok_and(|hello| hello.get_bool("isWritablePrimary").unwrap_or(false))
}

async fn store(uri: &str, number: i32) {
    let numbers = client(uri).await.database("test").collection("numbers");
    numbers.insert_one(doc! { "_id": number }).await.expect("it is stored");
}

async fn stored(uri: &str) -> Vec<i32> {
    let numbers = client(uri).await.database("test").collection::<Document>("numbers");
    let mut cursor = numbers.find(doc! {}).sort(doc! { "_id": 1 }).await.expect("it is read");
    let mut found = Vec::new();
    while cursor.advance().await.expect("it is read") {
        found.push(cursor.current().get_i32("_id").expect("a number"));
    }
    found
}

async fn until<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let began = Instant::now();
    while !condition().await {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}
