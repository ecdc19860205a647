//! How a command that fails ends: an exit status and a sentence on standard error.

use std::io::Write;
use std::process::ExitCode;

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
}

impl Failure {
    /// Writes the sentence, and returns the exit status.
    pub(super) fn report(self) -> ExitCode {
        let (status, sentence) = match self {
            Self::Partly(sentence) => (1, sentence),
            Self::Usage(sentence) => (2, sentence),
            Self::Database(sentence) => (3, sentence),
        };
        // Standard error may be closed; the exit status is then all that is left.
        let _ = writeln!(std::io::stderr(), "pagebucket: {sentence}");
        ExitCode::from(status)
    }
}
