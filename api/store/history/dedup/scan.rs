//! Scan for requests' trades in the history.
//!
//! A look-up reads a bounded number of pages, and says whether it has come to its goal. What takes more of them
//! is for the caller to continue: never inside of a commit.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};

use super::identity::TradeKey;
use super::request::Placed;
use super::search::Search;
use crate::domain::{CustomerId, PAGE_SIZE};
use crate::store::history::document::COLLECTION;
use crate::store::majority::{MonotonicReads, Patient};
use crate::store::{Corruption, Deadline, Error};

/// Pages of the first read to the end of a history: those that a part of an upload may be on. Most repeats find
/// their trades there.
const FEWEST: u64 = 101;

/// Pages of a read, at most: 0.4 MB of keys, or 1.3 MB of trades.
const MOST: u64 = 1_000;

/// Reads of one look-up.
const READS: usize = 10;

/// How many trades a search may be behind a tail to be brought up to date inside of a commit: those of two
/// commits of others, and one read.
pub(in crate::store::history) const NEAR: u64 = 5_000;

const _: () = assert!(NEAR / PAGE_SIZE as u64 + 2 <= MOST);

/// Searches of one customer, with what each has found.
pub(in crate::store::history) type Searches = Vec<(Search, Placed)>;

/// How far a look-up goes.
#[derive(Debug, Clone, Copy)]
pub(in crate::store::history) enum Goal {
    /// Through the end of a known tail.
    Through(u64),
    /// To the end of the history, which is not before this one of a known tail.
    End { after: u64 },
}

/// What a look-up has come to.
pub(in crate::store::history) struct LookedUp {
    pub(in crate::store::history) searches: Searches,
    /// Whether each search has found all its trades, or the goal is reached.
    pub(in crate::store::history) is_done: bool,
}

/// Looks on from where these searches have come, in order, until each has found all its trades, or the goal
/// is reached, or enough was read for once.
///
/// It is read at majority, and only what follows without a gap counts as looked at.
///
/// # Errors
/// No database in time; the end of the known tail did not show in time; or a page is missing.
pub(in crate::store::history) async fn scan(
    reads: &MonotonicReads,
    customer: CustomerId,
    searches: Searches,
    goal: Goal,
    deadline: Deadline,
) -> Result<LookedUp, Error> {
    let reads = reads.clone();
    deadline.read(async move { Scan::new(customer, searches).run(&reads, goal, deadline).await }).await
}

struct Scan {
    customer: CustomerId,
    searches: Searches,
    /// The last `seq` looked at; every search has come as far.
    looked: u64,
}

/// Where a batch of pages ended.
enum End {
    /// There may be more pages.
    More,
    /// There are none.
    Reached,
}

impl Scan {
    fn new(customer: CustomerId, searches: Searches) -> Self {
        let looked = searches.iter().map(|(search, _)| search.looked()).min().unwrap_or(0);
        Self { customer, searches, looked }
    }

    async fn run(
        mut self,
        reads: &MonotonicReads,
        goal: Goal,
        deadline: Deadline,
    ) -> Result<LookedUp, Error> {
        let mut patient = Patient::new(None, deadline);
        let (mut most, last) = match goal {
            Goal::Through(last) => (MOST, last),
            Goal::End { after } => (FEWEST, after),
        };
        let mut read = 0;
        while !self.is_done(goal) && read < READS {
            let pages = match goal {
                // One more tells whether the last of them is full.
                Goal::Through(last) => most.min(last.div_ceil(PAGE_SIZE as u64) + 2 - self.first_page()),
                Goal::End { .. } => most,
            };
            let before = self.looked;
            match self.read(reads, pages, deadline).await? {
                End::More if self.looked == before => return Err(self.ragged().into()),
                End::More => {
                    read += 1;
                    most = MOST.min(2 * most);
                }
                End::Reached if self.looked >= last => {
                    return Ok(LookedUp { searches: self.searches, is_done: true });
                }
                // A new primary's majority may be behind what an old one has shown.
                End::Reached => {
                    let shown =
                        format!("customer {} is shown up to {}, not {last}", self.customer, self.looked);
                    patient.after(Error::Unavailable(shown)).await?;
                }
            }
        }
        Ok(LookedUp { is_done: self.is_done(goal), searches: self.searches })
    }

    /// Whether nothing more needs to be read; the end of a history has to be seen.
    fn is_done(&self, goal: Goal) -> bool {
        matches!(goal, Goal::Through(last) if self.looked >= last)
            || self.searches.iter().all(|(search, placed)| search.is_over(placed))
    }

    /// The page of the first trade not yet looked at.
    fn first_page(&self) -> u64 {
        self.looked / PAGE_SIZE as u64 + 1
    }

    async fn read(&mut self, reads: &MonotonicReads, most: u64, deadline: Deadline) -> Result<End, Error> {
        let whole = self.searches.iter().any(|(search, _)| search.compares());
        let query = query(self.customer, self.first_page(), most, whole);
        let found = reads.find(None, &query, None, deadline, |bucket| Ok(bucket.to_owned())).await?;
        for bucket in &found {
            if !self.look_at(bucket)? {
                return Ok(End::More);
            }
        }
        Ok(if found.len() as u64 == most { End::More } else { End::Reached })
    }

    /// Looks at a page; false when one before it has grown since it was read.
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

    /// A page that is not full, though it is not the last.
    fn ragged(&self) -> Corruption {
        Corruption {
            id: format!("{}_", self.customer),
            field: format!("page {}", self.first_page()),
            detail: "is not full, though it is not the last".to_owned(),
        }
    }
}

/// At most `most` pages, with their trades' keys or with the `whole` trades.
fn query(customer: CustomerId, first_page: u64, most: u64, whole: bool) -> Document {
    let trades = if whole { "history" } else { "history.key" };
    doc! {
        "find": COLLECTION,
        "filter": { "customerId": customer.get() as i64, "page": { "$gte": first_page as i64 } },
        "sort": { "customerId": 1, "page": 1 },
        "projection": { "page": 1, trades: 1 },
        "hint": { "customerId": 1, "page": 1 },
        "limit": most as i64,
        // All at once: the server's own first batch is of 101 documents.
        "batchSize": most as i64,
        "singleBatch": true,
    }
}
