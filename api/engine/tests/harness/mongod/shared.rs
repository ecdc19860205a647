//! The mongod that most tests share: one for a run, although nextest runs each test in a process of its own.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, parent_id};
use std::path::Path;
use std::process::{Command, Stdio};

use tokio::sync::OnceCell;

use super::{Backend, Mongod, Process, REPLICATION, Source};

/// The one that most tests share. They must not harm it.
pub async fn shared() -> &'static Mongod {
    static SHARED: OnceCell<Mongod> = OnceCell::const_new();
    let of_the_run = async || {
        let uri = match Source::choose() {
            Source::Given(uri) => uri,
            Source::Image(_) | Source::Binary(_) => started().await,
        };
        Mongod { uri, backend: Backend::Given }
    };
    SHARED.get_or_init(of_the_run).await
}

/// The address of the one that the first test of this run has started which needed it.
async fn started() -> String {
    // Without nextest all tests are in one process.
    let own = std::process::id();
    let (run, runner) =
        std::env::var("NEXTEST_RUN_ID").map_or((own.to_string(), own), |run| (run, parent_id()));
    let note = std::env::temp_dir().join(format!("pagebucket-test-shared-{run}"));
    let mut file = File::options().read(true).append(true).create(true).open(&note).expect("a file");
    file.lock().expect("a lock, until this file is closed");
    let mut uri = String::new();
    file.read_to_string(&mut uri).expect("an address");
    if uri.is_empty() {
        let mongod = Mongod::launch_by(REPLICATION, Process::start_apart).await;
        mongod.until_primary().await;
        uri = mongod.uri.clone();
        file.write_all(uri.as_bytes()).expect("to write");
        guard(mongod, runner, &note);
    }
    uri
}

/// Removes this mongod and the note of it as soon as the process `runner` has ended, however that ends.
fn guard(mongod: Mongod, runner: u32, note: &Path) {
    let remove = match &mongod.backend {
        Backend::Given => unreachable!("it is not ours"),
        Backend::Container(container) => format!("docker rm --force --volumes {}", container.id()),
        Backend::Process(process) => process.removal(),
    };
    let wait = format!("tail --pid={runner} -f /dev/null");
    let mut guard = Command::new("sh");
    guard.args(["-c", &format!("{wait}; {remove}; rm {}", note.display())]).process_group(0);
    guard.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[allow(clippy::zombie_processes, reason = "this process ends before the guard")]
    guard.spawn().expect("a shell");
    std::mem::forget(mongod);
}
