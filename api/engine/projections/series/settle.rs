//! What becomes of a batch whose outcome is not known.
//!
//! Its insert was sent once, or not at all. A measurement that a majority has is there once, for good. One
//! that is missing may still come, at any time. So either all are there, or the owner gets another
//! generation: with a copy of what was there before this batch, made under a number of its own. When the copy
//! is complete, it counts, and measurements of the earlier generation do not, whenever they arrive.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};
use pagebucket_model::domain::OwnerId;
use pagebucket_model::metric::SERIES_COPIES;

use super::control::{Announced, BuildName};
use super::generations::{Generations, OwnerGeneration};
use super::measurement::with_generation;
use super::round::{insert, of_generation};
use super::view::tell_readers;
use crate::mongo::majority::Query;
use crate::mongo::{COMMAND, Deadline, Error, Result};
use crate::store::collection::HistoryCollection;

/// How many measurements are copied at once, and how many bytes.
const COPIED_AT_ONCE: usize = 10_000;
const COPIED_BYTES: usize = 16_000_000;

/// Settles a batch under a term that a majority has. A copy may be long: the lease must be kept meanwhile.
///
/// # Errors
/// The database does not answer in time. Then it must be settled again, under a later term.
pub(crate) async fn settle(
    source: &HistoryCollection,
    build: &BuildName,
    term: i64,
    batch: &[Announced],
) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let generations = |deadline| Generations { source, build, deadline };
    let step = || Deadline::within(COMMAND);
    // First: a feeder of an earlier term may be settling it, too, and stops then.
    generations(step()).claim_for(term, batch.iter().map(|announced| &announced.owner)).await?;
    let owners: Vec<_> = batch.iter().map(|announced| announced.owner.clone()).collect();
    let known = generations(step()).of(&owners).await?;
    for announced in batch {
        let known = known.get(&announced.owner).copied().unwrap_or_default();
        if known.current != announced.generation {
            // The generation has changed, so the batch does not count. The change may have been interrupted.
            tell_readers(source, build).await?;
            generations(step()).delete_older(&[(announced.owner.clone(), known.current)]).await?;
        } else if !is_complete(source, build, announced, known).await? {
            copy(source, build, term, announced).await?;
        }
    }
    Ok(())
}

/// Whether all that was announced is there. If a copy was begun, the answer is no, so that another copy
/// replaces it.
async fn is_complete(
    source: &HistoryCollection,
    build: &BuildName,
    announced: &Announced,
    known: OwnerGeneration,
) -> Result<bool> {
    if known.next > known.current {
        return Ok(false);
    }
    let Announced { owner, generation, from, to } = announced;
    let filter = of_seqs(owner, *generation, *from as i64, *to as i64);
    let command = doc! {
        "aggregate": build.collection(),
        "pipeline": [{ "$match": filter }, { "$group": { "_id": null, "count": { "$sum": 1_i64 } } }],
        "cursor": {},
    };
    let count = |group: &RawDocument| Ok(group.get_i64("count").unwrap_or(0));
    let found = source.reads.find(Query::new(command, Deadline::within(COMMAND)), count).await?.pop();
    Ok(found.unwrap_or(0) == (to - from) as i64)
}

/// Copies what an owner had before a batch, and lets the copy count.
async fn copy(source: &HistoryCollection, build: &BuildName, term: i64, announced: &Announced) -> Result<()> {
    let generations = || Generations { source, build, deadline: Deadline::within(COMMAND) };
    let Announced { owner, generation, from, .. } = announced;
    let Some(to) = generations().give_out(owner, *generation, term).await? else {
        // Forgotten meanwhile, or the term is over: then it is noticed.
        return Ok(());
    };
    tracing::info!(history = build.history, %owner, generation = to, "the measurements of an owner are copied: the outcome of an insert is unknown");
    metrics::counter!(SERIES_COPIES, "collection" => build.history.clone()).increment(1);
    let (mut after, end) = (0, *from as i64);
    while let Some(last) = next_seq(source, build, (owner, *generation), (after, end)).await? {
        let last = last.min(end);
        let filter = of_seqs(owner, *generation, after, last);
        let command = doc! { "find": build.collection(), "filter": filter, "batchSize": i32::MAX };
        let read = move |measurement: &RawDocument| {
            let copy = with_generation(measurement, to);
            copy.ok_or_else(|| Error::internal("a measurement cannot be read"))
        };
        let found = source.reads.find(Query::new(command, Deadline::within(COMMAND)), read).await?;
        insert(source, build, found).await?;
        after = last;
    }
    if generations().switch(owner, *generation, to, term).await? {
        tell_readers(source, build).await?;
        generations().delete_older(&[(owner.clone(), to)]).await?;
    }
    Ok(())
}

/// Up to which `seq` the next part of a copy goes; `None` if nothing is left.
async fn next_seq(
    source: &HistoryCollection,
    build: &BuildName,
    (owner, generation): (&OwnerId, i64),
    (after, last): (i64, i64),
) -> Result<Option<i64>> {
    let filter = of_seqs(owner, generation, after, last);
    let command = doc! {
        "aggregate": build.collection(),
        "pipeline": [{ "$match": filter }, { "$group": { "_id": null, "first": { "$min": "$seq" } } }],
        "cursor": {},
    };
    let first = |group: &RawDocument| Ok(group.get_i64("first").ok());
    let first = source.reads.find(Query::new(command, Deadline::within(COMMAND)), first).await?.pop();
    let most = (COPIED_BYTES / source.definition.max_item_bytes).clamp(1, COPIED_AT_ONCE);
    Ok(first.flatten().map(|first| first + most as i64 - 1))
}

/// A filter for the measurements after a `seq` and up to another.
fn of_seqs(owner: &OwnerId, generation: i64, after: i64, last: i64) -> Document {
    let mut filter = of_generation(owner, generation);
    filter.insert("seq", doc! { "$gt": after, "$lte": last });
    filter
}
