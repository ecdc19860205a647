//! The JSON of an append's answer, and its documentation.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{CustomerId, Instant, Seq, SeqRange};
use crate::http::schemas::{instant, ordinal};
use crate::store::history::Progress;

/// Where the trades of a request went.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Appended)]
pub struct AppendedView {
    #[schema(schema_with = ordinal)]
    customer_id: CustomerId,
    /// The request's trades in their order: one range, unless another writer came between two pages.
    #[schema(min_items = 1)]
    ranges: Vec<RangeView>,
    /// How many trades the history held right after the last of them.
    #[schema(minimum = 1)]
    total_trades: u64,
    /// On how many pages.
    #[schema(minimum = 1)]
    total_pages: u64,
    /// The date that trades without one were given.
    #[schema(schema_with = instant)]
    date: Instant,
}

impl AppendedView {
    /// What was appended to `customer`'s history, undated trades at `date`.
    pub fn new(customer: CustomerId, progress: &Progress, date: Instant) -> Self {
        Self {
            customer_id: customer,
            ranges: progress.ranges().iter().map(RangeView::new).collect(),
            total_trades: progress.totals().trades(),
            total_pages: progress.totals().pages(),
            date,
        }
    }
}

/// Trades that follow each other, both ends included.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SeqRange)]
pub struct RangeView {
    #[schema(schema_with = ordinal)]
    first_seq: Seq,
    #[schema(schema_with = ordinal)]
    last_seq: Seq,
}

impl RangeView {
    /// These trades.
    pub fn new(range: &SeqRange) -> Self {
        Self { first_seq: range.first, last_seq: range.last }
    }
}
