//! Verifies stored buckets against the invariants, from the database alone, and repairs what can be repaired
//! without loss.
//!
//! A [`CollectionScan`] reads a whole collection in the order of `_id`, a bounded number of buckets at a
//! time. The buckets of an owner stand one after the other in this order. While it reads, others append, so
//! what looks wrong is only a suspicion. [`Verifier::verify`] decides it: it reads the tail first, then
//! everything up to there. All that came before the tail is full and final. What it finds is reported only if
//! a second reading finds it too, because a history may be erased, or lose its beginning, between two
//! commands.
//!
//! Of a history that has lost its beginning, the pages before the one that its marker names are there until
//! they are deleted. Of an erased owner only the tombstone is looked at until it is swept; afterwards every
//! page is a finding.
//!
//! Invariant 4 (a stored item never changes) is about time, and one reading cannot see it. What can be seen
//! is its trace: an item that an answer named and that is not there ([`Verifier::lost`]).

mod bucket_check;
mod finding;
mod key_share;
mod kind;
mod misplaced;
mod owner_check;
mod records;
mod tile_check;
pub(crate) mod verifier;

pub use verifier::Verifier;

use std::collections::HashSet;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use pagebucket_model::domain::{OwnerId, PageNumber};

use finding::Mend;
pub use finding::{Finding, Mended, Rule};
pub use records::Records;
pub use tile_check::{TileFinding, TileScan};

use self::key_share::KeyShare;
use self::kind::DocumentKind;
use self::misplaced::placed;
use self::owner_check::Checker;
use crate::mongo::values::whole_number;
use crate::mongo::{COMMAND, Deadline, Error, Result};
use crate::store::buckets::bucket_id::BucketId;

const MOST_BUCKETS: usize = 1_000;

/// A scan of all buckets of a history's collection, from one command to the next.
#[derive(Debug, Default)]
pub struct CollectionScan {
    /// The `_id` of the last bucket that was read.
    after: Option<String>,
    /// The owner whose buckets are being read.
    current: Option<(OwnerId, Checker)>,
    /// Whether a marker was read.
    pub markers: bool,
    /// Whether all buckets were read.
    pub ended: bool,
}

/// What a part of a scan found.
#[derive(Debug, Default)]
pub struct Scanned {
    /// How many buckets were read.
    pub buckets: u64,
    /// Owners whose histories look wrong: [`Verifier::verify`] decides.
    pub suspects: Vec<OwnerId>,
    /// Documents that are no owner's bucket.
    pub strays: Vec<Finding>,
}

impl CollectionScan {
    /// Ends the owner that is being read.
    fn finish(&mut self, scanned: &mut Scanned) {
        let Some((owner, checker)) = self.current.take() else { return };
        if checker.is_suspect() {
            scanned.suspects.push(owner);
        }
    }
}

impl Verifier {
    /// About how many buckets the histories of all owners have, by the collection's metadata: nothing is
    /// counted.
    pub async fn estimated_buckets(&self, deadline: Deadline) -> Result<u64> {
        let source = &self.reader.source;
        let reply = source.reads.run(doc! { "count": source.collection() }, deadline).await?;
        let number = reply.get("n").and_then(whole_number).and_then(|number| number.try_into().ok());
        number.ok_or_else(|| Error::internal(format!("the size of a collection is no number: {reply}")))
    }

    /// Reads the next buckets of a scan, at most 1,000.
    pub async fn scan(&self, scan: &mut CollectionScan, deadline: Deadline) -> Result<Scanned> {
        let limit = self.reader.source.most_buckets().min(MOST_BUCKETS);
        let mut scanned = Scanned::default();
        if scan.after.is_none() {
            scanned.strays = self.without_text(deadline).await?;
        }
        // An inclusive bound: some servers get exclusive ones wrong on a clustered collection. It leaves out
        // ids that are no texts.
        let filter = doc! { "_id": { "$gte": scan.after.as_deref().unwrap_or_default() } };
        let found = self.buckets(filter, 1, limit + 1, deadline).await?;
        scan.ended = found.len() <= limit;
        for seen in found {
            if scan.after.as_ref() == Some(&seen.id) {
                continue;
            }
            scanned.buckets += 1;
            scan.after = Some(seen.id.clone());
            scan.markers |= seen.kind != DocumentKind::Page;
            let Some(owner) = seen.owner.clone() else {
                scanned.strays.push(seen.stray());
                continue;
            };
            if scan.current.as_ref().is_none_or(|(current, _)| *current != owner) {
                scan.finish(&mut scanned);
                scan.current = Some((owner, Checker::new(&self.reader.source.definition, KeyShare::FIRST)));
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

    /// What is wrong with the history of an owner, in the order of `_id`. `read` is told how many pages each
    /// command has read, and may wait; each command may take `within`.
    pub async fn verify(
        &self,
        owner: &OwnerId,
        within: Duration,
        read: &mut impl AsyncFnMut(u64),
    ) -> Result<Vec<Finding>> {
        let first = self.verify_once(owner, within, read).await?;
        if first.is_empty() {
            return Ok(first);
        }
        let first: HashSet<_> = first.iter().map(Finding::identity).collect();
        let mut second = self.verify_once(owner, within, read).await?;
        second.retain(|finding| first.contains(&finding.identity()));
        Ok(second)
    }

    async fn verify_once(
        &self,
        owner: &OwnerId,
        within: Duration,
        read: &mut impl AsyncFnMut(u64),
    ) -> Result<Vec<Finding>> {
        let source = &self.reader.source;
        // By its `_id` alone: its owner's field may be damaged. One without a place may come after pages that
        // are opened meanwhile.
        let range = placed(owner);
        let tail = self.buckets(doc! { "_id": range }, -1, 1, Deadline::within(within)).await?.pop();
        let last = tail.as_ref().map_or_else(|| format!("{owner}_"), |tail| tail.id.clone());
        let misplaced = self.misplaced_after(owner, &last, Deadline::within(within)).await?;
        let limit = source.most_buckets().min(MOST_BUCKETS);
        // The keys of a long history are compared in several readings, so that they fit into memory.
        let pages = tail.as_ref().filter(|tail| tail.kind == DocumentKind::Page);
        let mut share = KeyShare::of_items(pages.map_or(0, |tail| tail.last_seq(source.page_size())));
        let mut findings: Vec<Finding> = Vec::new();
        loop {
            let (mut checker, mut from) = (Checker::new(&source.definition, share), format!("{owner}_"));
            loop {
                let mut range = BucketId::range(owner, None);
                range.insert("$gte", &from);
                range.insert("$lte", &last);
                let range = doc! { "_id": range };
                let found = self.buckets(range, 1, limit + 1, Deadline::within(within)).await?;
                let (is_last, pages) = (found.len() <= limit, found.len() as u64);
                for seen in found {
                    if seen.id != from {
                        from.clone_from(&seen.id);
                        checker.bucket(seen);
                    }
                }
                read(pages).await;
                if is_last {
                    break;
                }
            }
            misplaced.iter().cloned().for_each(|seen| checker.bucket(seen));
            let found = checker.end();
            findings.extend(found.into_iter().filter(|finding| share.is_first() || finding.is_repeat));
            match share.next() {
                Some(next) => share = next,
                None => break,
            }
        }
        findings.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(findings)
    }

    /// What a reader of this page gets today, as a part of a sentence.
    pub async fn shown(&self, owner: &OwnerId, page: PageNumber, deadline: Deadline) -> Result<String> {
        match self.reader.page(owner, page, deadline).await {
            Ok(Some(bucket)) => Ok(format!("page {page} with its {} items", bucket.count())),
            Ok(None) => Ok(format!("404 for page {page}")),
            Err(Error::Corrupt(corruption)) => {
                Ok(format!("500 for page {page} ({} {})", corruption.field, corruption.detail))
            }
            Err(Error::Gone(_)) => Ok(format!("410 for page {page}")),
            Err(error) => Err(error),
        }
    }

    /// Repairs one bucket: all that [`Verifier::verify`] found wrong with it.
    pub async fn mend(&self, findings: &[Finding], deadline: Deadline) -> Result<Mended> {
        let mut set = Document::new();
        for Finding { mend, .. } in findings {
            match mend {
                Mend::Set(fields) => set.extend(fields.clone()),
                Mend::No(why) => return Ok(Mended::Left(why)),
            }
        }
        let Some(Finding { filter, .. }) = findings.first() else { return Ok(Mended::Set(set)) };
        let update = doc! { "q": filter, "u": { "$set": &set }, "hint": { "_id": 1 } };
        let command = doc! {
            "update": self.reader.source.collection(),
            "updates": [update],
            "writeConcern": { "w": "majority", "j": true },
        };
        let reply = self.reader.source.reads.run(command, deadline.or_within(COMMAND)).await?;
        let refused = reply.get_array("writeErrors").ok().and_then(|errors| errors.first());
        Ok(match (refused, reply.get_i32("n")) {
            (None, Ok(1)) => Mended::Set(set),
            (None, _) => Mended::Left("it has changed meanwhile; run the command again"),
            (Some(_), _) => Mended::Left(
                "the database refuses the repair: the bucket has more damages, or another one has its number",
            ),
        })
    }
}
