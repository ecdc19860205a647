//! Builds that are not read any more.

use std::collections::BTreeSet;

use mongodb::bson::doc;
use mongodb::bson::raw::RawDocument;

use super::control::{Build, Builds, COLLECTION, public_name};
use super::generations;
use super::view::{drop_collection, names, publish};
use crate::mongo::{COMMAND, Deadline, Result};
use crate::store::collection::HistoryCollection;

/// Drops builds that are neither read nor made. An insert that comes late creates a collection again, and a
/// restored backup leaves those that it does not have.
pub(crate) async fn drop_late(source: &HistoryCollection) -> Result<()> {
    let Some(builds) = Builds::of(source, Deadline::within(COMMAND)).await? else { return Ok(()) };
    // First: what is read by the public name is another build then.
    publish(source).await?;
    for number in numbers(source).await? {
        // A later one has begun meanwhile.
        if number < builds.latest && builds.all().all(|used| used != number) {
            discard(Build { source, number }).await?;
        }
    }
    Ok(())
}

/// The numbers of all builds that are remembered or have a collection.
pub(crate) async fn numbers(source: &HistoryCollection) -> Result<BTreeSet<i64>> {
    let prefix = format!("{}_", public_name(source.collection()));
    let number = |text: &str, prefix: &str| text.strip_prefix(prefix).and_then(|rest| rest.parse().ok());
    let mut all: BTreeSet<_> = names(source).await?.iter().filter_map(|name| number(name, &prefix)).collect();
    let (first, end) = (format!("{}/", source.collection()), format!("{}0", source.collection()));
    let command = doc! { "find": COLLECTION, "filter": { "_id": { "$gte": &first, "$lt": end } }, "projection": { "_id": 1 } };
    let id = move |build: &RawDocument| Ok(number(build.get_str("_id").unwrap_or_default(), &first));
    let remembered = source.reads.find(command, Deadline::within(COMMAND), id).await?;
    all.extend(remembered.into_iter().flatten());
    Ok(all)
}

/// Drops a build, and what is remembered of it.
pub(crate) async fn discard(build: Build<'_>) -> Result<()> {
    let source = build.source;
    // First: its feeder stops.
    source.delete(COLLECTION, [doc! { "_id": build.id() }], Deadline::within(COMMAND)).await?;
    forget_generations(source, &build.id()).await?;
    // The public name belongs to the view.
    if build.is_public() { Ok(()) } else { drop_collection(source, &build.collection()).await }
}

/// Deletes the generations of owners in a build, or in all builds of a history.
pub(crate) async fn forget_generations(source: &HistoryCollection, of: &str) -> Result<()> {
    // `0` follows `/` in ASCII.
    let range = doc! { "_id": { "$gte": format!("{of}/"), "$lt": format!("{of}0") } };
    source.delete(generations::COLLECTION, [range], Deadline::within(COMMAND)).await
}
