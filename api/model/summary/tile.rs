//! A tile: what the items of some full pages add up to, by the quarters of an hour of UTC and by the groups
//! of its shape, as bytes.
//!
//! The bytes are a function of the items: the same pages always make the same tile. All numbers are short if
//! they are small ([`varints`]):
//!
//! ```text
//! tile   = unit, number of groups, group..., number of quarters, quarter...
//! group  = for each property: 0, or its length + 1 and the text
//! quarter = how many quarters after the one before, number of points, point...
//! point  = index of its group, and what its items add up to (`aggregates.rs`)
//! ```
//!
//! Dates count units of time from the begin of their quarter: seconds, if no date has a fraction of one.

mod aggregates;
mod varints;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::aggregates::{AggregateReader, AggregateWriter, unit_of};
use self::varints::{TileReader, TileWriter};
use super::partial::{GroupKey, PartialSummary, SummaryShape};
use super::spans::{SpanLength, Spans, TimeSpan, Zone};
use crate::definition::Summaries;
use crate::domain::{Instant, Seq};

/// The number of this format. Another one makes other bytes of the same pages, or sums in another way. Kept
/// tiles, whose pages are deleted, must then be rewritten.
pub const TILE_FORMAT: u32 = 1;

/// Milliseconds of a quarter of an hour.
const QUARTER: i64 = 900_000;

/// By what tiles with groups summarise.
pub fn tile_shape(summaries: &Summaries) -> Arc<SummaryShape> {
    let spans = Spans { length: SpanLength::Quarter, zone: Zone::UTC };
    Arc::new(SummaryShape { spans, groups: summaries.groups.clone(), values: summaries.values.clone() })
}

/// The bytes of a summary of this shape. `first` is the first item of the pages.
pub fn write_tile(summary: &PartialSummary, first: Seq) -> Vec<u8> {
    let mut writer = TileWriter::default();
    let unit = unit_of(summary, QUARTER);
    writer.whole(unit as u64);
    let groups: BTreeSet<&GroupKey> = summary.spans().flat_map(|(_, groups)| groups.keys()).collect();
    writer.whole(groups.len() as u64);
    for text in groups.iter().flat_map(|group| group.iter()) {
        match text {
            None => writer.whole(0_u32),
            Some(text) => {
                writer.whole(text.len() as u64 + 1);
                writer.0.extend_from_slice(text.as_bytes());
            }
        }
    }
    let indexes: BTreeMap<&GroupKey, usize> = groups.into_iter().zip(0..).collect();
    writer.whole(summary.spans().count() as u64);
    let mut before = 0;
    let mut aggregates = AggregateWriter::new(&summary.shape().values, unit, first);
    for (span, groups) in summary.spans() {
        let quarter = span.start.div_euclid(QUARTER);
        writer.signed((quarter - before).into());
        before = quarter;
        writer.whole(groups.len() as u64);
        for (group, aggregate) in groups {
            let index = indexes[group];
            writer.whole(index as u64);
            aggregates.write(&mut writer, span.start, index, aggregate);
        }
    }
    writer.0
}

/// Reads the bytes of a tile of this shape, whose pages begin with the item `first`. `None` if they are
/// damaged.
pub fn read_tile(bytes: &[u8], shape: &Arc<SummaryShape>, first: Seq) -> Option<PartialSummary> {
    let mut reader = TileReader(bytes);
    let unit = i64::try_from(reader.small()?).ok().filter(|unit| (1..=QUARTER).contains(unit))?;
    let mut groups: Vec<GroupKey> = Vec::new();
    // Each has a point.
    for _ in 0..Some(reader.small()?).filter(|count| *count <= bytes.len() as u64)? {
        groups.push(shape.groups.iter().map(|_| group_text(&mut reader)).collect::<Option<_>>()?);
    }
    let mut spans: BTreeMap<TimeSpan, BTreeMap<GroupKey, _>> = BTreeMap::new();
    let mut quarter = 0_i64;
    let mut aggregates = AggregateReader::new(&shape.values, unit, first);
    for _ in 0..reader.small()? {
        quarter = quarter.checked_add(reader.signed()?.try_into().ok()?)?;
        let start = quarter.checked_mul(QUARTER).filter(|start| Instant::from_millis(*start).is_ok())?;
        let span = TimeSpan { start, end: start.checked_add(QUARTER)? };
        let mut points = Vec::new();
        for _ in 0..reader.small()? {
            let index = usize::try_from(reader.small()?).ok()?;
            let group = groups.get(index)?.clone();
            points.push((group, aggregates.read(&mut reader, start, index)?));
        }
        spans.insert(span, points.into_iter().collect());
    }
    reader.0.is_empty().then(|| PartialSummary::of_spans(Arc::clone(shape), spans))
}

/// The text of a property of a group, or `None` for none.
#[allow(clippy::option_option, reason = "the outer one is damage")]
fn group_text(reader: &mut TileReader<'_>) -> Option<Option<String>> {
    match usize::try_from(reader.small()?).ok()?.checked_sub(1) {
        None => Some(None),
        Some(length) => str::from_utf8(reader.bytes(length)?).ok().map(|text| Some(text.to_owned())),
    }
}
