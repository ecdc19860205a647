//! An aggregate as bytes.
//!
//! ```text
//! point = twice the count, and 1 if the flags of a value are others than in the point before; then the flags
//!         of each; first seq, last seq, value...
//! value = sum?, weighted sum?, sum of weights?, dated number...
//! sum   = unless it has the same numbers of digits after the point as the sum before it: how many of them,
//!         and which; then what the sum has of each
//! dated = seq of its item; unless a number before it is of the same item: its date, and its difference from
//!         the number before it, which is the last one of its group, if there is one
//! ```
//!
//! Which dated numbers there are follows from the measures: all of them, or none if no item has the property.

use super::varints::{TileReader, TileWriter, unzigzag, zigzag};
use crate::definition::{Measure, StoredNumber, SummaryValue};
use crate::domain::{Instant, Seq, SeqRange};
use crate::item::Decimal;
use crate::summary::aggregate::{Aggregate, DatedNumber, ValueAggregate};
use crate::summary::exact_sum::ExactSum;
use crate::summary::partial::PartialSummary;
use crate::summary::quantity::Quantity;
use crate::summary::spans::greatest_common_divisor;

/// The three sums of a value: each has a flag that it is not empty, and another that it has the scales of the
/// one before.
const SUMS: usize = 3;
/// The flag that there are dated numbers.
const DATED: u8 = 1 << (2 * SUMS);
/// The flag that the sum of weights is the sum of the property that they are of.
const SAME_WEIGHTS: u8 = 1 << (2 * SUMS + 1);
/// The place of the sum of weights among the sums.
const WEIGHTS: usize = 2;

/// Writes aggregates one after the other.
pub(crate) struct AggregateWriter {
    values: Vec<ValueState>,
    context: Context,
}

/// Reads what an [`AggregateWriter`] has written.
pub(crate) struct AggregateReader {
    values: Vec<ValueState>,
    context: Context,
}

/// What dates and sequence numbers are counted from.
#[derive(Debug, Clone, Copy)]
struct Context {
    /// Milliseconds in which dates are counted.
    unit: i64,
    /// The first item of the tile.
    first: Seq,
}

/// What of a value is written, and what was written of it before: what follows is mostly similar.
#[derive(Debug)]
struct ValueState {
    kind: StoredNumber,
    /// Which of [`dated`] there are if there are any.
    places: [bool; 4],
    /// The value before it that has the numbers by which it is weighted, as what they add up to.
    weighing: Option<usize>,
    /// What there was in the point before.
    flags: u8,
    /// The scales of each sum.
    scales: [Vec<u32>; SUMS],
    /// The last number.
    number: LastNumber,
    /// The last one of each group.
    of_groups: Vec<Option<LastNumber>>,
}

/// The digits of a number with their sign, and how many of them are after the point.
type LastNumber = (i128, u32);

/// The greatest unit in which all dates of a summary are whole, counted from the begin of their span, and so
/// is the length of all spans.
pub(crate) fn unit_of(summary: &PartialSummary, span: i64) -> i64 {
    let mut unit = span;
    for (span, groups) in summary.spans() {
        for value in groups.values().flat_map(|aggregate| &aggregate.values) {
            for dated in dated(value).into_iter().flatten() {
                unit = greatest_common_divisor(unit, dated.at.0.millis() - span.start);
            }
        }
    }
    unit
}

/// The dated numbers in the order in which they are written.
fn dated(value: &ValueAggregate) -> [Option<DatedNumber>; 4] {
    [value.first, value.last, value.least, value.greatest]
}

impl AggregateWriter {
    pub(crate) fn new(values: &[SummaryValue], unit: i64, first: Seq) -> Self {
        Self { values: ValueState::of_all(values), context: Context { unit, first } }
    }

    /// Writes an aggregate of the quarter that begins at `start`, and of the group with this index.
    pub(crate) fn write(&mut self, writer: &mut TileWriter, start: i64, group: usize, aggregate: &Aggregate) {
        let SeqRange { first, last } = aggregate.seqs;
        let flags: Vec<u8> = self
            .values
            .iter()
            .zip(&aggregate.values)
            .map(|(state, value)| state.flags(value, &aggregate.values))
            .collect();
        let is_changed = !flags.iter().eq(self.values.iter().map(|state| &state.flags));
        writer.whole(u128::from(aggregate.count) << 1 | u128::from(is_changed));
        if is_changed {
            flags.iter().for_each(|flags| writer.whole(*flags));
        }
        writer.whole(first.get() - self.context.first.get());
        writer.whole(last.get() - first.get());
        for ((value, state), flags) in aggregate.values.iter().zip(&mut self.values).zip(flags) {
            state.flags = flags;
            for (place, sum) in sums(value).into_iter().enumerate() {
                state.write_sum(writer, place, sum);
            }
            state.begin(group);
            let mut written: Vec<Seq> = Vec::new();
            for DatedNumber { number, at: (date, seq) } in dated(value).into_iter().flatten() {
                writer.whole(seq.get() - first.get());
                if !written.contains(&seq) {
                    writer.whole(((date.millis() - start) / self.context.unit) as u64);
                    state.write_number(writer, &number);
                    written.push(seq);
                }
            }
            state.end(group);
        }
    }
}

/// The sums in the order in which they are written.
fn sums(value: &ValueAggregate) -> [&ExactSum; SUMS] {
    [&value.sum, &value.weighted, &value.weights]
}

impl AggregateReader {
    pub(crate) fn new(values: &[SummaryValue], unit: i64, first: Seq) -> Self {
        Self { values: ValueState::of_all(values), context: Context { unit, first } }
    }

    /// Reads the next aggregate, of the quarter that begins at `start`, and of the group with this index.
    /// `None` if it is damaged.
    pub(crate) fn read(
        &mut self,
        reader: &mut TileReader<'_>,
        start: i64,
        group: usize,
    ) -> Option<Aggregate> {
        let head = reader.small()?;
        if head & 1 == 1 {
            for state in &mut self.values {
                state.flags = reader.small()?.try_into().ok()?;
            }
        }
        let count = head >> 1;
        let first = seq(self.context.first, reader.small()?)?;
        let seqs = SeqRange { first, last: seq(first, reader.small()?)? };
        if !(1..=seqs.count() as u64).contains(&count) {
            return None;
        }
        let mut values: Vec<ValueAggregate> = Vec::with_capacity(self.values.len());
        for state in &mut self.values {
            let same = if state.flags & SAME_WEIGHTS != 0 {
                Some(values[state.weighing?].sum.clone())
            } else {
                None
            };
            values.push(ValueAggregate::default());
            let value = values.last_mut()?;
            state.read_sum(reader, 0, &mut value.sum)?;
            state.read_sum(reader, 1, &mut value.weighted)?;
            state.read_sum(reader, WEIGHTS, &mut value.weights)?;
            same.into_iter().for_each(|sum| value.weights = sum);
            state.begin(group);
            if state.flags & DATED != 0 {
                state.read_dated(reader, self.context.unit, (start, first), value)?;
            }
            state.end(group);
        }
        Some(Aggregate { count, seqs, values })
    }
}

impl ValueState {
    fn of_all(values: &[SummaryValue]) -> Vec<Self> {
        (0..values.len()).map(|index| Self::of(&values[index], &values[..index])).collect()
    }

    /// Of a value, and those before it.
    fn of(value: &SummaryValue, before: &[SummaryValue]) -> Self {
        let any = |is: fn(&Measure) -> bool| value.measures.iter().any(is);
        let ohlc = any(|measure| *measure == Measure::Ohlc);
        let [least, greatest] =
            [any(|measure| *measure == Measure::Min), any(|measure| *measure == Measure::Max)];
        let weight = value.measures.iter().find_map(|measure| match measure {
            Measure::Vwap { weight, .. } => Some(weight),
            _ => None,
        });
        let is_weight =
            |value: &SummaryValue| weight == Some(&value.name) && value.measures.contains(&Measure::Sum);
        Self {
            kind: value.kind,
            places: [ohlc, ohlc, ohlc || least, ohlc || greatest],
            weighing: before.iter().position(is_weight),
            flags: 0,
            scales: Default::default(),
            number: LastNumber::default(),
            of_groups: Vec::new(),
        }
    }

    /// What there is of the value in a point.
    fn flags(&self, value: &ValueAggregate, all: &[ValueAggregate]) -> u8 {
        let numbers = dated(value).map(|number| number.is_some());
        let mut flags = if numbers.contains(&true) { DATED } else { 0 };
        debug_assert!(flags == 0 || numbers == self.places);
        for (place, sum) in sums(value).into_iter().enumerate().filter(|(_, sum)| !sum.terms().is_empty()) {
            let weighing = self.weighing.filter(|_| place == WEIGHTS);
            if weighing.is_some_and(|weighing| all[weighing].sum == *sum) {
                flags |= SAME_WEIGHTS;
                continue;
            }
            let scales = sum.terms().iter().map(|(scale, _)| scale);
            let is_same = scales.eq(&self.scales[place]);
            flags |= (1 + 2 * u8::from(is_same)) << (2 * place);
        }
        flags
    }

    /// Before the numbers of a point of this group.
    fn begin(&mut self, group: usize) {
        if let Some(Some(last)) = self.of_groups.get(group) {
            self.number = *last;
        }
    }

    /// After them.
    fn end(&mut self, group: usize) {
        if self.of_groups.len() <= group {
            self.of_groups.resize(group + 1, None);
        }
        self.of_groups[group] = Some(self.number);
    }

    fn write_sum(&mut self, writer: &mut TileWriter, place: usize, sum: &ExactSum) {
        let terms = sum.terms();
        match self.flags >> (2 * place) & 3 {
            0 => return,
            1 => {
                self.scales[place] = terms.iter().map(|(scale, _)| *scale).collect();
                writer.whole(terms.len() as u64);
                self.scales[place].iter().for_each(|scale| writer.whole(*scale));
            }
            _ => {}
        }
        terms.iter().for_each(|(_, coefficient)| writer.big(coefficient));
    }

    fn read_sum(&mut self, reader: &mut TileReader<'_>, place: usize, sum: &mut ExactSum) -> Option<()> {
        match self.flags >> (2 * place) & 3 {
            0 => return Some(()),
            1 => {
                let mut scales: Vec<u32> = Vec::new();
                for _ in 0..reader.small()? {
                    scales.push(reader.small()?.try_into().ok()?);
                }
                // A product has at most twice as many digits after the point as a number.
                let most = 2 * Decimal::MAX_SCALE as u32;
                let fits =
                    scales.is_sorted_by(|one, next| one < next) && scales.iter().all(|scale| *scale <= most);
                self.scales[place] = Some(scales).filter(|_| fits)?;
            }
            _ => {}
        }
        for scale in &self.scales[place] {
            sum.push(*scale, reader.big()?);
        }
        Some(())
    }

    /// Reads the dated numbers of a point of the quarter that begins at `start`, and whose first item is
    /// `first`.
    fn read_dated(
        &mut self,
        reader: &mut TileReader<'_>,
        unit: i64,
        (start, first): (i64, Seq),
        value: &mut ValueAggregate,
    ) -> Option<()> {
        let (places, mut dated) = (self.places, [None::<DatedNumber>; 4]);
        for place in (0..dated.len()).filter(|place| places[*place]) {
            let seq = seq(first, reader.small()?)?;
            let known = dated.iter().flatten().find(|number| number.at.1 == seq).copied();
            let number = match known {
                Some(number) => number,
                None => {
                    let after = i64::try_from(reader.small()?).ok()?.checked_mul(unit)?;
                    let date = Instant::from_millis(start.checked_add(after)?).ok()?;
                    DatedNumber { number: self.read_number(reader)?, at: (date, seq) }
                }
            };
            dated[place] = Some(number);
        }
        [value.first, value.last, value.least, value.greatest] = dated;
        Some(())
    }

    fn write_number(&mut self, writer: &mut TileWriter, number: &Quantity) {
        match number {
            Quantity::Integer(number) => {
                writer.signed(i128::from(*number) - self.number.0);
                self.number.0 = (*number).into();
            }
            Quantity::Decimal(number) => {
                let (negative, digits, scale) = number.digits();
                let signed = if negative { -(digits as i128) } else { digits as i128 };
                // A negative zero has a sign that its digits do not show.
                if scale as u32 == self.number.1 && !(negative && digits == 0) {
                    writer.whole(zigzag(signed - self.number.0) << 1);
                } else {
                    writer.whole((scale as u128) << 2 | u128::from(negative) << 1 | 1);
                    writer.whole(digits);
                }
                self.number = (signed, scale as u32);
            }
            Quantity::Double(number) => writer.0.extend_from_slice(&number.to_bits().to_le_bytes()),
        }
    }

    fn read_number(&mut self, reader: &mut TileReader<'_>) -> Option<Quantity> {
        match self.kind {
            StoredNumber::Integer => {
                let number = self.number.0.checked_add(reader.signed()?)?;
                self.number.0 = number;
                number.try_into().ok().map(Quantity::Integer)
            }
            StoredNumber::Decimal => {
                let head = reader.whole()?;
                let (negative, digits, scale) = if head & 1 == 0 {
                    let signed = self.number.0.checked_add(unzigzag(head >> 1))?;
                    (signed < 0, signed.unsigned_abs(), self.number.1)
                } else {
                    (head & 2 != 0, reader.whole()?, u32::try_from(head >> 2).ok()?)
                };
                let number = Decimal::of_digits(negative, digits, scale as usize)?;
                self.number = (if negative { -(digits as i128) } else { digits as i128 }, scale);
                Some(Quantity::Decimal(number))
            }
            StoredNumber::Double => {
                let bits = u64::from_le_bytes(reader.bytes(8)?.try_into().ok()?);
                Some(Quantity::Double(f64::from_bits(bits)))
            }
        }
    }
}

/// The item so many places after another one.
fn seq(first: Seq, after: u64) -> Option<Seq> {
    Seq::new(first.get().checked_add(after)?).ok()
}
