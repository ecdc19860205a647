//! The JSON of answers about customers, and its documentation.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{CustomerId, Totals};
use crate::http::history::trade::TradeView;
use crate::http::links::Links;
use crate::http::schemas::ordinal;

/// A history as a whole.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Customer)]
pub struct CustomerView {
    #[schema(schema_with = ordinal)]
    pub customer_id: CustomerId,
    /// How many trades the history holds.
    #[schema(minimum = 0)]
    pub total_trades: u64,
    /// On how many pages.
    #[schema(minimum = 0)]
    pub total_pages: u64,
    /// The trade of the lowest sequence number.
    pub first: Option<TradeView>,
    /// The trade of the highest sequence number.
    pub last: Option<TradeView>,
}

/// Some of the customers there are, ascending by id.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CustomerListing)]
pub struct CustomersView {
    /// Those that are asked for.
    #[schema(max_items = 100)]
    pub items: Vec<CustomerTotalsView>,
    pub links: Links,
}

/// A customer, and how much there is of it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CustomerTotals)]
pub struct CustomerTotalsView {
    #[schema(schema_with = ordinal)]
    customer_id: CustomerId,
    /// How many trades the history holds.
    #[schema(minimum = 1)]
    total_trades: u64,
    /// On how many pages.
    #[schema(minimum = 1)]
    total_pages: u64,
}

impl CustomerTotalsView {
    /// Of one customer.
    pub fn new(customer: CustomerId, totals: Totals) -> Self {
        Self { customer_id: customer, total_trades: totals.trades(), total_pages: totals.pages() }
    }
}
