//! The JSON of answers, and its documentation.

use axum::body::Bytes;
use serde::Serialize;
use utoipa::ToSchema;

use super::links::Links;
use super::schemas::{instant, order, ordinal, price, side, ticker};
use crate::domain::{
    CustomerId, Instant, Order, PAGE_SIZE, PageNumber, Price, Quantity, Seq, SeqRange, Side, Ticker, Totals,
    Trade,
};
use crate::store::history::{Appended, Bucket};

/// A stored trade.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Trade)]
pub struct TradeView {
    /// Its permanent address in the history.
    #[schema(schema_with = ordinal)]
    seq: Seq,
    #[serde(rename = "type")]
    #[schema(schema_with = side)]
    side: Side,
    #[schema(schema_with = ticker)]
    ticker: Ticker,
    #[schema(schema_with = ordinal)]
    qty: Quantity,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = price, required = false)]
    price: Option<Price>,
    #[schema(schema_with = instant)]
    date: Instant,
}

impl TradeView {
    /// The trade at `seq`.
    pub fn new(seq: Seq, trade: Trade) -> Self {
        let Trade { side, ticker, qty, price, date } = trade;
        Self { seq, side, ticker, qty, price, date }
    }

    /// Its address.
    pub fn seq(&self) -> Seq {
        self.seq
    }
}

/// A stored trade, and the page that it is on.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PlacedTrade)]
pub struct PlacedTradeView {
    #[schema(schema_with = ordinal)]
    page: PageNumber,
    #[serde(flatten)]
    trade: TradeView,
}

impl PlacedTradeView {
    /// The trade at `seq`.
    pub fn new(seq: Seq, trade: Trade) -> Self {
        Self { page: seq.page(), trade: TradeView::new(seq, trade) }
    }
}

/// A page of a history, or a window, with the totals of the same moment and links to others.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TradeListing)]
pub struct ListingView {
    #[schema(schema_with = ordinal)]
    customer_id: CustomerId,
    #[serde(serialize_with = "order_name")]
    #[schema(schema_with = order)]
    order: Order,
    /// Of a page: its permanent ordinal, whatever the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = ordinal, required = false)]
    page: Option<PageNumber>,
    /// Of a page: whether it is final. A full page never changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    full: Option<bool>,
    /// How many trades the history holds, or of a walk held when it began. Absent where dates are asked for: what of them there is was not
    /// counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, nullable = false)]
    total_trades: Option<u64>,
    /// On how many pages. Absent where `totalTrades` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, nullable = false)]
    total_pages: Option<u64>,
    /// In `order`: up to ten trades of a page, up to `limit` of a window.
    #[schema(max_items = 100)]
    items: Vec<TradeView>,
    pub links: Links,
}

impl ListingView {
    /// Of trades in order of their addresses.
    pub fn new(customer_id: CustomerId, order: Order, mut items: Vec<TradeView>, links: Links) -> Self {
        if order == Order::Descending {
            items.reverse();
        }
        let (page, full, total_trades, total_pages) = Default::default();
        Self { customer_id, order, page, full, total_trades, total_pages, items, links }
    }

    /// With totals.
    pub fn counting(self, totals: Totals) -> Self {
        Self { total_trades: Some(totals.trades()), total_pages: Some(totals.pages()), ..self }
    }

    /// Of this page.
    pub fn of_page(self, page: PageNumber) -> Self {
        Self { page: Some(page), full: Some(self.items.len() == PAGE_SIZE), ..self }
    }
}

/// A page itself: the bucket as it is stored.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TradePage)]
pub struct PageView {
    #[schema(schema_with = ordinal)]
    customer_id: CustomerId,
    #[schema(schema_with = ordinal)]
    page: PageNumber,
    /// Whether it is final: a full page never changes.
    full: bool,
    /// Address of its first trade.
    #[schema(schema_with = ordinal)]
    first_seq: Seq,
    /// How many trades it holds.
    #[schema(minimum = 1, maximum = 10)]
    count: usize,
    /// In order of arrival.
    #[schema(min_items = 1, max_items = 10)]
    items: Vec<TradeView>,
}

impl PageView {
    /// A page of `customer`.
    pub fn new(customer: CustomerId, bucket: &Bucket) -> Self {
        Self {
            customer_id: customer,
            page: bucket.page,
            full: bucket.full(),
            first_seq: bucket.first_seq(),
            count: bucket.trades.len(),
            items: items(bucket).collect(),
        }
    }

    /// Its JSON.
    pub fn json(&self) -> Bytes {
        // Cannot fail: no map with keys that are not text, no number that is not finite.
        // Without room to grow, because it may be kept.
        serde_json::to_vec(self).unwrap_or_default().into_boxed_slice().into()
    }
}

/// The trades of a page, in order of arrival.
pub fn items(bucket: &Bucket) -> impl Iterator<Item = TradeView> {
    let first = bucket.first_seq();
    let place = move |(place, trade): (usize, &Trade)| TradeView::new(first.plus(place), trade.clone());
    bucket.trades.iter().enumerate().map(place)
}

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
    pub fn new(customer: CustomerId, appended: &Appended, date: Instant) -> Self {
        Self {
            customer_id: customer,
            ranges: appended.ranges.iter().map(RangeView::new).collect(),
            total_trades: appended.totals.trades(),
            total_pages: appended.totals.pages(),
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
    pub fn new(range: &SeqRange) -> Self {
        Self { first_seq: range.first, last_seq: range.last }
    }
}

fn order_name<S: serde::Serializer>(order: &Order, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match order {
        Order::Ascending => "asc",
        Order::Descending => "desc",
    })
}
