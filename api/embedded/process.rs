//! The child process: its command line, the end of its log, and its supervisor.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::fs::statvfs;
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::claim::Claim;
use super::layout::{self, DISK_FULL, EmbeddedError, Layout};
use super::replica::{self, Replica};

/// mongod's exit status when it cannot listen.
const EXIT_NET_ERROR: i32 = 48;

/// Size in bytes from which a log becomes the former log at the next start.
const LOG_LIMIT: u64 = 16 << 20;

/// The part of the log's end that is searched for errors (bytes), the number of lines that are shown, and the
/// maximum length of each (characters).
const TAIL: u64 = 256 << 10;
const LINES: usize = 5;
const LINE: usize = 300;

/// Bytes that the last lines of a child need.
const ROOM_FOR_LOG: u64 = 1 << 20;

/// A running child, killed when dropped.
#[derive(Debug)]
pub(crate) struct Mongod {
    child: Child,
    log: PathBuf,
    /// Offset in the log at which the lines of this child begin.
    log_from: u64,
}

impl Mongod {
    pub(crate) fn spawn(binary: &Path, layout: &Layout, port: u16) -> Result<Self, EmbeddedError> {
        let (out, log_from) = open_log(layout)?;
        let err = out.try_clone().map_err(|error| EmbeddedError::io("write", &layout.log, &error))?;
        let child = Command::new(binary)
            .arg("--dbpath")
            .arg(&layout.db)
            .args(["--port", &port.to_string(), "--bind_ip", "127.0.0.1"])
            .args(["--replSet", replica::NAME])
            // Turns authorization on.
            .arg("--keyFile")
            .arg(&layout.key)
            // Otherwise any local user could create the first user before this process does.
            .args(["--setParameter", "enableLocalhostAuthBypass=false"])
            // Nothing here runs JavaScript in the server. A socket file in /tmp would outlive a `kill -9`. No
            // line per connection: nothing rotates the log of a server that runs for months.
            .args(["--noscripting", "--nounixsocket", "--quiet"])
            // The default is half of the memory, which other programs need. Appends and reads touch tails and
            // the requested page; 512 MiB hold hundreds of thousands of tails, and the rest is in the
            // system's file cache.
            .args(["--wiredTigerCacheSizeGB", "0.5"])
            // The default is 5 % of the disk, up to 50 GB. A single node only needs it to retry unanswered
            // writes, which are seconds old.
            .args(["--oplogSize", "1024"])
            // Would be up to 200 MB that have no use here.
            .args(["--setParameter", "diagnosticDataCollectionEnabled=false"])
            // By default mongod waits 15 s after a SIGTERM, so that another node can take over. This one is
            // alone.
            .args(["--setParameter", "shutdownTimeoutMillisForSignaledShutdown=100"])
            .stdin(Stdio::null())
            // Not --logpath: mongod reports a missing library or a wrong option before it opens that file.
            .stdout(out)
            .stderr(err)
            // Ctrl-C in a terminal goes to the whole group; the server has to drain before mongod stops.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                let binary = binary.display();
                EmbeddedError::NotRun(format!(
                    "{binary} could not be run ({error}): name another mongod by --mongod or MONGOD"
                ))
            })?;
        Ok(Self { child, log: layout.log.clone(), log_from })
    }

    /// Completes when the child has ended, at once if it has ended already. May be dropped and called again.
    pub(crate) async fn exited(&mut self) -> Result<ExitStatus, EmbeddedError> {
        let ended = self.child.wait().await;
        ended.map_err(|error| EmbeddedError::io("wait for mongod, which logs to", &self.log, &error))
    }

    /// Kills it, unless it has ended, and waits for its end.
    pub(crate) async fn kill(&mut self) {
        if self.child.id().is_some()
            && let Err(error) = self.child.kill().await
        {
            warn!(%error, "mongod could not be killed");
        }
    }

    pub(crate) fn why_it_ended(&self, status: ExitStatus, port: u16) -> EmbeddedError {
        match status.code() {
            Some(EXIT_NET_ERROR) => EmbeddedError::PortTaken(port),
            _ if self.met_full_disk() => EmbeddedError::NotRun(format!(
                "{DISK_FULL}: mongod did not start ({status}): make room for {}, then start again",
                self.log.display()
            )),
            _ => EmbeddedError::NotRun(format!(
                "mongod did not start ({status}): correct what its log names, {}{}",
                self.log.display(),
                self.last_words()
            )),
        }
    }

    /// Whether this child ended because of a full disk: its part of the log tells so, or there is not even
    /// room for the log.
    fn met_full_disk(&self) -> bool {
        let told = read_tail(&self.log, self.log_from).is_ok_and(|log| tells_of_full_disk(&log));
        told || statvfs(&self.log).is_ok_and(|disk| disk.f_bavail * disk.f_frsize < ROOM_FOR_LOG)
    }

    /// The last errors in this child's part of the log, each on a new line, indented. Empty for one that
    /// was killed without a word.
    pub(crate) fn last_words(&self) -> String {
        last_words(&read_tail(&self.log, self.log_from).unwrap_or_default())
    }
}

/// Opens the log for appending, and returns its length.
fn open_log(layout: &Layout) -> Result<(File, u64), EmbeddedError> {
    let path = &layout.log;
    let failed = |error| EmbeddedError::io("write", path, &error);
    if fs::symlink_metadata(path).is_ok_and(|log| log.len() > LOG_LIMIT) {
        fs::rename(path, layout.root.join("mongod.log.1")).map_err(failed)?;
    }
    let log = layout::file().append(true).create(true).open(path).map_err(failed)?;
    let length = log.metadata().map_err(failed)?.len();
    Ok((log, length))
}

fn read_tail(path: &Path, from: u64) -> io::Result<String> {
    let mut log = layout::file().read(true).open(path)?;
    let from = from.max(log.metadata()?.len().saturating_sub(TAIL));
    log.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    log.take(TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The system's message, which mongod writes with an error of its storage engine or of its own.
fn tells_of_full_disk(log: &str) -> bool {
    log.contains("No space left on device")
}

fn last_words(log: &str) -> String {
    let errors: Vec<String> = log.lines().filter_map(read_error).collect();
    errors[errors.len().saturating_sub(LINES)..].iter().flat_map(|error| ["\n  mongod: ", error]).collect()
}

/// The text of a line with an error. A line that is not mongod's JSON comes from the dynamic linker or the
/// option parser, and is shown whole.
fn read_error(line: &str) -> Option<String> {
    let Ok(entry) = serde_json::from_str::<Value>(line) else {
        return (!line.trim().is_empty()).then(|| shorten(line));
    };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    matches!(entry.get("s")?.as_str()?, "F" | "E").then_some(())?;
    let message = text(entry.get("msg")?);
    let detail = ["/attr/error/errmsg", "/attr/error", "/attr"].iter().find_map(|place| entry.pointer(place));
    Some(shorten(&detail.map_or_else(|| message.clone(), |detail| format!("{message}: {}", text(detail)))))
}

/// The text on one line, shortened.
fn shorten(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LINE).collect()
}

/// Time for a clean end. It is enough for a checkpoint of 512 MiB.
const STOP: Duration = Duration::from_secs(20);

/// The pause before a restart. The first is short, so that one `kill -9` is hardly noticed. It doubles each
/// time the child ends early, up to a pause at which a broken child costs nothing.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A child that has run for this time was sound: the next pause is the first again.
const SOUND: Duration = Duration::from_secs(60);

/// What the supervisor owns. The fields are dropped in this order: the claim ends after the child.
pub(crate) struct Supervised {
    pub(crate) mongod: Mongod,
    pub(crate) replica: Replica,
    pub(crate) binary: PathBuf,
    pub(crate) layout: Layout,
    #[expect(dead_code, reason = "it is held")]
    pub(crate) claim: Claim,
}

impl Supervised {
    /// Restarts the child on the same port, which clients know, until `stop`.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let (mut pause, mut is_primary, mut since) = (FIRST_PAUSE, true, Instant::now());
        loop {
            tokio::select! {
                () = stop.cancelled() => return self.end().await,
                () = self.replica.until_primary(&self.layout.db), if !is_primary => {
                    info!("the private mongod is primary again");
                    is_primary = true;
                    continue;
                }
                ended = self.mongod.exited() => match ended {
                    Ok(status) if self.mongod.met_full_disk() => {
                        error!(%status, "{DISK_FULL}, and mongod has ended: make room, and it goes on");
                    }
                    Ok(status) => warn!(%status, "mongod ended by itself{}", self.mongod.last_words()),
                    Err(error) => warn!(%error, "mongod cannot be waited for"),
                },
            }
            if since.elapsed() > SOUND {
                pause = FIRST_PAUSE;
            }
            self.mongod = loop {
                if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                    return;
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
                match Mongod::spawn(&self.binary, &self.layout, self.replica.port) {
                    Ok(mongod) => break mongod,
                    Err(error) => error!(%error, "mongod could not be restarted"),
                }
            };
            info!("mongod has been restarted");
            (is_primary, since) = (false, Instant::now());
        }
    }

    async fn end(&mut self) {
        let ended = timeout(STOP, async {
            tokio::select! {
                ended = self.mongod.exited() => ended,
                never = self.replica.shut_down(&self.layout.db) => match never {},
            }
        });
        match ended.await {
            Ok(Ok(status)) => info!(%status, "the private mongod has stopped"),
            Ok(Err(error)) => warn!(%error, "mongod cannot be waited for"),
            Err(_) => {
                warn!(seconds = STOP.as_secs(), "mongod did not stop in time; it is killed");
                self.mongod.kill().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{last_words, tells_of_full_disk};

    #[test]
    fn errors_are_picked_from_the_log() {
        let log = concat!(
            r#"{"s":"I","msg":"MongoDB starting"}"#,
            "\n",
            r#"{"s":"E","msg":"Error creating journal directory","attr":{"error":"No space left on device"}}"#,
            "\n",
            r#"{"s":"I","msg":"Now exiting"}"#,
            "\n",
        );
        assert_eq!(last_words(log), "\n  mongod: Error creating journal directory: No space left on device");
        assert!(tells_of_full_disk(log) && !tells_of_full_disk("{}"));
    }

    #[test]
    fn only_the_last_few_are_told() {
        let log: String = (1..=9).map(|n| format!("{{\"s\":\"F\",\"msg\":\"error {n}\"}}\n")).collect();
        assert!(last_words(&log).starts_with("\n  mongod: error 5\n  mongod: error 6\n"));
        assert_eq!(last_words("{\"s\":\"I\",\"msg\":\"all is well\"}\n\n"), "");
    }

    #[test]
    fn what_the_linker_says_counts() {
        let log = "mongod: error while loading shared libraries: libcurl.so.4: cannot open\n";
        assert!(last_words(log).contains("libcurl.so.4"));
    }
}
