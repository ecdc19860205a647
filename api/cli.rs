//! The commands of the binary. Each says what it does by its exit status:
//!
//! | Status | |
//! |---|---|
//! | 0 | done |
//! | 1 | done in part, or not: `import` refused rows, `healthcheck` found it not ready, `migrate --check` found some pending |
//! | 2 | usage: flags, files, addresses that cannot be bound |
//! | 3 | the database, or the server of `import --url` |

mod database;
mod exit;
mod export;
mod healthcheck;
mod import;
mod migrate;
mod preallocate;
mod serve;
mod signals;
mod terminal;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::exit::Failure;
use crate::config::LogArgs;
use crate::{http, telemetry};

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
            Command::Openapi => print_openapi(),
            Command::Healthcheck(args) => healthcheck::run(args).await,
        };
        result.unwrap_or_else(|failure| failure.report())
    }
}

fn print_openapi() -> Result<ExitCode, Failure> {
    let written = std::io::stdout().lock().write_all(http::document().as_bytes());
    written.map_err(|error| Failure::Usage(format!("cannot write to standard output: {error}")))?;
    Ok(ExitCode::SUCCESS)
}
