//! The limits: what a page costs when nothing has to be decided.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use mongodb::bson::doc;
use mongodb::{Collection, Database};
use serde::Serialize;

use crate::harness::Result;
use crate::harness::check::COLLECTION;
use crate::harness::client::Client;
use crate::harness::history::bucket_id;
use crate::readers::{Bucket, Item};

/// Where a page is read as it is stored.
const PAGE: &str = "/v1/customers/{customerId}/trades/pages/{page}";

/// The bucket itself, as ours shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PageView {
    customer_id: u64,
    page: u64,
    full: bool,
    first_seq: u64,
    count: usize,
    items: Vec<Item>,
}

/// A find by `_id`, which this server is told how to make from a page's number.
pub fn by_id(database: &Database) -> Router {
    Router::new().route(PAGE, get(find_by_id)).with_state(database.collection(COLLECTION))
}

async fn find_by_id(
    State(buckets): State<Collection<Bucket>>,
    Path((customer, page)): Path<(u64, u64)>,
) -> Response {
    match buckets.find_one(doc! { "_id": bucket_id(customer, page) }).await {
        Ok(Some(bucket)) => {
            let first_seq = (page - 1) * 10 + 1;
            let trades = bucket.history.into_iter().zip(first_seq..);
            let items: Vec<Item> =
                trades.filter_map(|(trade, seq)| Item::new(trade, Some(seq), None)).collect();
            let (full, count) = (items.len() == 10, items.len());
            let view = PageView { customer_id: customer, page, full, first_seq, count, items };
            ([(header::CACHE_CONTROL, "no-cache")], Json(view)).into_response()
        }
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(error) => {
            tracing::debug!(%error, "not read");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// An answer of ours, body and headers for caches, whichever page is asked for.
struct Answer {
    body: Bytes,
    etag: HeaderValue,
    cache_control: HeaderValue,
}

/// The bytes that another server answers to `path`, from memory; 304 to who has them.
pub async fn same_bytes(client: &mut Client, path: &str) -> Result<Router> {
    let given = client.get(path, "").await?;
    let header = |name| HeaderValue::from_str(given.header(name).unwrap_or_default());
    let answer = Answer {
        etag: header("etag")?,
        cache_control: header("cache-control")?,
        body: Bytes::copy_from_slice(given.body),
    };
    Ok(Router::new().route(PAGE, get(from_memory)).with_state(Arc::new(answer)))
}

async fn from_memory(State(answer): State<Arc<Answer>>, asked: HeaderMap) -> Response {
    let for_caches =
        [(header::ETAG, answer.etag.clone()), (header::CACHE_CONTROL, answer.cache_control.clone())];
    if asked.get(header::IF_NONE_MATCH) == Some(&answer.etag) {
        return (StatusCode::NOT_MODIFIED, for_caches).into_response();
    }
    let json = HeaderValue::from_static("application/json");
    (for_caches, [(header::CONTENT_TYPE, json)], answer.body.clone()).into_response()
}
