//! Reading pages: each a seek, whatever the length of the history.
//!
//! Everything is read at majority: what may still be rolled back is not shown.

use std::time::Duration;

use super::Trades;
use super::document::Bucket;
use super::seek::Seek;
use super::tail::Tail;
use crate::domain::{CustomerId, PageNumber, Seq, Totals, Trade};
use crate::store::{COMMAND, Corruption, Deadline, Error};

/// In which order a history is turned over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Oldest first: pages from 1 upwards.
    Ascending,
    /// Newest first: pages from the last downwards.
    Descending,
}

/// One page of a history, with the totals of the same moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// What the history held.
    pub totals: Totals,
    /// The page, or `None` for the first page of an empty history.
    pub bucket: Option<Bucket>,
}

/// The two ends of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// What the history holds.
    pub totals: Totals,
    /// The trade of the lowest sequence number, and that of the highest.
    pub ends: Option<[(Seq, Trade); 2]>,
}

/// What a new primary is given to catch up with what an old one has shown.
const CATCH_UP: Duration = Duration::from_millis(200);

impl Trades {
    /// A page by its number, or the first page in `order`; `None` when there is no such page. The
    /// first page of an empty history is there, and empty.
    ///
    /// # Errors
    /// No database in time, or a corrupt bucket.
    pub async fn listing(
        &self,
        customer: CustomerId,
        page: Option<PageNumber>,
        order: Order,
        deadline: Deadline,
    ) -> Result<Option<Listing>, Error> {
        let (this, deadline) = (self.clone(), deadline.or_within(COMMAND));
        deadline.read(async move { this.read_listing(customer, page, order, deadline).await }).await
    }

    async fn read_listing(
        &self,
        customer: CustomerId,
        page: Option<PageNumber>,
        order: Order,
        deadline: Deadline,
    ) -> Result<Option<Listing>, Error> {
        let Some(last) = Seek::last(customer).find(&self.0.database, deadline).await? else {
            let empty = Listing { totals: Totals::default(), bucket: None };
            return Ok((page.is_none() || page == Some(PageNumber::FIRST)).then_some(empty));
        };
        let tail = last.tail();
        let totals = Tail::totals(Some(tail));
        let page = page.unwrap_or(match order {
            Order::Ascending => PageNumber::FIRST,
            Order::Descending => tail.page,
        });
        if page > tail.page {
            return Ok(None);
        }
        // Every page but the tail is full, and does not change between the two reads.
        let bucket =
            if page == tail.page { last } else { self.full_page(customer, page, tail, deadline).await? };
        Ok(Some(Listing { totals, bucket: Some(bucket) }))
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
        let (this, deadline) = (self.clone(), deadline.or_within(COMMAND));
        deadline.read(async move { this.read_page(customer, page, None, deadline).await }).await
    }

    /// One trade by its address.
    ///
    /// # Errors
    /// No database in time, or a corrupt bucket.
    pub async fn trade(
        &self,
        customer: CustomerId,
        seq: Seq,
        deadline: Deadline,
    ) -> Result<Option<Trade>, Error> {
        let bucket = self.page(customer, seq.page(), deadline).await?;
        Ok(bucket.and_then(|mut bucket| {
            let place = seq.offset();
            (place < bucket.trades.len()).then(|| bucket.trades.swap_remove(place))
        }))
    }

    /// The two ends of a history, and its totals.
    ///
    /// # Errors
    /// No database in time, or a corrupt bucket.
    pub async fn summary(&self, customer: CustomerId, deadline: Deadline) -> Result<Summary, Error> {
        let (this, deadline) = (self.clone(), deadline.or_within(COMMAND));
        deadline.read(async move { this.read_summary(customer, deadline).await }).await
    }

    async fn read_summary(&self, customer: CustomerId, deadline: Deadline) -> Result<Summary, Error> {
        let Some(last) = Seek::last(customer).find(&self.0.database, deadline).await? else {
            return Ok(Summary { totals: Totals::default(), ends: None });
        };
        let tail = last.tail();
        let first = match tail.page {
            PageNumber::FIRST => last.clone(),
            _ => self.full_page(customer, PageNumber::FIRST, tail, deadline).await?,
        };
        // A bucket that could be read has a trade.
        let ends = first.trades.into_iter().next().zip(last.trades.into_iter().next_back());
        let ends =
            ends.map(|(oldest, newest)| [(PageNumber::FIRST.first_seq(), oldest), (tail.last_seq(), newest)]);
        Ok(Summary { totals: Tail::totals(Some(tail)), ends })
    }

    /// A page that the invariants say is there and full.
    async fn full_page(
        &self,
        customer: CustomerId,
        page: PageNumber,
        tail: Tail,
        deadline: Deadline,
    ) -> Result<Bucket, Error> {
        let mut found = self.read_page(customer, page, Some(tail), deadline).await?;
        if !found.as_ref().is_some_and(Bucket::full) {
            // After a failover the new primary's majority may be a little behind the one that showed the
            // tail. It catches up at once, or the page is not what it must be.
            deadline.or_within(CATCH_UP).wait().await;
            found = self.read_page(customer, page, Some(tail), deadline).await?;
        }
        let corrupt = |detail: &str| {
            let (id, field) = (tail.id.to_string(), format!("page {page} before it"));
            Error::from(Corruption { id, field, detail: detail.to_owned() })
        };
        match found {
            Some(bucket) if bucket.full() => Ok(bucket),
            Some(_) => Err(corrupt("is not full, though it is not the last")),
            None => Err(corrupt("is missing")),
        }
    }

    async fn read_page(
        &self,
        customer: CustomerId,
        page: PageNumber,
        tail: Option<Tail>,
        deadline: Deadline,
    ) -> Result<Option<Bucket>, Error> {
        let found = Seek::page(customer, page, tail).find(&self.0.database, deadline).await?;
        match found {
            Some(bucket) if bucket.page != page => Err(Error::from(Corruption {
                id: bucket.id.to_string(),
                field: "page".to_owned(),
                detail: format!("is {}, though it is number {page} in the order of _id", bucket.page),
            })),
            found => Ok(found),
        }
    }
}
