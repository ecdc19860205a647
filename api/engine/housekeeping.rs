//! Housekeeping: what one instance at a time does besides answering requests.

use std::collections::BTreeMap;
use std::time::Duration;

use mongodb::Database;
use pagebucket_model::domain::OwnerId;

use crate::care::deletion::erase::Erasure;
use crate::care::deletion::retire::Retention;
use crate::care::migrations::lock;
use crate::engine::Engine;
use crate::mongo::{COMMAND, Deadline, Result};

/// How long a round erases and how long it retires in one history, at most. The next round goes on.
const ROUND: Duration = Duration::from_secs(20);

/// How long a round makes tiles of summaries in one history, at most.
const TILES: Duration = Duration::from_secs(5);

const LOCK: &str = "house";

/// What a round has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Housekeeping {
    /// Number of pages that were retired and deleted.
    pub retired_pages: u64,
    /// Number of tombstones that were swept: erasures that have come to their end.
    pub swept: u64,
    /// Whether pages were not retired by their dates, because the time is in doubt.
    pub waits: bool,
}

/// One round, also in the histories without a definition. `None` if another instance holds the lock. After an
/// error, what is left is for the next round.
pub(crate) async fn keep(
    database: &Database,
    engines: &[Engine],
    undefined: impl Future<Output = Result<Vec<Engine>>>,
    retention: &BTreeMap<Box<str>, Retention>,
) -> Result<Option<Housekeeping>> {
    let Some(held) = lock::try_take(database, LOCK).await? else { return Ok(None) };
    lock::hold(held, async {
        let mut done = Housekeeping::default();
        let mut failed = None;
        let undefined = undefined.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "housekeeping of histories without a definition failed");
            failed = Some(error);
            Vec::new()
        });
        for engine in engines.iter().chain(&undefined) {
            let history = &engine.definition().name;
            // A failure in one history must not keep the others.
            if let Err(error) = keep_one(engine, retention.get(&**history).copied(), &mut done).await {
                tracing::warn!(%history, %error, "housekeeping of a history failed");
                failed = Some(error);
            }
        }
        // Last: what must be forgotten comes first. Whether a history without a definition has summaries is
        // not known here.
        for engine in engines {
            if let Err(error) = engine.summaries().make_tiles(Deadline::within(TILES)).await {
                // No failure of the round: nothing needs a tile.
                let history = &engine.definition().name;
                tracing::debug!(%history, %error, "tiles of summaries were not made");
            }
        }
        failed.map_or(Ok(Some(done)), Err)
    })
    .await
}

async fn keep_one(engine: &Engine, retention: Option<Retention>, done: &mut Housekeeping) -> Result<()> {
    if retention.is_none() && !engine.reads().may_have_lost_pages() {
        return Ok(());
    }
    let round = Deadline::within(ROUND);
    let mut failed = Ok(());
    let unswept = engine.erasures().unswept(Deadline::within(COMMAND)).await;
    let owners = unswept.unwrap_or_else(|error| {
        failed = Err(error);
        Vec::new()
    });
    for owner in owners {
        // A failure with one owner must not keep the others.
        match erase(engine, &owner, round).await {
            Ok(erasure) => done.swept += u64::from(erasure == Erasure::Swept),
            Err(error) => {
                tracing::warn!(%owner, %error, "the erasure of an owner is not complete");
                failed = Err(error);
            }
        }
    }
    let round = Deadline::within(ROUND);
    while !round.passed() {
        match engine.erasures().delete_late(Deadline::within(COMMAND)).await {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                failed = Err(error);
                break;
            }
        }
    }
    // A time of its own: many erasures must not keep pages from being retired.
    let mut round = RetirementRound { history: &engine.definition().name, marked: 0, deleted: 0 };
    retire(engine, retention.unwrap_or_default(), done, &mut round).await?;
    failed
}

/// What a round retires in one history. It is logged when the round ends, also by a failure: it cannot be
/// brought back.
struct RetirementRound<'a> {
    history: &'a str,
    marked: u64,
    deleted: u64,
}

impl Drop for RetirementRound<'_> {
    fn drop(&mut self) {
        let Self { history, marked, deleted } = self;
        if *marked > 0 || *deleted > 0 {
            tracing::info!(
                history,
                marked,
                deleted,
                "pages were retired: marked ones are no longer answered"
            );
        }
    }
}

/// Walks over all owners, until no walk finds a page to delete.
async fn retire(
    engine: &Engine,
    retention: Retention,
    done: &mut Housekeeping,
    round: &mut RetirementRound<'_>,
) -> Result<()> {
    let (mut deleted, until) = (0, Deadline::within(ROUND));
    let mut doubt = None;
    while !until.passed() {
        let retired = engine.retirement().retire(retention, Deadline::within(COMMAND)).await?;
        if let (None, Some(doubt)) = (doubt, retired.doubt) {
            let history = round.history;
            tracing::warn!(history, %doubt, "no page is retired by its date in this round");
        }
        doubt = doubt.or(retired.doubt);
        done.waits |= doubt.is_some();
        done.retired_pages += retired.pages;
        round.marked += retired.marked;
        round.deleted += retired.pages;
        deleted += retired.pages;
        // A walk deletes a bounded number of pages of each owner: as long as it finds some, another follows.
        if !retired.more && std::mem::take(&mut deleted) == 0 {
            break;
        }
    }
    Ok(())
}

/// Goes on with an erasure.
async fn erase(engine: &Engine, owner: &OwnerId, round: Deadline) -> Result<Erasure> {
    let mut erasure = Erasure::Erasing;
    while erasure == Erasure::Erasing && !round.passed() {
        erasure = engine.erasures().go_on(owner, Deadline::within(COMMAND)).await?;
    }
    Ok(erasure)
}
