//! Raises `from` in records, so that later attempts search less.
//!
//! Each update is sent once and may fail: a `from` that stays low is correct too, but the search is longer.

use mongodb::bson::{Bson, Document, doc};

use super::identity::RecordId;
use super::record::{self, COLLECTION};
use super::register::ATTEMPT;
use super::request::Placed;
use super::search::Search;
use crate::domain::OwnerId;
use crate::store::Deadline;
use crate::store::group_commit::{Answer, Verdict, durable, judge};
use crate::store::history::connection::Connection;

/// Raises `from` to `last`, the total of a known tail, in records that no other attempt has found since their
/// insert. Each record comes with the time of its insert. Returns whether all records are raised. Then no item
/// of the requests is at or before `last`, unless a request has itself sent some.
pub(in crate::store::history) async fn confirm(
    connection: &Connection,
    owner: &OwnerId,
    records: impl Iterator<Item = (RecordId, i64)>,
    last: u64,
    deadline: Deadline,
) -> bool {
    let update =
        |(id, inserted)| record::confirm(record::query(&connection.source, id, owner), inserted, last);
    update_all(connection, records.map(update), deadline).await
}

/// Raises `from` of records to the position that these searches have reached without finding an item of their
/// requests.
pub(in crate::store::history) async fn keep_looked<'a>(
    connection: &Connection,
    owner: &OwnerId,
    searches: impl Iterator<Item = (RecordId, &'a Search, &'a Placed)>,
    deadline: Deadline,
) {
    let update = |(id, search, placed): (RecordId, &Search, &Placed)| {
        search
            .none_through(placed)
            .map(|last| record::keep_looked(record::query(&connection.source, id, owner), last))
    };
    if !update_all(connection, searches.filter_map(update), deadline).await {
        tracing::debug!(%owner, "the progress of a search was not stored in every record");
    }
}

/// Sends the updates. Returns whether every update has found its record and is durable.
async fn update_all(
    connection: &Connection,
    updates: impl Iterator<Item = Document>,
    deadline: Deadline,
) -> bool {
    let updates: Vec<Bson> = updates.map(Bson::from).collect();
    let (count, deadline) = (updates.len(), deadline.or_within(ATTEMPT));
    if count == 0 {
        return true;
    }
    let command = doc! {
        "update": COLLECTION, "updates": updates, "ordered": false, "writeConcern": durable(deadline),
    };
    let database = connection.database.clone();
    let reply = deadline.spawn(async move { database.run_command(command).await }).await;
    let Some(Ok(reply)) = reply else { return false };
    matches!(
        judge(&reply, count, false),
        Ok(Answer { verdicts, .. }) if verdicts.iter().all(|verdict| *verdict == Verdict::Stored)
    )
}
