//! Scans a history for the items of requests.
//!
//! A scan reads a bounded number of pages and reports whether it has reached its goal. The caller continues a
//! longer scan, but never inside a commit.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};

use super::identity::ItemKey;
use super::request::Placed;
use super::search::Search;
use crate::domain::OwnerId;
use crate::store::history::source::Source;
use crate::store::majority::Patient;
use crate::store::{Corruption, Deadline, Error};

/// The pages of the first read of a scan to the end of a history: as many as a part of an upload may fill. Most
/// repeats find their items there.
const FIRST_PAGES: u64 = 101;

/// The most pages in one read: 0.4 MB of keys, or 1.3 MB of items.
const MOST_PAGES: u64 = 1_000;

/// The most reads in one scan.
const MOST_READS: usize = 10;

/// How many items a search may be behind a tail to catch up inside a commit, in one read: those of two commits of
/// other writers, as far as their pages fit into a reply.
pub(in crate::store::history) fn near(source: &Source) -> u64 {
    const MOST_ITEMS: u64 = 5_000;
    let pages = MOST_PAGES.min(source.most_buckets() as u64);
    // The first page is not read from its beginning, and one more page shows whether the last is full.
    (pages.saturating_sub(2) * source.page_size().get() as u64).min(MOST_ITEMS)
}

/// Searches of one owner, with what each has found.
pub(in crate::store::history) type Searches = Vec<(Search, Placed)>;

/// How far a scan goes.
#[derive(Debug, Clone, Copy)]
pub(in crate::store::history) enum Goal {
    /// Through this `seq`, the end of a known tail.
    Through(u64),
    /// To the end of the history, which is at or after `after`, the end of a known tail.
    End { after: u64 },
}

/// How far a scan has come.
pub(in crate::store::history) struct Scanned {
    pub(in crate::store::history) searches: Searches,
    /// Whether each search has found all its items, or the goal is reached.
    pub(in crate::store::history) is_done: bool,
}

/// Advances these searches in order, until each has found all its items, the goal is reached, or the limit of
/// one scan is reached.
///
/// The history is read at majority, and only items that follow without a gap count as examined.
///
/// # Errors
/// The database does not answer in time, the known tail is not visible in time, or a page is missing.
pub(in crate::store::history) async fn scan(
    source: &Source,
    owner: &OwnerId,
    searches: Searches,
    goal: Goal,
    deadline: Deadline,
) -> Result<Scanned, Error> {
    let scan = Scan::new(source.clone(), owner.clone(), searches);
    deadline.read(scan.run(goal, deadline)).await
}

struct Scan {
    source: Source,
    owner: OwnerId,
    searches: Searches,
    /// The last `seq` that was examined. Every search has come at least this far.
    looked: u64,
}

/// How a read of pages ended.
enum End {
    /// There may be more pages.
    More,
    /// There are no more pages.
    Reached,
}

impl Scan {
    fn new(source: Source, owner: OwnerId, searches: Searches) -> Self {
        let looked = searches.iter().map(|(search, _)| search.looked()).min().unwrap_or(0);
        Self { source, owner, searches, looked }
    }

    async fn run(mut self, goal: Goal, deadline: Deadline) -> Result<Scanned, Error> {
        let mut patient = Patient::new(None, deadline);
        let (mut most, last) = match goal {
            Goal::Through(last) => (MOST_PAGES, last),
            Goal::End { after } => (FIRST_PAGES, after),
        };
        let mut read = 0;
        while !self.is_done(goal) && read < MOST_READS {
            let pages = match goal {
                // One more page shows whether the last of them is full.
                Goal::Through(last) => {
                    most.min(last.div_ceil(self.source.page_size().get() as u64) + 2 - self.first_page())
                }
                Goal::End { .. } => most,
            };
            let before = self.looked;
            match self.read(pages, deadline).await? {
                End::More if self.looked == before => return Err(self.ragged().into()),
                End::More => {
                    read += 1;
                    most = MOST_PAGES.min(2 * most);
                }
                End::Reached if self.looked >= last => {
                    return Ok(Scanned { searches: self.searches, is_done: true });
                }
                // A new primary may not know yet that a majority has what the old primary has shown.
                End::Reached => {
                    let shown = format!("owner {} is visible up to {}, not {last}", self.owner, self.looked);
                    patient.after(Error::Unavailable(shown)).await?;
                }
            }
        }
        Ok(Scanned { is_done: self.is_done(goal), searches: self.searches })
    }

    /// Whether nothing more needs to be read. With [`Goal::End`] only complete searches end the scan here.
    fn is_done(&self, goal: Goal) -> bool {
        matches!(goal, Goal::Through(last) if self.looked >= last)
            || self.searches.iter().all(|(search, placed)| search.is_over(placed))
    }

    /// The page of the first item that is not examined yet.
    fn first_page(&self) -> u64 {
        self.source.page_size().full_pages(self.looked) + 1
    }

    async fn read(&mut self, most: u64, deadline: Deadline) -> Result<End, Error> {
        let with_items = self.searches.iter().any(|(search, _)| search.compares());
        let most = most.min(self.source.most_buckets() as u64);
        let query = query(&self.source, &self.owner, self.first_page(), most, with_items);
        let found =
            self.source.reads.find(None, &query, None, deadline, |bucket| Ok(bucket.to_owned())).await?;
        for bucket in &found {
            if !self.look_at(bucket)? {
                return Ok(End::More);
            }
        }
        Ok(if found.len() as u64 == most { End::More } else { End::Reached })
    }

    /// Examines a page. Returns false if the page before it has grown since it was read.
    fn look_at(&mut self, bucket: &RawDocument) -> Result<bool, Error> {
        let corrupt = |field: &str, detail: &str| Corruption {
            id: bucket.get_str("_id").unwrap_or("without a readable _id").to_owned(),
            field: field.to_owned(),
            detail: detail.to_owned(),
        };
        let page = bucket.get_i64("page").ok().and_then(|page| u64::try_from(page).ok());
        let page = page.ok_or_else(|| corrupt("page", "is not a positive int64"))?;
        let begun = (self.looked % self.source.page_size().get() as u64) as usize;
        if page != self.first_page() {
            let missing = format!("is {page}, right after item {}", self.looked);
            return if begun == 0 { Err(corrupt("page", &missing).into()) } else { Ok(false) };
        }
        let items = bucket.get_array("history").map_err(|_| corrupt("history", "is not an array"))?;
        for item in items.into_iter().skip(begun) {
            let item = item.ok().and_then(|item| item.as_document());
            let item = item.ok_or_else(|| corrupt("history", "holds something that is not a document"))?;
            self.look(item);
        }
        Ok(true)
    }

    fn look(&mut self, item: &RawDocument) {
        let key = self.source.definition.key_field();
        let key = item.get_binary(key).ok().and_then(|key| ItemKey::read(key.bytes));
        for (search, placed) in &mut self.searches {
            if search.looked() == self.looked {
                search.look(placed, key, item, &self.source.definition);
            }
        }
        self.looked += 1;
    }

    /// The error for a page that is not full, though it is not the last.
    fn ragged(&self) -> Corruption {
        Corruption {
            id: format!("{}_", self.owner),
            field: format!("page {}", self.first_page()),
            detail: "is not full, though it is not the last".to_owned(),
        }
    }
}

/// A query for at most `most` pages, with the keys of their items or with the complete items.
fn query(source: &Source, owner: &OwnerId, first_page: u64, most: u64, with_items: bool) -> Document {
    let items = match with_items {
        true => "history".to_owned(),
        false => format!("history.{}", source.definition.key_field()),
    };
    let mut filter = source.owned_by(owner);
    filter.insert("page", doc! { "$gte": first_page as i64 });
    doc! {
        "find": source.collection(),
        "filter": filter,
        "sort": source.by_page(),
        "projection": { "page": 1, items: 1 },
        "hint": source.by_page(),
        "limit": most as i64,
        // All in one batch: by default the server's first batch has 101 documents.
        "batchSize": most as i64,
        "singleBatch": true,
    }
}
