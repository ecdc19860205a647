//! How a command ends that fails, with an exit status and a sentence on standard error, or that a signal ends.

use std::io::Write;
use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Exit status of a command that a signal ended, as shells have it: 128 + SIGINT.
pub(super) const INTERRUPTED: u8 = 130;

/// Why a command failed: a sentence for the user.
#[derive(Debug)]
pub(super) enum Failure {
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
    pub(super) fn report(self) -> ExitCode {
        let (status, sentence) = match self {
            Self::Partly(sentence) => (1, sentence),
            Self::Usage(sentence) => (2, sentence),
            Self::Database(sentence) => (3, sentence),
            Self::Interrupted => return ExitCode::from(INTERRUPTED),
        };
        // Standard error may be closed; the exit status is then all that is left.
        let _ = writeln!(std::io::stderr(), "pagebucket: {sentence}");
        ExitCode::from(status)
    }
}

/// SIGTERM and Ctrl-C, from when this is made: they end nothing by themselves any more.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| Failure::Usage(format!("cannot listen for signals: {error}")))
        };
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    /// Sends a message for each signal from now on.
    pub(super) fn channel(mut self) -> mpsc::Receiver<()> {
        let (send, receive) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut wanted = true;
            while wanted {
                self.next().await;
                wanted = send.send(()).await.is_ok();
            }
        });
        receive
    }

    /// Completes with the next of either.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Does `work`, unless a signal comes first: [`Failure::Interrupted`].
    pub(super) async fn unless<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            done = work => done,
            () = self.next() => Err(Failure::Interrupted),
        }
    }
}
