//! A trade by its sequence number.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

use super::trade::PlacedTradeView;
use crate::domain::{CustomerId, Seq};
use crate::http::api::Api;
use crate::http::cache::control::Caching;
use crate::http::cache::pages::Found;
use crate::http::cache::reading::Reading;
use crate::http::params::{Reader, customer_parameter, given, in_path};
use crate::http::problem::{Kind, Problem, TradeProblems};

/// `/customers/{customerId}/trades/{seq}`
pub struct TradeParams {
    pub customer: CustomerId,
    pub seq: Seq,
}

impl<S: Send + Sync> FromRequestParts<S> for TradeParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut reader = Reader::of(parts);
        let (customer, seq) = (reader.path("customerId"), reader.path("seq"));
        reader.finish()?;
        Ok(Self { customer: given(customer), seq: given(seq) })
    }
}

impl IntoParams for TradeParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![customer_parameter(), in_path("seq", "Sequence number of the trade, from 1.", 1)]
    }
}

/// Read one trade
///
/// Returns the trade with this sequence number, which is its permanent address.
#[utoipa::path(
    get,
    path = "/v1/customers/{customerId}/trades/{seq}",
    operation_id = "getTrade",
    tag = "Trades",
    params(TradeParams),
    responses(
        (
            status = 200, description = "The trade.", body = PlacedTradeView,
            headers(
                ("ETag" = String, description = "Never changes if the trade is on a full page."),
                ("Cache-Control" = String, description = "`immutable` if the trade is on a full page, otherwise `no-cache`."),
                ("Server-Timing" = String, description = "`db`: milliseconds spent waiting for the database. `cache`: whether the page was in memory."),
            ),
            example = json!({
                "page": 1, "seq": 1, "type": "buy", "ticker": "AMD", "qty": 448, "price": "15.54",
                "date": "2004-01-09T00:00:00.000Z"
            })
        ),
        (status = 304, description = "`If-None-Match` names the current state: the client's copy is still valid."),
        TradeProblems,
    ),
)]
pub async fn one(
    State(api): State<Arc<Api>>,
    TradeParams { customer, seq }: TradeParams,
    mut reading: Reading,
) -> Result<Response, Problem> {
    if let Some(unchanged) = reading.named(|epoch| Caching::of_full(epoch, customer, seq.page())) {
        return Ok(unchanged);
    }
    let found = api.pages.page(customer, seq.page(), reading.epoch, reading.deadline).await?;
    let found = match reading.looked_up(found) {
        Found::Full(page) => page.bucket.trade(seq).cloned().map(|trade| (page.caching.clone(), trade)),
        Found::Tail(tail) => {
            let caching = Caching::of_tail(reading.epoch, customer, tail.totals());
            tail.trade(seq).cloned().map(|trade| (caching, trade))
        }
        Found::Nothing => None,
    };
    let missing = || Problem::new(Kind::TradeNotFound, "The history has no such trade.");
    let (caching, trade) = found.ok_or_else(missing)?;
    Ok(reading.answer(&caching, Json(PlacedTradeView::new(seq, trade))))
}
