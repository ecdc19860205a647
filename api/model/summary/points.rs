//! A page of points: whole spans, as many as fit.

use super::aggregate::Aggregate;
use super::partial::{GroupKey, PartialSummary};
use super::spans::TimeSpan;

/// About how many digits after the point the numbers of a page of points have, all together: these are most of its bytes if there
/// are many.
const MOST_DIGITS: usize = 2 << 20;

/// Whether spans without items have points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// They are left out.
    None,
    /// Each has one, without a group, that counts no items.
    Zero,
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
}

/// Points in order, and where the next ones begin.
#[derive(Debug, Clone)]
pub struct PointPage {
    /// Whole spans.
    pub points: Vec<SummaryPoint>,
    /// In milliseconds since 1970; `None` if there are no more.
    pub next: Option<i64>,
}

/// One span alone has more points than a page may have, or longer numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyPoints(pub TimeSpan);

/// The points from `from` to `to`, which begin and end with spans: at most `limit` of them, and only of spans that end by
/// `until`, because more items of later ones are still to be read. `None` has no end.
///
/// # Errors
/// The first span has more points.
pub fn page_of_points(
    summary: &PartialSummary,
    [from, to]: [Option<i64>; 2],
    until: Option<i64>,
    fill: Fill,
    limit: usize,
) -> Result<PointPage, TooManyPoints> {
    let end = [to, until].into_iter().flatten().min();
    let spans = &summary.shape().spans;
    let (mut points, mut reached, mut digits) = (Vec::new(), from, 0);
    // Empty spans before `next`.
    let gap = |points: &mut Vec<SummaryPoint>, reached: Option<i64>, next: i64| {
        let mut at = reached.filter(|_| fill == Fill::Zero);
        while let Some(start) = at.filter(|start| *start < next) {
            if points.len() == limit {
                return Some(start);
            }
            let span = spans.at(start);
            points.push(SummaryPoint { span, group: GroupKey::default(), aggregate: None });
            at = Some(span.end);
        }
        None
    };
    let within =
        |span: &TimeSpan| from.is_none_or(|from| from <= span.start) && end.is_none_or(|end| span.end <= end);
    for (span, groups) in summary.spans().filter(|(span, _)| within(span)) {
        if let Some(next) = gap(&mut points, reached, span.start) {
            return Ok(PointPage { points, next: Some(next) });
        }
        digits += groups.values().map(Aggregate::scales).sum::<usize>();
        if points.len() + groups.len() > limit || digits > MOST_DIGITS {
            return match points.is_empty() {
                true => Err(TooManyPoints(span)),
                false => Ok(PointPage { points, next: Some(span.start) }),
            };
        }
        points.extend(groups.iter().map(|(group, aggregate)| SummaryPoint {
            span,
            group: group.clone(),
            aggregate: Some(aggregate.clone()),
        }));
        reached = Some(span.end);
    }
    let next = end.and_then(|end| gap(&mut points, reached, end));
    let next = next.or(until.filter(|until| to.is_none_or(|to| *until < to)));
    Ok(PointPage { points, next })
}
