//! Verifies stored buckets against the invariants, from the database alone, and repairs what can be repaired without loss.
//!
//! A [`Scan`] reads a whole collection in the order of `_id`, a bounded number of buckets at a time. The buckets of an owner
//! stand one after the other in this order. While it reads, others append, so what looks wrong is only a suspicion.
//! [`Engine::verify`] decides it: it reads the tail first, then everything up to there. All that came before the tail is full and final,
//! so it finds what is wrong and nothing else. What it finds is reported only if a second reading finds it too, because a
//! history may be erased, or lose its beginning, between two commands.
//!
//! Of a history that has lost its beginning, the pages before the one that its marker names are there until they are deleted. Of
//! an erased owner nothing is a finding until the tombstone is swept; afterwards everything is.
//!
//! Invariant 4 (a stored item never changes) is about time, and one reading cannot see it. What can be seen is its
//! trace: an item that an answer named and that is not there ([`lost`]).

mod check;
mod finding;
mod mend;
mod records;
mod seen;

use std::sync::Arc;

use mongodb::bson::doc;
use mongodb::bson::raw::RawDocument;

pub use finding::{Finding, Mend, Rule};
pub use records::{Records, lost};

use self::check::{Checker, KeyShare};
use self::seen::Seen;
use super::bucket_id::BucketId;
use super::engine::Engine;
use super::find;
use crate::domain::{OwnerId, PageNumber};
use crate::store::{COMMAND, Deadline, Error};

/// Most buckets of one command.
const MOST_BUCKETS: usize = 1_000;

/// A scan of all buckets of a history's collection, from one command to the next.
#[derive(Debug, Default)]
pub struct Scan {
    /// The `_id` of the last bucket that was read.
    after: Option<String>,
    /// The owner whose buckets are being read.
    current: Option<(OwnerId, Checker)>,
    /// How many buckets were read.
    pub buckets: u64,
    /// How many owners were read to their end.
    pub owners: u64,
    /// Whether all buckets were read.
    pub ended: bool,
}

/// What a part of a scan found.
#[derive(Debug, Default)]
pub struct Scanned {
    /// Owners whose histories look wrong: [`Engine::verify`] decides.
    pub suspects: Vec<OwnerId>,
    /// Documents that are no owner's bucket.
    pub strays: Vec<Finding>,
}

impl Scan {
    /// Ends the owner that is being read.
    fn finish(&mut self, scanned: &mut Scanned) {
        let Some((owner, checker)) = self.current.take() else { return };
        self.owners += 1;
        if checker.is_suspect() {
            scanned.suspects.push(owner);
        }
    }
}

impl Engine {
    /// Reads the next buckets of a scan, at most 1,000.
    ///
    /// # Errors
    /// The database does not answer in time.
    pub async fn scan(&self, scan: &mut Scan, deadline: Deadline) -> Result<Scanned, Error> {
        let limit = self.0.source.most_buckets().min(MOST_BUCKETS);
        // An inclusive bound: some servers get exclusive ones wrong on a clustered collection.
        let filter = scan.after.as_ref().map_or_else(|| doc! {}, |after| doc! { "_id": { "$gte": after } });
        let found = self.buckets(filter, limit + 1, deadline).await?;
        let mut scanned = Scanned::default();
        scan.ended = found.len() <= limit;
        for seen in found {
            if scan.after.as_ref() == Some(&seen.id) {
                continue;
            }
            scan.buckets += 1;
            scan.after = Some(seen.id.clone());
            let Some(owner) = seen.owner.clone() else {
                scanned.strays.push(seen.stray());
                continue;
            };
            if scan.current.as_ref().is_none_or(|(current, _)| *current != owner) {
                scan.finish(&mut scanned);
                scan.current = Some((owner, Checker::new(&self.0.source.definition, KeyShare::FIRST)));
            }
            if let Some((_, checker)) = &mut scan.current {
                checker.bucket(seen);
            }
        }
        if scan.ended {
            scan.finish(&mut scanned);
        }
        Ok(scanned)
    }

    /// What is wrong with the history of an owner, in the order of its pages; and how many pages were read.
    ///
    /// # Errors
    /// The database does not answer in time.
    pub async fn verify(&self, owner: &OwnerId, deadline: Deadline) -> Result<(Vec<Finding>, u64), Error> {
        let (first, pages) = self.verify_once(owner, deadline).await?;
        if first.is_empty() {
            return Ok((first, pages));
        }
        let (mut second, again) = self.verify_once(owner, deadline).await?;
        second.retain(|finding| first.iter().any(|other| other.is_same(finding)));
        Ok((second, pages + again))
    }

    async fn verify_once(&self, owner: &OwnerId, deadline: Deadline) -> Result<(Vec<Finding>, u64), Error> {
        let source = &self.0.source;
        let mut pages = 0;
        let definition = Arc::clone(&source.definition);
        let read = move |document: &RawDocument| Ok(Seen::read(document, &definition));
        let tail =
            source.reads.find(None, find::last(source, owner), None, deadline.or_within(COMMAND), read);
        let Some(tail) = tail.await?.pop() else { return Ok((Vec::new(), 0)) };
        let limit = source.most_buckets().min(MOST_BUCKETS);
        // The keys of a long history are compared in several readings, so that they fit into memory.
        let items = if tail.marker.is_some() { 0 } else { tail.last_seq(source.page_size()) };
        let mut share = KeyShare::of_items(items);
        let mut findings: Vec<Finding> = Vec::new();
        loop {
            let (mut checker, mut from) = (Checker::new(&source.definition, share), format!("{owner}_"));
            loop {
                let mut range = BucketId::range(owner, None);
                range.insert("$gte", &from);
                range.insert("$lte", &tail.id);
                let found = self.buckets(doc! { "_id": range }, limit + 1, deadline).await?;
                let is_last = found.len() <= limit;
                for seen in found {
                    if seen.id != from {
                        from.clone_from(&seen.id);
                        pages += 1;
                        checker.bucket(seen);
                    }
                }
                if is_last {
                    break;
                }
            }
            let found = checker.end();
            findings.extend(found.into_iter().filter(|finding| share.is_first() || finding.is_repeat));
            match share.next() {
                Some(next) => share = next,
                None => return Ok((findings, pages)),
            }
        }
    }

    /// What a reader of this page gets today, as a part of a sentence.
    ///
    /// # Errors
    /// The database does not answer in time.
    pub async fn shown(
        &self,
        owner: &OwnerId,
        page: PageNumber,
        deadline: Deadline,
    ) -> Result<String, Error> {
        match self.page(owner, page, deadline).await {
            Ok(Some(bucket)) => Ok(format!("page {page} with its {} items", bucket.count())),
            Ok(None) => Ok(format!("404 for page {page}")),
            Err(Error::Corrupt(corruption)) => {
                Ok(format!("500 for page {page} ({} {})", corruption.field, corruption.detail))
            }
            Err(Error::Gone(_)) => Ok(format!("410 for page {page}")),
            Err(error) => Err(error),
        }
    }

    /// Buckets in the order of `_id`.
    async fn buckets(
        &self,
        filter: mongodb::bson::Document,
        limit: usize,
        deadline: Deadline,
    ) -> Result<Vec<Seen>, Error> {
        let source = &self.0.source;
        let definition = Arc::clone(&source.definition);
        let read = move |document: &RawDocument| Ok(Seen::read(document, &definition));
        let command = doc! {
            "find": source.collection(),
            "filter": filter,
            "sort": { "_id": 1 },
            "limit": limit as i64,
            "batchSize": limit as i64,
            "singleBatch": true,
            "hint": { "_id": 1 },
        };
        source.reads.find(None, command, None, deadline.or_within(COMMAND), read).await
    }
}
