//! A page by its number.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequestParts, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

use super::trade::TradePage;
use crate::domain::{CustomerId, PageNumber};
use crate::http::api::Api;
use crate::http::cache::control::Caching;
use crate::http::cache::pages::Found;
use crate::http::cache::reading::Reading;
use crate::http::params::{Reader, customer_parameter, given, in_path};
use crate::http::problem::{Kind, PageProblems, Problem};

/// `/customers/{customerId}/trades/pages/{page}`
pub struct PageParams {
    pub customer: CustomerId,
    pub page: PageNumber,
}

impl<S: Send + Sync> FromRequestParts<S> for PageParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut reader = Reader::of(parts);
        let (customer, page) = (reader.path("customerId"), reader.path("page"));
        reader.finish()?;
        Ok(Self { customer: given(customer), page: given(page) })
    }
}

impl IntoParams for PageParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![customer_parameter(), in_path("page", "Permanent number of the page, from 1.", 1)]
    }
}

/// Read a page as it is stored
///
/// Returns the bucket itself, without totals or links. A page that is `full` never changes and may be kept forever, as
/// `Cache-Control` says.
#[utoipa::path(
    get,
    path = "/v1/customers/{customerId}/trades/pages/{page}",
    operation_id = "getPage",
    tag = "Trades",
    params(PageParams),
    responses(
        (
            status = 200, description = "The page.", body = TradePage,
            headers(
                ("ETag" = String, description = "Never changes if the page is full."),
                ("Cache-Control" = String, description = "`immutable` if the page is full, otherwise `no-cache`."),
                ("Server-Timing" = String, description = "`db`: milliseconds spent waiting for the database. `cache`: whether the page was in memory."),
            ),
            example = json!({
                "customerId": 7, "page": 1, "full": false, "firstSeq": 1, "count": 1,
                "items": [{ "seq": 1, "type": "buy", "ticker": "AMD", "qty": 448, "price": "15.54", "date": "2004-01-09T00:00:00.000Z" }]
            })
        ),
        (status = 304, description = "`If-None-Match` names the current state: the client's copy is still valid."),
        PageProblems,
    ),
)]
pub async fn page(
    State(api): State<Arc<Api>>,
    PageParams { customer, page }: PageParams,
    mut reading: Reading,
) -> Result<Response, Problem> {
    // A client with the tag of a full page has seen it full: no look-up is needed.
    if let Some(unchanged) = reading.named(|epoch| Caching::of_full(epoch, customer, page)) {
        return Ok(unchanged);
    }
    let found = api.pages.page(customer, page, reading.epoch, reading.deadline).await?;
    match reading.looked_up(found) {
        Found::Full(page) => Ok(reading.answer(&page.caching, json(page.json.clone()))),
        Found::Tail(tail) => {
            let caching = Caching::of_tail(reading.epoch, customer, tail.totals());
            Ok(reading.answer(&caching, json(TradePage::new(customer, &tail).json())))
        }
        Found::Nothing => Err(Problem::new(Kind::PageNotFound, "The history has no such page.")),
    }
}

fn json(bytes: Bytes) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], bytes)
}
