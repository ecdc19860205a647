//! All owners, in order of their ids.
//!
//! Each history has a page 1 (invariant 1), so each owner has one key with `page: 1` in the unique index on
//! owner and page. With `customerId` bounded below and `page` equal to 1, the server skips from one such key
//! to the next and stops when it has enough. It examines two keys an owner and no document, however many
//! pages there are. One more query reads the tails ([`super::tails`]).
//!
//! `$group` over the same index is a DISTINCT_SCAN too, but it visits all owners: the server does not stop
//! it at a later `$limit`. This is the only read that does not name an owner by equality.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};

use super::engine::Engine;
use super::source::{Source, owner_bson, owner_of};
use super::tails;
use crate::domain::{Limit, OwnerId, OwnerType, Totals};
use crate::store::{COMMAND, Corruption, Deadline, Error};

/// A page of the list of owners, ascending by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owners {
    /// Each owner with its totals. The totals are not a snapshot: each comes from its own history's last
    /// page.
    pub found: Vec<(OwnerId, Totals)>,
    /// Whether there are owners after the last one here.
    pub more: bool,
}

impl Engine {
    /// Up to `limit` owners with ids greater than `after`, or the first ones without `after`.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub async fn owners(
        &self,
        after: Option<OwnerId>,
        limit: Limit,
        deadline: Deadline,
    ) -> Result<Owners, Error> {
        let (source, deadline) = (self.0.source.clone(), deadline.or_within(COMMAND));
        let command = command(&source, after.as_ref(), limit.get() + 1);
        let kind = source.definition.owner.kind;
        let id = move |key: &RawDocument| {
            let id = key.iter().next().and_then(Result::ok);
            Ok(id.and_then(|(_, id)| owner_of(id, kind)))
        };
        let read = async move { source.reads.find(None, &command, None, deadline, id).await };
        let mut ids: Vec<OwnerId> = Vec::new();
        for id in deadline.read(read).await? {
            ids.push(id.ok_or_else(|| corrupt(self.0.source.owner_field(), ids.last()))?);
        }
        let more = ids.len() > limit.get();
        ids.truncate(limit.get());
        if ids.is_empty() {
            return Ok(Owners::default());
        }
        let mut tails = tails::find(&self.0.source, ids.clone(), None, deadline).await?;
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let tail = tails.remove(&id).ok_or_else(|| vanished(&id))??;
            found.push((id, self.0.source.totals(Some(tail.last_seq()))));
        }
        Ok(Owners { found, more })
    }
}

fn vanished(id: &OwnerId) -> Error {
    Error::Unavailable(format!("the history of {id} was found, but cannot be read now"))
}

fn command(source: &Source, after: Option<&OwnerId>, most: usize) -> Document {
    let field = source.owner_field();
    let before_all = match source.definition.owner.kind {
        OwnerType::Integer => OwnerId::Integer(0),
        OwnerType::String => OwnerId::Text("".into()),
    };
    let after = owner_bson(after.unwrap_or(&before_all));
    doc! {
        "find": source.collection(),
        "filter": { field: { "$gt": after }, "page": 1_i64 },
        // A covered query: the index holds every field.
        "projection": { "_id": 0, field: 1 },
        "sort": source.by_page(),
        "limit": most as i64,
        "batchSize": most as i64,
        "singleBatch": true,
        "hint": source.by_page(),
    }
}

fn corrupt(field: &str, after: Option<&OwnerId>) -> Corruption {
    let after = after.map_or_else(|| "the first".to_owned(), |last| format!("that after {last}"));
    Corruption {
        id: format!("of page 1 of an owner, {after}"),
        field: field.to_owned(),
        detail: "is not an id of the right type".to_owned(),
    }
}
