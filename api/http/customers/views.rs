//! The JSON of answers about customers, and its documentation.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{CustomerId, Totals};
use crate::http::history::trade::TradeView;
use crate::http::links::Links;
use crate::http::schemas::ordinal;

/// Summary of a history.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Customer)]
pub struct CustomerView {
    #[schema(schema_with = ordinal)]
    pub customer_id: CustomerId,
    /// Number of trades in the history.
    #[schema(minimum = 0)]
    pub total_trades: u64,
    /// Number of pages of the history.
    #[schema(minimum = 0)]
    pub total_pages: u64,
    /// The trade with the lowest sequence number.
    pub first: Option<TradeView>,
    /// The trade with the highest sequence number.
    pub last: Option<TradeView>,
}

/// Customers in ascending order of their ids.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CustomerListing)]
pub struct CustomersView {
    /// At most `limit` customers.
    #[schema(max_items = 100)]
    pub items: Vec<CustomerTotalsView>,
    pub links: Links,
}

/// A customer and the totals of its history.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CustomerTotals)]
pub struct CustomerTotalsView {
    #[schema(schema_with = ordinal)]
    customer_id: CustomerId,
    /// Number of trades in the history.
    #[schema(minimum = 1)]
    total_trades: u64,
    /// Number of pages of the history.
    #[schema(minimum = 1)]
    total_pages: u64,
}

impl CustomerTotalsView {
    /// The totals of one customer.
    pub fn new(customer: CustomerId, totals: Totals) -> Self {
        Self { customer_id: customer, total_trades: totals.trades(), total_pages: totals.pages() }
    }
}
