//! How a command ends that fails, with an exit status and a sentence on standard error, or that a signal
//! ends.

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;

use futures_util::future::OptionFuture;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Exit status of a command that a signal ended, as shells have it: 128 + SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command failed: a sentence for the user, or a line for each of several.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Exit status 1.
    Partly(String),
    /// Exit status 2.
    Usage(String),
    /// Exit status 3.
    Database(String),
    /// A signal ended it: exit status 130, without a sentence.
    Interrupted,
}

impl Failure {
    /// Writes the sentence, and returns the exit status.
    pub(crate) fn report(self) -> ExitCode {
        let status = match self {
            Self::Partly(_) => 1,
            Self::Usage(_) => 2,
            Self::Database(_) => 3,
            Self::Interrupted => INTERRUPTED,
        };
        for line in self.sentence().lines() {
            // Standard error may be closed; the exit status is then all that is left.
            let _ = writeln!(std::io::stderr(), "pagebucket: {line}");
        }
        ExitCode::from(status)
    }

    /// What the user reads. Empty after a signal.
    pub(crate) fn sentence(self) -> String {
        match self {
            Self::Partly(sentence) | Self::Usage(sentence) | Self::Database(sentence) => sentence,
            Self::Interrupted => String::new(),
        }
    }
}

/// SIGTERM, Ctrl-C and the end of the terminal, from when this is made: they end nothing by themselves any
/// more. Without a terminal SIGHUP means nothing.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// `None`: there is no terminal, or its end means nothing, as `nohup` has it.
    hangup: Option<Signal>,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| Failure::Usage(format!("cannot listen for signals: {error}")))
        };
        let hangup = (!ignores_hangup()).then(|| listen(SignalKind::hangup())).transpose()?;
        // Not before: who listens once is no longer ended by it.
        let hangup = hangup.filter(|_| File::open("/dev/tty").is_ok());
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup,
        })
    }

    /// Sends this message for each signal from now on.
    pub(crate) fn channel<T: Copy + Send + 'static>(mut self, message: T) -> mpsc::Receiver<T> {
        let (send, receive) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut wanted = true;
            while wanted {
                self.next().await;
                wanted = send.send(message).await.is_ok();
            }
        });
        receive
    }

    /// Completes with the next of them.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            Some(_) = OptionFuture::from(self.hangup.as_mut().map(Signal::recv)) => {}
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Does `work`, unless a signal comes first: [`Failure::Interrupted`].
    pub(crate) async fn unless<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            done = work => done,
            () = self.next() => Err(Failure::Interrupted),
        }
    }
}

/// Whether this process was started so that SIGHUP is ignored. `true` where that cannot be found out.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP is signal 1, the lowest bit.
    ignored.is_none_or(|mask| mask & 1 == 1)
}
