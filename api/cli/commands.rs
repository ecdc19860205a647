//! The commands of the program, and their exit statuses:
//!
//! | Status | Meaning |
//! |---|---|
//! | 0 | success |
//! | 1 | `import` or `adopt` refused rows (or `adopt --dry-run` would), `adopt --check` found differences, `verify` found damage, `healthcheck` found the server not ready, `migrate --check` found pending migrations, `histories check` found mistakes, `erase --reopen` found nothing to reopen, `erase --replay` refused lines |
//! | 2 | usage: a wrong flag or file, or an address that cannot be bound |
//! | 3 | the database failed, or the server of `import --url` |
//! | 130 | a signal ended any command but `serve` |

mod adopt;
mod database;
mod erase;
mod exit;
mod export;
mod healthcheck;
mod histories;
mod import;
mod keys;
mod migrate;
mod preallocate;
pub mod serve;
mod tail;
mod terminal;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use pagebucket_model::domain::Invalid;

use self::exit::Failure;
use self::terminal::write;
use crate::config::{HistoriesArgs, LogArgs, environment, file};
use crate::{reference, telemetry};

/// Append-only histories in MongoDB, in buckets, served as pages: a page is a bucket.
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
    Serve(Box<serve::ServeArgs>),
    /// Bring the database up to date.
    Migrate(migrate::MigrateArgs),
    /// Store the items of a CSV or NDJSON file.
    Import(import::ImportArgs),
    /// Store the items of another MongoDB collection.
    ///
    /// It may follow the collection until its writers have moved.
    Adopt(Box<adopt::AdoptArgs>),
    /// Write the items of one owner, or of all owners, to a file.
    Export(export::ExportArgs),
    /// Print the last items of one owner, and those that are appended.
    Tail(tail::TailArgs),
    /// Compare all pages with the invariants.
    ///
    /// It may repair what can be repaired without loss.
    Verify(verify::VerifyArgs),
    /// Rebuild the native time series of a history, or drop it.
    Series(histories::series::SeriesArgs),
    /// Erase all histories of one owner, or reopen them.
    Erase(erase::EraseArgs),
    /// Create the counters of some hours of a page before its views are counted.
    Preallocate(preallocate::PreallocateArgs),
    /// Print the OpenAPI document.
    Openapi(OpenapiArgs),
    /// List the histories of the database, check a definition, or show one.
    Histories(histories::HistoriesCommandArgs),
    /// Create, list and revoke the API keys of servers.
    Keys(keys::KeysArgs),
    /// Ask a running server whether it is ready.
    ///
    /// This is for container images without curl.
    Healthcheck(healthcheck::HealthcheckArgs),
    /// Print what completes the commands and flags of the program in a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page of the program, or of a command of it.
    ///
    /// `pagebucket man serve | man -l -` shows that of `serve`.
    Man {
        /// The command, such as `serve` or `keys create`.
        command: Vec<String>,
    },
    /// Print a page of docs/reference.
    #[command(hide = true)]
    Reference {
        /// Its name.
        page: reference::ReferencePage,
    },
}

/// The OpenAPI document.
#[derive(Args, Debug)]
struct OpenapiArgs {
    #[command(flatten)]
    histories: HistoriesArgs,
    /// Version of the OpenAPI Specification.
    ///
    /// 3.0 is for generators that do not read 3.1.
    #[arg(long, value_name = "VERSION", default_value = "3.1")]
    #[arg(value_parser = PossibleValuesParser::new(SPECS.map(|(name, _)| name)).map(|name| spec(&name)))]
    spec: pagebucket_http::Version,
}

const SPECS: [(&str, pagebucket_http::Version); 2] =
    [("3.0", pagebucket_http::Version::V3_0), ("3.1", pagebucket_http::Version::V3_1)];

fn spec(name: &str) -> pagebucket_http::Version {
    SPECS.into_iter().find(|spec| spec.0 == name).expect("clap knows the names").1
}

impl Cli {
    /// The command that this process was started with. After a mistake of flags, or for `--help`, it ends the
    /// process.
    ///
    /// # Errors
    /// The exit status after a mistake in the file of `serve --config`.
    pub fn of_process() -> Result<Self, ExitCode> {
        // There the variables would make two lines of nearly each flag.
        let short = std::env::args_os().any(|argument| argument == "-h");
        let mut program = if short { without_variables(Self::command()) } else { Self::command() };
        let mut given = program.clone().get_matches();
        let serve = given.subcommand_matches("serve");
        if let Some(file) = serve.and_then(|serve| serve.get_one::<PathBuf>("config")) {
            let with_file = file::with_defaults(program, file);
            program = with_file.map_err(|Invalid(rule)| Failure::Usage(rule).report())?;
            given = program.clone().get_matches();
        }
        let mut cli = Self::from_arg_matches(&given).unwrap_or_else(|error| error.exit());
        program.build();
        let serve = program.find_subcommand("serve").zip(given.subcommand_matches("serve"));
        if let (Command::Serve(args), Some((serve, given))) = (&mut cli.command, serve) {
            args.in_force = file::in_force(serve, given);
        }
        Ok(cli)
    }

    /// Runs the command, and returns its exit status.
    pub async fn run(self) -> ExitCode {
        let traces = match &self.command {
            Command::Serve(args) => Some(&args.traces),
            _ => None,
        };
        if let Err(Invalid(rule)) = telemetry::start(&self.log, traces) {
            return Failure::Usage(rule).report();
        }
        let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        for sentence in environment::unknown(&Self::command(), variables) {
            tracing::warn!("{sentence}");
        }
        let result = match self.command {
            Command::Serve(args) => serve::run(*args).await,
            Command::Migrate(args) => migrate::run(args).await,
            Command::Import(args) => import::run(args).await,
            Command::Adopt(args) => adopt::run(*args).await,
            Command::Export(args) => export::run(args).await,
            Command::Tail(args) => tail::run(args).await,
            Command::Verify(args) => verify::run(args).await,
            Command::Series(args) => histories::series::run(args).await,
            Command::Erase(args) => erase::run(args).await,
            Command::Preallocate(args) => preallocate::run(args).await,
            Command::Openapi(OpenapiArgs { histories, spec }) => database::definitions(&histories)
                .and_then(|definitions| print_text(pagebucket_http::document(&definitions, spec))),
            Command::Histories(args) => histories::run(args).await,
            Command::Keys(args) => keys::run(args).await,
            Command::Healthcheck(args) => healthcheck::run(args).await,
            Command::Completions { shell } => print_text(reference::completions(Self::command(), shell)),
            Command::Man { command } => reference::manual(Self::command(), &command)
                .map_err(|Invalid(rule)| Failure::Usage(rule))
                .and_then(print_text),
            Command::Reference { page } => print_text(reference::page(Self::command(), page)),
        };
        telemetry::traces::end().await;
        result.unwrap_or_else(exit::Failure::report)
    }
}

fn print_text(text: String) -> Result<ExitCode, Failure> {
    write(&text).map(|()| ExitCode::SUCCESS)
}

/// The same program, whose help does not name the variables of the environment.
fn without_variables(program: clap::Command) -> clap::Command {
    program
        .after_help("Most flags may also be set by a variable of the environment: see --help.")
        .mut_args(|arg| arg.hide_env(true))
        .mut_subcommands(without_variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_told_in_a_line() {
        let mut commands = vec![Cli::command()];
        while let Some(command) = commands.pop() {
            for arg in command.get_arguments() {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let (name, length) = (command.get_name(), help.chars().count());
                assert!((1..=70).contains(&length), "{name} {}: {length}: {help}", arg.get_id());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }
}
