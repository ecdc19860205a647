//! What a walk over an owner's pages in the order of `_id` does not meet: documents without a place in that
//! order, and the number of markers, which the database remembers elsewhere.

use std::time::Duration;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Bson, Document, doc};
use pagebucket_model::domain::OwnerId;

use super::bucket_check::Seen;
use super::finding::{Finding, value};
use super::verifier::Verifier;
use crate::mongo::values::whole_number;
use crate::mongo::{COMMAND, Deadline, Error, Result};
use crate::store::buckets::bucket_id::BucketId;
use crate::store::buckets::marker;
use crate::store::collection::owner_bson;
use crate::store::histories;

/// The most documents without a place that are found at once. When they are gone, the next verification finds
/// more.
const MOST_STRAYS: usize = 100;

/// How many documents of an owner are looked at in one command, by their `_id` alone.
const MOST_EXAMINED: usize = 10_000;

/// The range of `_id` that holds what has a place in the order of an owner's pages: buckets, and the
/// tombstone.
pub(crate) fn placed(owner: &OwnerId) -> Document {
    let mut range = BucketId::range(owner, None);
    range.insert("$regex", place(owner));
    range
}

/// The text of an `_id` that has a place.
fn place(owner: &OwnerId) -> String {
    format!("^{owner}_([0-9]{{10}}|:)\\z")
}

impl Verifier {
    /// Documents whose `_id` is no text. They come before or after all texts.
    pub(crate) async fn without_text(&self, deadline: Deadline) -> Result<Vec<Finding>> {
        let limit = self.reader.source.most_buckets().min(MOST_STRAYS);
        let mut found = Vec::new();
        for order in [1, -1] {
            let end = self.buckets(doc! {}, order, limit, deadline).await?;
            found.extend(end.iter().take_while(|seen| !seen.is_text).map(Seen::stray));
        }
        Ok(found)
    }

    /// Documents of an owner, by their `_id`, that come after `last` and have no place.
    pub(crate) async fn misplaced_after(
        &self,
        owner: &OwnerId,
        last: &str,
        deadline: Deadline,
    ) -> Result<Vec<Seen>> {
        let mut range = BucketId::range(owner, None);
        range.insert("$gte", last);
        // The character after _: no `_id` that begins with the owner and _ is greater.
        range.insert("$lte", format!("{owner}`"));
        range.insert("$not", doc! { "$regex": place(owner) });
        let limit = self.reader.source.most_buckets().min(MOST_STRAYS);
        self.buckets(doc! { "_id": range }, 1, limit, deadline).await
    }

    /// What has an owner's id in the owner's field, and the `_id` of another owner, or of none: readers and
    /// appends meet it by its page number. A [`CollectionScan`](super::CollectionScan) finds it where its
    /// `_id` is.
    pub async fn elsewhere(
        &self,
        owner: &OwnerId,
        within: Duration,
        read: &mut impl AsyncFnMut(u64),
    ) -> Result<Vec<Finding>> {
        let source = &self.reader.source;
        let (mut ids, mut from): (Vec<Bson>, Bson) = (Vec::new(), Bson::MinKey);
        loop {
            let of = source.of(owner, Deadline::within(within).or_within(COMMAND));
            let mut command = of.at_most(doc! {}, MOST_EXAMINED);
            let bound = |page: Bson| doc! { source.owner_field(): owner_bson(owner), "page": page };
            command.extend(doc! { "min": bound(from.clone()), "max": bound(Bson::MaxKey) });
            command.insert("projection", doc! { "page": 1 });
            let prefix = format!("{owner}_");
            let row = move |document: &RawDocument| {
                let is_here = document.get_str("_id").is_ok_and(|id| id.starts_with(&prefix));
                let id = value(document, "_id").filter(|_| !is_here);
                Ok((id, value(document, "page").unwrap_or(Bson::Null)))
            };
            let rows = of.find(command, row).await?;
            read(rows.len() as u64).await;
            let last = rows.last().map(|(_, page)| page.clone());
            let is_last = rows.len() < MOST_EXAMINED;
            for id in rows.into_iter().filter_map(|(id, _)| id) {
                // The first of a command was the last of the one before.
                if !ids.contains(&id) && ids.len() < MOST_STRAYS {
                    ids.push(id);
                }
            }
            match last {
                Some(last) if !is_last && last != from => from = last,
                _ => break,
            }
        }
        let mut findings = Vec::new();
        for id in ids {
            let found = self.buckets(doc! { "_id": id }, 1, 1, Deadline::within(within)).await?;
            for mut seen in found {
                findings.extend(if seen.owner.is_none() { vec![seen.stray()] } else { seen.take_findings() });
            }
        }
        for finding in &mut findings {
            finding.owner = Some(owner.clone());
        }
        Ok(findings)
    }

    /// Whether an owner has a marker.
    pub async fn has_marker(&self, owner: &OwnerId, deadline: Deadline) -> Result<bool> {
        match marker::find(self.reader.source.of(owner, deadline.or_within(COMMAND))).await {
            Ok(found) => Ok(found.is_some()),
            // It is a finding by itself.
            Err(Error::Corrupt(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// What is wrong with the number of markers that the database remembers, as a sentence without its
    /// subject, the document in `histories`. `markers` says whether a marker was read before: the number is
    /// raised before one is written.
    pub async fn verify_counter(&self, markers: bool, deadline: Deadline) -> Result<Option<String>> {
        let source = &self.reader.source;
        let number = |document: &RawDocument| Ok(value(document, "markers"));
        let found = source.reads.by_id(
            histories::COLLECTION,
            source.collection(),
            deadline.or_within(COMMAND),
            number,
        );
        let number = found.await?.flatten();
        let counted = number.as_ref().map_or(Some(0), whole_number);
        if counted.is_some_and(|counted| counted >= i64::from(markers)) {
            return Ok(None);
        }
        let number = number.map_or_else(|| "missing".to_owned(), |number| number.to_string());
        let why = "not the number of its markers: instances do not notice what is deleted";
        Ok(Some(format!("markers is {}, {why}", number.chars().take(64).collect::<String>())))
    }
}
