//! Scans a history for the items of requests.
//!
//! A scan reads a bounded number of pages and reports whether it has reached its goal. The caller continues a
//! longer scan, but never inside a commit.

use mongodb::bson::doc;
use mongodb::bson::raw::{RawBsonRef, RawDocument};
use pagebucket_model::domain::{PageNumber, Seq, SeqRange};
use pagebucket_model::item::Item;

use super::key_search::KeySearch;
use super::record::keep_looked;
use crate::mongo::majority::Patient;
use crate::mongo::{Corruption, Error, Result};
use crate::store::buckets::document::KeyedItem;
use crate::store::buckets::identity::{ItemKey, RecordId};
use crate::store::buckets::marker::{self, Marker};
use crate::store::collection::{HistoryCollection, NO_PAGE, OfOwner, page_of};

/// The pages of the first read of a scan to the end of a history: as many as a part of an upload may fill.
/// Most repeats find their items there.
const FIRST_PAGES: usize = 101;

/// The most pages in one read: 0.4 MB of keys, or 1.3 MB of items.
const MOST_PAGES: usize = 1_000;

const MOST_READS: usize = 10;

/// How many items a search may be behind a tail to catch up inside a commit, in one read: those of two
/// commits of other writers, as far as their pages fit into a reply.
pub(crate) fn near(source: &HistoryCollection) -> u64 {
    const MOST_ITEMS: usize = 5_000;
    let pages = MOST_PAGES.min(source.most_buckets());
    // The first page is not read from its beginning, and one more page shows whether the last is full.
    (pages.saturating_sub(2) * source.page_size().get()).min(MOST_ITEMS) as u64
}

/// How far a scan goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    /// Through this `seq`, the end of a known tail.
    Through(u64),
    /// To the end of the history, which is at or after `after`, the end of a known tail.
    End { after: u64 },
}

/// Advances these searches of one owner in order, until each has found all its items, the goal is reached, or
/// the limit of one scan is reached. Returns false for the limit. After an error they are as before.
///
/// The history is read at majority, and only items that follow without a gap count as examined.
///
/// # Errors
/// The database does not answer in time, the known tail is not visible in time, or a page is missing.
pub(crate) async fn scan(of: OfOwner<'_>, searches: &mut [&mut KeySearch], goal: Goal) -> Result<bool> {
    let looked = searches.iter().map(|search| search.looked()).min().unwrap_or(0);
    let found = searches.iter().map(|search| KeySearch::clone(search)).collect();
    let mut scan = ItemScan { of, searches: found, looked };
    let mut patient = Patient::new(None, of.deadline);
    let (mut most, last) = match goal {
        Goal::Through(last) => (MOST_PAGES, last),
        Goal::End { after } => (FIRST_PAGES, after),
    };
    let (mut read, mut doubted) = (0, false);
    let is_done = loop {
        if scan.is_done(goal) || read == MOST_READS {
            break scan.is_done(goal);
        }
        let pages = match goal {
            // One more page shows whether the last of them is full.
            Goal::Through(last) => {
                let last = Seq::FIRST.plus(last as usize - 1);
                most.min(of.source.page_size().pages_of(SeqRange { first: scan.next(), last }) + 1)
            }
            Goal::End { .. } => most,
        };
        let before = scan.looked;
        if scan.read(pages).await? {
            if scan.looked == before {
                scan.check().await?;
                // One answer may show two moments: the page before it was filled, and the page after it. A
                // second one shows that it is filled.
                if !std::mem::replace(&mut doubted, true) {
                    let words = format!("owner {} has changed while it was read", of.owner);
                    patient.after(Error::unavailable(words)).await?;
                    continue;
                }
                let (id, page) = (format!("{}_", of.owner), format!("page {}", scan.first_page()));
                return Err(Corruption::new(id, page, "is not full, though it is not the last").into());
            }
            read += 1;
            most = MOST_PAGES.min(2 * most);
        } else if scan.looked >= last {
            break true;
        } else {
            if of.source.markers.any(&of.source.clock) {
                scan.check().await?;
            }
            // A new primary may not know yet that a majority has what the old primary has shown.
            let shown = format!("owner {} is visible up to {}, not {last}", of.owner, scan.looked);
            patient.after(Error::unavailable(shown)).await?;
        }
    };
    searches.iter_mut().zip(scan.searches).for_each(|(search, found)| **search = found);
    Ok(is_done)
}

/// Searches the whole history, which may be long, without blocking a committer. If this attempt fails before
/// its end, a repeat goes on where it stopped.
pub(crate) async fn search_to_end(of: OfOwner<'_>, id: RecordId, search: &mut KeySearch) -> Result<()> {
    let goal = Goal::End { after: search.looked() };
    while !scan(of, &mut [&mut *search], goal).await? {
        keep_looked(of, [(id, &*search)].into_iter()).await;
    }
    Ok(())
}

struct ItemScan<'a> {
    of: OfOwner<'a>,
    searches: Vec<KeySearch>,
    /// The last `seq` that was examined. Every search has come at least this far.
    looked: u64,
}

impl ItemScan<'_> {
    /// Whether nothing more needs to be read. With [`Goal::End`] only complete searches end the scan here.
    fn is_done(&self, goal: Goal) -> bool {
        matches!(goal, Goal::Through(last) if self.looked >= last)
            || self.searches.iter().all(KeySearch::is_over)
    }

    /// The first item that is not examined yet.
    fn next(&self) -> Seq {
        Seq::FIRST.plus(self.looked as usize)
    }

    /// The page of that item.
    fn first_page(&self) -> PageNumber {
        self.of.source.page_size().page_of(self.next())
    }

    /// Checks that the next page is not deleted: its items can no longer be compared.
    async fn check(&self) -> Result<()> {
        marker::check(self.of, self.first_page()).await
    }

    /// Reads and examines at most `most` pages. Returns whether there may be more.
    async fn read(&mut self, most: usize) -> Result<bool> {
        let source = self.of.source;
        let most = most.min(source.most_buckets());
        let items = match self.searches.iter().any(KeySearch::compares) {
            true => "history".to_owned(),
            false => format!("history.{}", source.definition.key_field()),
        };
        let unseen = doc! { "page": { "$gte": self.first_page() } };
        let mut query = self.of.at_most(unseen, most);
        let mut fields = marker::fields();
        fields.insert(items, 1);
        query.insert("projection", fields);
        let found = self.of.find(query, |bucket| Ok(bucket.to_owned())).await?;
        for bucket in &found {
            if let Some(marker) = Marker::read(bucket)? {
                return Err(marker.gone(source.page_size()).into());
            }
            match self.look_at(bucket) {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(error) => {
                    self.check().await?;
                    return Err(error);
                }
            }
        }
        Ok(found.len() == most)
    }

    /// Examines a page. Returns false if the page before it has grown since it was read.
    fn look_at(&mut self, bucket: &RawDocument) -> Result<bool> {
        let corrupt = |field, detail: &str| Corruption::of(bucket, field, detail);
        let page = page_of(bucket).ok_or_else(|| corrupt("page", NO_PAGE))?;
        let begun = self.of.source.page_size().index_of(self.next());
        if page != self.first_page() {
            let missing = format!("is {page}, right after item {}", self.looked);
            return if begun == 0 { Err(corrupt("page", &missing).into()) } else { Ok(false) };
        }
        let items = bucket.get_array("history").map_err(|_| corrupt("history", "is not an array"))?;
        for item in items.into_iter().skip(begun) {
            let item = item.ok().and_then(RawBsonRef::as_document);
            self.look(item.ok_or_else(|| corrupt("history", "holds something that is not a document"))?);
        }
        Ok(true)
    }

    fn look(&mut self, stored: &RawDocument) {
        let definition = &self.of.source.definition;
        let key = stored.get_binary(definition.key_field()).ok().and_then(|key| ItemKey::read(key.bytes));
        // Whether the stored item is this one, byte for byte.
        let is_same = |item: &Item, key| {
            KeyedItem { item, key: Some(key) }.document(definition).as_bytes() == stored.as_bytes()
        };
        for search in self.searches.iter_mut().filter(|search| search.looked() == self.looked) {
            search.look(key, is_same);
        }
        self.looked += 1;
    }
}
