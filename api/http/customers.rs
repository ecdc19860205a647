//! Customers: a list of all of them, and a summary of each history.

mod views;

use std::str::FromStr;
use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri, header};
use axum::response::Response;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

use super::api::Api;
use super::cache::control::Caching;
use super::cache::reading::Reading;
use super::links::Links;
use super::params::{CustomerParams, Reader, in_query};
use super::problem::{Problem, ReadProblems};
use super::schemas::{ordinal, whole};
use crate::domain::{CustomerId, Limit, Seq, SeqRange};
use views::{CustomerTotalsView, CustomerView, CustomersView};

/// `/customers?…`
pub struct CustomersParams {
    pub after: Option<CustomerId>,
    pub limit: Limit,
}

impl<S: Send + Sync> FromRequestParts<S> for CustomersParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut reader = Reader::of(parts);
        let after = reader.query("after", CustomerId::from_str);
        let limit = reader.query("limit", Limit::from_str);
        reader.finish()?;
        Ok(Self { after, limit: limit.unwrap_or(Limit::CUSTOMERS) })
    }
}

impl IntoParams for CustomersParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let limit = whole(1, u64::from(Limit::MAX)).default(Some(Limit::CUSTOMERS.get().into()));
        vec![
            in_query(
                "after",
                "Only customers with greater ids than this one, which need not exist. Default: from the lowest id.",
                ordinal(),
            ),
            in_query("limit", "Most customers in the answer.", limit),
        ]
    }
}

/// List customers
///
/// Lists customers with trades, in ascending order of their ids, each with its totals. The cost depends on the number
/// of customers listed, not on the number of customers or the length of their histories.
#[utoipa::path(
    get,
    path = "/v1/customers",
    operation_id = "listCustomers",
    tag = "Customers",
    params(CustomersParams),
    responses(
        (
            status = 200, description = "The customers.", body = CustomersView,
            headers(
                ("Link" = String, description = "The links of the body (RFC 8288)."),
                ("Server-Timing" = String, description = "`db`: milliseconds spent waiting for the database."),
            ),
            example = json!({
                "items": [{ "customerId": 7, "totalTrades": 25, "totalPages": 3 }],
                "links": { "self": "/v1/customers?limit=1", "next": "/v1/customers?after=7&limit=1" }
            })
        ),
        ReadProblems,
    ),
)]
pub async fn list(
    State(api): State<Arc<Api>>,
    uri: Uri,
    CustomersParams { after, limit }: CustomersParams,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let customers = api.store.trades().customers(after, limit, reading.deadline);
    let customers = reading.database(customers).await?;
    let last = customers.found.last().map(|(id, _)| *id).filter(|_| customers.more);
    let links = Links::to_customers(&uri, last, limit);
    let mut headers = HeaderMap::new();
    headers.extend(links.header().map(|links| (header::LINK, links)));
    let items = customers.found.into_iter().map(|(id, totals)| CustomerTotalsView::new(id, totals));
    Ok(reading.untagged((headers, Json(CustomersView { items: items.collect(), links }))))
}

/// Summarise a history
///
/// Returns the totals of a history, and its first and last trade. An unknown customer has totals of 0.
#[utoipa::path(
    get,
    path = "/v1/customers/{customerId}",
    operation_id = "getCustomer",
    tag = "Customers",
    params(CustomerParams),
    responses(
        (
            status = 200, description = "The summary of the history.", body = CustomerView,
            headers(("ETag" = String, description = "Changes when the history grows.")),
            example = json!({ "customerId": 7, "totalTrades": 0, "totalPages": 0, "first": null, "last": null })
        ),
        (status = 304, description = "`If-None-Match` names the current state: the client's copy is still valid."),
        ReadProblems,
    ),
)]
pub async fn summary(
    State(api): State<Arc<Api>>,
    CustomerParams { customer }: CustomerParams,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let history = api.store.trades().history(customer, reading.deadline);
    let history = reading.database(history).await?;
    let totals = history.totals();
    let caching = Caching::of_tail(reading.epoch, customer, totals);
    if let Some(unchanged) = reading.unchanged(&caching) {
        return Ok(unchanged);
    }
    let mut ends = [None, None];
    for (end, seq) in ends.iter_mut().zip([totals.last_seq().map(|_| Seq::FIRST), totals.last_seq()]) {
        let range = seq.map(|seq| SeqRange { first: seq, last: seq });
        let found = api.pages.trades(&history, range, reading.epoch, reading.deadline).await?;
        *end = reading.looked_up(found).pop();
    }
    let [first, last] = ends;
    let view = CustomerView {
        customer_id: customer,
        total_trades: totals.trades(),
        total_pages: totals.pages(),
        first,
        last,
    };
    Ok(reading.answer(&caching, Json(view)))
}
