//! The peers: other ways to keep the same trades, in MongoDB and in PostgreSQL, each behind a handler that
//! appends and one that lists.

mod append;
mod list;
mod minimal;
mod postgres;

use std::fmt::Display;
use std::sync::LazyLock;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Document, Regex, doc};
use mongodb::{Collection, Database};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Instant, OwnerId};
use pagebucket_model::item::Item;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

pub use self::minimal::{by_id, same_bytes};
pub use self::postgres::{Pool, routes as postgres};
use super::COLLECTION;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The MongoDB manual's upsert, and its pages: buckets by a regex on `_id`, sorted, the pages before
    /// skipped.
    Manual,
    /// One document a trade; pages by skip and limit, and a count for the totals.
    Flat,
    /// Flat that keeps the client's key as the trade's id: it refuses a repeat.
    FlatWithIds,
    /// Flat without the count.
    Skipping,
    /// Flat by a cursor, the `_id` of the trade before. No page numbers, no totals.
    Keyset,
}

/// One of them on its collection.
#[derive(Clone)]
struct Peer {
    way: Way,
    documents: Collection<Document>,
    buckets: Collection<Bucket>,
    trades: Collection<Trade>,
}

/// A bucket, ours or the manual's, as far as it is shown.
#[derive(Clone, Deserialize)]
struct Bucket {
    history: Vec<Trade>,
}

/// A trade, as far as it is stored and as all peers show it.
#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trade {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer_id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    /// By which a client can name a trade that has no number.
    #[serde(
        default,
        rename(deserialize = "_id"),
        skip_serializing_if = "Option::is_none",
        serialize_with = "as_hex"
    )]
    pub id: Option<ObjectId>,
    #[serde(rename = "type")]
    side: String,
    ticker: String,
    qty: i64,
    #[serde(serialize_with = "as_text")]
    date: DateTime,
}

fn as_hex<S: Serializer>(id: &Option<ObjectId>, serializer: S) -> Result<S::Ok, S::Error> {
    id.map(ObjectId::to_hex).serialize(serializer)
}

pub fn as_text<S: Serializer>(date: &DateTime, serializer: S) -> Result<S::Ok, S::Error> {
    let date = Instant::from_millis(date.timestamp_millis());
    date.map_err(serde::ser::Error::custom)?.serialize(serializer)
}

/// Where trades are appended and listed.
pub fn routes(database: &Database, way: Way) -> Router {
    let peer = Peer {
        way,
        documents: database.collection(COLLECTION),
        buckets: database.collection(COLLECTION),
        trades: database.collection(COLLECTION),
    };
    let trades = get(list::list).post(append::append);
    Router::new().route("/v1/customers/{customerId}/trades", trades).with_state(peer)
}

/// As ours, it has a body.
pub fn refused(error: impl Display) -> Response {
    tracing::debug!(%error, "refused");
    (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({ "title": "Refused" }))).into_response()
}

/// What a trade is: the peers check the same.
pub static TRADES: LazyLock<Definition> = LazyLock::new(Definition::trades);

/// The customer with this id, if it is one.
fn customer_of(id: &str) -> Option<u64> {
    match TRADES.owner.kind.parse(id) {
        Ok(OwnerId::Integer(id)) => Some(id),
        _ => None,
    }
}

/// A trade as a document of its own.
pub fn flat_document(customer: u64, trade: &Item) -> mongodb::error::Result<Document> {
    let mut document = doc! { "customerId": customer as i64 };
    document.extend(trade_document(trade)?);
    Ok(document)
}

/// A trade as all contenders keep it.
fn trade_document(trade: &Item) -> mongodb::error::Result<Document> {
    Ok(Document::try_from(trade.document())?)
}

/// The manual's `/^123_/`.
fn ids_of(customer: impl std::fmt::Display) -> mongodb::error::Result<Bson> {
    let regex = Regex { pattern: format!("^{customer}_").try_into()?, options: String::new().try_into()? };
    Ok(Bson::RegularExpression(regex))
}
