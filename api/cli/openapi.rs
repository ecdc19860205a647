use std::io::Write;
use std::process::ExitCode;

use super::Failure;
use crate::http;

pub(super) fn run() -> Result<ExitCode, Failure> {
    let written = std::io::stdout().lock().write_all(http::document().as_bytes());
    written.map_err(|error| Failure::Usage(format!("cannot write to standard output: {error}")))?;
    Ok(ExitCode::SUCCESS)
}
