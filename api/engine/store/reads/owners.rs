//! All owners, in order of their ids.
//!
//! Each history has a page 1, or a marker in its place, so each owner has one key with `page: 1` in the
//! unique index on owner and page. With `customerId` bounded below and `page` equal to 1, the server skips
//! from one such key to the next and stops when it has enough. It examines two keys an owner and no document,
//! however many pages there are. One more query reads the tails ([`crate::store::buckets::tails`]).
//!
//! `$group` over the same index is a DISTINCT_SCAN too, but it visits all owners: the server does not stop
//! it at a later `$limit`. This read does not name an owner by equality.

use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Bson, Document, doc};
use pagebucket_model::domain::{Limit, OwnerId, OwnerType, Totals};
use tokio::time::Instant;

use super::reader::HistoryReader;
use crate::mongo::majority::at_most;
use crate::mongo::{COMMAND, Corruption, Deadline, Error, Result};
use crate::store::buckets::tails::Tails;
use crate::store::collection::{HistoryCollection, owner_bson, owner_in};

/// A page of the list of owners, ascending by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerList {
    /// Each owner with its totals. The totals are not a snapshot: each comes from its own history's last
    /// page.
    pub found: Vec<(OwnerId, Totals)>,
    /// The last id that was looked at, if there are owners after it. An owner whose pages are being deleted
    /// is not among those that were found.
    pub more: Option<OwnerId>,
}

/// A walk over the owners of a history, from one step to the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnerWalk {
    began: Option<Instant>,
    /// The last owner of the step before.
    pub(crate) after: Option<OwnerId>,
    /// Whether it has begun and not ended.
    pub(crate) goes_on: bool,
}

impl OwnerWalk {
    /// This walk, or if it has ended another one: `every` after it began. `None` before that.
    pub(crate) fn next(self, every: Duration) -> Option<Self> {
        if self.goes_on {
            return Some(self);
        }
        let is_due = self.began.is_none_or(|began| began.elapsed() >= every);
        is_due.then(|| Self { began: Some(Instant::now()), after: None, goes_on: true })
    }
}

impl HistoryReader {
    /// Up to `limit` owners with ids greater than `after`, or the first ones without `after`.
    pub async fn owners(
        &self,
        after: Option<OwnerId>,
        limit: Limit,
        deadline: Deadline,
    ) -> Result<OwnerList> {
        let (source, deadline) = (&self.source, deadline.or_within(COMMAND));
        let (ids, more) = owner_ids(source, after, limit, deadline).await?;
        let tails = Tails::read(source, &ids, None, deadline).await;
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let vanished =
                || Error::unavailable(format!("the history of {id} was found, but cannot be read now"));
            let tail = match tails.of(&id) {
                // Its pages are being deleted.
                Err(Error::Gone(_)) => continue,
                tail => tail?.ok_or_else(vanished)?,
            };
            found.push((id, source.totals(Some(tail.last_seq()))));
        }
        Ok(OwnerList { found, more })
    }
}

/// The ids of up to `limit` owners greater than `after`, and the last of them if there are more. Every walk
/// over owners goes on there.
pub(crate) async fn owner_ids(
    source: &HistoryCollection,
    after: Option<OwnerId>,
    limit: Limit,
    deadline: Deadline,
) -> Result<(Vec<OwnerId>, Option<OwnerId>)> {
    let first_pages = doc! { "page": 1_i64 };
    let (found, more) = owners_with(source, after.as_ref(), first_pages, limit.get(), deadline).await?;
    let mut ids: Vec<OwnerId> = Vec::with_capacity(found.len());
    for id in found {
        let corrupt = || {
            let after =
                ids.last().map_or_else(|| "the first".to_owned(), |last| format!("that after {last}"));
            let id = format!("of page 1 of an owner, {after}");
            Corruption::new(id, source.owner_field(), "is not an id of the right type")
        };
        let id = id.ok_or_else(corrupt)?;
        ids.push(id);
    }
    let last = ids.last().filter(|_| more).cloned();
    Ok((ids, last))
}

/// Up to `most` owners greater than `after` that have such a bucket, and whether there are more. `None` for
/// what is no id of an owner.
pub(crate) async fn owners_with(
    source: &HistoryCollection,
    after: Option<&OwnerId>,
    such: Document,
    most: usize,
    deadline: Deadline,
) -> Result<(Vec<Option<OwnerId>>, bool)> {
    let (field, definition) = (source.owner_field(), Arc::clone(&source.definition));
    let before_all = match definition.owner.kind {
        OwnerType::Integer => Bson::Int64(0),
        OwnerType::String | OwnerType::Uuid => "".into(),
    };
    let mut filter = doc! { field: { "$gt": after.map_or(before_all, owner_bson) } };
    filter.extend(such);
    let mut command = at_most(source.collection(), filter, most + 1, source.by_page());
    // Of first pages this is a covered query: the index holds every field.
    command.insert("projection", doc! { "_id": 0, field: 1 });
    let id = move |key: &RawDocument| Ok(owner_in(key, &definition.owner));
    let mut found = source.reads.find(command, deadline, id).await?;
    let more = found.len() > most;
    found.truncate(most);
    Ok((found, more))
}
