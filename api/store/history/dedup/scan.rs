//! Scans a history for the trades of requests.
//!
//! A scan reads a bounded number of pages and reports whether it has reached its goal. The caller continues a
//! longer scan, but never inside a commit.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};

use super::identity::TradeKey;
use super::request::Placed;
use super::search::Search;
use crate::domain::{CustomerId, PAGE_SIZE};
use crate::store::history::document::COLLECTION;
use crate::store::majority::{MonotonicReads, Patient};
use crate::store::{Corruption, Deadline, Error};

/// The pages of the first read of a scan to the end of a history: as many as a part of an upload may fill. Most
/// repeats find their trades there.
const FIRST_PAGES: u64 = 101;

/// The most pages in one read: 0.4 MB of keys, or 1.3 MB of trades.
const MOST_PAGES: u64 = 1_000;

/// The most reads in one scan.
const MOST_READS: usize = 10;

/// How many trades a search may be behind a tail to catch up inside a commit: those of two commits of other
/// writers, which take one read.
pub(in crate::store::history) const NEAR: u64 = 5_000;

const _: () = assert!(NEAR / PAGE_SIZE as u64 + 2 <= MOST_PAGES);

/// Searches of one customer, with what each has found.
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
    /// Whether each search has found all its trades, or the goal is reached.
    pub(in crate::store::history) is_done: bool,
}

/// Advances these searches in order, until each has found all its trades, the goal is reached, or the limit of
/// one scan is reached.
///
/// The history is read at majority, and only trades that follow without a gap count as examined.
///
/// # Errors
/// The database does not answer in time, the known tail is not visible in time, or a page is missing.
pub(in crate::store::history) async fn scan(
    reads: &MonotonicReads,
    customer: CustomerId,
    searches: Searches,
    goal: Goal,
    deadline: Deadline,
) -> Result<Scanned, Error> {
    let reads = reads.clone();
    deadline.read(async move { Scan::new(customer, searches).run(&reads, goal, deadline).await }).await
}

struct Scan {
    customer: CustomerId,
    searches: Searches,
    /// The last `seq` that was examined. Every search has come at least this far.
    looked: u64,
}

impl Scan {
    fn new(customer: CustomerId, searches: Searches) -> Self {
        let looked = searches.iter().map(|(search, _)| search.looked()).min().unwrap_or(0);
        Self { customer, searches, looked }
    }

    async fn run(mut self, reads: &MonotonicReads, goal: Goal, deadline: Deadline) -> Result<Scanned, Error> {
        let mut patient = Patient::new(None, deadline);
        let (mut most, last) = match goal {
            Goal::Through(last) => (MOST_PAGES, last),
            Goal::End { after } => (FIRST_PAGES, after),
        };
        let mut read = 0;
        while !self.is_done(goal) && read < MOST_READS {
            let pages = match goal {
                // One more page shows whether the last of them is full.
                Goal::Through(last) => most.min(last.div_ceil(PAGE_SIZE as u64) + 2 - self.first_page()),
                Goal::End { .. } => most,
            };
            let before = self.looked;
            match self.read(reads, pages, deadline).await? {
                true if self.looked == before => return Err(self.ragged().into()),
                true => {
                    read += 1;
                    most = MOST_PAGES.min(2 * most);
                }
                false if self.looked >= last => {
                    return Ok(Scanned { searches: self.searches, is_done: true });
                }
                // A new primary may not know yet that a majority has what the old primary has shown.
                false => {
                    let shown =
                        format!("customer {} is visible up to {}, not {last}", self.customer, self.looked);
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

    /// The page of the first trade that is not examined yet.
    fn first_page(&self) -> u64 {
        self.looked / PAGE_SIZE as u64 + 1
    }

    /// Returns whether there may be more pages.
    async fn read(&mut self, reads: &MonotonicReads, most: u64, deadline: Deadline) -> Result<bool, Error> {
        let with_trades = self.searches.iter().any(|(search, _)| search.compares());
        let query = query(self.customer, self.first_page(), most, with_trades);
        let found = reads.find(None, &query, None, deadline, |bucket| Ok(bucket.to_owned())).await?;
        for bucket in &found {
            if !self.look_at(bucket)? {
                return Ok(true);
            }
        }
        Ok(found.len() as u64 == most)
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
        let begun = (self.looked % PAGE_SIZE as u64) as usize;
        if page != self.first_page() {
            let missing = format!("is {page}, right after trade {}", self.looked);
            return if begun == 0 { Err(corrupt("page", &missing).into()) } else { Ok(false) };
        }
        let trades = bucket.get_array("history").map_err(|_| corrupt("history", "is not an array"))?;
        for trade in trades.into_iter().skip(begun) {
            let trade = trade.ok().and_then(|trade| trade.as_document());
            let trade = trade.ok_or_else(|| corrupt("history", "holds something that is not a document"))?;
            self.look(trade);
        }
        Ok(true)
    }

    fn look(&mut self, trade: &RawDocument) {
        let key = trade.get_binary("key").ok().and_then(|key| TradeKey::read(key.bytes));
        for (search, placed) in &mut self.searches {
            if search.looked() == self.looked {
                search.look(placed, key, trade);
            }
        }
        self.looked += 1;
    }

    /// The error for a page that is not full, though it is not the last.
    fn ragged(&self) -> Corruption {
        Corruption {
            id: format!("{}_", self.customer),
            field: format!("page {}", self.first_page()),
            detail: "is not full, though it is not the last".to_owned(),
        }
    }
}

/// A query for at most `most` pages, with the keys of their trades or with the complete trades.
fn query(customer: CustomerId, first_page: u64, most: u64, with_trades: bool) -> Document {
    let trades = if with_trades { "history" } else { "history.key" };
    doc! {
        "find": COLLECTION,
        "filter": { "customerId": customer.get() as i64, "page": { "$gte": first_page as i64 } },
        "sort": { "customerId": 1, "page": 1 },
        "projection": { "page": 1, trades: 1 },
        "hint": { "customerId": 1, "page": 1 },
        "limit": most as i64,
        // All in one batch: by default the server's first batch has 101 documents.
        "batchSize": most as i64,
        "singleBatch": true,
    }
}
