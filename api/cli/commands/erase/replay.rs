//! `erase --replay`: erases once more what the audit log says, after an older backup was restored.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use pagebucket_engine::erasures::{Erasure, Reopening};
use pagebucket_engine::internal::{COMMAND, ErasureLine, LoggedErasure, Replay};
use pagebucket_engine::{Deadline, Engine, Error, Store};
use pagebucket_model::definition::Definitions;
use pagebucket_model::domain::{Clock, Instant, Invalid, OwnerId};
use pagebucket_streams::lines::bounded_lines;

use crate::commands::exit::{Failure, Signals};
use crate::commands::terminal::{print, print_error};

/// Pause between two attempts to sweep.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(1);

/// Longest line of a log, in bytes. Earlier versions logged whole paths, which may have 64 KiB before they
/// are escaped.
const LONGEST_LINE: u64 = 1 << 20;

/// What the log says of erasures.
pub(crate) struct Log {
    /// The last erasure of each owner, by history.
    last: BTreeMap<(String, OwnerId), LastErasure>,
    /// The number of lines that are refused.
    refused: u64,
    /// When it is read: no erasure is later.
    now: Instant,
}

/// The last erasure of an owner in one history.
struct LastErasure {
    /// The number of its line.
    line: usize,
    /// With the greatest numbers of all erasures of the owner.
    erasure: LoggedErasure,
    reopened: bool,
}

impl Log {
    fn refuse(&mut self, line: usize, why: &str) {
        print_error(format_args!("line {line}: {why}"));
        self.refused += 1;
    }

    fn add(&mut self, line: usize, text: &str, definitions: &Definitions) -> Result<(), Invalid> {
        let Some(ErasureLine { owners, owner, history, erasure, reopened }) =
            ErasureLine::parse(text, self.now)?
        else {
            return Ok(());
        };
        let Some(definition) = definitions.get(&history) else {
            return Err(Invalid(format!(
                "there is no history {history}: name its definition by --histories"
            )));
        };
        if definition.owner.collection != owners {
            let known = &definition.owner.collection;
            return Err(Invalid(format!("{history} has the owners {known}, not {owners}")));
        }
        let owner = definition.owner.kind.parse(&owner);
        let owner = owner.map_err(|rule| Invalid(format!("is damaged: `owner` {rule}")))?;
        let last = self.last.entry((history, owner)).or_insert(LastErasure { line, erasure, reopened });
        let LoggedErasure { first_page, second, .. } = last.erasure;
        if last.erasure.erased < erasure.erased {
            *last = LastErasure { line, erasure, reopened };
        } else if last.erasure.erased == erasure.erased {
            last.reopened |= reopened;
        }
        last.erasure.first_page = erasure.first_page.max(first_page);
        last.erasure.second = erasure.second.max(second);
        Ok(())
    }
}

/// Reads the lines of erasures. A line that is refused is named on standard error.
///
/// # Errors
/// The file cannot be read, or is no log: a line has no end.
pub(crate) fn read(path: &Path, definitions: &Definitions) -> Result<Log, Failure> {
    let failed = |error: io::Error| Failure::Usage(format!("--replay {}: {error}", path.display()));
    let file: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).map_err(failed)?)
    };
    let mut log = Log { last: BTreeMap::new(), refused: 0, now: Clock::system().now() };
    for (index, line) in bounded_lines(BufReader::new(file), LONGEST_LINE).enumerate() {
        let line = line.map_err(failed)?;
        if let Err(Invalid(why)) = log.add(index + 1, &String::from_utf8_lossy(&line), definitions) {
            log.refuse(index + 1, &why);
        }
    }
    Ok(log)
}

/// An owner whose tombstone is written, in one history.
struct Erased<'a> {
    engine: &'a Engine,
    owner: &'a OwnerId,
    reopened: bool,
}

/// Erases, and then reopens what was reopened.
pub(crate) async fn run(mut log: Log, store: &Store, signals: &mut Signals) -> Result<ExitCode, Failure> {
    let (all, mut known, mut reopened) = (std::mem::take(&mut log.last), 0, 0);
    let mut erased = Vec::new();
    for ((history, owner), last) in &all {
        let engine = store.history(history).expect("a store has an engine for each of its definitions");
        let refusal = match signals.unless(erase(engine, owner, last)).await? {
            Replayed::Done(Replay::Known) => {
                known += 1;
                continue;
            }
            Replayed::Done(Replay::Erasing) => {
                print(format_args!("{}: erased", name(engine, owner)));
                erased.push(Erased { engine, owner, reopened: last.reopened });
                continue;
            }
            Replayed::Done(Replay::WrittenSince) => {
                "has pages from after the erasure, but was not reopened: a server has written to the \
                                         restored database; erase all of it with --owner"
                    .to_owned()
            }
            Replayed::Damaged(error) => error.to_string(),
        };
        log.refuse(last.line, &format!("{}: {refusal}", name(engine, owner)));
    }
    if erased.iter().any(|one| one.reopened) {
        let reopening = signals.unless(reopen(&erased)).await;
        if matches!(reopening, Err(Failure::Interrupted)) {
            print_error(format_args!("interrupted: owners are left to be reopened; run the command again"));
        }
        reopened = reopening?;
    } else if !erased.is_empty() {
        print(format_args!("the last sweep is left to a running server"));
    }
    if all.is_empty() && log.refused == 0 {
        print_error(format_args!(
            "no line is of an erasure: FILE must be the log of all servers, and what `pagebucket erase` has printed"
        ));
    }
    print(format_args!("replayed: {} erased, {reopened} of them reopened; {known} known", erased.len()));
    match log.refused {
        0 => Ok(ExitCode::SUCCESS),
        1 => Err(Failure::Partly("1 line is refused".to_owned())),
        refused => Err(Failure::Partly(format!("{refused} lines are refused"))),
    }
}

/// What became of an erasure that was read from a log.
enum Replayed {
    Done(Replay),
    /// The history is damaged.
    Damaged(Error),
}

/// Writes the tombstone, and deletes what the history has of the owner. A damaged history keeps no other from
/// being erased.
async fn erase(engine: &Engine, owner: &OwnerId, last: &LastErasure) -> Result<Replayed, Failure> {
    let erase = async {
        let replay =
            engine.erasures().replay(owner, &last.erasure, last.reopened, Deadline::within(COMMAND)).await?;
        while replay == Replay::Erasing
            && engine.erasures().go_on(owner, Deadline::within(COMMAND)).await? == Erasure::Erasing
        {}
        Ok(replay)
    };
    match erase.await {
        Ok(replay) => Ok(Replayed::Done(replay)),
        Err(error @ Error::Corrupt(_)) => Ok(Replayed::Damaged(error)),
        Err(error) => Err(failed(engine, owner, &error)),
    }
}

/// Sweeps all of them, and lifts the tombstones of those that were reopened. Returns their number.
async fn reopen(erased: &[Erased<'_>]) -> Result<usize, Failure> {
    print(format_args!("waiting for the last sweep, two minutes after an erasure; then owners are reopened"));
    // Before any is reopened: a sweep deletes keys of all histories of an owner.
    for Erased { engine, owner, .. } in erased {
        let step = async || engine.erasures().go_on(owner, Deadline::within(COMMAND)).await;
        while step().await.map_err(|error| failed(engine, owner, &error))? != Erasure::Swept {
            tokio::time::sleep(BETWEEN_SWEEPS).await;
        }
    }
    let mut reopened = 0;
    for Erased { engine, owner, .. } in erased.iter().filter(|one| one.reopened) {
        let reopening = engine.erasures().reopen(owner, Deadline::within(COMMAND)).await;
        if reopening.map_err(|error| failed(engine, owner, &error))? == Reopening::Reopened {
            print(format_args!("{}: reopened; page and sequence numbers go on", name(engine, owner)));
            reopened += 1;
        }
    }
    Ok(reopened)
}

fn name(engine: &Engine, owner: &OwnerId) -> String {
    let definition = engine.definition();
    format!("{} of {}={owner}", definition.name, definition.owner.collection)
}

fn failed(engine: &Engine, owner: &OwnerId, error: &Error) -> Failure {
    Failure::Database(format!("{}: {error}; run the command again to go on", name(engine, owner)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagebucket_model::domain::{Instant, PageNumber};

    #[test]
    fn the_last_erasure_counts_in_any_order_of_lines() {
        let line = |event: &str, day: u8, first_page: u64, second: u64| {
            format!(
                r#"{{"event":"{event}","owners":"customers","owner":"7","history":"trades","first_page":{first_page},
                    "second":{second},"erased":"2026-11-{day}T12:00:00.000Z"}}"#
            )
        };
        let lines = [
            line("owner-erased", 10, 4, 1),
            line("owner-reopened", 10, 5, 9),
            line("owner-erased", 20, 7, 2),
        ];
        let reopened = line("owner-reopened", 20, 8, 3);
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let now = Instant::parse_rfc3339("2026-11-20T12:00:00Z").unwrap();
            let mut log = Log { last: BTreeMap::new(), refused: 0, now };
            for index in order {
                log.add(index, &lines[index], &Definitions::built_in()).unwrap();
            }
            let key = ("trades".to_owned(), OwnerId::Integer(7));
            let LastErasure { line, erasure, reopened: ended } = &log.last[&key];
            let erased = Instant::parse_rfc3339("2026-11-20T12:00:00Z").unwrap();
            let last = LoggedErasure { erased, first_page: PageNumber::new(7).unwrap(), second: 9 };
            assert_eq!((*line, *erasure, *ended), (2, last, false), "{order:?}");
            log.add(3, &reopened, &Definitions::built_in()).unwrap();
            let LastErasure { erasure, reopened, .. } = &log.last[&key];
            assert_eq!((erasure.first_page.get(), erasure.second, *reopened), (8, 9, true), "{order:?}");
        }
    }
}
