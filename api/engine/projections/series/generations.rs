//! Generations of owners in a build: the collection `series_generations`, `{_id: "trades/1/123", owner,
//! current, next, term, pending?, forgotten?}`.
//!
//! An owner without a document has the generation 0 and never had another. `next` is the greatest number that
//! was given out: a number is used by one attempt to copy an owner, and never again. `forgotten` is the date
//! of the tombstone for which the generation was raised.

use std::collections::HashMap;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Bson, DateTime, Document, doc};
use pagebucket_model::domain::{OwnerId, OwnerType};

use super::control::{Build, owned, owner};
use crate::mongo::values::whole_number;
use crate::mongo::{COMMAND, Deadline, Error, Result};
use crate::store::collection::owner_bson;

pub(crate) const COLLECTION: &str = "series_generations";

/// What is known of the generations of an owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OwnerGeneration {
    /// The one that counts.
    pub(crate) current: i64,
    /// The greatest one that was given out.
    pub(crate) next: i64,
    /// Whether the owner was forgotten, and is to be fed again.
    pub(crate) pending: bool,
    /// The date of the tombstone for which it was forgotten last.
    pub(crate) forgotten: Option<DateTime>,
}

impl Build<'_> {
    fn generation_id(self, owner: &OwnerId) -> String {
        format!("{}/{owner}", self.id())
    }

    /// The generations of these owners, of each that has a document.
    pub(crate) async fn generations(
        self,
        owners: &[OwnerId],
        deadline: Deadline,
    ) -> Result<HashMap<OwnerId, OwnerGeneration>> {
        let ids: Vec<_> = owners.iter().map(|owner| self.generation_id(owner)).collect();
        self.find_generations(doc! { "_id": { "$in": ids } }, None, deadline).await
    }

    /// All generations other than 0, by owner; at most `most` of them.
    pub(crate) async fn changed(
        self,
        most: Option<usize>,
        deadline: Deadline,
    ) -> Result<HashMap<OwnerId, OwnerGeneration>> {
        let mut filter = self.range();
        filter.insert("current", doc! { "$gt": 0_i64 });
        self.find_generations(filter, most, deadline).await
    }

    /// Owners that were forgotten, and are to be fed again.
    pub(crate) async fn pending(self) -> Result<Vec<OwnerId>> {
        let mut filter = self.range();
        filter.insert("pending", true);
        Ok(self.find_generations(filter, None, Deadline::within(COMMAND)).await?.into_keys().collect())
    }

    /// `0` follows `/` in ASCII.
    fn range(self) -> Document {
        doc! { "_id": { "$gte": format!("{}/", self.id()), "$lt": format!("{}0", self.id()) } }
    }

    async fn find_generations(
        self,
        filter: Document,
        most: Option<usize>,
        deadline: Deadline,
    ) -> Result<HashMap<OwnerId, OwnerGeneration>> {
        let mut command = doc! { "find": COLLECTION, "filter": filter, "batchSize": i32::MAX };
        command.extend(most.map(|most| ("limit".to_owned(), (most as i64).into())));
        let kind = self.source.definition.owner.kind;
        let read = move |document: &RawDocument| Ok(OwnerGeneration::read(&owned(document)?, kind));
        let found = self.source.reads.find(command, deadline, read).await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Makes the documents of these owners, and gives them to a term: under an earlier one nothing changes
    /// any more.
    pub(crate) async fn claim_for(self, term: i64, owners: &[OwnerId]) -> Result<()> {
        let update = |owner: &OwnerId| {
            let insert = doc! { "owner": owner_bson(owner), "current": 0_i64, "next": 0_i64 };
            doc! {
                "q": { "_id": self.generation_id(owner) },
                "u": { "$setOnInsert": insert, "$max": { "term": term } },
                "upsert": true,
            }
        };
        self.source.update(COLLECTION, owners.iter().map(update), Deadline::within(COMMAND)).await.map(drop)
    }

    /// Gives out a number for a copy of an owner whose generation is `current`. `None` if the generation has
    /// changed, or the term is over.
    pub(crate) async fn give_out(self, owner: &OwnerId, current: i64, term: i64) -> Result<Option<i64>> {
        let query = doc! { "_id": self.generation_id(owner), "current": current, "term": term };
        let next = doc! { "$inc": { "next": 1_i64 } };
        let given =
            self.source.reads.find_and_update(COLLECTION, query, next, Deadline::within(COMMAND)).await?;
        Ok(given.and_then(|given| given.get("next").and_then(whole_number)))
    }

    /// Lets another generation count. Returns whether it does: the generation may have changed, or the term
    /// may be over.
    pub(crate) async fn switch(self, owner: &OwnerId, (from, to): (i64, i64), term: i64) -> Result<bool> {
        let update = doc! {
            "q": { "_id": self.generation_id(owner), "current": from, "term": term },
            "u": { "$set": { "current": to } },
        };
        self.source.update(COLLECTION, [update], Deadline::within(COMMAND)).await
    }

    /// Makes an unused generation the current one, so that the owner has no measurements, and has the owner
    /// fed again. Returns its number.
    pub(crate) async fn raise(self, owner: &OwnerId, deadline: Deadline) -> Result<i64> {
        let next = doc! { "$add": [{ "$ifNull": ["$next", 0_i64] }, 1_i64] };
        let set = doc! {
            "owner": { "$literal": owner_bson(owner) }, "current": &next, "next": next, "pending": true,
            "term": { "$ifNull": ["$term", 0_i64] },
        };
        let command = doc! {
            "findAndModify": COLLECTION,
            "query": { "_id": self.generation_id(owner) },
            "update": [{ "$set": set }],
            "upsert": true,
            "new": true,
        };
        let reply = self.source.reads.write(command, deadline).await?;
        let current = reply.get_document("value").ok().and_then(|value| value.get("current"));
        current
            .and_then(whole_number)
            .ok_or_else(|| Error::internal(format!("a generation was not raised: {reply}")))
    }

    /// Says for which tombstone the generation of an owner was raised.
    pub(crate) async fn forgotten(self, owner: &OwnerId, since: DateTime, deadline: Deadline) -> Result<()> {
        let update =
            doc! { "q": { "_id": self.generation_id(owner) }, "u": { "$set": { "forgotten": since } } };
        self.source.update(COLLECTION, [update], deadline).await.map(drop)
    }

    /// Says that an owner is fed again, unless its generation has changed.
    pub(crate) async fn fed(self, owner: &OwnerId, current: i64) -> Result<()> {
        let update = doc! { "q": { "_id": self.generation_id(owner), "current": current }, "u": { "$unset": { "pending": "" } } };
        self.source.update(COLLECTION, [update], Deadline::within(COMMAND)).await.map(drop)
    }

    /// Deletes the measurements of these owners that do not count any more. A copy that is being made has a
    /// greater generation, and stays.
    pub(crate) async fn delete_older(self, owners: &[(OwnerId, i64)], deadline: Deadline) -> Result<()> {
        if owners.is_empty() {
            return Ok(());
        }
        let delete = |(owner, current): &(OwnerId, i64)| {
            // By the metaField alone, as mongod 6.0 requires. Without a generation it is 0.
            let older =
                doc! { "meta.owner": owner_bson(owner), "meta.generation": { "$not": { "$gte": current } } };
            Bson::from(doc! { "q": older, "limit": 0 })
        };
        let deletes: Vec<_> = owners.iter().map(delete).collect();
        let command = doc! { "delete": self.collection(), "deletes": deletes };
        self.source.reads.write(command, deadline).await.map(drop)
    }
}

impl OwnerGeneration {
    fn read(document: &Document, kind: OwnerType) -> Option<(OwnerId, Self)> {
        let number = |field| document.get(field).and_then(whole_number);
        let owner = owner(document.get("owner")?, kind)?;
        let pending = document.get_bool("pending").unwrap_or(false);
        let forgotten = document.get_datetime("forgotten").ok().copied();
        Some((owner, Self { current: number("current")?, next: number("next")?, pending, forgotten }))
    }
}

/// The condition that a measurement has this generation.
pub(crate) fn is_of(generation: i64) -> Bson {
    match generation {
        // Also where the metaField has none.
        0 => Bson::Null,
        generation => generation.into(),
    }
}
