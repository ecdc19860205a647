//! Reading pages: each a seek, whatever the length of the history.
//!
//! Everything is read at majority: what may still be rolled back is not shown.

use mongodb::bson::{Document, doc};

use super::document::Bucket;
use super::majority::Patient;
use super::tail::Tail;
use super::{BucketId, COLLECTION, Trades};
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

/// Pages from either end that are reached by skipping over those before them. A skipped bucket is
/// one more document examined; a seek by page number is one index key and one more look-up. The
/// two cost the same within a few buckets, so the bound is small.
const MOST_SKIPPED: u64 = 3;

/// Which bucket, and how to get there.
struct Seek {
    filter: Document,
    sort: Option<Document>,
    skip: u64,
    hint: Document,
}

impl Seek {
    fn last(customer: CustomerId) -> Self {
        Self {
            filter: BucketId::all_of(customer),
            sort: Some(doc! { "_id": -1 }),
            skip: 0,
            hint: doc! { "_id": 1 },
        }
    }

    /// A page of a history that ends with `tail`, if that is known.
    fn page(customer: CustomerId, page: PageNumber, tail: Option<Tail>) -> Self {
        let from_start = page.get() - 1;
        if from_start <= MOST_SKIPPED {
            let filter = BucketId::all_of(customer);
            return Self { filter, sort: Some(doc! { "_id": 1 }), skip: from_start, hint: doc! { "_id": 1 } };
        }
        if let Some(tail) = tail.filter(|tail| tail.page.get() - page.get() <= MOST_SKIPPED) {
            // From the tail that was seen: buckets opened since then do not count.
            let (filter, skip) = (tail.id.up_to(), tail.page.get() - page.get());
            return Self { filter, sort: Some(doc! { "_id": -1 }), skip, hint: doc! { "_id": 1 } };
        }
        Self {
            filter: doc! { "customerId": customer.get() as i64, "page": page.get() as i64 },
            sort: None,
            skip: 0,
            hint: doc! { "customerId": 1, "page": 1 },
        }
    }
}

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
        let Some(last) = self.find(customer, Seek::last(customer), deadline).await? else {
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
        let Some(last) = self.find(customer, Seek::last(customer), deadline).await? else {
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
        let found = self.read_page(customer, page, Some(tail), deadline).await?;
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
        let found = self.find(customer, Seek::page(customer, page, tail), deadline).await?;
        match found {
            Some(bucket) if bucket.page != page => Err(Error::from(Corruption {
                id: bucket.id.to_string(),
                field: "page".to_owned(),
                detail: format!("is {}, though it is number {page} in the order of _id", bucket.page),
            })),
            found => Ok(found),
        }
    }

    async fn find(
        &self,
        customer: CustomerId,
        seek: Seek,
        deadline: Deadline,
    ) -> Result<Option<Bucket>, Error> {
        let mut patient = Patient::new(None, deadline);
        loop {
            let (concern, limit) = patient.terms();
            match self.run_find(seek.command(concern, limit), customer).await {
                Err(error) => patient.after(error).await?,
                found => return found,
            }
        }
    }

    async fn run_find(&self, command: Document, customer: CustomerId) -> Result<Option<Bucket>, Error> {
        let error = |error: mongodb::error::Error| Error::of(&error);
        let mut cursor = self.0.database.run_cursor_command(command).await.map_err(error)?;
        if !cursor.advance().await.map_err(error)? {
            return Ok(None);
        }
        Ok(Some(Bucket::read(cursor.current(), customer)?))
    }
}

impl Seek {
    fn command(&self, concern: Document, limit: i64) -> Document {
        let mut command = doc! {
            "find": COLLECTION,
            "filter": self.filter.clone(),
            "limit": 1,
            "singleBatch": true,
            "hint": self.hint.clone(),
            "readConcern": concern,
            "maxTimeMS": limit,
        };
        if let Some(sort) = &self.sort {
            command.insert("sort", sort.clone());
        }
        if self.skip > 0 {
            command.insert("skip", self.skip as i64);
        }
        command
    }
}
