//! A history as a whole, and which there are.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::Response;

use super::Api;
use super::caching::Caching;
use super::links::Links;
use super::params::{CustomerParams, CustomersParams};
use super::problem::{Problem, ReadProblems};
use super::reading::Reading;
use super::views::{CustomerTotalsView, CustomerView, CustomersView};
use crate::domain::{Seq, SeqRange};

/// List customers
///
/// Those who have trades, ascending by id, each with its totals. What it costs depends on how many are
/// listed, not on how many there are, nor on the length of their histories.
#[utoipa::path(
    get,
    path = "/v1/customers",
    operation_id = "listCustomers",
    tag = "Customers",
    params(CustomersParams),
    responses(
        (
            status = 200, description = "Some customers.", body = CustomersView,
            headers(
                ("Link" = String, description = "The links of the body, as RFC 8288 has it."),
                ("Server-Timing" = String, description = "`db`: milliseconds at the database."),
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
/// How much there is, and its first and last trade. An unknown customer has nothing.
#[utoipa::path(
    get,
    path = "/v1/customers/{customerId}",
    operation_id = "getCustomer",
    tag = "Customers",
    params(CustomerParams),
    responses(
        (
            status = 200, description = "The history as a whole.", body = CustomerView,
            headers(("ETag" = String, description = "Changes when the history grows.")),
            example = json!({ "customerId": 7, "totalTrades": 0, "totalPages": 0, "first": null, "last": null })
        ),
        (status = 304, description = "`If-None-Match` names what there is."),
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
        *end = api.pages.trades(&history, range, &mut reading).await?.pop();
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
