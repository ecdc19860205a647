//! The JSON of answers about owners, and its documentation.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use utoipa::openapi::schema::{ObjectBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::domain::Totals;
use crate::http::history::item_schemas::Item;
use crate::http::history::item_view::{ItemView, OwnerMember};
use crate::http::links::Links;
use crate::http::schemas::owner_id;

/// An owner and the summaries of its histories, by their names.
#[derive(Debug, Serialize)]
pub struct OwnerView<T> {
    #[serde(flatten)]
    pub owner: OwnerMember,
    #[serde(flatten)]
    pub histories: BTreeMap<Arc<str>, T>,
}

/// The documentation of an owner with the summary of each history.
pub struct Owner;

impl ToSchema for Owner {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((SummaryView::name().into(), SummaryView::schema()));
        SummaryView::schemas(schemas);
    }
}

impl PartialSchema for Owner {
    fn schema() -> RefOr<Schema> {
        let description = "{AnOwner}: the summary of each history.";
        with_history(description, &SummaryView::name()).required("{items}").into()
    }
}

/// The documentation of an owner with the length of each history that it has.
pub struct OwnerTotals;

impl ToSchema for OwnerTotals {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((TotalsView::name().into(), TotalsView::schema()));
    }
}

impl PartialSchema for OwnerTotals {
    fn schema() -> RefOr<Schema> {
        let description = "{AnOwner} and the length of each history that the {owner} has.";
        with_history(description, &TotalsView::name()).into()
    }
}

/// An owner and the member for one history. The document unites those of all histories.
fn with_history(description: &str, schema: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .description(Some(description))
        .property("{ownerField}", owner_id())
        .required("{ownerField}")
        .property("{items}", Ref::from_schema_name(schema))
}

/// The length of a history.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HistoryTotals)]
pub struct TotalsView {
    /// Number of items in the history.
    #[schema(minimum = 0)]
    total_items: u64,
    /// Number of pages of the history.
    #[schema(minimum = 0)]
    total_pages: u64,
}

impl TotalsView {
    /// Of a history of this length.
    pub fn new(totals: Totals) -> Self {
        Self { total_items: totals.items(), total_pages: totals.pages() }
    }
}

/// Summary of a history.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ItemSummary)]
pub struct SummaryView {
    #[serde(flatten)]
    #[schema(inline)]
    pub totals: TotalsView,
    /// The {item} with the lowest sequence number.
    #[schema(value_type = Option<Item>)]
    pub first: Option<ItemView>,
    /// The {item} with the highest sequence number.
    #[schema(value_type = Option<Item>)]
    pub last: Option<ItemView>,
}

/// {ManyOwners} in ascending order of their ids.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OwnerListing)]
pub struct OwnersView {
    /// At most `limit` {manyOwners}.
    #[schema(value_type = Vec<OwnerTotals>, max_items = 100)]
    pub items: Vec<OwnerView<TotalsView>>,
    pub links: Links,
}
