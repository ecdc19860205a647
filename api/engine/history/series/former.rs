//! Builds that are not read any more.

use mongodb::bson::doc;

use super::control::{BuildName, Builds, COLLECTION};
use super::generations;
use super::public::{drop_collection, listed, publish};
use crate::history::collection::HistoryCollection;
use crate::mongo::{COMMAND, Deadline, Result};

/// Drops collections of former builds: an insert that comes late creates one again.
pub(super) async fn drop_late(source: &HistoryCollection) -> Result<()> {
    let Some(builds) = Builds::of(source, Deadline::within(COMMAND)).await? else { return Ok(()) };
    // A rebuild that has ended between its steps may have left the first one, which has the public name.
    if builds.current != 1 {
        publish(source, &builds.current(source)).await?;
    }
    for number in (2..=builds.latest).filter(|number| builds.all().all(|used| used != *number)) {
        drop_collection(source, &BuildName::of(source, number).collection()).await?;
    }
    Ok(())
}

/// Drops a build, and what is remembered of it.
pub(super) async fn discard(source: &HistoryCollection, build: &BuildName) -> Result<()> {
    let delete = doc! { "q": { "_id": build.id() }, "limit": 1 };
    let deadline = || Deadline::within(COMMAND);
    // First: its feeder stops.
    source.write(doc! { "delete": COLLECTION, "deletes": [delete] }, deadline()).await?;
    let range = doc! { "_id": { "$gte": format!("{}/", build.id()), "$lt": format!("{}0", build.id()) } };
    let delete = doc! { "q": range, "limit": 0 };
    source.write(doc! { "delete": generations::COLLECTION, "deletes": [delete] }, deadline()).await?;
    // Later builds have a view of the name of the first one.
    let is_public = build.number == 1
        && Builds::of(source, deadline()).await?.is_some_and(|builds| builds.current != 1)
        && listed(source).await?.is_some_and(|listed| listed.view_on.is_some());
    if is_public { Ok(()) } else { drop_collection(source, &build.collection()).await }
}
