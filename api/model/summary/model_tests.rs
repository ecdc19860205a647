//! Summaries of random items, whatever stretches they are read in, are those of a model that knows only
//! numbers of one scale.

use std::collections::BTreeMap;
use std::sync::Arc;

use bson::raw::cstr;
use bson::rawdoc;
use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::aggregate::Measurements;
use super::partial::{PartialSummary, SummaryShape};
use super::points::{Fill, PointBounds, TooManyPoints, page_of_points};
use super::spans::{SpanLength, Spans, Zone};
use super::tile::{read_tile, write_tile};
use crate::definition::{Measure, StoredNumber, SummaryValue};
use crate::domain::{Instant, Order, Seq};

/// An item. Its price is a number of millionths, of which the last zeros may be written or not.
#[derive(Debug, Clone)]
struct SummedItem {
    millis: i64,
    ticker: Option<&'static str>,
    qty: Option<i64>,
    price: Option<(i128, bool)>,
    /// The stretch that it is read with.
    stretch: usize,
}

/// Items with their sequence numbers, by the start of their span and their group.
type ByPoint<'a> = BTreeMap<(i64, Option<&'a str>), Vec<(u64, &'a SummedItem)>>;

const MILLIONTH: i128 = 1_000_000;

fn plain((price, zeros): (i128, bool)) -> String {
    let (whole, part) = (price.abs() / MILLIONTH, price.abs() % MILLIONTH);
    let text = format!("{}{whole}.{part:06}", if price < 0 { "-" } else { "" });
    if zeros { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// A decimal as millionths.
fn millionths(text: &str) -> i128 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{part:0<6}").parse().unwrap()
}

fn items() -> impl Strategy<Value = Vec<SummedItem>> {
    // Around two changes of the clocks in Berlin, and in 1890.
    let millis = prop_oneof![
        1_711_800_000_000..1_711_999_999_000_i64,
        1_729_900_000_000..1_730_100_000_000_i64,
        -2_510_000_000_000..-2_509_000_000_000_i64,
        Just(1_729_990_800_000_i64),
    ];
    let ticker = prop_oneof![Just(None), Just(Some("MDB")), Just(Some("AMD"))];
    // Up to 30 digits.
    let price = (
        -999_999_999_999_999_999_999_999_999_999..999_999_999_999_999_999_999_999_999_999_i128,
        any::<bool>(),
    );
    let item = (millis, ticker, prop::option::of(1..1_000_i64), prop::option::of(price), 0..5_usize);
    let item = item.prop_map(|(millis, ticker, qty, price, stretch)| SummedItem {
        millis,
        ticker,
        qty,
        price,
        stretch,
    });
    prop::collection::vec(item, 0..60)
}

fn shape(length: SpanLength, zone: &str) -> Arc<SummaryShape> {
    let qty = SummaryValue {
        name: "qty".to_owned(),
        kind: StoredNumber::Integer,
        measures: vec![Measure::Sum, Measure::Min, Measure::Max],
    };
    let vwap = Measure::Vwap { weight: "qty".to_owned(), kind: StoredNumber::Integer };
    let price = SummaryValue {
        name: "price".to_owned(),
        kind: StoredNumber::Decimal,
        measures: vec![Measure::Sum, Measure::Ohlc, vwap],
    };
    let spans = Spans { length, zone: Zone::parse(zone).unwrap() };
    Arc::new(SummaryShape { spans, groups: vec!["ticker".to_owned()], values: vec![qty, price] })
}

/// The summary of the items, each read with its stretch, merged in this order.
fn summary(items: &[SummedItem], shape: &Arc<SummaryShape>, order: &[usize]) -> PartialSummary {
    let stretches = stretches(items, shape, order.len());
    let mut order = order.iter().map(|stretch| stretches[*stretch].clone());
    let mut all = order.next().unwrap();
    order.for_each(|stretch| all.merge(stretch));
    all
}

fn stretches(items: &[SummedItem], shape: &Arc<SummaryShape>, count: usize) -> Vec<PartialSummary> {
    let mut stretches = vec![PartialSummary::new(Arc::clone(shape)); count];
    for (item, seq) in items.iter().zip(1..) {
        let mut document = rawdoc! {};
        item.ticker.iter().for_each(|ticker| document.append(cstr!("ticker"), *ticker));
        item.qty.iter().for_each(|qty| document.append(cstr!("qty"), *qty));
        if let Some(price) = item.price {
            document.append(cstr!("price"), plain(price).parse::<bson::Decimal128>().unwrap());
        }
        let date = Instant::from_millis(item.millis).unwrap();
        stretches[item.stretch].add(Seq::new(seq).unwrap(), date, &document);
    }
    stretches
}

/// As [`shape`], for tiles: with another group before it.
fn shape_of_tiles() -> Arc<SummaryShape> {
    let SummaryShape { spans, groups, values } = (*shape(SpanLength::Quarter, "UTC")).clone();
    let groups = ["kind".to_owned()].into_iter().chain(groups).collect();
    Arc::new(SummaryShape { spans, groups, values })
}

/// The beginning of the span, by jiff's own days.
fn start_of(millis: i64, length: SpanLength, zone: &str) -> i64 {
    let zone = TimeZoneDatabase::bundled().get(zone).unwrap();
    let at = Timestamp::from_millisecond(millis).unwrap().to_zoned(zone);
    let start = match length {
        SpanLength::Day => at.start_of_day(),
        SpanLength::Week => {
            let days = i64::from(at.weekday().to_monday_zero_offset());
            at.date().checked_sub(jiff::Span::new().days(days)).unwrap().to_zoned(at.time_zone().clone())
        }
        SpanLength::Month => at.first_of_month().and_then(|first| first.start_of_day()),
        length => {
            let minutes = [1, 5, 15, 30, 60, 240][length as usize];
            return millis.div_euclid(minutes * 60_000) * (minutes * 60_000);
        }
    };
    start.unwrap().timestamp().as_millisecond()
}

/// The quotient of millionths by a whole number, digit by digit.
fn long_division(dividend: i128, divisor: i128) -> String {
    let (mut digits, mut rest) = ((dividend.abs() / divisor).to_string(), dividend.abs() % divisor);
    let mut scale = 6_usize;
    if digits == "0" {
        digits.clear();
    }
    while digits.len() < 34 && (rest > 0 || scale < 6) {
        rest *= 10;
        let digit = rest / divisor;
        rest %= divisor;
        scale += 1;
        if digit > 0 || !digits.is_empty() {
            digits.push_str(&digit.to_string());
        }
    }
    let number: i128 = digits.parse().unwrap_or(0);
    let up = 2 * rest > divisor || (2 * rest == divisor && number % 2 == 1);
    let digits = format!("{:0>width$}", number + i128::from(up), width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    let text = format!("{whole}.{part}");
    let text = text.trim_end_matches('0').trim_end_matches('.').to_owned();
    if dividend < 0 && text != "0" { format!("-{text}") } else { text }
}

/// What the items of a point add up to.
fn expected(items: &[(u64, &SummedItem)]) -> Value {
    let qtys: Vec<_> = items.iter().filter_map(|(_, item)| item.qty).collect();
    let mut by_date: Vec<_> = items.iter().filter(|(_, item)| item.price.is_some()).collect();
    by_date.sort_by_key(|(seq, item)| (item.millis, *seq));
    let prices: Vec<i128> = by_date.iter().map(|(_, item)| item.price.unwrap().0).collect();
    let both = || items.iter().filter_map(|(_, item)| Some((item.price?.0, i128::from(item.qty?))));
    let weight: i128 = both().map(|(_, qty)| qty).sum();
    let price = |price: Option<&i128>| price.map(ToString::to_string);
    let ohlc = [prices.first(), prices.iter().max(), prices.iter().min(), prices.last()].map(price);
    json!({
        "count": items.len(),
        "seqs": [items.iter().map(|(seq, _)| *seq).min(), items.iter().map(|(seq, _)| *seq).max()],
        "qty": [json!(qtys.iter().sum::<i64>().to_string()), json!(qtys.iter().min()), json!(qtys.iter().max())],
        "sum": prices.iter().sum::<i128>().to_string(),
        "ohlc": ohlc,
        "vwap": (weight > 0).then(|| long_division(both().map(|(price, qty)| price * qty).sum(), weight)),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_stretches_in_any_order_add_up_to_the_same(
        items in items(),
        order in Just(vec![0, 1, 2, 3, 4]).prop_shuffle(),
        length in prop::sample::select(SpanLength::NAMED.map(|(_, length)| length).to_vec()),
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "Europe/Amsterdam", "Asia/Kolkata"]),
    ) {
        let shape = shape(length, zone);
        let mut model: ByPoint<'_> = BTreeMap::new();
        for (item, seq) in items.iter().zip(1..) {
            model.entry((start_of(item.millis, length, zone), item.ticker)).or_default().push((seq, item));
        }
        let page = page_of_points(&summary(&items, &shape, &order), PointBounds::default(), Fill::None, Order::Ascending, 1_000);
        let mut shown = BTreeMap::new();
        for point in page.unwrap().points {
            let aggregate = point.aggregate.unwrap();
            let measured = aggregate.measured(&shape.values);
            let value = |index: usize| serde_json::to_value(&measured[index]).unwrap();
            let (qty, price) = (value(0), value(1));
            let exact = |name: &str| price[name].as_str().map(|text| millionths(text).to_string());
            let (seqs, ohlc) = (aggregate.seqs(), ["open", "high", "low", "close"].map(exact));
            shown.insert((point.span.start, point.group[0].clone()), json!({
                "count": aggregate.count(),
                "seqs": [seqs.first, seqs.last],
                "qty": [qty["sum"], qty["min"], qty["max"]],
                "sum": exact("sum"),
                "ohlc": ohlc,
                "vwap": price["vwap"],
            }));
        }
        let model: BTreeMap<_, _> = model
            .into_iter()
            .map(|((start, ticker), items)| ((start, ticker.map(str::to_owned)), expected(&items)))
            .collect();
        prop_assert_eq!(shown, model);
    }

    /// What was stored as tiles adds up to the same as the items. A byte less, or more, is noticed.
    #[test]
    fn tiles_add_up_to_the_same(
        items in items(),
        length in prop::sample::select(SpanLength::NAMED.map(|(_, length)| length).to_vec()),
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "Europe/Amsterdam", "Asia/Kolkata"]),
        read_from_pages in 0..5_usize,
        (place, byte) in any::<(prop::sample::Index, u8)>(),
    ) {
        let (shape, of_tiles) = (shape(length, zone), shape_of_tiles());
        let mut merged = PartialSummary::new(Arc::clone(&shape));
        let from_pages = stretches(&items, &shape, 5);
        for (index, stretch) in stretches(&items, &of_tiles, 5).into_iter().enumerate() {
            let bytes = write_tile(&stretch, Seq::FIRST);
            let tile = read_tile(&bytes, &of_tiles, Seq::FIRST).unwrap();
            prop_assert_eq!(write_tile(&tile, Seq::FIRST), bytes.clone());
            prop_assert!(read_tile(&bytes[..bytes.len() - 1], &of_tiles, Seq::FIRST).is_none());
            prop_assert!(read_tile(&[&*bytes, &[0]].concat(), &of_tiles, Seq::FIRST).is_none());
            // Another byte may go unnoticed, but nothing panics.
            let mut damaged = bytes.clone();
            damaged[place.index(bytes.len())] = byte;
            if let Some(damaged) = read_tile(&damaged, &of_tiles, Seq::FIRST) {
                damaged.fits_into(&shape.spans, [None, None]);
                PartialSummary::new(Arc::clone(&shape)).merge_finer(damaged, |_, _| true);
            }
            if index == read_from_pages || !tile.fits_into(&shape.spans, [None, None]) {
                merged.merge(from_pages[index].clone());
            } else {
                merged.merge_finer(tile, |_, _| true);
            }
        }
        let all = |summary: &PartialSummary| page_of_points(summary, PointBounds::default(), Fill::None, Order::Ascending, 1_000).unwrap();
        let direct = summary(&items, &shape, &[0, 1, 2, 3, 4]);
        prop_assert_eq!(format!("{:?}", all(&merged)), format!("{:?}", all(&direct)));
        prop_assert_eq!(merged.points(), all(&merged).points.len());
        prop_assert_eq!(merged.points_between(i64::MIN, i64::MAX), merged.points());
    }

    /// Pages of points, read one after the other, are all points.
    #[test]
    fn pages_of_points_follow_each_other(
        items in items(),
        limit in 1..6_usize,
        fill in any::<bool>(),
        is_ascending in any::<bool>(),
    ) {
        let shape = shape(SpanLength::Day, "Europe/Berlin");
        let summary = summary(&items, &shape, &[0, 1, 2, 3, 4]);
        let fill = if fill { Fill::Zero } else { Fill::None };
        let order = if is_ascending { Order::Ascending } else { Order::Descending };
        let from = shape.spans.at(1_711_800_000_000).start;
        let to = shape.spans.at(1_712_100_000_000).end;
        let page = |[from, to]: [i64; 2], order, limit| {
            page_of_points(&summary, PointBounds { ends: [Some(from), Some(to)], until: None }, fill, order, limit)
        };
        let mut all = page([from, to], Order::Ascending, 1_000).unwrap();
        prop_assert_eq!(all.next, None);
        if !is_ascending {
            // Of one span the order of the groups stays.
            all.points.sort_by_key(|point| std::cmp::Reverse(point.span));
        }
        let (mut points, mut next) = (Vec::new(), Some(if is_ascending { from } else { to }));
        while let Some(start) = next {
            match page(if is_ascending { [start, to] } else { [from, start] }, order, limit) {
                Ok(page) => {
                    let goes_on = |next: i64| if is_ascending { next > start } else { next < start };
                    prop_assert!(page.points.len() <= limit && page.next.is_none_or(goes_on));
                    points.extend(page.points.iter().map(|point| (point.span, point.group.clone())));
                    next = page.next;
                }
                Err(TooManyPoints(span)) => {
                    let groups = summary.spans().find(|(there, _)| *there == span).map(|(_, groups)| groups.len());
                    prop_assert!(groups > Some(limit));
                    return Ok(());
                }
            }
        }
        let all: Vec<_> = all.points.iter().map(|point| (point.span, point.group.clone())).collect();
        prop_assert_eq!(&points, &all);
        let days = all.iter().map(|(span, _)| span.start).collect::<std::collections::BTreeSet<_>>();
        prop_assert!(fill == Fill::None || days.len() == 5, "{:?}", days);
    }
}

/// What is read so far ends the page, and the next one begins there.
#[test]
fn a_page_ends_where_more_items_are_to_be_read() {
    let shape = shape(SpanLength::Day, "UTC");
    let item =
        |day: i64| SummedItem { millis: day * 86_400_000, ticker: None, qty: None, price: None, stretch: 0 };
    let summary = summary(&[item(1), item(3)], &shape, &[0]);
    let page = |to: Option<i64>, until: i64, fill| {
        let page = page_of_points(
            &summary,
            PointBounds { ends: [Some(0), to.map(|day| day * 86_400_000)], until: Some(until * 86_400_000) },
            fill,
            Order::Ascending,
            9,
        );
        let page = page.unwrap();
        (page.points.len(), page.next.map(|next| next / 86_400_000))
    };
    assert_eq!(page(None, 3, Fill::None), (1, Some(3)));
    assert_eq!(page(Some(3), 3, Fill::None), (1, None));
    assert_eq!(page(Some(5), 3, Fill::Zero), (3, Some(3)));
    assert_eq!(page(Some(5), 9, Fill::Zero), (5, None));
}

/// In descending order the spans are complete from `until` on.
#[test]
fn a_descending_page_ends_where_more_items_are_to_be_read() {
    let shape = shape(SpanLength::Day, "UTC");
    let item =
        |day: i64| SummedItem { millis: day * 86_400_000, ticker: None, qty: None, price: None, stretch: 0 };
    let summary = summary(&[item(1), item(3)], &shape, &[0]);
    let page = |from: Option<i64>, until: i64, fill| {
        let ends = [from.map(|day| day * 86_400_000), Some(5 * 86_400_000)];
        let page = page_of_points(
            &summary,
            PointBounds { ends, until: Some(until * 86_400_000) },
            fill,
            Order::Descending,
            9,
        )
        .unwrap();
        let days: Vec<_> = page.points.iter().map(|point| point.span.start / 86_400_000).collect();
        (days, page.next.map(|next| next / 86_400_000))
    };
    assert_eq!(page(None, 2, Fill::None), (vec![3], Some(2)));
    assert_eq!(page(Some(2), 2, Fill::None), (vec![3], None));
    assert_eq!(page(Some(0), 2, Fill::Zero), (vec![4, 3, 2], Some(2)));
    assert_eq!(page(Some(0), 0, Fill::Zero), (vec![4, 3, 2, 1, 0], None));
}

/// Spans without items have the last numbers before them, whatever the order.
#[test]
fn numbers_are_carried_over_empty_spans() {
    let shape = shape(SpanLength::Day, "UTC");
    let priced =
        |day: i64, price| SummedItem { millis: day * 86_400_000, ticker: None, qty: None, price, stretch: 0 };
    let items = [priced(1, Some((1_500_000, false))), priced(3, None)];
    let summary = summary(&items, &shape, &[0]);
    for order in [Order::Ascending, Order::Descending] {
        let ends = [Some(0), Some(5 * 86_400_000)];
        let mut page =
            page_of_points(&summary, PointBounds { ends, until: None }, Fill::Previous, order, 9).unwrap();
        page.carry(order, vec![None, None]);
        let closes: BTreeMap<_, _> = page
            .points
            .iter()
            .filter(|point| point.aggregate.is_none())
            .map(|point| {
                let measured = Measurements::of_none(&shape.values, &point.previous);
                (point.span.start / 86_400_000, json!(measured[1]))
            })
            .collect();
        let carried = json!({ "sum": "0", "open": "1.5", "high": "1.5", "low": "1.5", "close": "1.5" });
        let expected = [(0, json!({ "sum": "0" })), (2, carried.clone()), (4, carried)];
        assert_eq!(closes, BTreeMap::from(expected), "{order}");
    }
}

/// A sum that has too many digits is missing, and the others are not.
#[test]
fn what_does_not_fit_is_named() {
    let shape = shape(SpanLength::Day, "UTC");
    let mut all = PartialSummary::new(Arc::clone(&shape));
    for (seq, price) in (1..).zip(["9999999999999999999999999999999999", "0.5"]) {
        let document = rawdoc! { "qty": 1_i64, "price": price.parse::<bson::Decimal128>().unwrap() };
        all.add(Seq::new(seq).unwrap(), Instant::from_millis(0).unwrap(), &document);
    }
    let page = page_of_points(&all, PointBounds::default(), Fill::None, Order::Ascending, 1).unwrap();
    let measured = page.points[0].aggregate.as_ref().unwrap().measured(&shape.values);
    assert_eq!(measured[1].too_long, ["sum"]);
    let price = json!({
        "open": "9999999999999999999999999999999999", "high": "9999999999999999999999999999999999",
        "low": "0.5", "close": "0.5", "vwap": "5000000000000000000000000000000000",
    });
    assert_eq!(serde_json::to_value(&measured[1]).unwrap(), price);
}

#[test]
fn long_numbers_end_a_page_of_points() {
    let shape = shape(SpanLength::Day, "UTC");
    let mut all = PartialSummary::new(Arc::clone(&shape));
    let smallest: bson::Decimal128 = format!("0.{}1", "0".repeat(6175)).parse().unwrap();
    for seq in 1..=200 {
        let document = rawdoc! { "qty": 1_i64, "price": smallest };
        all.add(Seq::new(seq).unwrap(), Instant::from_millis(seq as i64 * 86_400_000).unwrap(), &document);
    }
    let (mut from, mut points) = (None, 0);
    loop {
        let page = page_of_points(
            &all,
            PointBounds { ends: [from, None], until: None },
            Fill::None,
            Order::Ascending,
            1_000,
        )
        .unwrap();
        let texts = page.points.iter().map(|point| point.aggregate.as_ref().unwrap().measured(&shape.values));
        let bytes: usize = texts.map(|values| serde_json::to_string(&values).unwrap().len()).sum();
        assert!(bytes < 3 << 20, "{bytes}");
        points += page.points.len();
        let Some(next) = page.next else { break };
        from = Some(next);
    }
    assert!(points == 200 && from.is_some(), "{points}");
}

/// 2,000 trades a day of five symbols, in the hours of an exchange.
#[test]
fn a_tile_of_a_dense_history_is_short() {
    let SummaryShape { spans, values, .. } = (*shape(SpanLength::Quarter, "UTC")).clone();
    let values = values.into_iter().map(|mut value| {
        value.measures.retain(|measure| {
            if value.name == "qty" { *measure == Measure::Sum } else { *measure != Measure::Sum }
        });
        value
    });
    let groups = vec!["ticker".to_owned()];
    let shape = Arc::new(SummaryShape { spans, groups, values: values.collect() });
    // A linear congruential generator: the same numbers in each run.
    let mut state = 7_u64;
    let mut random = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let mut summary = PartialSummary::new(Arc::clone(&shape));
    let mut prices = [15_540_i64, 3_210, 98_760, 45_000, 1_230];
    for seq in 1..=640_u64 {
        let symbol = random(5) as usize;
        prices[symbol] += random(19) as i64 - 9;
        let price = format!("{}.{:02}", prices[symbol] / 100, prices[symbol] % 100);
        let ticker = ["AMD", "IBM", "MDB", "ORCL", "SAP"][symbol];
        let document = rawdoc! {
            "ticker": ticker,
            "qty": 1 + random(999) as i64,
            "price": price.parse::<bson::Decimal128>().unwrap(),
        };
        let date =
            Instant::from_millis(1_700_000_000_000 - 800_000 + (seq * 11_700) as i64 / 1000 * 1000).unwrap();
        summary.add(Seq::new(seq).unwrap(), date, &document);
    }
    let bytes = write_tile(&summary, Seq::FIRST).len();
    println!("{} points, {bytes} bytes, {:.2} an item", summary.points(), bytes as f64 / 640.0);
    assert!(bytes < 640 * 195 / 100, "{bytes}");
}
