//! Commands without a `MONGODB_URI`: a private mongod, below a directory of the test's own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::process::Command;

use super::program::{Serving, all_migrations, pagebucket, run};
use crate::harness::{PATIENCE, TOTAL, TRADES, eventually, mongod_on, skip, trade};
use crate::harness::{Raw, signal};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/trades.csv");

/// Where a user has gone to run the command, with the mongod to run there.
pub(super) struct Here {
    pub(super) directory: PathBuf,
    mongod: PathBuf,
}

impl Here {
    /// `None`, said aloud, where there is no mongod.
    pub(super) fn new() -> Option<Self> {
        let named = std::env::var_os("MONGOD").map(PathBuf::from);
        match pagebucket_embedded::find_mongod(named.as_deref()) {
            Ok(mongod) => Some(Self { directory: empty_directory(), mongod }),
            Err(error) => {
                skip("commands with a private mongod", &error.to_string());
                None
            }
        }
    }

    pub(super) fn pagebucket(&self, arguments: &[&str]) -> Command {
        self.set(pagebucket(arguments))
    }

    /// The same command, here.
    pub(super) fn set(&self, mut command: Command) -> Command {
        command.current_dir(&self.directory).env("MONGOD", &self.mongod);
        command
    }

    async fn serve(&self) -> Serving {
        Serving::start(TRADES, &mut self.pagebucket(&["serve", "--listen", "127.0.0.1:0"])).await
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// The process id of the mongod that runs on the data. Without one it is 0.
    fn mongod_pid(&self) -> u32 {
        mongod_on(&self.data().join("db")).unwrap_or(0)
    }

    fn mongod_runs(&self) -> bool {
        self.mongod_pid() != 0
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        // Only of a test that failed: its `serve` was killed before, and could not stop it.
        if self.mongod_runs() && self.mongod_pid() > 1 {
            signal("KILL", self.mongod_pid());
        }
        fs::remove_dir_all(&self.directory).ok();
    }
}

fn empty_directory() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name =
        format!("pagebucket-commands-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let directory = std::env::temp_dir().join(name);
    fs::create_dir_all(&directory).expect("an empty directory");
    directory
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_alone_keeps_its_data() {
    let Some(here) = Here::new() else { return };
    let serving = here.serve().await;
    let mongod = here.mongod_pid();
    assert!(here.mongod_runs() && Path::new(&format!("/proc/{mongod}")).exists());
    serving.client.get("/readyz").await.expect(200);
    serving.client.append(7, &json!([trade(1), trade(2)])).await.expect(201);

    // The drain comes before the end of the mongod.
    let body = trade(3).to_string();
    let mut request = Raw::begin_append(serving.address, 7, body.len()).await;
    serving.signal("TERM");
    serving.is_stopping().await;
    request.send(&body).await;
    let answer = request.rest().await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let ended = serving.ended().await;
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(
        !here.mongod_runs() && !Path::new(&format!("/proc/{mongod}")).exists(),
        "it ends with its server"
    );

    let serving = here.serve().await;
    let page = serving.client.get("/v1/customers/7/trades").await.expect(200);
    assert_eq!((&page[TOTAL], &page["items"][2]["qty"]), (&json!(3), &json!(3)), "{page}");
    serving.stop().await;
    assert!(!here.mongod_runs());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_has_one_server() {
    let Some(here) = Here::new() else { return };
    // Nobody serves: a tool has a mongod for its own lifetime.
    let ended = run(&mut here.pagebucket(&["migrate", "--check"])).await;
    assert_eq!((ended.status, ended.out), (Some(1), all_migrations("pending")));
    assert!(!here.mongod_runs());

    let serving = here.serve().await;
    let mongod = here.mongod_pid();
    let data = fs::canonicalize(here.data()).expect("it exists");
    let data = data.to_str().expect("UTF-8");
    let ended = run(&mut here.pagebucket(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data])).await;
    assert_eq!(
        ended.sentence(3),
        format!(
            "the data directory {data} is in use by another `pagebucket serve` (pid {}): stop that process or wait for its \
             end, or name another directory by --data-dir",
            serving.pid()
        )
    );

    // A tool joins it, also where it is named in another way.
    for data in [data, "./data", "data/../data"] {
        let ended = run(&mut here.pagebucket(&["migrate", "--check", "--data-dir", data])).await;
        assert_eq!((ended.status, ended.out.as_str()), (Some(0), "nothing is pending\n"), "{ended:?}");
    }
    assert_eq!(here.mongod_pid(), mongod, "it is the server's own all along");
    serving.client.append(7, &trade(1)).await.expect(201);
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_beside_a_server_tell_no_password() {
    let Some(here) = Here::new() else { return };
    let mut serving = here.pagebucket(&["serve", "--listen", "127.0.0.1:0", "--log", "trace"]);
    let serving = Serving::start(TRADES, &mut serving).await;
    let mongod = here.mongod_pid();
    let secrets = ["password", "key"]
        .map(|file| fs::read_to_string(here.data().join(file)).expect("a secret").trim().to_owned());
    let check = |text: &str, of: &str| {
        for secret in &secrets {
            assert!(!text.contains(secret), "{of} tells a secret: {text}");
        }
    };
    for command in [
        &["import", EXAMPLE, "--customer", "7"][..],
        &["export", "--customer", "7"],
        &["preallocate", "--path", "/index.htm", "--hour", "2014-01-01T10:00:00Z"],
        &["keys", "create", "--name", "backend", "--scope", "read"],
        &["keys", "list"],
        &["keys", "revoke", "backend"],
        &["migrate"],
        &["migrate", "--check"],
    ] {
        let ended = run(&mut here.pagebucket(&[command, &["--log", "trace"]].concat())).await;
        assert_eq!(ended.status, Some(0), "{command:?}: {ended:?}");
        assert!(ended.err.contains("joined the mongod of the running server"), "{command:?}: {ended:?}");
        check(&ended.out, command[0]);
        check(&ended.err, command[0]);
    }
    assert_eq!(here.mongod_pid(), mongod, "it is the server's own all along");
    let page = serving.client.get("/v1/customers/7/trades").await.expect(200);
    assert_eq!(page[TOTAL], 25, "{page}");
    for process in [serving.pid(), mongod] {
        for file in ["cmdline", "environ"] {
            let text = fs::read(format!("/proc/{process}/{file}")).expect("it runs");
            check(&String::from_utf8_lossy(&text), file);
        }
    }
    let ended = serving.stop().await;
    let file = fs::canonicalize(here.data().join("password")).expect("it is there");
    assert!(ended.err.contains(file.to_str().expect("UTF-8")), "it says where the password is: {ended:?}");
    check(&ended.out, "serve");
    check(&ended.err, "serve");
    check(&fs::read_to_string(here.data().join("mongod.log")).expect("a log"), "mongod");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_that_others_may_change_is_one_sentence() {
    let Some(here) = Here::new() else { return };
    fs::create_dir(here.data()).expect("a directory");
    fs::set_permissions(here.data(), fs::Permissions::from_mode(0o777)).expect("our own");
    let data = fs::canonicalize(here.data()).expect("it is there");
    for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["import", EXAMPLE, "--customer", "7"]] {
        let ended = run(&mut here.pagebucket(&[arguments, &["--log", "warn"]].concat())).await;
        assert_eq!(
            ended.sentence(3),
            format!(
                "{0} can be written to by other users: run `chmod go-w {0}`, or name another directory by --data-dir",
                data.display()
            )
        );
        assert_eq!((ended.err.lines().count(), ended.out.as_str()), (1, ""), "{ended:?}");
        assert_eq!(fs::read_dir(&data).expect("it is there").count(), 0, "nothing is made there");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_serve_starts_again() {
    let Some(here) = Here::new() else { return };
    for round in 1..=2 {
        let serving = here.serve().await;
        serving.client.append(7, &trade(round)).await.expect(201);
        let mongod = here.mongod_pid();
        serving.signal("KILL");
        let ended = serving.ended().await;
        assert_eq!(ended.status, None, "killed: {ended:?}");
        // The second time both are.
        if round == 2 {
            signal("KILL", mongod);
            eventually("the mongod is gone", PATIENCE, || async { !here.mongod_runs() }).await;
        } else {
            assert!(here.mongod_runs(), "left behind, as this test wants it");
        }
    }
    let serving = here.serve().await;
    let page = serving.client.get("/v1/customers/7/trades").await.expect(200);
    let quantities: Vec<_> =
        page["items"].as_array().unwrap().iter().map(|item| item["qty"].clone()).collect();
    assert_eq!(quantities, [1, 2], "what was acknowledged is kept");
    serving.client.append(7, &trade(3)).await.expect(201);
    serving.stop().await;
    assert!(!here.mongod_runs());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_early_signal_leaves_nothing_running() {
    let Some(here) = Here::new() else { return };
    for (arguments, name, expected) in [
        (&["serve", "--listen", "127.0.0.1:0"][..], "TERM", 0),
        (&["serve", "--listen", "127.0.0.1:0"], "INT", 0),
        (&["migrate"], "TERM", 130),
        (&["migrate"], "INT", 130),
        (&["import", EXAMPLE, "--customer", "7"], "TERM", 130),
        (&["import", EXAMPLE, "--customer", "7"], "INT", 130),
    ] {
        // One that was killed has left its own.
        let former = here.mongod_pid();
        let mut child = here.pagebucket(arguments).spawn().expect("to run");
        // Long before it is primary. Its lock is not tried: held by this test, it would keep the mongod from
        // starting.
        let started = || async { ![0, former].contains(&here.mongod_pid()) };
        eventually("a mongod is started", PATIENCE, started).await;
        signal(name, child.id().expect("it runs"));
        let status =
            tokio::time::timeout(PATIENCE, child.wait()).await.expect("its end").expect("its status");
        assert_eq!(status.code(), Some(expected), "SIG{name} to {arguments:?}");
        eventually("the mongod is gone", Duration::from_secs(10), || async { !here.mongod_runs() }).await;
    }
    here.serve().await.stop().await;
}

/// A mongod that ends as a real one does that finds no room.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_one_sentence() {
    let directory = empty_directory();
    let mongod = directory.join("mongod");
    let line = r#"{"s":"E","c":"WT","msg":"WiredTiger error message","attr":{"error":28,"message":{"error_str":"No space left on device"}}}"#;
    fs::write(&mongod, format!("#!/bin/sh\necho '{line}'\nexit 14\n")).expect("a program");
    fs::set_permissions(&mongod, fs::Permissions::from_mode(0o755)).expect("our own");
    for command in ["serve", "migrate"] {
        let mut command = pagebucket(&[command, "--log", "warn"]);
        command.env("PAGEBUCKET_LISTEN", "0").env("MONGOD", &mongod).current_dir(&directory);
        let ended = run(&mut command).await;
        let sentence = ended.sentence(3);
        assert!(sentence.starts_with("the disk of the database is full: mongod did not start"), "{ended:?}");
        assert!(!ended.err.contains("WiredTiger"), "{ended:?}");
    }
    fs::remove_dir_all(&directory).ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_mongod_is_one_sentence() {
    let directory = empty_directory();
    for command in ["serve", "migrate"] {
        let mut command = pagebucket(&[command, "--log", "warn"]);
        command.env("PAGEBUCKET_LISTEN", "0").current_dir(&directory);
        command.env("PATH", "").env("HOME", &directory).env("XDG_CACHE_HOME", &directory);
        let ended = run(&mut command).await;
        let sentence = ended.sentence(3);
        for part in ["no mongod was found", "--mongod", "MONGODB_URI", "scripts/fetch-mongod"] {
            assert!(sentence.contains(part), "{part}: {ended:?}");
        }
        assert_eq!((ended.err.lines().count(), ended.out.as_str()), (1, ""), "{ended:?}");
        let made = fs::read_dir(&directory).expect("it is there").count();
        assert_eq!(made, 0, "nothing is made before it is needed");
    }
    fs::remove_dir_all(&directory).ok();
}
