//! What a stretch of items adds up to, in each span of time and group that it is in.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use bson::raw::{RawBsonRef, RawDocument};

use super::aggregate::Aggregate;
use super::spans::{Spans, TimeSpan};
use crate::definition::{Summaries, SummaryValue};
use crate::domain::{Instant, Seq, SeqRange};

/// By what items are summarised.
#[derive(Debug, Clone)]
pub struct SummaryShape {
    /// The spans of time.
    pub spans: Spans,
    /// The properties by whose texts they are grouped.
    pub groups: Vec<String>,
    /// The values that are summarised.
    pub values: Vec<SummaryValue>,
}

/// The texts of the properties that make a group; `None` for a property that has no text, or too long a one.
pub type GroupKey = Arc<[Option<String>]>;

/// What a stretch of items adds up to.
#[derive(Debug, Clone)]
pub struct PartialSummary {
    shape: Arc<SummaryShape>,
    /// By spans, in their order, and in each by groups.
    spans: BTreeMap<TimeSpan, BTreeMap<GroupKey, Aggregate>>,
    /// The span that was found last: most items follow each other.
    latest: Option<TimeSpan>,
    /// How many spans and groups there are.
    points: usize,
}

impl PartialSummary {
    /// Of no items.
    pub fn new(shape: Arc<SummaryShape>) -> Self {
        Self { shape, spans: BTreeMap::new(), latest: None, points: 0 }
    }

    /// Of these spans and groups.
    pub(crate) fn of_spans(
        shape: Arc<SummaryShape>,
        spans: BTreeMap<TimeSpan, BTreeMap<GroupKey, Aggregate>>,
    ) -> Self {
        let points = spans.values().map(BTreeMap::len).sum();
        Self { shape, spans, latest: None, points }
    }

    /// By what it summarises.
    pub fn shape(&self) -> &SummaryShape {
        &self.shape
    }

    /// Adds an item.
    pub fn add(&mut self, seq: Seq, date: Instant, document: &RawDocument) {
        let span = self.span_at(date.millis());
        let text = |name: &String| group_text(document.get(name).ok().flatten());
        let group: GroupKey = self.shape.groups.iter().map(text).collect();
        let shape = Arc::clone(&self.shape);
        match self.spans.entry(span).or_default().entry(group) {
            Entry::Occupied(mut there) => there.get_mut().add(seq, date, document, &shape.values),
            Entry::Vacant(place) => {
                place.insert(Aggregate::of_item(seq, date, document, &shape.values));
                self.points += 1;
            }
        }
    }

    /// Adds what the items of a group add up to that are all in the span with this moment.
    pub fn add_aggregate(&mut self, moment: i64, group: GroupKey, aggregate: Aggregate) {
        let span = self.span_at(moment);
        self.merge_point(span, group, aggregate);
    }

    /// Adds what another stretch adds up to, by the same shape.
    pub fn merge(&mut self, other: Self) {
        for (span, groups) in other.spans {
            for (group, aggregate) in groups {
                self.merge_point(span, group, aggregate);
            }
        }
    }

    /// Adds what a finer summary has: one of the same values, whose spans lie within these, and whose groups
    /// have more properties. Only points for which `chosen` holds.
    pub fn merge_finer(&mut self, finer: Self, chosen: impl Fn(TimeSpan, &GroupKey) -> bool) {
        let place = |name: &String| finer.shape.groups.iter().position(|other| other == name);
        let places: Vec<_> = self.shape.groups.iter().map(place).collect();
        let are_same = places.iter().copied().eq((0..finer.shape.groups.len()).map(Some));
        let coarser = |group: &GroupKey| places.iter().map(|place| group[(*place)?].clone()).collect();
        let mut known: BTreeMap<GroupKey, GroupKey> = BTreeMap::new();
        for (fine, groups) in finer.spans {
            let span = self.span_at(fine.start);
            for (group, aggregate) in groups.into_iter().filter(|(group, _)| chosen(fine, group)) {
                let group = match are_same {
                    true => group,
                    false => known.entry(group).or_insert_with_key(coarser).clone(),
                };
                self.merge_point(span, group, aggregate);
            }
        }
    }

    /// Whether each of its spans lies within one of these, as far as they have moments between these ends.
    pub fn fits_into(&self, spans: &Spans, [from, to]: [Option<i64>; 2]) -> bool {
        let mut latest: Option<TimeSpan> = None;
        let is_asked =
            |fine: &&TimeSpan| from.is_none_or(|from| from < fine.end) && to.is_none_or(|to| fine.start < to);
        self.spans.keys().filter(is_asked).all(|fine| {
            let span = latest.filter(|span| fine.start < span.end).unwrap_or_else(|| spans.at(fine.start));
            latest = Some(span);
            fine.end <= span.end
        })
    }

    /// Whether it may be of these items: it has as many, and no other one is the first or the last of a
    /// point.
    pub fn is_of(&self, items: SeqRange) -> bool {
        let points = || self.spans.values().flat_map(BTreeMap::values);
        let ends = |point: &Aggregate| [point.seqs.first, point.seqs.last];
        points().map(Aggregate::count).fold(0, u64::saturating_add) == items.count() as u64
            && points().flat_map(ends).all(|seq| items.contains(seq))
    }

    fn merge_point(&mut self, span: TimeSpan, group: GroupKey, aggregate: Aggregate) {
        match self.spans.entry(span).or_default().entry(group) {
            Entry::Occupied(mut there) => there.get_mut().merge(&aggregate),
            Entry::Vacant(place) => {
                place.insert(aggregate);
                self.points += 1;
            }
        }
    }

    fn span_at(&mut self, moment: i64) -> TimeSpan {
        let known = self.latest.filter(|span| (span.start..span.end).contains(&moment));
        *self.latest.insert(known.unwrap_or_else(|| self.shape.spans.at(moment)))
    }

    /// How many spans and groups there are.
    pub fn points(&self) -> usize {
        self.points
    }

    /// How many groups there are in the spans that begin at `from` or later, and before `until`.
    pub fn points_between(&self, from: i64, until: i64) -> usize {
        let first = |start: i64| TimeSpan { start, end: i64::MIN };
        if from >= until {
            return 0;
        }
        self.spans.range(first(from)..first(until)).map(|(_, groups)| groups.len()).sum()
    }

    /// The spans that have items, in their order, and what each group of them adds up to.
    pub fn spans(&self) -> impl Iterator<Item = (TimeSpan, &BTreeMap<GroupKey, Aggregate>)> {
        self.spans.iter().map(|(span, groups)| (*span, groups))
    }
}

/// The text by which items are grouped that have this value.
pub fn group_text(value: Option<RawBsonRef<'_>>) -> Option<String> {
    let text = value.and_then(RawBsonRef::as_str)?;
    (text.len() <= Summaries::MAX_GROUP).then(|| text.to_owned())
}
