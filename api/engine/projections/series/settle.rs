//! What becomes of a batch whose outcome is not known ([`series`](super), rule 2): either all of its
//! measurements are there, or the owner gets another generation.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};
use pagebucket_model::domain::OwnerId;
use pagebucket_model::metric::SERIES_COPIES;

use super::control::{Announced, Build};
use super::generations::OwnerGeneration;
use super::measurement::with_generation;
use super::round::{insert, of_generation};
use super::view::tell_readers;
use crate::mongo::values::int64;
use crate::mongo::{COMMAND, Deadline, Error, Result};

/// How many measurements are copied at once, and how many bytes.
const COPIED_AT_ONCE: usize = 10_000;
const COPIED_BYTES: usize = 16_000_000;

/// Settles a batch under a term that a majority has. A copy may be long: the lease must be kept meanwhile.
/// After an error it must be settled again, under a later term.
pub(crate) async fn settle(build: Build<'_>, term: i64, batch: &[Announced]) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let step = || Deadline::within(COMMAND);
    let owners: Vec<_> = batch.iter().map(|announced| announced.owner.clone()).collect();
    // First: a feeder of an earlier term may be settling it, too, and stops then.
    build.claim_for(term, &owners).await?;
    let known = build.generations(&owners, step()).await?;
    for announced in batch {
        let known = known.get(&announced.owner).copied().unwrap_or_default();
        if known.current != announced.generation {
            // The generation has changed, so the batch does not count. The change may have been interrupted.
            tell_readers(build).await?;
            build.delete_older(&[(announced.owner.clone(), known.current)], step()).await?;
        } else if !is_complete(build, announced, known).await? {
            copy(build, term, announced).await?;
        }
    }
    Ok(())
}

/// Whether all that was announced is there. If a copy was begun, the answer is no, so that another copy
/// replaces it.
async fn is_complete(build: Build<'_>, announced: &Announced, known: OwnerGeneration) -> Result<bool> {
    if known.next > known.current {
        return Ok(false);
    }
    let Announced { owner, generation, from, to } = announced;
    let filter = of_seqs(owner, *generation, int64(*from), int64(*to));
    let command = doc! {
        "aggregate": build.collection(),
        "pipeline": [{ "$match": filter }, { "$group": { "_id": null, "count": { "$sum": 1_i64 } } }],
        "cursor": {},
    };
    let count = |group: &RawDocument| Ok(group.get_i64("count").unwrap_or(0));
    let found = build.source.reads.find(command, Deadline::within(COMMAND), count).await?.pop();
    Ok(found.unwrap_or(0) == int64(to - from))
}

/// Copies what an owner had before a batch, and lets the copy count.
async fn copy(build: Build<'_>, term: i64, announced: &Announced) -> Result<()> {
    let step = || Deadline::within(COMMAND);
    let Announced { owner, generation, from, .. } = announced;
    let Some(to) = build.give_out(owner, *generation, term).await? else {
        // Forgotten meanwhile, or the term is over: then it is noticed.
        return Ok(());
    };
    tracing::info!(history = build.history(), %owner, generation = to, "the measurements of an owner are copied: the outcome of an insert is unknown");
    metrics::counter!(SERIES_COPIES, "collection" => build.history().to_owned()).increment(1);
    let (mut after, end) = (0, int64(*from));
    while let Some(last) = next_seq(build, (owner, *generation), (after, end)).await? {
        let last = last.min(end);
        let filter = of_seqs(owner, *generation, after, last);
        let command = doc! { "find": build.collection(), "filter": filter, "batchSize": i32::MAX };
        let read = move |measurement: &RawDocument| {
            let copy = with_generation(measurement, to);
            copy.ok_or_else(|| Error::internal("a measurement cannot be read"))
        };
        let found = build.source.reads.find(command, step(), read).await?;
        insert(build, found).await?;
        after = last;
    }
    if build.switch(owner, (*generation, to), term).await? {
        tell_readers(build).await?;
        build.delete_older(&[(owner.clone(), to)], step()).await?;
    }
    Ok(())
}

/// Up to which `seq` the next part of a copy goes; `None` if nothing is left.
async fn next_seq(
    build: Build<'_>,
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
    let first = build.source.reads.find(command, Deadline::within(COMMAND), first).await?.pop();
    let most = (COPIED_BYTES / build.source.definition.max_item_bytes).clamp(1, COPIED_AT_ONCE);
    Ok(first.flatten().map(|first| first + most as i64 - 1))
}

/// A filter for the measurements after a `seq` and up to another.
fn of_seqs(owner: &OwnerId, generation: i64, after: i64, last: i64) -> Document {
    let mut filter = of_generation(owner, generation);
    filter.insert("seq", doc! { "$gt": after, "$lte": last });
    filter
}
