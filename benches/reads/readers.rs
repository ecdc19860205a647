//! The peers' reads: how else the same pages could be had from MongoDB.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use futures_util::TryStreamExt;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Document, Regex, doc};
use mongodb::{Collection, Database};
use pagebucket::domain::Instant;
use serde::{Deserialize, Serialize};

use crate::harness::check::COLLECTION;

/// Trades of a page, as everywhere here.
const PAGE: u64 = 10;

/// One of them.
#[derive(Clone, Debug)]
pub enum Reader {
    /// The MongoDB manual: buckets by a regex on `_id`, sorted, the pages before skipped. No totals.
    Manual(Collection<Bucket>),
    /// One document a trade: skip, limit, and a count for the totals.
    Flat(Collection<FlatTrade>),
    /// The same without the count.
    Skipping(Collection<FlatTrade>),
    /// The same documents by a cursor, the `_id` of the trade before. No page numbers, no totals.
    Keyset(Collection<FlatTrade>),
}

/// A bucket, ours or the manual's, as far as it is shown.
#[derive(Debug, Clone, Deserialize)]
pub struct Bucket {
    pub history: Vec<StoredTrade>,
}

/// A trade in a bucket.
#[derive(Debug, Clone, Deserialize)]
pub struct StoredTrade {
    #[serde(rename = "type")]
    side: String,
    ticker: String,
    qty: i64,
    date: DateTime,
}

/// A trade that is a document.
#[derive(Debug, Clone, Deserialize)]
pub struct FlatTrade {
    _id: ObjectId,
    #[serde(flatten)]
    trade: StoredTrade,
}

/// A trade as all of them show it.
#[derive(Debug, Serialize)]
pub struct Item {
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    /// By which a client can name a trade that has no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(rename = "type")]
    side: String,
    ticker: String,
    qty: i64,
    date: Instant,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    customer_id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_trades: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_pages: Option<u64>,
    items: Vec<Item>,
    links: Links,
}

#[derive(Debug, Serialize)]
struct Links {
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// What is asked for: a page, what comes after a trade, or, in descending order, the newest.
#[derive(Debug, Deserialize)]
struct Wanted {
    page: Option<u64>,
    after: Option<String>,
    order: Option<String>,
    /// Of keyset: how many at most.
    limit: Option<u64>,
}

impl Reader {
    pub fn manual(database: &Database) -> Self {
        Self::Manual(database.collection(COLLECTION))
    }

    pub fn flat(database: &Database) -> Self {
        Self::Flat(database.collection(COLLECTION))
    }

    pub fn skipping(database: &Database) -> Self {
        Self::Skipping(database.collection(COLLECTION))
    }

    pub fn keyset(database: &Database) -> Self {
        Self::Keyset(database.collection(COLLECTION))
    }

    /// The handler that lists trades.
    pub fn lists(self) -> MethodRouter {
        get(list).with_state(self)
    }
}

impl Item {
    pub fn new(trade: StoredTrade, seq: Option<u64>, id: Option<ObjectId>) -> Option<Self> {
        let StoredTrade { side, ticker, qty, date } = trade;
        let date = Instant::from_millis(date.timestamp_millis()).ok()?;
        Some(Self { seq, id: id.map(ObjectId::to_hex), side, ticker, qty, date })
    }
}

async fn list(
    State(reader): State<Reader>,
    Path(customer): Path<u64>,
    Query(wanted): Query<Wanted>,
) -> Response {
    let newest_first = wanted.order.as_deref() == Some("desc");
    let listing = match reader {
        Reader::Manual(buckets) => manual(buckets, customer, wanted.page.unwrap_or(1), newest_first).await,
        Reader::Flat(trades) => flat(trades, customer, wanted.page.unwrap_or(1), newest_first, true).await,
        Reader::Skipping(trades) => {
            flat(trades, customer, wanted.page.unwrap_or(1), newest_first, false).await
        }
        Reader::Keyset(trades) => {
            keyset(trades, customer, wanted.after, wanted.limit.unwrap_or(PAGE), newest_first).await
        }
    };
    match listing {
        Ok(listing) => Json(listing).into_response(),
        Err(error) => {
            tracing::debug!(%error, "not read");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// The manual's query: `db.trades.find({ _id: /^123_/ }).sort({ _id: 1 }).skip(n).limit(1)`.
async fn manual(
    buckets: Collection<Bucket>,
    customer: u64,
    page: u64,
    newest_first: bool,
) -> mongodb::error::Result<Listing> {
    let regex = Regex { pattern: format!("^{customer}_").try_into()?, options: String::new().try_into()? };
    let bucket = buckets
        .find_one(doc! { "_id": Bson::RegularExpression(regex) })
        .sort(sort_by_id(newest_first))
        .skip(page - 1)
        .await?;
    let trades = bucket.map_or_else(Vec::new, |bucket| bucket.history);
    let items: Vec<Item> = trades.into_iter().filter_map(|trade| Item::new(trade, None, None)).collect();
    let next = (items.len() as u64 == PAGE).then(|| page_link(customer, page + 1));
    Ok(Listing {
        customer_id: customer,
        page: Some(page),
        total_trades: None,
        total_pages: None,
        items,
        links: Links { next },
    })
}

/// The two queries at once, as they do not need each other.
async fn flat(
    trades: Collection<FlatTrade>,
    customer: u64,
    page: u64,
    newest_first: bool,
    totals: bool,
) -> mongodb::error::Result<Listing> {
    let filter = doc! { "customerId": customer as i64 };
    let found = async {
        let found = trades.find(filter.clone()).sort(sort_by_id(newest_first));
        found.skip((page - 1) * PAGE).limit(PAGE as i64).await?.try_collect::<Vec<_>>().await
    };
    let counted = async {
        let count = trades.count_documents(filter.clone());
        if totals { count.await.map(Some) } else { Ok(None) }
    };
    let (found, total_trades) = tokio::try_join!(found, counted)?;
    let total_pages = total_trades.map(|total| total.div_ceil(PAGE).max(1));
    let more = total_pages.map_or(found.len() as u64 == PAGE, |pages| page < pages);
    // From the newest back only who knows the total can tell a trade's number.
    let seq = |place: usize| {
        let before = (page - 1) * PAGE + place as u64;
        if newest_first { total_trades.map(|total| total.saturating_sub(before)) } else { Some(before + 1) }
    };
    let items = found.into_iter().enumerate();
    let items = items.filter_map(|(place, found)| Item::new(found.trade, seq(place), None)).collect();
    let links = Links { next: more.then(|| page_link(customer, page + 1)) };
    Ok(Listing { customer_id: customer, page: Some(page), total_trades, total_pages, items, links })
}

async fn keyset(
    trades: Collection<FlatTrade>,
    customer: u64,
    after: Option<String>,
    limit: u64,
    newest_first: bool,
) -> mongodb::error::Result<Listing> {
    let mut filter = doc! { "customerId": customer as i64 };
    if let Some(after) = after {
        let after = ObjectId::parse_str(after).map_err(mongodb::error::Error::custom)?;
        filter.insert("_id", doc! { if newest_first { "$lt" } else { "$gt" }: after });
    }
    let found = trades.find(filter).sort(sort_by_id(newest_first)).limit(limit as i64).await?;
    let found: Vec<FlatTrade> = found.try_collect().await?;
    let last = found.last().filter(|_| found.len() as u64 == limit);
    let next = last.map(|last| format!("/v1/customers/{customer}/trades?after={}&limit={limit}", last._id));
    let item = |found: FlatTrade| Item::new(found.trade, None, Some(found._id));
    Ok(Listing {
        customer_id: customer,
        page: None,
        total_trades: None,
        total_pages: None,
        items: found.into_iter().filter_map(item).collect(),
        links: Links { next },
    })
}

fn sort_by_id(newest_first: bool) -> Document {
    doc! { "_id": if newest_first { -1 } else { 1 } }
}

fn page_link(customer: u64, page: u64) -> String {
    format!("/v1/customers/{customer}/trades?page={page}")
}
