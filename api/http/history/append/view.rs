//! The JSON of an append's answer, and its documentation.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{CustomerId, Instant, Seq, SeqRange};
use crate::http::schemas::{instant, ordinal};
use crate::store::history::Progress;

/// Where the trades of a request are stored.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Appended)]
pub struct AppendedView {
    #[schema(schema_with = ordinal)]
    customer_id: CustomerId,
    /// Sequence numbers of the trades, in the order of the request: one range, unless another writer appended between
    /// two of its pages.
    #[schema(min_items = 1)]
    ranges: Vec<RangeView>,
    /// Number of trades in the history right after the append.
    #[schema(minimum = 1)]
    total_trades: u64,
    /// Number of pages of the history right after the append.
    #[schema(minimum = 1)]
    total_pages: u64,
    /// The date that was given to trades without one.
    #[schema(schema_with = instant)]
    date: Instant,
}

impl AppendedView {
    /// For an append to `customer`'s history, with undated trades at `date`.
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

/// Consecutive sequence numbers, both ends included.
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
    /// The view of `range`.
    pub fn new(range: &SeqRange) -> Self {
        Self { first_seq: range.first, last_seq: range.last }
    }
}
