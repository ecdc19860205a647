//! Converts a bucket to and from a document. Reading validates every field again and names the corrupt one: the
//! validator stops invalid writes, but not damage on disk.

use mongodb::bson::raw::{RawBsonRef, RawDocument};
use mongodb::bson::{DateTime, Document, doc};

use super::bucket_id::BucketId;
use super::decimal;
use super::dedup::TradeKey;
use super::tail::Tail;
use crate::domain::{
    CustomerId, Instant, PAGE_SIZE, PageNumber, Price, Quantity, Seq, Side, Ticker, Totals, Trade,
};
use crate::store::Corruption;

/// Name of the collection.
pub const COLLECTION: &str = "trades";

/// A trade to store, with its hash if the append has an idempotency key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) trade: &'a Trade,
    pub(super) key: Option<TradeKey>,
}

/// One page of a history, 1 to 10 trades in order of arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    pub(super) id: BucketId,
    /// The page's number.
    pub page: PageNumber,
    /// The page's trades.
    pub trades: Vec<Trade>,
}

impl Bucket {
    /// Whether the bucket is full, so that it never changes.
    pub fn full(&self) -> bool {
        self.trades.len() == PAGE_SIZE
    }

    /// The address of the bucket's first trade.
    pub fn first_seq(&self) -> Seq {
        self.page.first_seq()
    }

    /// The trade at this address, if it is in this bucket.
    pub fn trade(&self, seq: Seq) -> Option<&Trade> {
        self.trades.get(seq.offset()).filter(|_| seq.page() == self.page)
    }

    /// The totals of a history that ends with this bucket.
    pub fn totals(&self) -> Totals {
        Tail::totals(Some(self.tail()))
    }

    pub(super) fn tail(&self) -> Tail {
        Tail { id: self.id, page: self.page, count: self.trades.len() }
    }

    /// # Errors
    /// A field has a value that the invariants forbid; the error names the field.
    pub(super) fn read(document: &RawDocument, customer: CustomerId) -> Result<Self, Corruption> {
        let id = document.get_str("_id").unwrap_or("without a readable _id");
        let corrupt = |field: &str, detail: &str| Corruption {
            id: id.to_owned(),
            field: field.to_owned(),
            detail: detail.to_owned(),
        };
        let bucket_id = BucketId::parse(id, customer)
            .ok_or_else(|| corrupt("_id", "is not the customer's id, _ and ten digits"))?;
        if document.get_i64("customerId").ok() != Some(customer.get() as i64) {
            return Err(corrupt("customerId", "is not the int64 that _id begins with"));
        }
        let page = document.get_i64("page").ok().and_then(|page| u64::try_from(page).ok());
        let page = page
            .and_then(|page| PageNumber::new(page).ok())
            .ok_or_else(|| corrupt("page", "is not a positive int64"))?;
        let history = document.get_array("history").map_err(|_| corrupt("history", "is not an array"))?;
        let mut trades = Vec::with_capacity(PAGE_SIZE);
        for (index, item) in history.into_iter().enumerate() {
            let item = item.ok().and_then(RawBsonRef::as_document);
            let item = item.ok_or_else(|| corrupt(&format!("history.{index}"), "is not a document"))?;
            let trade = trade(item)
                .map_err(|(field, detail)| corrupt(&format!("history.{index}.{field}"), detail))?;
            trades.push(trade);
        }
        let count = document.get_i32("count").ok().and_then(|count| usize::try_from(count).ok());
        if count != Some(trades.len()) || !(1..=PAGE_SIZE).contains(&trades.len()) {
            return Err(corrupt("count", "is not the int32 number of trades, 1 to 10"));
        }
        Ok(Self { id: bucket_id, page, trades })
    }
}

/// A field and what is wrong with it.
type Fault = (&'static str, &'static str);

fn trade(item: &RawDocument) -> Result<Trade, Fault> {
    let side = item.get_str("type").ok().and_then(|text| Side::parse(text).ok());
    let ticker = item.get_str("ticker").ok().and_then(|text| Ticker::parse(text).ok());
    let qty = item.get_i64("qty").ok().and_then(|qty| u64::try_from(qty).ok());
    let date = item.get_datetime("date").ok();
    Ok(Trade {
        side: side.ok_or(("type", "is neither \"buy\" nor \"sell\""))?,
        ticker: ticker.ok_or(("ticker", "is not a ticker"))?,
        qty: qty
            .and_then(|qty| Quantity::new(qty).ok())
            .ok_or(("qty", "is not an int64 from 1 to 2^53 - 1"))?,
        price: price(item)?,
        date: date
            .and_then(|date| Instant::from_millis(date.timestamp_millis()).ok())
            .ok_or(("date", "is not a date of the years 0000 to 9999"))?,
    })
}

fn price(item: &RawDocument) -> Result<Option<Price>, Fault> {
    match item.get("price") {
        Ok(None) => Ok(None),
        Ok(Some(RawBsonRef::Decimal128(decimal))) => decimal::decode(decimal)
            .map(Some)
            .ok_or(("price", "is not a positive number of at most 34 digits")),
        _ => Err(("price", "is not a decimal")),
    }
}

/// A trade as an item of `history`.
pub(super) fn of_trade(Item { trade, key }: &Item<'_>) -> Document {
    let Trade { side, ticker, qty, price, date } = trade;
    let mut document = doc! {
        "type": side.name(),
        "ticker": ticker.as_str(),
        "qty": qty.get() as i64,
        "date": DateTime::from_millis(date.millis()),
    };
    if let Some(price) = price {
        document.insert("price", decimal::encode(*price));
    }
    if let Some(key) = key {
        document.insert("key", key.to_bson());
    }
    document
}
