//! The child process: its command line, and the end of its log.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use serde_json::Value;
use tokio::process::{Child, Command};
use tracing::warn;

use super::error::Error;
use super::layout::{self, Layout};
use super::replica;

/// mongod's exit status when it cannot listen.
const EXIT_NET_ERROR: i32 = 48;

/// Size in bytes from which a log becomes the former log at the next start.
const LOG_LIMIT: u64 = 16 << 20;

/// The part of the log's end that is searched for errors (bytes), the number of lines that are shown, and the maximum
/// length of each (characters).
const TAIL: u64 = 256 << 10;
const LINES: usize = 5;
const LINE: usize = 300;

/// A running child, killed when dropped.
#[derive(Debug)]
pub(super) struct Mongod {
    child: Child,
    log: PathBuf,
    /// Offset in the log at which the lines of this child begin.
    log_from: u64,
}

impl Mongod {
    pub(super) fn spawn(binary: &Path, layout: &Layout, port: u16) -> Result<Self, Error> {
        let (out, log_from) = open_log(layout)?;
        let err = out.try_clone().map_err(|error| Error::io("write", &layout.log, &error))?;
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
            // Nothing here runs JavaScript in the server.
            .arg("--noscripting")
            // A socket file in /tmp would outlive a `kill -9`.
            .arg("--nounixsocket")
            // The default is half of the memory, which other programs need. Appends and reads touch tails and the
            // requested page; 512 MiB hold hundreds of thousands of tails, and the rest is in the system's file cache.
            .args(["--wiredTigerCacheSizeGB", "0.5"])
            // The default is 5 % of the disk, up to 50 GB. A single node only needs it to retry unanswered writes, which
            // are seconds old.
            .args(["--oplogSize", "1024"])
            // No line per connection: nothing rotates the log of a server that runs for months.
            .arg("--quiet")
            // Would be up to 200 MB that have no use here.
            .args(["--setParameter", "diagnosticDataCollectionEnabled=false"])
            // By default mongod waits 15 s after a SIGTERM, so that another node can take over. This one is alone.
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
                Error::NotRun(format!(
                    "{binary} could not be run ({error}): name another mongod by --mongod or MONGOD"
                ))
            })?;
        Ok(Self { child, log: layout.log.clone(), log_from })
    }

    /// Completes when the child has ended, at once if it has ended already. May be dropped and called again.
    pub(super) async fn exited(&mut self) -> Result<ExitStatus, Error> {
        self.child
            .wait()
            .await
            .map_err(|error| Error::io("wait for mongod, which logs to", &self.log, &error))
    }

    /// Kills it, unless it has ended, and waits for its end.
    pub(super) async fn kill(&mut self) {
        if self.child.id().is_some()
            && let Err(error) = self.child.kill().await
        {
            warn!(%error, "mongod could not be killed");
        }
    }

    pub(super) fn why_it_ended(&self, status: ExitStatus, port: u16) -> Error {
        match status.code() {
            Some(EXIT_NET_ERROR) => Error::PortTaken(port),
            _ => Error::NotRun(format!(
                "mongod did not start ({status}): correct what its log names, {}{}",
                self.log.display(),
                self.last_words()
            )),
        }
    }

    /// The last errors in this child's part of the log, each on a new line, indented. Empty for one that
    /// was killed without a word.
    pub(super) fn last_words(&self) -> String {
        last_words(&read_tail(&self.log, self.log_from).unwrap_or_default())
    }
}

/// Opens the log for appending, and returns its length.
fn open_log(layout: &Layout) -> Result<(File, u64), Error> {
    let path = &layout.log;
    let failed = |error| Error::io("write", path, &error);
    if fs::symlink_metadata(path).is_ok_and(|log| log.len() > LOG_LIMIT) {
        fs::rename(path, &layout.former_log).map_err(failed)?;
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

fn last_words(log: &str) -> String {
    let errors: Vec<String> = log.lines().filter_map(read_error).collect();
    errors[errors.len().saturating_sub(LINES)..].iter().flat_map(|error| ["\n  mongod: ", error]).collect()
}

/// The text of a line with an error. A line that is not mongod's JSON comes from the dynamic linker or the option parser,
/// and is shown whole.
fn read_error(line: &str) -> Option<String> {
    let Ok(entry) = serde_json::from_str::<Value>(line) else {
        return (!line.trim().is_empty()).then(|| shorten(line));
    };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    matches!(entry.get("s")?.as_str()?, "F" | "E").then_some(())?;
    let message = text(entry.get("msg")?);
    let detail = ["/attr/error/errmsg", "/attr/error", "/attr"].iter().find_map(|place| entry.pointer(place));
    match detail.map(text) {
        Some(detail) => Some(shorten(&format!("{message}: {detail}"))),
        None => Some(shorten(&message)),
    }
}

/// The text on one line, shortened.
fn shorten(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LINE).collect()
}

#[cfg(test)]
mod tests {
    use super::last_words;

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
