//! Reading pages: each a seek, whatever the length of the history.
//!
//! Everything is read at majority: what may still be rolled back is not shown. Nothing that was shown or
//! acknowledged is missing from a later read, whichever server is primary then ([`MonotonicReads`]). Full
//! pages may be read from other servers than the primary ([`super::secondaries`]).

use super::document::Bucket;
use super::engine::Trades;
use super::find::{Find, numbered};
use super::tail::Tail;
use crate::domain::{CustomerId, PageNumber, Seq, Totals};
use crate::store::majority::MonotonicReads;
use crate::store::{COMMAND, Corruption, Deadline, Error};

/// A history as its tail showed it. Every page before the tail is full and never changes, so that
/// whatever is read of them later belongs to the same moment.
#[derive(Debug, Clone)]
pub struct History {
    pub(super) trades: Trades,
    pub(super) customer: CustomerId,
    last: Option<Bucket>,
}

/// The pages of a history that were full at some moment. They are there for ever, as they were.
#[derive(Debug, Clone)]
pub struct FullPages {
    trades: Trades,
    customer: CustomerId,
    last: Option<PageNumber>,
    /// The tail behind them, where it has been read.
    tail: Option<Tail>,
}

impl Trades {
    /// A history as its tail shows it now; an unknown customer's is empty.
    ///
    /// # Errors
    /// No database in time, or a corrupt bucket.
    pub async fn history(&self, customer: CustomerId, deadline: Deadline) -> Result<History, Error> {
        let (trades, deadline) = (self.clone(), deadline.or_within(COMMAND));
        let read = async move {
            let last = Find::last(customer).find(&trades.0.reads, deadline).await?;
            if let Some(tail) = last.as_ref().map(Bucket::tail) {
                trades.0.high_water.note(customer, tail.last_seq());
            }
            Ok(History { trades, customer, last })
        };
        deadline.read(read).await
    }

    /// The full pages of the history up to `last`, if this process knows without a look at the database that the
    /// history has come so far. Otherwise [`History::full_as_of`] finds out.
    pub fn full_as_of(&self, customer: CustomerId, last: Seq) -> Option<FullPages> {
        self.0.high_water.held(customer, last).then(|| FullPages::of(self, customer, last))
    }

    /// A page by its number alone.
    ///
    /// # Errors
    /// No database in time, or a corrupt bucket.
    pub async fn page(
        &self,
        customer: CustomerId,
        page: PageNumber,
        deadline: Deadline,
    ) -> Result<Option<Bucket>, Error> {
        if let Some(mut full) = self.preferred(customer, &[page], deadline).await {
            return Ok(full.pop());
        }
        let (this, deadline) = (self.clone(), deadline.or_within(COMMAND));
        if !Find::skips_to(page) {
            return this.0.readers.page(&this.0.reads, customer, page, deadline).await;
        }
        let read = async move {
            let found = Find::page(customer, page, None).find(&this.0.reads, deadline).await?;
            found.map(|bucket| numbered(bucket, page)).transpose()
        };
        deadline.read(read).await
    }

    /// These pages, which the invariants say are there and full.
    pub(super) async fn read_full(
        &self,
        customer: CustomerId,
        pages: &[PageNumber],
        tail: Option<Tail>,
        deadline: Deadline,
    ) -> Result<Vec<Bucket>, Error> {
        let downwards = pages.is_sorted_by(|one, next| one > next);
        if let Some(mut full) = self.preferred(customer, pages, deadline).await {
            if downwards {
                full.reverse();
            }
            return Ok(full);
        }
        let seek = match pages {
            [page] => Find::page(customer, *page, tail),
            pages => Find::pages(customer, pages),
        };
        let mut found = seek.find_all(&self.0.reads, deadline).await?;
        if downwards {
            found.reverse();
        }
        let mut found = found.into_iter();
        let mut full = Vec::with_capacity(pages.len());
        for &page in pages {
            let corrupt = |detail: &str| {
                let (id, field) = match tail {
                    Some(tail) => (tail.id.to_string(), format!("page {page} before it")),
                    None => (format!("{customer}_"), format!("page {page}")),
                };
                Error::from(Corruption { id, field, detail: detail.to_owned() })
            };
            let bucket = match found.next() {
                // Found by its number, a page is missing where another comes instead.
                Some(bucket) if pages.len() > 1 && bucket.page != page => return Err(corrupt("is missing")),
                Some(bucket) => numbered(bucket, page)?,
                None => return Err(corrupt("is missing")),
            };
            if !bucket.full() {
                return Err(corrupt("is not full, though it is not the last"));
            }
            full.push(bucket);
        }
        Ok(full)
    }
}

impl History {
    /// Whose it is.
    pub fn customer(&self) -> CustomerId {
        self.customer
    }

    /// How much it held.
    pub fn totals(&self) -> Totals {
        Tail::totals(self.tail())
    }

    /// Its last page, if it had any.
    pub fn last(&self) -> Option<&Bucket> {
        self.last.as_ref()
    }

    pub(super) fn source(&self) -> &MonotonicReads {
        &self.trades.0.reads
    }

    pub(super) fn tail(&self) -> Option<Tail> {
        self.last.as_ref().map(Bucket::tail)
    }

    /// Those of its pages that were full, but for the last one of all, which was read.
    pub fn full(&self) -> FullPages {
        let last = self.tail().and_then(|tail| tail.page.previous());
        FullPages { trades: self.trades.clone(), customer: self.customer, last, tail: self.tail() }
    }

    /// Its full pages up to `last`, if it has come so far.
    pub fn full_as_of(&self, last: Seq) -> Option<FullPages> {
        let has_been = self.totals().last_seq().is_some_and(|end| last <= end);
        has_been.then(|| FullPages::of(&self.trades, self.customer, last))
    }

    /// The pages from `first` to `last`, both included, as far as it had them. They are full, but for
    /// the last one of all, which is as it was then. None is read anew that is already here.
    ///
    /// # Errors
    /// No database in time, or a corrupt bucket.
    pub async fn pages(
        &self,
        first: PageNumber,
        last: PageNumber,
        deadline: Deadline,
    ) -> Result<Vec<Bucket>, Error> {
        let mut pages = self.full().read(first, last, deadline).await?;
        pages.extend(self.last.iter().filter(|tail| (first..=last).contains(&tail.page)).cloned());
        Ok(pages)
    }
}

impl FullPages {
    fn of(trades: &Trades, customer: CustomerId, last: Seq) -> Self {
        let last = Totals::ending_with(Some(last)).last_full_page();
        Self { trades: trades.clone(), customer, last, tail: None }
    }

    /// Whose they are.
    pub fn customer(&self) -> CustomerId {
        self.customer
    }

    /// The last of them, if there are any.
    pub fn last(&self) -> Option<PageNumber> {
        self.last
    }

    /// Those from `first` to `last`, both included.
    ///
    /// # Errors
    /// No database in time, or a corrupt bucket.
    pub async fn read(
        &self,
        first: PageNumber,
        last: PageNumber,
        deadline: Deadline,
    ) -> Result<Vec<Bucket>, Error> {
        let Some(last) = self.last.map(|end| end.min(last)).filter(|last| first <= *last) else {
            return Ok(Vec::new());
        };
        let Self { trades, customer, tail, .. } = self.clone();
        let (pages, deadline) = (first.up_to(last).collect::<Vec<_>>(), deadline.or_within(COMMAND));
        deadline.read(async move { trades.read_full(customer, &pages, tail, deadline).await }).await
    }
}
