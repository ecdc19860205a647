//! Summaries over all owners, from a native time series.
//!
//! They are made of windows of time, so that a request may end after any of them. The database adds up a
//! window, where its sums are proved exact ([`database_sums`](super::database_sums)). Otherwise its
//! measurements are read, and added up here.

use std::sync::Arc;

use futures_util::future::try_join_all;
use mongodb::bson::raw::RawDocument;
use mongodb::bson::{DateTime, Document, doc};
use pagebucket_model::domain::{Instant, Order};
use pagebucket_model::summary::{
    Fill, PartialSummary, PointBounds, PointPage, SummaryShape, TooManyPoints, page_of_points,
};
use parking_lot::Mutex;

use super::control::{Build, Series};
use super::database_sums::{AddedWindow, SeriesWindow};
use super::snapshot::SeriesSnapshot;
use super::view::{MOST_NAMED, that_count};
use crate::mongo::{COMMAND, Deadline, Error, Result};

/// The most measurements that a request reads.
const MOST_READ: usize = 2_000_000;

/// The first windows are this part of the time of a request.
const FIRST_WINDOWS: i64 = 64;

/// The later ones at most this part.
const WINDOWS: i64 = 8;

/// How many windows the database adds up at once.
const AT_ONCE: usize = 2;

/// Values of points that a request holds in memory.
const MOST_HELD: usize = 200_000;

/// How often measurements are read again because a generation has changed.
const ATTEMPTS: u32 = 5;

/// What is asked of a time series.
#[derive(Debug, Clone)]
pub struct SeriesQuery {
    /// By what measurements are summarised. The groups are properties of the metaField.
    pub shape: Arc<SummaryShape>,
    /// Where the first span begins and the last one ends, in milliseconds since 1970.
    pub ends: [i64; 2],
    /// Whether spans without items have points, but not with the values before them.
    pub fill: Fill,
    /// Which spans come first.
    pub order: Order,
    /// What the metaField must have.
    pub filters: Vec<(String, Vec<String>)>,
    /// The most points.
    pub limit: usize,
}

/// A summary over all owners.
#[derive(Debug)]
pub struct SeriesPage {
    /// Its points.
    pub page: PointPage,
    /// All items are in it that were acknowledged before this moment. `None` while the time series is made.
    pub up_to: Option<Instant>,
    /// How many measurements were read.
    pub read: usize,
}

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// A request cannot read all items of the first of its windows of time.
    #[error("a window of time has too many items")]
    TooManyItems,
    /// The first span of time alone has more groups than an answer may have points.
    #[error("one span of time has too many groups")]
    TooManyGroups,
    /// The database does not answer in time, or the time series is being rebuilt.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Series {
    /// Summarises the items of all owners.
    pub async fn summarise(
        &self,
        query: &SeriesQuery,
        deadline: Deadline,
    ) -> Result<SeriesPage, SeriesError> {
        let (source, deadline) = (&self.source, deadline.or_within(COMMAND));
        for _ in 0..ATTEMPTS {
            let snapshot = SeriesSnapshot::take(source, deadline).await?;
            let page = read_windows(query, &snapshot, deadline).await;
            // A refusal may be wrong, too: items that were counted twice can be too many.
            if snapshot.still_counts(deadline).await? {
                return page;
            }
        }
        Err(Error::unavailable("owners are erased, or copied, one after the other").into())
    }
}

async fn read_windows(
    query: &SeriesQuery,
    snapshot: &SeriesSnapshot<'_>,
    deadline: Deadline,
) -> Result<SeriesPage, SeriesError> {
    let SeriesQuery { shape, ends: [from, to], limit, order, .. } = query;
    let (from, to, spans) = (*from, *to, &shape.spans);
    let is_ascending = *order == Order::Ascending;
    let most_held = most_held(shape);
    // First: until one changes, all that counts now is there.
    let changed = snapshot.build.changed(Some(MOST_NAMED + 1), deadline).await?;
    let counting = (changed.len() <= MOST_NAMED).then(|| that_count(&changed));
    let summary = PartialSummary::new(Arc::clone(shape));
    let begun = SeriesReading { summary, read: 0, found: vec![false; shape.values.len()], is_full: false };
    let reading = Arc::new(Mutex::new(begun));
    let mut until = None;
    let [first, last] = if is_ascending { [from, to] } else { [to, from] };
    let mut reached = first;
    while reached != last && until.is_none() {
        let (points, mut expected) = {
            let reading = reading.lock();
            (reading.summary.points(), reading.found.clone())
        };
        // Not much more than is asked for, if the points are as many in the same time.
        let step = match points {
            0 => (to - from) / FIRST_WINDOWS,
            points => {
                let left = (limit.saturating_sub(points) as i128 * 11 / 10).max(1);
                let step = left * i128::from((reached - first).abs()) / points as i128 / AT_ONCE as i128;
                step.min(i128::from((to - from) / WINDOWS)) as i64
            }
        };
        if points == 0 {
            expected.fill(true);
        }
        let next = |reached: &i64| {
            (*reached != last).then(|| match is_ascending {
                true => spans.at((reached + step).min(to - 1)).end.min(to),
                false => spans.at((reached - step.max(1)).max(from)).start.max(from),
            })
        };
        let ends: Vec<_> = std::iter::successors(Some(reached), next).take(AT_ONCE + 1).collect();
        let windows: Vec<_> = ends.array_windows().map(|[one, other]| [*one, *other]).collect();
        // `None` if the measurements must be read.
        let add = async |ends: [i64; 2]| {
            let Some(counting) = &counting else { return Ok(None) };
            let mut filter = asked_for(query, &snapshot.build, ends);
            filter.insert("$or", counting.clone());
            let expected = expected.clone();
            let window = SeriesWindow { shape, ends, filter, expected, most_read: MOST_READ, most_held };
            snapshot.build.added(window, deadline).await
        };
        let in_order = |[one, other]: [i64; 2]| [one.min(other), one.max(other)];
        let added = try_join_all(windows.iter().copied().map(in_order).map(add)).await?;
        for ([begin, next], added) in windows.into_iter().zip(added) {
            match added {
                Some(added) => reading.lock().add(added, most_held),
                None => {
                    let filter = asked_for(query, &snapshot.build, in_order([begin, next]));
                    let adding = Arc::clone(&reading);
                    adding.lock().found.fill(true);
                    let take = move |_, seq, date, document: &RawDocument| {
                        let mut reading = adding.lock();
                        reading.summary.add(seq, date, document);
                        reading.read += 1;
                        reading.is_full = reading.read >= MOST_READ || reading.summary.points() >= most_held;
                        !reading.is_full
                    };
                    snapshot.read(shape, filter, take, deadline).await?;
                }
            }
            let reading = reading.lock();
            if reading.is_full {
                // This window is not complete. The next request begins with it.
                until = Some(begin);
                break;
            }
            reached = next;
            if reading.summary.points() >= *limit && next != last {
                until = Some(next);
                break;
            }
        }
    }
    if until == Some(first) {
        return Err(SeriesError::TooManyItems);
    }
    let reading = reading.lock();
    let (summary, read) = (&reading.summary, reading.read);
    let page = page_of_points(
        summary,
        PointBounds { ends: [Some(from), Some(to)], until },
        query.fill,
        *order,
        *limit,
    );
    let page = page.map_err(|TooManyPoints(_)| SeriesError::TooManyGroups)?;
    let up_to = snapshot.up_to.and_then(|up_to| Instant::from_millis(up_to).ok());
    Ok(SeriesPage { page, up_to, read })
}

/// The measurements between these moments that are asked for, whether they count or not.
fn asked_for(query: &SeriesQuery, build: &Build<'_>, [begin, end]: [i64; 2]) -> Document {
    let mut filter = doc! {
        &*build.source.definition.date.name: { "$gte": DateTime::from_millis(begin), "$lt": DateTime::from_millis(end) },
    };
    for (name, values) in &query.filters {
        filter.insert(format!("meta.{name}"), doc! { "$in": values });
    }
    filter
}

/// The most points that a request holds.
fn most_held(shape: &SummaryShape) -> usize {
    MOST_HELD / shape.values.len().max(1)
}

/// What is read so far.
struct SeriesReading {
    summary: PartialSummary,
    read: usize,
    /// Which values the measurements have.
    found: Vec<bool>,
    is_full: bool,
}

impl SeriesReading {
    fn add(&mut self, added: AddedWindow, most_held: usize) {
        self.read += added.read;
        self.summary.merge(added.summary);
        self.found.iter_mut().zip(added.found).for_each(|(found, more)| *found |= more);
        self.is_full = self.read >= MOST_READ || self.summary.points() >= most_held;
    }
}
