//! How peers list pages.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use futures_util::TryStreamExt;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Document, doc};
use mongodb::error::Result;
use serde::{Deserialize, Serialize};

use super::{Peer, Trade, Way, ids_of, refused};

/// Trades of a page.
pub const PAGE: u64 = 10;

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    pub customer_id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_trades: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_pages: Option<u64>,
    pub items: Vec<Trade>,
    pub links: Links,
}

#[derive(Default, Serialize)]
pub struct Links {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What is asked for: a page, what comes after a trade, or, in descending order, the newest.
#[derive(Deserialize)]
pub struct Wanted {
    pub page: Option<u64>,
    pub after: Option<String>,
    pub order: Option<String>,
}

pub async fn list(
    State(peer): State<Peer>,
    Path(customer): Path<u64>,
    Query(wanted): Query<Wanted>,
) -> Response {
    let newest_first = wanted.order.as_deref() == Some("desc");
    let listing = match peer.way {
        Way::Manual => peer.buckets(customer, wanted.page.unwrap_or(1), newest_first).await,
        Way::Keyset => peer.following(customer, wanted, newest_first).await,
        _ => peer.skipping(customer, wanted.page.unwrap_or(1), newest_first).await,
    };
    listing.map_or_else(refused, |listing| Json(listing).into_response())
}

impl Peer {
    /// The manual's query: `db.trades.find({ _id: /^123_/ }).sort({ _id: 1 }).skip(n).limit(1)`.
    async fn buckets(&self, customer: u64, page: u64, newest_first: bool) -> Result<Listing> {
        let found = self.buckets.find_one(doc! { "_id": ids_of(customer)? }).sort(by_id(newest_first));
        let items = found.skip(page - 1).await?.map_or_else(Vec::new, |bucket| bucket.history);
        let links = page_link(items.len() as u64 == PAGE, customer, page);
        Ok(Listing { customer_id: customer, page: Some(page), items, links, ..Listing::default() })
    }

    /// The two queries at once, as they do not need each other.
    async fn skipping(&self, customer: u64, page: u64, newest_first: bool) -> Result<Listing> {
        let filter = doc! { "customerId": customer as i64 };
        let found = async {
            let found = self.trades.find(filter.clone()).sort(by_id(newest_first));
            found.skip((page - 1) * PAGE).limit(PAGE as i64).await?.try_collect::<Vec<_>>().await
        };
        let counted = async {
            let count = self.trades.count_documents(filter.clone());
            if self.way == Way::Skipping { Ok(None) } else { count.await.map(Some) }
        };
        let (mut items, total_trades) = tokio::try_join!(found, counted)?;
        let total_pages = total_trades.map(|total| total.div_ceil(PAGE).max(1));
        let more = total_pages.map_or(items.len() as u64 == PAGE, |pages| page < pages);
        for (before, trade) in ((page - 1) * PAGE..).zip(&mut items) {
            // From the newest back a trade's number follows from the total alone.
            let from_end = || total_trades.map(|total| total.saturating_sub(before));
            trade.seq = if newest_first { from_end() } else { Some(before + 1) };
            (trade.customer_id, trade.id) = (None, None);
        }
        let links = page_link(more, customer, page);
        Ok(Listing { customer_id: customer, page: Some(page), total_trades, total_pages, items, links })
    }

    async fn following(&self, customer: u64, wanted: Wanted, newest_first: bool) -> Result<Listing> {
        let mut filter = doc! { "customerId": customer as i64 };
        if let Some(after) = wanted.after {
            let after = ObjectId::parse_str(after).map_err(mongodb::error::Error::custom)?;
            filter.insert("_id", doc! { if newest_first { "$lt" } else { "$gt" }: after });
        }
        let found = self.trades.find(filter).sort(by_id(newest_first)).limit(PAGE as i64).await?;
        let mut items: Vec<Trade> = found.try_collect().await?;
        items.iter_mut().for_each(|trade| trade.customer_id = None);
        let last = items.last().filter(|_| items.len() as u64 == PAGE).and_then(|last| last.id);
        let next = last.map(|id| format!("/v1/customers/{customer}/trades?after={id}"));
        Ok(Listing { customer_id: customer, items, links: Links { next }, ..Listing::default() })
    }
}

fn by_id(newest_first: bool) -> Document {
    doc! { "_id": if newest_first { -1 } else { 1 } }
}

pub fn page_link(more: bool, customer: u64, page: u64) -> Links {
    Links { next: more.then(|| format!("/v1/customers/{customer}/trades?page={}", page + 1)) }
}
