//! What the items of one span and group add up to.

use std::cmp::Ordering;

use bson::raw::RawDocument;
use serde::Serialize;

use super::exact_sum::ExactSum;
use super::quantity::Quantity;
use crate::definition::{Measure, StoredNumber, SummaryValue};
use crate::domain::{Instant, Seq, SeqRange};
use crate::item::Decimal;

/// What the items of one span and group add up to. Items can be added, and aggregates merged, in any order.
#[derive(Debug, Clone)]
pub struct Aggregate {
    pub(crate) count: u64,
    pub(crate) seqs: SeqRange,
    /// One for each value of the definition.
    pub(crate) values: Vec<ValueAggregate>,
}

/// What the numbers of one property add up to. Only what its measures need is filled.
#[derive(Debug, Clone, Default)]
pub(crate) struct ValueAggregate {
    pub(crate) sum: ExactSum,
    pub(crate) least: Option<DatedNumber>,
    pub(crate) greatest: Option<DatedNumber>,
    pub(crate) first: Option<DatedNumber>,
    pub(crate) last: Option<DatedNumber>,
    /// Of the products with the weights.
    pub(crate) weighted: ExactSum,
    pub(crate) weights: ExactSum,
}

/// A number and the item that has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DatedNumber {
    pub(crate) number: Quantity,
    /// Date and `seq`: of equal dates the order of arrival decides.
    pub(crate) at: (Instant, Seq),
}

/// What the numbers of one property add up to, as another program has found it.
#[derive(Debug, Clone, Default)]
pub struct AddedNumbers {
    /// Their exact sum.
    pub sum: Option<Decimal>,
    /// The exact sum of the products with the weights.
    pub weighted: Option<Decimal>,
    /// The exact sum of these weights.
    pub weights: Option<Decimal>,
    /// The least number, with the date and the `seq` of its item.
    pub least: Option<(Quantity, (Instant, Seq))>,
    /// The greatest one.
    pub greatest: Option<(Quantity, (Instant, Seq))>,
    /// The first one.
    pub first: Option<(Quantity, (Instant, Seq))>,
    /// The last one.
    pub last: Option<(Quantity, (Instant, Seq))>,
}

/// What the measures of a property say.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize)]
pub struct Measurements {
    /// The exact sum.
    pub sum: Option<String>,
    /// The least number.
    pub min: Option<Quantity>,
    /// The greatest number.
    pub max: Option<Quantity>,
    /// The number of the first item.
    pub open: Option<Quantity>,
    /// The greatest number.
    pub high: Option<Quantity>,
    /// The least number.
    pub low: Option<Quantity>,
    /// The number of the last item.
    pub close: Option<Quantity>,
    /// The weighted average.
    pub vwap: Option<String>,
    /// The measures that have no value, because it does not fit into 34 digits.
    #[serde(skip)]
    pub too_long: Vec<&'static str>,
}

impl Aggregate {
    /// Of one item.
    pub fn of_item(seq: Seq, date: Instant, document: &RawDocument, values: &[SummaryValue]) -> Self {
        let mut aggregates = vec![ValueAggregate::default(); values.len()];
        for (aggregate, value) in aggregates.iter_mut().zip(values) {
            aggregate.add(document, value, (date, seq));
        }
        Self { count: 1, seqs: SeqRange { first: seq, last: seq }, values: aggregates }
    }

    /// Of `count` items, between these by `seq`, whose numbers were added up elsewhere.
    pub fn of_added(count: u64, seqs: SeqRange, values: Vec<AddedNumbers>) -> Self {
        let of_value = |AddedNumbers { sum, weighted, weights, least, greatest, first, last }| {
            let sum_of = |number: Option<Decimal>| {
                let mut sum = ExactSum::default();
                number.iter().for_each(|number| sum.add(number));
                sum
            };
            let dated = |found: Option<(Quantity, (Instant, Seq))>| {
                found.map(|(number, at)| DatedNumber { number, at })
            };
            ValueAggregate {
                sum: sum_of(sum),
                least: dated(least),
                greatest: dated(greatest),
                first: dated(first),
                last: dated(last),
                weighted: sum_of(weighted),
                weights: sum_of(weights),
            }
        };
        Self { count, seqs, values: values.into_iter().map(of_value).collect() }
    }

    /// Adds an item.
    pub fn add(&mut self, seq: Seq, date: Instant, document: &RawDocument, values: &[SummaryValue]) {
        self.count += 1;
        self.seqs = SeqRange { first: self.seqs.first.min(seq), last: self.seqs.last.max(seq) };
        for (aggregate, value) in self.values.iter_mut().zip(values) {
            aggregate.add(document, value, (date, seq));
        }
    }

    /// Adds what other items add up to.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        let (first, last) = (other.seqs.first, other.seqs.last);
        self.seqs = SeqRange { first: self.seqs.first.min(first), last: self.seqs.last.max(last) };
        for (aggregate, other) in self.values.iter_mut().zip(&other.values) {
            aggregate.merge(other);
        }
    }

    /// The number of items.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first and the last item by `seq`. Those between them need not be of this aggregate.
    pub fn seqs(&self) -> SeqRange {
        self.seqs
    }

    /// About how many digits after the point its numbers have in an answer, all together. One decimal may
    /// have 6,176.
    pub fn scales(&self) -> usize {
        self.values.iter().map(ValueAggregate::scales).sum()
    }

    /// The number of the last item that has one, for each value; of those without one, and of values that
    /// have no `ohlc`, what was there before.
    pub fn last_numbers(&self, before: &[Option<Quantity>]) -> Vec<Option<Quantity>> {
        let last = |(nth, value): (usize, &ValueAggregate)| {
            value.last.map(|placed| placed.number).or(before.get(nth).copied().flatten())
        };
        self.values.iter().enumerate().map(last).collect()
    }

    /// What the measures of each value say, in the order of the definition.
    pub fn measured(&self, values: &[SummaryValue]) -> Vec<Measurements> {
        self.values.iter().zip(values).map(|(aggregate, value)| aggregate.measured(&value.measures)).collect()
    }
}

impl AddedNumbers {
    /// Whether they may be none.
    pub fn is_none(&self) -> bool {
        let sums = [&self.sum, &self.weighted, &self.weights];
        let dated = [&self.least, &self.greatest, &self.first, &self.last];
        sums.into_iter().flatten().all(|sum| sum.sign() == 0) && dated.into_iter().all(Option::is_none)
    }
}

impl Measurements {
    /// What the measures of each value say of no items. `ohlc` is the last number before, where it is known.
    pub fn of_none(values: &[SummaryValue], previous: &[Option<Quantity>]) -> Vec<Self> {
        let of_value = |(nth, value): (usize, &SummaryValue)| {
            let mut measured = ValueAggregate::default().measured(&value.measures);
            if let Some(last) = previous.get(nth).copied().flatten()
                && value.measures.contains(&Measure::Ohlc)
            {
                [measured.open, measured.high, measured.low, measured.close] = [Some(last); 4];
            }
            measured
        };
        values.iter().enumerate().map(of_value).collect()
    }
}

impl ValueAggregate {
    fn add(&mut self, document: &RawDocument, value: &SummaryValue, at: (Instant, Seq)) {
        let Some(number) = number(document, &value.name, value.kind) else { return };
        let placed = DatedNumber { number, at };
        for measure in &value.measures {
            match measure {
                Measure::Sum => number.exact().iter().for_each(|number| self.sum.add(number)),
                Measure::Min => keep(&mut self.least, placed, DatedNumber::is_less),
                Measure::Max => keep(&mut self.greatest, placed, DatedNumber::is_greater),
                Measure::Ohlc => {
                    keep(&mut self.first, placed, DatedNumber::is_earlier);
                    keep(&mut self.greatest, placed, DatedNumber::is_greater);
                    keep(&mut self.least, placed, DatedNumber::is_less);
                    keep(&mut self.last, placed, DatedNumber::is_later);
                }
                Measure::Vwap { weight, kind } => {
                    let weight = self::number(document, weight, *kind).and_then(|weight| weight.exact());
                    if let (Some(number), Some(weight)) = (number.exact(), weight) {
                        self.weighted.add_product(&number, &weight);
                        self.weights.add(&weight);
                    }
                }
            }
        }
    }

    fn scales(&self) -> usize {
        let kept = [self.least, self.greatest, self.first, self.last].into_iter().flatten();
        let kept: usize = kept.map(|placed| placed.number.scale()).sum();
        kept + self.sum.scale() + self.weighted.scale()
    }

    fn merge(&mut self, other: &Self) {
        self.sum.merge(&other.sum);
        self.weighted.merge(&other.weighted);
        self.weights.merge(&other.weights);
        let keep = |kept: &mut _, other: Option<DatedNumber>, is_better: fn(&_, &_) -> _| {
            other.into_iter().for_each(|placed| keep(kept, placed, is_better));
        };
        keep(&mut self.least, other.least, DatedNumber::is_less);
        keep(&mut self.greatest, other.greatest, DatedNumber::is_greater);
        keep(&mut self.first, other.first, DatedNumber::is_earlier);
        keep(&mut self.last, other.last, DatedNumber::is_later);
    }

    fn measured(&self, measures: &[Measure]) -> Measurements {
        let number = |placed: Option<DatedNumber>| placed.map(|placed| placed.number);
        let mut measured = Measurements::default();
        for measure in measures {
            match measure {
                Measure::Sum => match self.sum.to_decimal() {
                    Some(sum) => measured.sum = Some(sum.to_string()),
                    None => measured.too_long.push("sum"),
                },
                Measure::Min => measured.min = number(self.least),
                Measure::Max => measured.max = number(self.greatest),
                Measure::Ohlc => {
                    (measured.open, measured.close) = (number(self.first), number(self.last));
                    (measured.high, measured.low) = (number(self.greatest), number(self.least));
                }
                Measure::Vwap { .. } if self.weights.is_zero() => {}
                Measure::Vwap { .. } => match self.weighted.divided_by(&self.weights) {
                    Some(average) => measured.vwap = Some(average.to_string()),
                    None => measured.too_long.push("vwap"),
                },
            }
        }
        measured
    }
}

impl DatedNumber {
    /// Of equal numbers, the one of the earlier item is kept: it may have other digits, as 1.5 and 1.50 have.
    fn is_less(&self, other: &Self) -> bool {
        self.number.compare(&other.number).then(self.at.cmp(&other.at)) == Ordering::Less
    }

    fn is_greater(&self, other: &Self) -> bool {
        self.number.compare(&other.number).then(other.at.cmp(&self.at)) == Ordering::Greater
    }

    fn is_earlier(&self, other: &Self) -> bool {
        self.at < other.at
    }

    fn is_later(&self, other: &Self) -> bool {
        self.at > other.at
    }
}

/// Replaces the number that is kept if the other one is better.
fn keep(
    kept: &mut Option<DatedNumber>,
    placed: DatedNumber,
    is_better: impl Fn(&DatedNumber, &DatedNumber) -> bool,
) {
    if kept.as_ref().is_none_or(|kept| is_better(&placed, kept)) {
        *kept = Some(placed);
    }
}

fn number(document: &RawDocument, name: &str, kind: StoredNumber) -> Option<Quantity> {
    Quantity::of(document.get(name).ok().flatten()?, kind)
}
