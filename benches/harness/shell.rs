//! The HTTP around a peer: as near to ours as can be, so that what differs is how trades are stored.
//!
//! The same hyper settings as `server`, the very layers of `http`, the same parsers, and an answer of the same
//! size. It appends in the request's own task where ours hands trades on, which favours the peers.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use axum::{Json, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pagebucket::domain::{Clock, CustomerId, Trade, parse_drafts};
use pagebucket::http::{self, Limits, Origins};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::Result;
use super::client::KEY;
use super::peers::Peer;

const REQUESTS: usize = 1024;
const BODY: usize = 1024 * 1024;
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

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
    let limits = Limits { requests: REQUESTS, body: BODY, body_timeout: BODY_TIMEOUT };
    http::as_ours(routes, limits, Origins::default())
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
