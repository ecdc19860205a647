//! How peers append: our checker of trades, and an answer of the same size.

use axum::Json;
use axum::body::to_bytes;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use mongodb::bson::{Document, doc};
use pagebucket_model::domain::{Clock, Instant};
use pagebucket_model::item::Item;
use serde_json::json;

use super::{Peer, TRADES, Way, customer_of, flat_document, ids_of, refused, trade_document};
use crate::harness::{BODY, KEY};

/// What a request asks for, checked as ours checks it.
pub struct Asked {
    pub customer: u64,
    pub trades: Vec<Item>,
    key: Option<HeaderValue>,
    now: Instant,
}

pub async fn asked(customer: &str, request: Request) -> Result<Asked, StatusCode> {
    let customer = customer_of(customer).ok_or(StatusCode::NOT_FOUND)?;
    let key = request.headers().get(KEY).cloned();
    let body = to_bytes(request.into_body(), BODY).await.map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?;
    let drafts = TRADES.item.parse_drafts(&body, 1000).map_err(|_| StatusCode::UNPROCESSABLE_ENTITY)?;
    let now = Clock::system().now();
    let trades = drafts.into_iter().map(|draft| draft.dated(now)).collect();
    Ok(Asked { customer, trades, key, now })
}

/// What ours answers, by the number of the last trade.
pub fn created(asked: &Asked, last: u64) -> Response {
    let customer = asked.customer;
    let first = last + 1 - asked.trades.len() as u64;
    let answer = json!({
        "customerId": customer, "ranges": [{ "firstSeq": first, "lastSeq": last }],
        "totalItems": last, "totalPages": last.div_ceil(10), "date": asked.now,
    });
    let location = format!("/v1/customers/{customer}/trades/{first}");
    (StatusCode::CREATED, [(header::LOCATION, location)], Json(answer)).into_response()
}

pub async fn append(
    State(peer): State<Peer>,
    Path(customer): Path<String>,
    request: Request,
) -> Result<Response, StatusCode> {
    let asked = asked(&customer, request).await?;
    let key = asked.key.as_ref().and_then(|key| key.to_str().ok());
    let stored = peer.append(asked.customer, &asked.trades, key).await;
    // As to a first request: this peer has neither sequence numbers nor totals.
    Ok(stored.map_or_else(refused, |()| created(&asked, asked.trades.len() as u64)))
}

impl Peer {
    /// Stores trades, one or more, with the client's write concern. `key` identifies the request.
    async fn append(&self, customer: u64, trades: &[Item], key: Option<&str>) -> mongodb::error::Result<()> {
        if self.way == Way::Manual {
            for trade in trades {
                self.upsert(customer, trade).await?;
            }
            return Ok(());
        }
        let documents = trades.iter().enumerate().map(|(index, trade)| -> mongodb::error::Result<Document> {
            let mut document = flat_document(customer, trade)?;
            if self.way == Way::FlatWithIds {
                // Without a key it is null, and the second of these is refused.
                document.insert("tradeId", key.map(|key| format!("{key}{index}")));
            }
            Ok(document)
        });
        if trades.len() == 1 {
            for document in documents {
                self.documents.insert_one(document?).await?;
            }
        } else {
            self.documents.insert_many(documents.collect::<Result<Vec<_>, _>>()?).await?;
        }
        Ok(())
    }

    /// The manual's statement:
    ///
    /// ```js
    /// db.trades.updateOne(
    ///   { _id: /^123_/, count: { $lt: 10 } },
    ///   { $push: { history: {...} }, $inc: { count: 1 },
    ///     $setOnInsert: { _id: "123_1698349623", customerId: 123 } },
    ///   { upsert: true })
    /// ```
    async fn upsert(&self, customer: u64, trade: &Item) -> mongodb::error::Result<()> {
        let filter = doc! { "_id": ids_of(customer)?, "count": { "$lt": 10 } };
        let id = format!("{customer}_{}", trade.date().seconds());
        let update = doc! {
            "$push": { "history": trade_document(trade)? },
            "$inc": { "count": 1 },
            "$setOnInsert": { "_id": id, "customerId": customer as i64 },
        };
        self.documents.update_one(filter, update).upsert(true).await.map(drop)
    }
}
