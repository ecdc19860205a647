//! The commands of the binary. Each says what it does by its exit status:
//!
//! | Status | |
//! |---|---|
//! | 0 | done |
//! | 1 | done in part, or not: `import` refused rows, `healthcheck` found it not ready, `migrate --check` found some pending |
//! | 2 | usage: flags, files, addresses that cannot be bound |
//! | 3 | the database, or the server of `import --url` |

mod database;
mod export;
mod healthcheck;
mod import;
mod migrate;
mod openapi;
mod preallocate;
mod serve;
mod signals;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::LogArgs;
use crate::telemetry;

/// Append-only histories in MongoDB, in buckets of ten, served as pages: a page is a bucket.
#[derive(Parser, Debug)]
#[command(name = "pagebucket", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    log: LogArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Apply pending migrations, then serve the API and its Swagger UI.
    Serve(serve::ServeArgs),
    /// Bring the database up to date.
    Migrate(migrate::MigrateArgs),
    /// Store the trades of a CSV or NDJSON file.
    Import(import::ImportArgs),
    /// Write the trades of a customer, or of all, to a file.
    Export(export::ExportArgs),
    /// Make the minutes of some hours of a page, before its views are counted.
    Preallocate(preallocate::PreallocateArgs),
    /// Print the OpenAPI document.
    Openapi,
    /// Ask a running server whether it is ready: for images without curl.
    Healthcheck(healthcheck::HealthcheckArgs),
}

/// Status of a command that a signal ended, as shells have it: 128 + SIGINT.
const INTERRUPTED: u8 = 130;

/// Why a command ended otherwise than well.
#[derive(Debug)]
enum Failure {
    /// Status 1, with a sentence.
    Partly(String),
    /// Status 2, with a sentence.
    Usage(String),
    /// Status 3, with a sentence.
    Database(String),
}

impl Cli {
    /// Runs the command, and says what became of it.
    pub async fn run(self) -> ExitCode {
        if let Err(error) = telemetry::start(&self.log) {
            return Failure::Usage(error).report();
        }
        let result = match self.command {
            Command::Serve(args) => serve::run(args).await,
            Command::Migrate(args) => migrate::run(args).await,
            Command::Import(args) => import::run(args).await,
            Command::Export(args) => export::run(args).await,
            Command::Preallocate(args) => preallocate::run(args).await,
            Command::Openapi => openapi::run(),
            Command::Healthcheck(args) => healthcheck::run(args).await,
        };
        result.unwrap_or_else(|failure| failure.report())
    }
}

impl Failure {
    fn report(self) -> ExitCode {
        let (status, sentence) = match self {
            Self::Partly(sentence) => (1, sentence),
            Self::Usage(sentence) => (2, sentence),
            Self::Database(sentence) => (3, sentence),
        };
        // Nobody reads standard error any more: the status is all that is left.
        let _ = writeln!(std::io::stderr(), "pagebucket: {sentence}");
        ExitCode::from(status)
    }
}

/// A line for whoever called, or for the program that reads our output. A reader that has gone away
/// is no failure.
fn print(line: std::fmt::Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
