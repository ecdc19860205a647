//! A page of points: whole spans, as many as fit.

use super::aggregate::Aggregate;
use super::partial::{GroupKey, PartialSummary};
use super::quantity::Quantity;
use super::spans::TimeSpan;
use crate::domain::Order;

/// About how many digits after the point the numbers of a page of points have, all together: these are most
/// of its bytes if there are many.
const MOST_DIGITS: usize = 2 << 20;

/// Whether spans without items have points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// They are left out.
    None,
    /// Each has one, without a group, that counts no items.
    Zero,
    /// The same, with the last values before it ([`PointPage::carry`]).
    Previous,
}

/// A span of time, a group, and what its items add up to; `None` if it has no items.
#[derive(Debug, Clone)]
pub struct SummaryPoint {
    /// The span.
    pub span: TimeSpan,
    /// The texts of the group, in the order that was asked for.
    pub group: GroupKey,
    /// What its items add up to.
    pub aggregate: Option<Aggregate>,
    /// Of a span without items: the last number of each value before it, where it is known.
    pub previous: Vec<Option<Quantity>>,
}

/// Points in order, and where the next ones begin.
#[derive(Debug, Clone)]
pub struct PointPage {
    /// Whole spans.
    pub points: Vec<SummaryPoint>,
    /// Where the next span begins, or ends if the order is descending, in milliseconds since 1970; `None` if
    /// there are no more.
    pub next: Option<i64>,
}

impl PointPage {
    /// Gives the spans without items the last numbers before them. `last`: those before all points.
    pub fn carry(&mut self, order: Order, mut last: Vec<Option<Quantity>>) {
        let mut points: Vec<_> = self.points.iter_mut().collect();
        if order == Order::Descending {
            points.reverse();
        }
        for point in points {
            match &point.aggregate {
                Some(aggregate) => last = aggregate.last_numbers(&last),
                None => point.previous.clone_from(&last),
            }
        }
    }
}

/// One span alone has more points than a page may have, or longer numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyPoints(pub TimeSpan);

/// Of which spans a page of points may be.
#[derive(Debug, Clone, Copy, Default)]
pub struct PointBounds {
    /// From which time on and up to which time, where spans begin and end. `None` has no end.
    pub ends: [Option<i64>; 2],
    /// Only complete spans, because more items of others are still to be read: those that end by this time,
    /// or in descending order begin with it or later.
    pub until: Option<i64>,
}

/// The points within these bounds, at most `limit` of them.
///
/// # Errors
/// The first span has more points.
pub fn page_of_points(
    summary: &PartialSummary,
    PointBounds { ends: [from, to], until }: PointBounds,
    fill: Fill,
    order: Order,
    limit: usize,
) -> Result<PointPage, TooManyPoints> {
    let is_ascending = order == Order::Ascending;
    let spans = &summary.shape().spans;
    let [begin, end] = match is_ascending {
        true => [from, to.into_iter().chain(until).min()],
        false => [from.max(until), to],
    };
    let is_before = |one: i64, other: i64| if is_ascending { one < other } else { other < one };
    // Where a span begins and ends, in this order.
    let ends = |span: TimeSpan| if is_ascending { [span.start, span.end] } else { [span.end, span.start] };
    let (mut points, mut digits) = (Vec::new(), 0);
    let [mut reached, last] = if is_ascending { [begin, end] } else { [end, begin] };
    // Empty spans before `next`.
    let gap = |points: &mut Vec<SummaryPoint>, reached: Option<i64>, next: i64| {
        let mut at = reached.filter(|_| fill != Fill::None);
        while let Some(start) = at.filter(|start| is_before(*start, next)) {
            if points.len() == limit {
                return Some(start);
            }
            let span = spans.at(if is_ascending { start } else { start - 1 });
            let (group, previous) = (GroupKey::default(), Vec::new());
            points.push(SummaryPoint { span, group, aggregate: None, previous });
            at = Some(ends(span)[1]);
        }
        None
    };
    let within = |span: &TimeSpan| {
        begin.is_none_or(|begin| begin <= span.start) && end.is_none_or(|end| span.end <= end)
    };
    let mut found: Vec<_> = summary.spans().filter(|(span, _)| within(span)).collect();
    if !is_ascending {
        found.reverse();
    }
    for (span, groups) in found {
        let [near, far] = ends(span);
        if let Some(next) = gap(&mut points, reached, near) {
            return Ok(PointPage { points, next: Some(next) });
        }
        digits += groups.values().map(Aggregate::scales).sum::<usize>();
        if points.len() + groups.len() > limit || digits > MOST_DIGITS {
            return match points.is_empty() {
                true => Err(TooManyPoints(span)),
                false => Ok(PointPage { points, next: Some(near) }),
            };
        }
        points.extend(groups.iter().map(|(group, aggregate)| SummaryPoint {
            span,
            group: group.clone(),
            aggregate: Some(aggregate.clone()),
            previous: Vec::new(),
        }));
        reached = Some(far);
    }
    let next = last.and_then(|last| gap(&mut points, reached, last));
    let asked = if is_ascending { to } else { from };
    let next = next.or(until.filter(|until| asked.is_none_or(|asked| is_before(*until, asked))));
    Ok(PointPage { points, next })
}
