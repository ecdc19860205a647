//! The JSON of a listing, and its documentation.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{Order, PageNumber, PageSize, Totals};
use crate::http::history::item_schemas::Item;
use crate::http::history::item_view::{ItemView, OwnerMember, owner_member};
use crate::http::links::Links;
use crate::http::schemas::{order, ordinal};

/// A page of a history, or a window, with the totals of the same moment and links to other pages or windows.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ItemListing)]
pub struct ListingView {
    #[serde(flatten)]
    #[schema(schema_with = owner_member)]
    owner: OwnerMember,
    #[serde(serialize_with = "order_name")]
    #[schema(schema_with = order)]
    order: Order,
    /// Only for a page: its permanent number, the same in either order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = ordinal, required = false)]
    page: Option<PageNumber>,
    /// Only for a page: whether it is full. A full page never changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    full: Option<bool>,
    /// Number of {manyItems} in the history; with `asOf`, at that moment. Absent for a span of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, nullable = false)]
    total_items: Option<u64>,
    /// Number of pages of the history. Absent if `totalItems` is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, nullable = false)]
    total_pages: Option<u64>,
    /// In `order`: up to {pageSize} {manyItems} of a page, up to `limit` of a window.
    #[schema(value_type = Vec<Item>)]
    items: Vec<ItemView>,
    pub links: Links,
}

impl ListingView {
    /// A listing of `items`, which are in order of `seq`.
    pub fn new(owner: OwnerMember, order: Order, mut items: Vec<ItemView>, links: Links) -> Self {
        if order == Order::Descending {
            items.reverse();
        }
        let (page, full, total_items, total_pages) = Default::default();
        Self { owner, order, page, full, total_items, total_pages, items, links }
    }

    /// Adds totals.
    pub fn counting(self, totals: Totals) -> Self {
        Self { total_items: Some(totals.items()), total_pages: Some(totals.pages()), ..self }
    }

    /// Marks the listing as this page.
    pub fn of_page(self, page: PageNumber, size: PageSize) -> Self {
        Self { page: Some(page), full: Some(self.items.len() == size.get()), ..self }
    }
}

fn order_name<S: serde::Serializer>(order: &Order, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match order {
        Order::Ascending => "asc",
        Order::Descending => "desc",
    })
}
