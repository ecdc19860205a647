use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::database::{self, Opened};
use super::exit::{Failure, Signals};
use super::terminal::{print, print_error};
use crate::config::DatabaseArgs;
use crate::definition::Definitions;
use crate::domain::{Instant, Invalid, OwnerId};
use crate::store::history::{Engine, Erasure, Reopening};
use crate::store::{COMMAND, Deadline, Error};

/// Flags of `erase`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct EraseArgs {
    /// Owner whose histories are erased, all of them: an id, such as 7. With several collections of owners also the
    /// collection, such as customers=7.
    #[arg(long, visible_alias = "customer", value_name = "ID")]
    owner: String,

    /// Lift the tombstone of an owner that was erased. Its histories are empty, and their page and sequence numbers go on.
    #[arg(long)]
    reopen: bool,

    #[command(flatten)]
    database: DatabaseArgs,
}

const AFTER_HELP: &str = "\
Erasing is for good. Running servers answer every read and append of the owner with 410 from the first step on. A tombstone \
stays, which keeps the owner's id from being used again. The command may be repeated, also after it was interrupted. At the end it \
waits for the last sweep; if servers are running, they do it without the command.

Exit status: 0 all is erased and swept, or reopened; 1 nothing to reopen, or the last sweep is missing; 2 usage; 3 the \
database; 130 interrupted.";

/// Pause between two attempts to sweep, once the time has come.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(1);

pub(super) async fn run(args: EraseArgs) -> Result<ExitCode, Failure> {
    let definitions = database::definitions(&args.database.histories)?;
    let wanted = wanted(&args.owner, &definitions).map_err(Failure::Usage)?;
    let work = async |opened: &Opened, mut signals: Signals| {
        // The database must know tombstones.
        signals.unless(opened.prepare(true)).await?;
        let of_owner = |engine: &&Engine| engine.definition().owner.collection == wanted.collection;
        let engines: Vec<_> = opened.store.histories().iter().filter(of_owner).collect();
        match args.reopen {
            true => signals.unless(reopen(&engines, &wanted)).await,
            false => erase(&engines, &wanted, &mut signals).await,
        }
    };
    database::with(&args.database, false, work).await
}

/// One owner of one collection of owners.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    collection: String,
    id: OwnerId,
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.collection, self.id)
    }
}

/// Reads the flag that names the owner.
///
/// # Errors
/// A sentence for the user.
fn wanted(text: &str, definitions: &Definitions) -> Result<Wanted, String> {
    let owners = definitions.owners();
    let known = || owners.iter().map(|owner| owner.collection.as_str()).collect::<Vec<_>>().join(", ");
    let (owner, id) = match (text.split_once('='), &*owners) {
        (Some((collection, id)), _) => {
            let owner = owners.iter().find(|owner| owner.collection == collection);
            let unknown =
                || format!("--owner {text}: there is no such collection of owners (there are {})", known());
            (owner.ok_or_else(unknown)?, id)
        }
        (None, [only]) => (only, text),
        (None, _) => {
            return Err(format!(
                "--owner {text}: there are several collections of owners ({}); name one, as in {}={text}",
                known(),
                owners[0].collection
            ));
        }
    };
    let id = owner.kind.parse(id).map_err(|Invalid(rule)| format!("--owner {rule}"))?;
    Ok(Wanted { collection: owner.collection.clone(), id })
}

async fn erase(engines: &[&Engine], wanted: &Wanted, signals: &mut Signals) -> Result<ExitCode, Failure> {
    tracing::warn!(target: "pagebucket::audit", owners = wanted.collection, owner = %wanted.id, "an owner is to be erased by a command");
    let mut sweep_after = None;
    for engine in engines {
        sweep_after = sweep_after.max(signals.unless(erase_pages(engine, wanted)).await?);
    }
    if let Some(moment) = sweep_after {
        print(format_args!(
            "{wanted}: waiting for the last sweep, which is done after {moment}; a running server does it, too, and then \
             Ctrl-C may end this command now"
        ));
        let swept = signals.unless(sweep(engines, wanted)).await;
        if matches!(swept, Err(Failure::Interrupted)) {
            print_error(format_args!(
                "interrupted: the last sweep is left to a running server, or to this command"
            ));
        }
        swept?;
    }
    print(format_args!("{wanted}: erased; only a tombstone is left"));
    Ok(ExitCode::SUCCESS)
}

/// Deletes what a history has. Returns when the last sweep may be done, if it is left.
async fn erase_pages(engine: &Engine, wanted: &Wanted) -> Result<Option<Instant>, Failure> {
    let name = &engine.definition().name;
    let failed = |error: Error| failed(name, &error);
    let begun = engine.erase(&wanted.id, Deadline::within(COMMAND)).await;
    let mut erasure = begun.map_err(failed)?;
    if erasure == Erasure::Nothing {
        print(format_args!("{name}: no page is stored; a tombstone is written"));
    }
    // Keys may be left where no page was.
    while matches!(erasure, Erasure::Nothing | Erasure::Erasing) {
        print(format_args!("{name}: pages and keys are being deleted, and are no longer answered"));
        let step = engine.go_on_erasing(&wanted.id, Deadline::within(COMMAND)).await;
        erasure = step.map_err(failed)?;
    }
    print(format_args!("{name}: all pages and keys are deleted"));
    if erasure == Erasure::Swept {
        return Ok(None);
    }
    engine.sweep_after(&wanted.id, Deadline::within(COMMAND)).await.map_err(failed)
}

async fn sweep(engines: &[&Engine], wanted: &Wanted) -> Result<(), Failure> {
    for engine in engines {
        let name = &engine.definition().name;
        let step = async || engine.go_on_erasing(&wanted.id, Deadline::within(COMMAND)).await;
        while step().await.map_err(|error| failed(name, &error))? != Erasure::Swept {
            tokio::time::sleep(BETWEEN_SWEEPS).await;
        }
        print(format_args!("{name}: swept"));
    }
    Ok(())
}

async fn reopen(engines: &[&Engine], wanted: &Wanted) -> Result<ExitCode, Failure> {
    // All of them, or none: a sweep of one history deletes the keys of the others, whose records do not name their history.
    for engine in engines {
        let name = &engine.definition().name;
        let is_swept = engine.is_swept(&wanted.id, Deadline::within(COMMAND)).await;
        if is_swept.map_err(|error| failed(name, &error))? == Some(false) {
            return Err(not_swept(name));
        }
    }
    let mut reopened = false;
    for engine in engines {
        let name = &engine.definition().name;
        let reopening = engine.reopen(&wanted.id, Deadline::within(COMMAND)).await;
        match reopening.map_err(|error| failed(name, &error))? {
            Reopening::Reopened => {
                reopened = true;
                print(format_args!("{name}: reopened; page and sequence numbers go on"));
            }
            Reopening::NotErased => print(format_args!("{name}: is not erased")),
            Reopening::NotSwept => return Err(not_swept(name)),
        }
    }
    if reopened { Ok(ExitCode::SUCCESS) } else { Err(Failure::Partly(format!("{wanted} is not erased"))) }
}

fn not_swept(history: &str) -> Failure {
    Failure::Partly(format!("{history}: the last sweep is not done yet; erase again, and then reopen"))
}

fn failed(history: &str, error: &Error) -> Failure {
    Failure::Database(format!("{history}: {error}; run the command again to go on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_of_one_collection() {
        let built_in = Definitions::built_in();
        let seven = Wanted { collection: "customers".to_owned(), id: OwnerId::Integer(7) };
        assert_eq!(wanted("7", &built_in).as_ref(), Ok(&seven));
        assert_eq!(wanted("customers=7", &built_in), Ok(seven));
        // The files of one collection need not follow each other.
        let directory = std::env::temp_dir().join(format!("pagebucket-erase-{:x}", rand::random::<u64>()));
        std::fs::create_dir_all(&directory).unwrap();
        for (history, owners) in [("a", "accounts"), ("b", "rooms"), ("c", "accounts")] {
            let text = format!(
                r#"{{ "history": "{history}s", "title": "{}", "date": "at",
                    "owner": {{ "collection": "{owners}", "field": "{owners}Id", "type": "string" }}, "item": {{ "type": "object",
                        "properties": {{ "at": {{ "type": "string", "format": "date-time" }} }} }} }}"#,
                history.to_uppercase()
            );
            std::fs::write(directory.join(format!("{history}.json")), text).unwrap();
        }
        let several = Definitions::of_directory(&directory).unwrap();
        std::fs::remove_dir_all(directory).unwrap();
        assert_eq!(wanted("rooms=7", &several).unwrap().to_string(), "rooms=7");
        for (text, definitions, part) in [
            ("0", &built_in, "--owner must be a whole number"),
            ("rooms=7", &built_in, "no such collection of owners (there are customers)"),
            ("7", &several, "several collections of owners (accounts, rooms); name one, as in accounts=7"),
            ("rooms=a_b", &several, "--owner must"),
        ] {
            let sentence = wanted(text, definitions).unwrap_err();
            assert!(sentence.contains(part), "{text}: {sentence}");
        }
    }
}
