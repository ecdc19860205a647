//! An aggregate as bytes.
//!
//! ```text
//! point = twice the count, and 1 if the flags of a value are others than in the point before; then the flags of each; first seq,
//!         last seq, value...
//! value = sum?, weighted sum?, sum of weights?, dated number...
//! sum   = unless it has the same numbers of digits after the point as the sum before it: how many of them, and which; then what the
//!         sum has of each
//! dated = seq of its item; unless a number before it is of the same item: its date, and its difference from the number before it,
//!         which is the last one of its group, if there is one
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

/// The three sums of a value: each has a flag that it is not empty, and another that it has the scales of the one before.
const SUMS: usize = 3;
/// The flag that there are dated numbers.
const DATED: u8 = 1 << (2 * SUMS);
/// The flag that the sum of weights is the sum of the property that they are of.
const SAME_WEIGHTS: u8 = 1 << (2 * SUMS + 1);
/// The place of the sum of weights among the sums.
const WEIGHTS: usize = 2;

/// Writes aggregates one after the other.
pub(super) struct AggregateWriter<'a> {
    values: &'a [SummaryValue],
    context: Context,
    before: Vec<Before>,
    /// Those of each value in the point before.
    flags: Vec<u8>,
}

/// Reads what an [`AggregateWriter`] has written.
pub(super) struct AggregateReader<'a> {
    values: &'a [SummaryValue],
    context: Context,
    before: Vec<Before>,
    flags: Vec<u8>,
}

/// What dates and sequence numbers are counted from.
#[derive(Debug, Clone, Copy)]
struct Context {
    /// Milliseconds in which dates are counted.
    unit: i64,
    /// The first item of the tile.
    first: Seq,
}

/// What was written of a property before: what follows is mostly similar.
#[derive(Debug, Clone, Default)]
struct Before {
    /// The scales of each sum.
    scales: [Vec<u32>; SUMS],
    /// The last number.
    number: LastNumber,
    /// The last one of each group.
    of_groups: Vec<Option<LastNumber>>,
}

/// The digits of a number with their sign, and how many of them are after the point.
type LastNumber = (i128, u32);

/// The greatest unit in which all dates of a summary are whole, counted from the begin of their span, and so is the length of all spans.
pub(super) fn unit_of(summary: &PartialSummary, span: i64) -> i64 {
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

fn greatest_common_divisor(one: i64, other: i64) -> i64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

/// The dated numbers in the order in which they are written.
fn dated(value: &ValueAggregate) -> [Option<DatedNumber>; 4] {
    [value.first, value.last, value.least, value.greatest]
}

/// Which of [`dated`] there are if there are any.
fn places(measures: &[Measure]) -> [bool; 4] {
    let any = |is: fn(&Measure) -> bool| measures.iter().any(is);
    let ohlc = any(|measure| *measure == Measure::Ohlc);
    let [least, greatest] =
        [any(|measure| *measure == Measure::Min), any(|measure| *measure == Measure::Max)];
    [ohlc, ohlc, ohlc || least, ohlc || greatest]
}

impl<'a> AggregateWriter<'a> {
    pub(super) fn new(values: &'a [SummaryValue], unit: i64, first: Seq) -> Self {
        let (before, flags) = (vec![Before::default(); values.len()], vec![0; values.len()]);
        Self { values, context: Context { unit, first }, before, flags }
    }

    /// Writes an aggregate of the quarter that begins at `start`, and of the group with this index.
    pub(super) fn write(&mut self, writer: &mut TileWriter, start: i64, group: usize, aggregate: &Aggregate) {
        let SeqRange { first, last } = aggregate.seqs;
        let flags: Vec<u8> =
            (0..self.values.len()).map(|index| self.flags(index, &aggregate.values)).collect();
        let is_changed = flags != self.flags;
        writer.whole(u128::from(aggregate.count) << 1 | u128::from(is_changed));
        if is_changed {
            flags.iter().for_each(|flags| writer.whole(*flags));
            self.flags = flags;
        }
        writer.whole(first.get() - self.context.first.get());
        writer.whole(last.get() - first.get());
        for ((aggregate, before), flags) in aggregate.values.iter().zip(&mut self.before).zip(&self.flags) {
            for (place, sum) in sums(aggregate).into_iter().enumerate() {
                before.write_sum(writer, place, *flags, sum);
            }
            before.begin(group);
            let mut written: Vec<Seq> = Vec::new();
            for DatedNumber { number, at: (date, seq) } in dated(aggregate).into_iter().flatten() {
                writer.whole(seq.get() - first.get());
                if !written.contains(&seq) {
                    writer.whole(((date.millis() - start) / self.context.unit) as u64);
                    before.write_number(writer, &number);
                    written.push(seq);
                }
            }
            before.end(group);
        }
    }

    /// What there is of a value.
    fn flags(&self, index: usize, aggregates: &[ValueAggregate]) -> u8 {
        let (value, aggregate) = (&self.values[index], &aggregates[index]);
        let numbers = dated(aggregate).map(|number| number.is_some());
        let mut flags = if numbers.contains(&true) { DATED } else { 0 };
        debug_assert!(flags == 0 || numbers == places(&value.measures));
        for (place, sum) in sums(aggregate).into_iter().enumerate().filter(|(_, sum)| !sum.terms().is_empty())
        {
            let weighing = weighing(self.values, index).filter(|_| place == WEIGHTS);
            if weighing.is_some_and(|weighing| aggregates[weighing].sum == *sum) {
                flags |= SAME_WEIGHTS;
                continue;
            }
            let scales = sum.terms().iter().map(|(scale, _)| scale);
            let is_same = scales.eq(&self.before[index].scales[place]);
            flags |= (1 + 2 * u8::from(is_same)) << (2 * place);
        }
        flags
    }
}

/// The sums in the order in which they are written.
fn sums(value: &ValueAggregate) -> [&ExactSum; SUMS] {
    [&value.sum, &value.weighted, &value.weights]
}

/// The value before this one that has the numbers by which it is weighted, as what they add up to.
fn weighing(values: &[SummaryValue], index: usize) -> Option<usize> {
    let weight = values[index].measures.iter().find_map(|measure| match measure {
        Measure::Vwap { weight, .. } => Some(weight),
        _ => None,
    })?;
    values[..index].iter().position(|value| value.name == *weight && value.measures.contains(&Measure::Sum))
}

impl<'a> AggregateReader<'a> {
    pub(super) fn new(values: &'a [SummaryValue], unit: i64, first: Seq) -> Self {
        let (before, flags) = (vec![Before::default(); values.len()], vec![0; values.len()]);
        Self { values, context: Context { unit, first }, before, flags }
    }

    /// Reads the next aggregate, of the quarter that begins at `start`, and of the group with this index. `None` if it is damaged.
    pub(super) fn read(
        &mut self,
        reader: &mut TileReader<'_>,
        start: i64,
        group: usize,
    ) -> Option<Aggregate> {
        let head = reader.small()?;
        if head & 1 == 1 {
            for flags in &mut self.flags {
                *flags = u8::try_from(reader.small()?).ok()?;
            }
        }
        let count = head >> 1;
        let first = seq(self.context.first, reader.small()?)?;
        let seqs = SeqRange { first, last: seq(first, reader.small()?)? };
        if !(1..=seqs.count()).contains(&count) {
            return None;
        }
        let mut values: Vec<ValueAggregate> = Vec::with_capacity(self.values.len());
        for ((value, before), &flags) in self.values.iter().zip(&mut self.before).zip(&self.flags) {
            let mut sums: [ExactSum; SUMS] = Default::default();
            for (place, sum) in sums.iter_mut().enumerate() {
                *sum = before.read_sum(reader, place, flags)?;
            }
            if flags & SAME_WEIGHTS != 0 {
                sums[WEIGHTS] = values[weighing(self.values, values.len())?].sum.clone();
            }
            before.begin(group);
            let mut dated: [Option<DatedNumber>; 4] = [None; 4];
            for (place, _) in places(&value.measures).iter().enumerate().filter(|(_, is)| **is) {
                if flags & DATED == 0 {
                    break;
                }
                let seq = seq(first, reader.small()?)?;
                let known = dated.iter().flatten().find(|number| number.at.1 == seq).copied();
                let number = match known {
                    Some(number) => number,
                    None => {
                        let after = i64::try_from(reader.small()?).ok()?.checked_mul(self.context.unit)?;
                        let date = Instant::from_millis(start.checked_add(after)?).ok()?;
                        let number = before.read_number(reader, value.kind)?;
                        DatedNumber { number, at: (date, seq) }
                    }
                };
                dated[place] = Some(number);
            }
            before.end(group);
            let ([sum, weighted, weights], [first, last, least, greatest]) = (sums, dated);
            values.push(ValueAggregate { sum, least, greatest, first, last, weighted, weights });
        }
        Some(Aggregate { count, seqs, values })
    }
}

impl Before {
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

    fn write_sum(&mut self, writer: &mut TileWriter, place: usize, flags: u8, sum: &ExactSum) {
        let terms = sum.terms();
        match flags >> (2 * place) & 3 {
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

    fn read_sum(&mut self, reader: &mut TileReader<'_>, place: usize, flags: u8) -> Option<ExactSum> {
        match flags >> (2 * place) & 3 {
            0 => return Some(ExactSum::default()),
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
        let mut is_whole = true;
        let terms = self.scales[place].iter().map_while(|scale| {
            let number = reader.big();
            is_whole &= number.is_some();
            Some((*scale, number?))
        });
        let sum = ExactSum::of_terms(terms);
        is_whole.then_some(sum)
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

    fn read_number(&mut self, reader: &mut TileReader<'_>, kind: StoredNumber) -> Option<Quantity> {
        match kind {
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
