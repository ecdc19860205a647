//! What the database adds up of the measurements of a window of time, as far as its sums are proved exact.
//!
//! Measurements are grouped by a length of time of which the spans of the window are multiples, so that the
//! rules of time zones are ours alone. The same command shows for each group whether its numbers are what
//! adding up the measurements here would give:
//!
//! - **Whole numbers.** The sums of int64 are exact up to 2^106. One that does not fit into int64, or that a
//!   decimal or a double is in, has another type.
//! - **Decimals.** The magnitudes of the same numbers are added up, too. A result of the database that was
//!   rounded has 34 digits, and a sum of magnitudes that has 34 digits at one time keeps them: it grows, and
//!   its exponent grows only with a rounding. So if that sum has fewer digits, no number of it, no product,
//!   and no sum of some of them was rounded, whatever their signs and their order. The one exception are
//!   products with more than 6,176 digits after the point, which are cut: then the sum has 6,176 of them.
//! - **The least, the greatest, the first and the last number** are of the type that counts. What else is
//!   there is beyond none of them.
//!
//! What is not proved is read.
//!
//! Adding up a property takes time also where measurements do not have it. So of properties that none had so
//! far, only the greatest value is asked for, and all others where there is one.

use std::sync::Arc;

use mongodb::bson::raw::{RawBsonRef, RawDocument};
use mongodb::bson::{Bson, DateTime, Document, bson, doc};
use pagebucket_model::definition::{Measure, StoredNumber, SummaryValue, TimeSeries};
use pagebucket_model::domain::{Instant, Seq, SeqRange};
use pagebucket_model::item::Decimal;
use pagebucket_model::summary::{
    AddedNumbers, Aggregate, GroupKey, PartialSummary, Quantity, SummaryShape, group_text,
};

use super::control::Build;
use crate::mongo::{Deadline, Result};

/// The shortest groups in time, unless the spans are shorter: others would be nearly as many as measurements.
const SHORTEST: i64 = 15 * 60 * 1000;

/// Sums of magnitudes below this number, whatever the point, are exact.
const ROUNDED: u128 = 10_u128.pow(Decimal::MAX_DIGITS as u32 - 1);

/// What is added up.
pub(crate) struct SeriesWindow<'a> {
    pub(crate) shape: &'a Arc<SummaryShape>,
    /// Where its first span begins, and its last one ends, in milliseconds since 1970.
    pub(crate) ends: [i64; 2],
    /// The measurements of it that count, and that are asked for.
    pub(crate) filter: Document,
    /// Which values its measurements may have. Others are looked for, and then added up, too.
    pub(crate) expected: Vec<bool>,
    /// The most measurements.
    pub(crate) most_read: usize,
    /// The most groups.
    pub(crate) most_held: usize,
}

/// What a window adds up to.
pub(crate) struct AddedWindow {
    pub(crate) summary: PartialSummary,
    /// How many measurements it has. If they are more than asked for, some are missing.
    pub(crate) read: usize,
    /// Which values they have.
    pub(crate) found: Vec<bool>,
}

/// What the measurements of a group add up to that is proved.
struct AddedGroup {
    /// The number of the span of time.
    span: i64,
    group: GroupKey,
    count: u64,
    numbers: Vec<AddedNumbers>,
}

impl Build<'_> {
    /// What a window adds up to. `None` if its measurements must be read.
    pub(crate) async fn added(
        self,
        mut window: SeriesWindow<'_>,
        deadline: Deadline,
    ) -> Result<Option<AddedWindow>> {
        let added = self.try_add(&window, deadline).await?;
        if added.is_some() || !window.expected.contains(&false) {
            return Ok(added);
        }
        window.expected.fill(true);
        self.try_add(&window, deadline).await
    }

    async fn try_add(self, window: &SeriesWindow<'_>, deadline: Deadline) -> Result<Option<AddedWindow>> {
        let SeriesWindow { shape, ends: [begin, end], filter, expected, most_read, most_held } = window;
        let (begin, length) = (*begin, shape.spans.common_length([*begin, *end]));
        let is_too_short = length < SHORTEST.min(shape.spans.at(begin).end - begin);
        let mut names = shape.groups.iter().chain(shape.values.iter().flat_map(names));
        if is_too_short || names.any(|name| is_odd(name)) {
            return Ok(None);
        }
        let date = format!("${}", self.source.definition.date.name);
        let since = doc! { "$subtract": [&date, DateTime::from_millis(begin)] };
        let mut id = doc! { "span": { "$floor": { "$divide": [since, length] } } };
        for (nth, name) in shape.groups.iter().enumerate() {
            id.insert(format!("group{nth}"), format!("${}.{name}", TimeSeries::META_FIELD));
        }
        let mut group = doc! { "_id": id, "count": { "$sum": 1_i64 } };
        for (nth, (value, is_expected)) in shape.values.iter().zip(expected).enumerate() {
            match is_expected {
                true => group.extend(accumulators(nth, value, &date, begin)),
                false => drop(group.insert(format!("unexpected{nth}"), doc! { "$max": path(&value.name) })),
            }
        }
        // One more than may be there shows that there are more.
        let pipeline = vec![
            doc! { "$match": filter },
            doc! { "$limit": *most_read as i64 + 1 },
            doc! { "$group": group },
            doc! { "$limit": *most_held as i64 + 1 },
        ];
        let command = doc! { "aggregate": self.collection(), "pipeline": pipeline, "cursor": { "batchSize": i32::MAX } };
        let asked = Arc::clone(shape);
        let read = move |document: &RawDocument| Ok(AddedGroup::read(document, &asked, begin));
        let found = self.source.reads.find(command, deadline, read).await?;
        if found.len() > *most_held {
            return Ok(None);
        }
        let summary = PartialSummary::new(Arc::clone(shape));
        let mut added = AddedWindow { summary, read: 0, found: vec![false; shape.values.len()] };
        for group in found {
            let Some(AddedGroup { span, group, count, numbers }) = group else { return Ok(None) };
            for (found, numbers) in added.found.iter_mut().zip(&numbers) {
                *found |= !numbers.is_none();
            }
            added.read += count as usize;
            let aggregate = Aggregate::of_added(count, NO_RANGE, numbers);
            added.summary.add_aggregate(begin + span * length, group, aggregate);
        }
        Ok(Some(added))
    }
}

/// The items of several owners have no range.
const NO_RANGE: SeqRange = SeqRange { first: Seq::FIRST, last: Seq::FIRST };

/// The properties that a value is made of.
fn names(value: &SummaryValue) -> impl Iterator<Item = &String> {
    let weights = value.measures.iter().filter_map(|measure| match measure {
        Measure::Vwap { weight, .. } => Some(weight),
        _ => None,
    });
    [&value.name].into_iter().chain(weights)
}

/// Whether the database takes the name of a property for a path. No measurement has such a one.
fn is_odd(name: &str) -> bool {
    name.starts_with('$') || name.contains('.')
}

fn path(name: &str) -> String {
    format!("${name}")
}

/// What of a value is added up, in fields that end with its place.
fn accumulators(nth: usize, value: &SummaryValue, date: &str, begin: i64) -> Document {
    let SummaryValue { name, kind, measures } = value;
    let (path, is_decimal) = (path(name), *kind == StoredNumber::Decimal);
    let given = |number: Bson| bson!({ "$cond": [{ "$gt": [&path, null] }, number, null] });
    let mut fields = Document::new();
    let mut add = |field: &str, accumulator: &str, what: Bson| {
        fields.insert(format!("{field}{nth}"), doc! { accumulator: what });
    };
    let first_and_last = || given(bson!([date, "$seq", &path]));
    for measure in measures {
        match measure {
            Measure::Sum if is_decimal => {
                let of_decimals = |number: Bson| bson!({ "$cond": [is_of(*kind, &path), number, null] });
                add("sum", "$sum", of_decimals(bson!(&path)));
                add("magnitudes-sum", "$sum", of_decimals(bson!({ "$abs": &path })));
            }
            Measure::Sum => add("sum", "$sum", bson!(&path)),
            Measure::Vwap { weight, kind: of_weight } => {
                let weight = self::path(weight);
                // The type of the sum of the weights says whether all are whole.
                let is_weight = match of_weight {
                    StoredNumber::Decimal => is_of(*of_weight, &weight),
                    StoredNumber::Integer | StoredNumber::Double => doc! { "$isNumber": &weight },
                };
                let both = doc! { "$and": [is_of(*kind, &path), is_weight] };
                let of_both = |number: Bson| bson!({ "$cond": [&both, number, null] });
                let product = doc! { "$multiply": [&path, &weight] };
                add("weighted", "$sum", of_both(bson!(&product)));
                add("weights", "$sum", of_both(bson!(&weight)));
                let is_decimal_weight = *of_weight == StoredNumber::Decimal;
                if is_decimal || is_decimal_weight {
                    add("magnitudes-weighted", "$sum", of_both(bson!({ "$abs": product })));
                }
                if is_decimal_weight {
                    add("magnitudes-weights", "$sum", of_both(bson!({ "$abs": weight })));
                }
            }
            Measure::Min | Measure::Max | Measure::Ohlc => {}
        }
        // Of equal decimals, the digits of the earlier one are kept.
        if [Measure::Min, Measure::Ohlc].contains(measure) {
            let least = if is_decimal { given(bson!([&path, date, "$seq"])) } else { bson!(&path) };
            add("least", "$min", least);
        }
        if [Measure::Max, Measure::Ohlc].contains(measure) {
            let before = doc! { "$subtract": [DateTime::from_millis(begin), date] };
            let of_decimals = || given(bson!([&path, before, { "$subtract": [0_i64, "$seq"] }]));
            add("greatest", "$max", if is_decimal { of_decimals() } else { bson!(&path) });
        }
        if *measure == Measure::Ohlc {
            add("first", "$min", first_and_last());
            add("last", "$max", first_and_last());
        }
    }
    fields
}

/// The condition that a number counts, by its type.
fn is_of(kind: StoredNumber, path: &str) -> Document {
    match kind {
        StoredNumber::Decimal => doc! { "$eq": [{ "$type": path }, "decimal"] },
        // Doubles have no sums.
        StoredNumber::Integer | StoredNumber::Double => doc! { "$in": [{ "$type": path }, ["long", "int"]] },
    }
}

impl AddedGroup {
    /// `None` if it is not proved.
    fn read(group: &RawDocument, shape: &SummaryShape, begin: i64) -> Option<Self> {
        let id = group.get_document("_id").ok()?;
        let span = id.get("span").ok()??.as_f64()? as i64;
        let text = |nth| group_text(id.get(format!("group{nth}")).ok().flatten());
        let texts = (0..shape.groups.len()).map(text).collect();
        let count = u64::try_from(group.get("count").ok()?.and_then(whole)?).ok()?;
        let of_value = |(nth, value): (usize, &SummaryValue)| added_numbers(group, nth, value, begin);
        let numbers = shape.values.iter().enumerate().map(of_value).collect::<Option<_>>()?;
        Some(Self { span, group: texts, count, numbers })
    }
}

fn whole(number: RawBsonRef<'_>) -> Option<i64> {
    match number {
        RawBsonRef::Int32(number) => Some(number.into()),
        RawBsonRef::Int64(number) => Some(number),
        _ => None,
    }
}

/// What the numbers of a value add up to in a group. `None` if it is not proved.
fn added_numbers(group: &RawDocument, nth: usize, value: &SummaryValue, begin: i64) -> Option<AddedNumbers> {
    let field = |name: &str| group.get(format!("{name}{nth}")).ok().flatten();
    let mut added = AddedNumbers::default();
    if field("unexpected").is_some_and(|found| found != RawBsonRef::Null) {
        return None;
    }
    for (name, sum) in
        [("sum", &mut added.sum), ("weighted", &mut added.weighted), ("weights", &mut added.weights)]
    {
        if let Some(found) = field(name) {
            *sum = Some(exact_sum(found, field(&format!("magnitudes-{name}")))?);
        }
    }
    let plain = (Instant::from_millis(begin).ok()?, Seq::FIRST);
    for (name, dated) in [
        ("least", &mut added.least),
        ("greatest", &mut added.greatest),
        ("first", &mut added.first),
        ("last", &mut added.last),
    ] {
        let (number, at) = match field(name) {
            None | Some(RawBsonRef::Null) => continue,
            Some(RawBsonRef::Array(parts)) => {
                let parts: Vec<_> = parts.into_iter().collect::<Result<_, _>>().ok()?;
                match parts[..] {
                    [RawBsonRef::DateTime(date), RawBsonRef::Int64(seq), number]
                    | [number, RawBsonRef::DateTime(date), RawBsonRef::Int64(seq)] => {
                        (number, (date.timestamp_millis(), seq))
                    }
                    [number, RawBsonRef::Int64(before), RawBsonRef::Int64(seq)] => {
                        (number, (begin - before, -seq))
                    }
                    _ => return None,
                }
            }
            Some(number) => {
                *dated = Some((Quantity::of(number, value.kind)?, plain));
                continue;
            }
        };
        let at = (Instant::from_millis(at.0).ok()?, Seq::new(at.1.try_into().ok()?).ok()?);
        *dated = Some((Quantity::of(number, value.kind)?, at));
    }
    Some(added)
}

/// A sum of the database, if it is proved exact.
fn exact_sum(sum: RawBsonRef<'_>, magnitudes: Option<RawBsonRef<'_>>) -> Option<Decimal> {
    let decimal = |number: RawBsonRef<'_>| match number {
        RawBsonRef::Decimal128(number) => Decimal::of_bytes(number.bytes()),
        number => whole(number).map(Decimal::of_integer),
    };
    if let RawBsonRef::Decimal128(_) = sum {
        let (_, digits, scale) = decimal(magnitudes?)?.digits();
        if digits >= ROUNDED || scale >= Decimal::MAX_SCALE {
            return None;
        }
    }
    decimal(sum)
}
