//! The JSON of a listing, and its documentation.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{CustomerId, Order, PAGE_SIZE, PageNumber, Totals};
use crate::http::history::trade::TradeView;
use crate::http::links::Links;
use crate::http::schemas::{order, ordinal};

/// A page of a history, or a window, with the totals of the same moment and links to other pages or windows.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TradeListing)]
pub struct ListingView {
    #[schema(schema_with = ordinal)]
    customer_id: CustomerId,
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
    /// Number of trades in the history; with `asOf`, at that moment. Absent for a span of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, nullable = false)]
    total_trades: Option<u64>,
    /// Number of pages of the history. Absent if `totalTrades` is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, nullable = false)]
    total_pages: Option<u64>,
    /// In `order`: up to ten trades of a page, up to `limit` of a window.
    #[schema(max_items = 100)]
    items: Vec<TradeView>,
    pub links: Links,
}

impl ListingView {
    /// A listing of `items`, which are in order of `seq`.
    pub fn new(customer_id: CustomerId, order: Order, mut items: Vec<TradeView>, links: Links) -> Self {
        if order == Order::Descending {
            items.reverse();
        }
        let (page, full, total_trades, total_pages) = Default::default();
        Self { customer_id, order, page, full, total_trades, total_pages, items, links }
    }

    /// Adds totals.
    pub fn counting(self, totals: Totals) -> Self {
        Self { total_trades: Some(totals.trades()), total_pages: Some(totals.pages()), ..self }
    }

    /// Marks the listing as this page.
    pub fn of_page(self, page: PageNumber) -> Self {
        Self { page: Some(page), full: Some(self.items.len() == PAGE_SIZE), ..self }
    }
}

fn order_name<S: serde::Serializer>(order: &Order, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match order {
        Order::Ascending => "asc",
        Order::Descending => "desc",
    })
}
