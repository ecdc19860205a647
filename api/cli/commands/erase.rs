//! `erase`: erases all histories of one owner, or reopens them.

mod replay;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use pagebucket_engine::erasures::{Erasure, Reopening};
use pagebucket_engine::internal::COMMAND;
use pagebucket_engine::{Deadline, Engine, Error};
use pagebucket_model::definition::Definitions;
use pagebucket_model::domain::{Instant, Invalid, OwnerId};

use super::database::{self, Opened, Unready};
use super::exit::{Failure, Signals};
use super::terminal::{print, print_error};
use crate::config::DatabaseArgs;

/// Flags of `erase`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct EraseArgs {
    /// Owner whose histories are erased, all of them: an id, such as 7.
    ///
    /// With several collections of owners also the collection, such as customers=7.
    #[arg(long, visible_alias = "customer", value_name = "ID", required_unless_present = "replay")]
    owner: Option<String>,

    /// Lift the tombstone of an owner that was erased.
    ///
    /// Its histories are empty, and their page and sequence numbers go on.
    #[arg(long)]
    reopen: bool,

    /// For a restored backup: erase again what was erased since.
    ///
    /// Do it before any server runs on it. Owners that were reopened are reopened. FILE is the log of all
    /// servers and of this command, in any order. Other lines are left out. `-` is standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["owner", "reopen"])]
    replay: Option<PathBuf>,

    #[command(flatten)]
    database: DatabaseArgs,
}

const AFTER_HELP: &str = "\
Erasing is for good. Running servers answer every read and append of the owner with 410 from the first step on. A tombstone \
stays, which keeps the owner's id from being used again. The command may be repeated, also after it was interrupted. At the end it \
waits for the last sweep; if servers are running, they do it without the command. --replay waits only if owners are to be reopened.

Exit status: 0 all is erased and swept, or reopened, or replayed; 1 nothing to reopen, or the last sweep is missing, or lines of \
--replay are refused; 2 usage; 3 the database; 130 interrupted.";

/// Pause between two attempts to sweep, once the time has come.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(1);

pub(crate) async fn run(args: EraseArgs) -> Result<ExitCode, Failure> {
    let definitions = database::definitions(&args.database.histories)?;
    if let Some(file) = &args.replay {
        let log = replay::read(file, &definitions)?;
        let work = async |opened: &Opened, mut signals: Signals| {
            signals.unless(opened.prepare(true)).await?;
            replay::run(log, &opened.store, &mut signals).await
        };
        return database::with(&args.database, Unready::Refuse, work).await;
    }
    let owner = args.owner.as_deref().expect("clap requires --owner without --replay");
    let wanted = wanted(owner, &definitions)?;
    let work = async |opened: &Opened, mut signals: Signals| {
        // The database must know tombstones.
        signals.unless(opened.prepare(true)).await?;
        // Also those without a definition here.
        let engines = opened.store.histories_of(&wanted.collection, Deadline::within(COMMAND));
        let engines = signals.unless(async { engines.await.map_err(|error| refused(&error)) }).await?;
        match args.reopen {
            true => signals.unless(reopen(&engines, &wanted)).await,
            false => erase(&engines, &wanted, &mut signals).await,
        }
    };
    database::with(&args.database, Unready::Refuse, work).await
}

/// One owner of one collection of owners.
#[derive(Debug, PartialEq, Eq)]
struct OwnerToErase {
    collection: String,
    id: OwnerId,
}

impl std::fmt::Display for OwnerToErase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.collection, self.id)
    }
}

/// Reads the flag that names the owner.
///
/// # Errors
/// It names no owner that can be.
fn wanted(text: &str, definitions: &Definitions) -> Result<OwnerToErase, Failure> {
    let owners = definitions.owners();
    let known = || owners.iter().map(|owner| owner.collection.as_str()).collect::<Vec<_>>().join(", ");
    let (owner, id) = match (text.split_once('='), &*owners) {
        (Some((collection, id)), _) => {
            let owner = owners.iter().find(|owner| owner.collection == collection);
            let unknown = || {
                let known = known();
                Failure::Usage(format!(
                    "--owner {text}: there is no such collection of owners (there are {known})"
                ))
            };
            (owner.ok_or_else(unknown)?, id)
        }
        (None, [only]) => (only, text),
        (None, _) => {
            return Err(Failure::Usage(format!(
                "--owner {text}: there are several collections of owners ({}); name one, as in {}={text}",
                known(),
                owners[0].collection
            )));
        }
    };
    let id = owner.kind.parse(id).map_err(|Invalid(rule)| Failure::Usage(format!("--owner {rule}")))?;
    Ok(OwnerToErase { collection: owner.collection.clone(), id })
}

async fn erase(
    engines: &[Engine],
    wanted: &OwnerToErase,
    signals: &mut Signals,
) -> Result<ExitCode, Failure> {
    tracing::warn!(target: "pagebucket::audit", owners = wanted.collection, owner = %wanted.id, "an owner is to be erased by a command");
    // All tombstones first: records of keys stay as long as a history is not erased.
    let mut begun = Vec::new();
    for engine in engines {
        let begin =
            async { step(engine, engine.erasures().erase(&wanted.id, Deadline::within(COMMAND))).await };
        begun.push((engine, signals.unless(begin).await?));
    }
    let mut sweep_after = None;
    for (engine, erasure) in begun {
        sweep_after = sweep_after.max(signals.unless(erase_pages(engine, wanted, erasure)).await?);
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
async fn erase_pages(
    engine: &Engine,
    wanted: &OwnerToErase,
    mut erasure: Erasure,
) -> Result<Option<Instant>, Failure> {
    let name = &engine.definition().name;
    if erasure == Erasure::Nothing {
        print(format_args!("{name}: no page is stored; a tombstone is written"));
    }
    // Keys may be left where no page was.
    while matches!(erasure, Erasure::Nothing | Erasure::Erasing) {
        print(format_args!("{name}: pages and keys are being deleted, and are no longer answered"));
        erasure = step(engine, engine.erasures().go_on(&wanted.id, Deadline::within(COMMAND))).await?;
    }
    print(format_args!("{name}: all pages and keys are deleted"));
    if erasure == Erasure::Swept {
        return Ok(None);
    }
    step(engine, engine.erasures().sweep_after(&wanted.id, Deadline::within(COMMAND))).await
}

async fn sweep(engines: &[Engine], wanted: &OwnerToErase) -> Result<(), Failure> {
    for engine in engines {
        let go_on =
            async || step(engine, engine.erasures().go_on(&wanted.id, Deadline::within(COMMAND))).await;
        while go_on().await? != Erasure::Swept {
            tokio::time::sleep(BETWEEN_SWEEPS).await;
        }
        print(format_args!("{}: swept", engine.definition().name));
    }
    Ok(())
}

/// What an engine did, or why not as a failure of the command.
async fn step<T>(engine: &Engine, work: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
    work.await.map_err(|error| failed(&engine.definition().name, &error))
}

async fn reopen(engines: &[Engine], wanted: &OwnerToErase) -> Result<ExitCode, Failure> {
    // All of them, or none: a sweep of one history deletes the keys of the others, whose records do not name
    // their history.
    for engine in engines {
        let name = &engine.definition().name;
        let is_swept = engine.erasures().is_swept(&wanted.id, Deadline::within(COMMAND));
        if step(engine, is_swept).await? == Some(false) {
            return Err(not_swept(name));
        }
    }
    let mut reopened = false;
    for engine in engines {
        let name = &engine.definition().name;
        match step(engine, engine.erasures().reopen(&wanted.id, Deadline::within(COMMAND))).await? {
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

fn refused(error: &Error) -> Failure {
    Failure::Database(format!("{error}; nothing was done"))
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
        let seven = OwnerToErase { collection: "customers".to_owned(), id: OwnerId::Integer(7) };
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
            let sentence = wanted(text, definitions).unwrap_err().sentence();
            assert!(sentence.contains(part), "{text}: {sentence}");
        }
    }
}
