//! How peers append: our checker of trades, and an answer of the same size.

use axum::Json;
use axum::body::to_bytes;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use mongodb::bson::{Document, doc};
use pagebucket_model::domain::Clock;
use pagebucket_model::item::Item;
use serde_json::json;

use super::{Peer, TRADES, Way, customer_of, flat_document, ids_of, refused, trade_document};
use crate::harness::{BODY, KEY};

pub async fn append(State(peer): State<Peer>, Path(customer): Path<String>, request: Request) -> Response {
    let Some(customer) = customer_of(&customer) else { return StatusCode::NOT_FOUND.into_response() };
    let key = request.headers().get(KEY).cloned();
    let Ok(body) = to_bytes(request.into_body(), BODY).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let Ok(drafts) = TRADES.item.parse_drafts(&body, 1000) else {
        return StatusCode::UNPROCESSABLE_ENTITY.into_response();
    };
    let key = key.as_ref().and_then(|key| key.to_str().ok());
    let now = Clock::system().now();
    let trades: Vec<Item> = drafts.into_iter().map(|draft| draft.dated(now)).collect();
    if let Err(error) = peer.append(customer, &trades, key).await {
        return refused(error);
    }
    // What ours would answer to a first trade; a peer has neither sequence numbers nor totals.
    let answer = json!({
        "customerId": customer, "ranges": [{ "firstSeq": 1, "lastSeq": trades.len() }],
        "totalItems": trades.len(), "totalPages": 1, "date": now,
    });
    let location = format!("/v1/customers/{customer}/trades/1");
    (StatusCode::CREATED, [(header::LOCATION, location)], Json(answer)).into_response()
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
