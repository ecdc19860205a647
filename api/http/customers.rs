//! A history as a whole.

use axum::extract::State;
use axum::{Extension, Json};

use super::Api;
use super::params::CustomerParams;
use super::problem::{Problem, ReadProblems};
use super::views::{CustomerView, TradeView};
use crate::store::Deadline;

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
            example = json!({ "customerId": 7, "totalTrades": 0, "totalPages": 0, "first": null, "last": null })
        ),
        ReadProblems,
    ),
)]
pub async fn summary(
    State(api): State<Api>,
    CustomerParams { customer }: CustomerParams,
    Extension(deadline): Extension<Deadline>,
) -> Result<Json<CustomerView>, Problem> {
    let summary = api.store.trades().summary(customer, deadline).await?;
    let [first, last] = match summary.ends {
        Some(ends) => ends.map(|(seq, trade)| Some(TradeView::new(seq, trade))),
        None => [None, None],
    };
    Ok(Json(CustomerView {
        customer_id: customer,
        total_trades: summary.totals.trades(),
        total_pages: summary.totals.pages(),
        first,
        last,
    }))
}
