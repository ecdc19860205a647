//! The histories that a database has.

use std::process::ExitCode;

use crate::cli::database::{self, Opened};
use crate::cli::exit::{Failure, INTERRUPTED};
use crate::cli::signals::Signals;
use crate::cli::terminal::print;
use crate::config::DatabaseArgs;
use crate::embedded::Role;
use crate::store::KnownHistory;

/// Prints a line for each history of the database.
pub(super) async fn run(args: &DatabaseArgs) -> Result<ExitCode, Failure> {
    // Signals come first, so that an early one also stops the private mongod.
    let mut signals = Signals::new()?;
    let opened = tokio::select! {
        opened = database::open(args, Role::Tool, false) => opened?,
        () = signals.next() => return Ok(ExitCode::from(INTERRUPTED)),
    };
    opened
        .with(async |opened| {
            tokio::select! {
                listed = list(opened) => listed,
                () = signals.next() => Ok(ExitCode::from(INTERRUPTED)),
            }
        })
        .await
}

async fn list(opened: &Opened) -> Result<ExitCode, Failure> {
    let known = opened.store.known_histories().await;
    let known = known.map_err(|error| Failure::Database(error.to_string()))?;
    for history in &known {
        let KnownHistory { name, owners, owner_field, owner_type, page_size, date, max_item_bytes } = history;
        let defined = match opened.store.history(name) {
            Some(_) => "defined",
            None => "not defined: it is not served",
        };
        print(format_args!(
            "{name}: of {owners} by {owner_field} ({owner_type}), {page_size} a page, each of at most {max_item_bytes} \
             bytes, with the date {date}; {defined}"
        ));
    }
    if known.is_empty() {
        print(format_args!("the database has no histories"));
    }
    Ok(ExitCode::SUCCESS)
}
