//! The log, to standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{LogArgs, LogFormat};

/// Starts the log of this process. Later calls change nothing, so that tests may share a process.
///
/// # Errors
/// The filter is none; says why.
pub fn start(args: &LogArgs) -> Result<(), String> {
    let filter = EnvFilter::try_new(&args.log).map_err(|error| format!("--log is not a filter: {error}"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match args.log_format {
        LogFormat::Pretty => log.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    // An error says that there is a log already.
    drop(started);
    Ok(())
}
