//! A history as a whole.

use axum::Json;
use axum::extract::State;
use axum::response::Response;

use super::Api;
use super::caching::Caching;
use super::params::CustomerParams;
use super::problem::{Problem, ReadProblems};
use super::reading::Reading;
use super::views::CustomerView;
use crate::domain::{Seq, SeqRange};

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
    State(api): State<Api>,
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
