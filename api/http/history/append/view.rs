//! The JSON of an append's answer, and its documentation.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{Instant, Seq, SeqRange, Totals};
use crate::http::history::item_view::{OwnerMember, owner_member};
use crate::http::schemas::{instant, ordinal};
use crate::store::history::Progress;

/// Where the {manyItems} of a request are stored.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AppendedItems)]
pub struct AppendedView {
    #[serde(flatten)]
    #[schema(schema_with = owner_member)]
    owner: OwnerMember,
    /// Sequence numbers of the {manyItems}, in the order of the request: one range, unless another writer appended between
    /// two of its pages.
    #[schema(min_items = 1)]
    ranges: Vec<RangeView>,
    /// Number of {manyItems} in the history right after the append.
    #[schema(minimum = 1)]
    total_items: u64,
    /// Number of pages of the history right after the append.
    #[schema(minimum = 1)]
    total_pages: u64,
    /// The date that was given to {manyItems} without one.
    #[schema(schema_with = instant)]
    date: Instant,
}

impl AppendedView {
    /// For an append that made a history of `totals`, with undated items at `date`.
    pub fn new(owner: OwnerMember, progress: &Progress, totals: Totals, date: Instant) -> Self {
        Self {
            owner,
            ranges: progress.ranges().iter().map(RangeView::new).collect(),
            total_items: totals.items(),
            total_pages: totals.pages(),
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
