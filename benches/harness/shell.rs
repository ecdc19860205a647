//! The HTTP around a peer: as near to ours as can be, so that what differs is how trades are stored.
//!
//! The same hyper settings as `server`, the same layers in the same order as `http`, the same parsers, and an
//! answer of the same size. It lacks metrics and what never happens here (reading the rest of a refused body,
//! problem bodies), and appends in the request's own task where ours hands trades on: all this favours the peers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use axum::{Json, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pagebucket::domain::{Clock, CustomerId, Trade, parse_drafts};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};
use tower_http::set_header::SetResponseHeaderLayer;
use tracing::Instrument;

use super::Result;
use super::client::KEY;
use super::peers::Peer;

const REQUEST: Duration = Duration::from_secs(35);
const REQUESTS: usize = 1024;
const BODY: usize = 1024 * 1024;

/// Serves until the task is ended.
pub async fn serve(router: Router) -> Result<(SocketAddr, JoinHandle<()>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).ok();
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(30))
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
            tokio::spawn(connection);
        }
    });
    Ok((address, serving))
}

/// Puts our layers around a peer's routes.
pub fn layered(routes: Router) -> Router {
    let no_origin = AllowOrigin::predicate(|_, _| false);
    let header = HeaderValue::from_static;
    routes
        .layer(middleware::from_fn(deadline))
        .layer(middleware::from_fn_with_state(Arc::new(Semaphore::new(REQUESTS)), under_way))
        .layer(CatchPanicLayer::new())
        .layer(CompressionLayer::new())
        .layer(SetResponseHeaderLayer::if_not_present(header::CACHE_CONTROL, header("no-cache")))
        .layer(SetResponseHeaderLayer::overriding(header::X_CONTENT_TYPE_OPTIONS, header("nosniff")))
        .layer(CorsLayer::new().allow_origin(no_origin))
        .layer(middleware::from_fn(log))
        .layer(middleware::from_fn(request_id))
}

/// Where trades are appended and listed.
pub const TRADES: &str = "/v1/customers/{customerId}/trades";

/// The handler that lets a peer append.
pub fn appends(peer: Peer) -> MethodRouter {
    post(append).with_state(peer)
}

async fn append(State(peer): State<Peer>, Path(customer): Path<String>, request: Request) -> Response {
    let Ok(customer) = customer.parse::<CustomerId>() else { return StatusCode::NOT_FOUND.into_response() };
    let key = request.headers().get(KEY).cloned();
    let Ok(body) = to_bytes(request.into_body(), BODY).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let Ok(drafts) = parse_drafts(&body, 1000) else {
        return StatusCode::UNPROCESSABLE_ENTITY.into_response();
    };
    let key = key.as_ref().and_then(|key| key.to_str().ok());
    let now = Clock::system().now();
    let trades: Vec<Trade> = drafts.into_iter().map(|draft| draft.dated(now)).collect();
    if let Err(error) = peer.append(customer, &trades, key).await {
        tracing::debug!(%error, "not stored");
        return (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({ "title": "Not stored" }))).into_response();
    }
    // What ours would say of a first trade; a peer knows neither sequence numbers nor totals.
    let answer = json!({
        "customerId": customer, "ranges": [{ "firstSeq": 1, "lastSeq": trades.len() }],
        "totalTrades": trades.len(), "totalPages": 1, "date": now,
    });
    let location = format!("/v1/customers/{customer}/trades/1");
    (StatusCode::CREATED, [(header::LOCATION, location)], Json(answer)).into_response()
}

async fn deadline(request: Request, next: Next) -> Response {
    let answer = tokio::time::timeout(REQUEST, next.run(request)).await;
    answer.unwrap_or_else(|_elapsed| StatusCode::GATEWAY_TIMEOUT.into_response())
}

async fn under_way(State(places): State<Arc<Semaphore>>, request: Request, next: Next) -> Response {
    match places.try_acquire() {
        Ok(_place) => next.run(request).await,
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

async fn log(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).instrument(tracing::info_span!("request")).await;
    tracing::info!(%method, path, status = response.status().as_u16());
    response
}

async fn request_id(request: Request, next: Next) -> Response {
    let id = format!("{:016x}", rand::random::<u64>());
    let mut response = next.run(request).await;
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HeaderName::from_static("x-request-id"), value);
    }
    response
}
