//! What a page costs when nothing has to be decided.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use mongodb::bson::doc;
use mongodb::{Collection, Database};
use serde::Serialize;

use super::{Bucket, Trade, refused};
use crate::harness::{COLLECTION, Client, Result, bucket_id};

/// Where a page is read as it is stored.
pub const PAGE: &str = "/v1/customers/{customerId}/trades/pages/{page}";

/// The bucket itself, as ours shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    customer_id: u64,
    page: u64,
    full: bool,
    first_seq: u64,
    count: usize,
    items: Vec<Trade>,
}

/// A find by `_id` in our buckets, which this server can compute from a page's number.
pub fn by_id(database: &Database) -> Router {
    Router::new().route(PAGE, get(find_by_id)).with_state(database.collection(COLLECTION))
}

async fn find_by_id(
    State(buckets): State<Collection<Bucket>>,
    Path((customer, page)): Path<(u64, u64)>,
) -> Response {
    match buckets.find_one(doc! { "_id": bucket_id(customer, page) }).await {
        Ok(Some(bucket)) => page_of(customer, page, bucket.history),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(error) => refused(error),
    }
}

/// The answer with the trades of a page.
pub fn page_of(customer: u64, page: u64, mut items: Vec<Trade>) -> Response {
    let first_seq = (page - 1) * 10 + 1;
    for (seq, trade) in (first_seq..).zip(&mut items) {
        trade.seq = Some(seq);
    }
    let (full, count) = (items.len() == 10, items.len());
    let page = Page { customer_id: customer, page, full, first_seq, count, items };
    ([(header::CACHE_CONTROL, "no-cache")], Json(page)).into_response()
}

/// Body and headers for caches, the tag first.
type Answer = (Bytes, [(HeaderName, HeaderValue); 2]);

/// The bytes with which our server answers to page 1, from memory, to any page; 304 to a client that has
/// them.
pub async fn same_bytes(ours: SocketAddr) -> Result<Router> {
    let mut client = Client::new(ours);
    let given = client.get("/v1/customers/1/trades/pages/1", "").await?;
    let value = |name| HeaderValue::from_str(given.header(name).unwrap_or_default());
    let headers = [(header::ETAG, value("etag")?), (header::CACHE_CONTROL, value("cache-control")?)];
    let answer: Answer = (Bytes::copy_from_slice(given.body), headers);
    Ok(Router::new().route(PAGE, get(from_memory)).with_state(Arc::new(answer)))
}

async fn from_memory(State(answer): State<Arc<Answer>>, asked: HeaderMap) -> Response {
    let (body, headers) = &*answer;
    if asked.get(header::IF_NONE_MATCH) == Some(&headers[0].1) {
        return (StatusCode::NOT_MODIFIED, headers.clone()).into_response();
    }
    let json = HeaderValue::from_static("application/json");
    (headers.clone(), [(header::CONTENT_TYPE, json)], body.clone()).into_response()
}
