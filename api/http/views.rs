//! The JSON of answers and requests, and its documentation.

use serde::Serialize;
use serde_json::json;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::body::MOST_TRADES;
use super::links::Links;
use super::params::ordinal;
use crate::domain::{CustomerId, Instant, PageNumber, Price, Quantity, Seq, SeqRange, Side, Ticker, Trade};
use crate::store::trades::{Appended, Bucket, Order};

/// A stored trade.
#[derive(Debug, Serialize, ToSchema)]
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
}

/// A stored trade, and the page that it is on.
#[derive(Debug, Serialize, ToSchema)]
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

/// One page of a history, with the totals of the same moment and links to others.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListingView {
    #[schema(schema_with = ordinal)]
    pub customer_id: CustomerId,
    #[serde(serialize_with = "order_name")]
    #[schema(schema_with = order)]
    pub order: Order,
    /// Permanent ordinal of the page, whatever the order.
    #[schema(schema_with = ordinal)]
    pub page: PageNumber,
    /// Whether it is final: a full page never changes.
    pub full: bool,
    /// How many trades the history holds.
    #[schema(minimum = 0)]
    pub total_trades: u64,
    /// On how many pages.
    #[schema(minimum = 0)]
    pub total_pages: u64,
    /// Up to ten trades, in `order`.
    #[schema(max_items = 10)]
    pub items: Vec<TradeView>,
    pub links: Links,
}

/// A page itself: the bucket as it is stored.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
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
    pub fn new(customer: CustomerId, bucket: Bucket) -> Self {
        Self {
            customer_id: customer,
            page: bucket.page,
            full: bucket.full(),
            first_seq: bucket.first_seq(),
            count: bucket.trades.len(),
            items: items(bucket),
        }
    }
}

/// The trades of a page, in order of arrival.
pub fn items(bucket: Bucket) -> Vec<TradeView> {
    let first = bucket.first_seq();
    bucket
        .trades
        .into_iter()
        .enumerate()
        .map(|(place, trade)| TradeView::new(first.plus(place), trade))
        .collect()
}

/// A history as a whole.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
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

/// Where the trades of a request went.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
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
pub struct RangeView {
    #[schema(schema_with = ordinal)]
    first_seq: Seq,
    #[schema(schema_with = ordinal)]
    last_seq: Seq,
}

impl RangeView {
    fn new(range: &SeqRange) -> Self {
        Self { first_seq: range.first, last_seq: range.last }
    }
}

fn order_name<S: serde::Serializer>(order: &Order, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match order {
        Order::Ascending => "asc",
        Order::Descending => "desc",
    })
}

/// A trade as a client sends it. Documents what `domain::parse_drafts` parses.
pub struct NewTrade;

impl ToSchema for NewTrade {}

impl PartialSchema for NewTrade {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .description(Some("A trade to append."))
            .property("type", side())
            .property("ticker", ticker())
            .property("qty", ordinal())
            .property("price", price())
            .property("date", new_date())
            .required("type")
            .required("ticker")
            .required("qty")
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
            .examples([json!({ "type": "buy", "ticker": "MDB", "qty": 419, "price": "15.54", "date": "2004-01-09T00:00:00.000Z" })])
            .into()
    }
}

/// One trade, or an array of 1 to 1,000.
pub struct NewTrades;

impl ToSchema for NewTrades {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((NewTrade::name().into(), NewTrade::schema()));
    }
}

impl PartialSchema for NewTrades {
    fn schema() -> RefOr<Schema> {
        let trade = || Ref::from_schema_name(NewTrade::name());
        OneOfBuilder::new()
            .description(Some("One trade, or an array of 1 to 1,000, which are appended in their order."))
            .item(trade())
            .item(ArrayBuilder::new().items(trade()).min_items(Some(1)).max_items(Some(MOST_TRADES)))
            .into()
    }
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::String))
}

fn side() -> RefOr<Schema> {
    text().enum_values(Some(["buy", "sell"])).into()
}

fn order() -> RefOr<Schema> {
    text().enum_values(Some(["asc", "desc"])).into()
}

fn ticker() -> RefOr<Schema> {
    text().min_length(Some(1)).max_length(Some(Ticker::MAX_LEN)).pattern(Some("^[A-Z0-9.-]{1,12}$")).into()
}

/// Exactly what `domain::Price` parses, in three shapes: 34 significant digits cannot be counted
/// across a point by a regular expression, but a length beside it can.
fn price() -> RefOr<Schema> {
    let shape = |pattern: String, longest: usize| text().pattern(Some(pattern)).max_length(Some(longest));
    let (digits, scale) = (Price::MAX_DIGITS, usize::from(Price::MAX_SCALE));
    OneOfBuilder::new()
        .description(Some("A positive decimal number in plain notation, with at most 34 significant digits: a string, so that no digit is lost."))
        .item(shape("^[1-9][0-9]*$".to_owned(), digits))
        .item(shape(r"^[1-9][0-9]*\.[0-9]+$".to_owned(), digits + ".".len()))
        .item(shape(format!(r"^0\.0*[1-9][0-9]{{0,{}}}$", digits - 1), scale + "0.".len()))
        .examples([json!("15.54")])
        .into()
}

fn instant() -> RefOr<Schema> {
    text()
        .description(Some("RFC 3339 in UTC, with exactly three fraction digits."))
        .format(Some(utoipa::openapi::SchemaFormat::KnownFormat(utoipa::openapi::KnownFormat::DateTime)))
        .pattern(Some(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"))
        .into()
}

/// A pattern and not the format `date-time`, which says nothing of fraction digits or leap seconds.
fn new_date() -> RefOr<Schema> {
    let day = "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])";
    let time = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,3})?";
    let leap = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29";
    let offset = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
    text()
        .description(Some("RFC 3339, at most milliseconds, in the years 0000 to 9999 of UTC. Default: when the request was received."))
        .pattern(Some(format!("^([0-9]{{4}}-({day})|{leap})T{time}{offset}$")))
        .examples([json!("2004-01-09T00:00:00.000Z")])
        .into()
}
