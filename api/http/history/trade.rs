//! The JSON of stored trades, alone and on their page, and its documentation.

use axum::body::Bytes;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{CustomerId, Instant, PageNumber, Price, Quantity, Seq, Side, Ticker, Trade};
use crate::http::schemas::{instant, ordinal, price, side, ticker};
use crate::store::history::Bucket;

/// A stored trade.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Trade)]
pub struct TradeView {
    /// Sequence number: the trade's permanent address in its history.
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

    /// Its sequence number.
    pub fn seq(&self) -> Seq {
        self.seq
    }
}

/// A stored trade and the number of its page.
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

/// A page as it is stored: a bucket.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TradePage {
    #[schema(schema_with = ordinal)]
    customer_id: CustomerId,
    #[schema(schema_with = ordinal)]
    page: PageNumber,
    /// Whether the page is full. A full page never changes.
    full: bool,
    /// Sequence number of the first trade.
    #[schema(schema_with = ordinal)]
    first_seq: Seq,
    /// Number of trades on the page.
    #[schema(minimum = 1, maximum = 10)]
    count: usize,
    /// In order of arrival.
    #[schema(min_items = 1, max_items = 10)]
    items: Vec<TradeView>,
}

impl TradePage {
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
        let json = serde_json::to_vec(self).expect("a page holds only texts and numbers");
        // Without spare capacity, because the page cache may keep it.
        json.into_boxed_slice().into()
    }
}

/// The trades of a page, in order of arrival.
pub fn items(bucket: &Bucket) -> impl Iterator<Item = TradeView> {
    let first = bucket.first_seq();
    let place = move |(place, trade): (usize, &Trade)| TradeView::new(first.plus(place), trade.clone());
    bucket.trades.iter().enumerate().map(place)
}
