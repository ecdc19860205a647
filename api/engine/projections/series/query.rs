//! Summaries over all owners, from a native time series.
//!
//! They are made of windows of time, so that a request may end after any of them. The database adds up a
//! window, where its sums are proved exact ([`database_sums`](super::database_sums)). Otherwise its
//! measurements are read, and added up here.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::TryStreamExt;
use futures_util::future::try_join_all;
use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Bson, DateTime, Document, doc};
use pagebucket_model::definition::Measure;
use pagebucket_model::domain::{Instant, Order, OwnerId, Seq};
use pagebucket_model::summary::{
    Fill, PartialSummary, PointBounds, PointPage, SummaryShape, TooManyPoints, page_of_points,
};
use parking_lot::Mutex;

use super::control::{Build, Builds, Series};
use super::database_sums::{AddedWindow, SeriesWindow};
use super::view::{MOST_NAMED, that_count};
use crate::mongo::{COMMAND, Deadline, Error, Result};
use crate::store::collection::{HistoryCollection, owner_of};

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

/// What is read of a build, as it was at one moment.
#[derive(Clone)]
pub(crate) struct SeriesSnapshot<'a> {
    build: Build<'a>,
    raises: i64,
    pub(crate) up_to: Option<i64>,
    pub(crate) expire_after_days: Option<i64>,
    /// Of the owners whose measurements were read: the generation that counts.
    generations: Arc<Mutex<HashMap<OwnerId, i64>>>,
}

impl<'a> SeriesSnapshot<'a> {
    /// What counts now.
    pub(crate) async fn take(source: &'a HistoryCollection, deadline: Deadline) -> Result<Self> {
        let missing = || Error::unavailable("the time series of the history is not made yet");
        let builds = Builds::of(source, deadline).await?.ok_or_else(missing)?;
        let build = builds.current(source);
        // First: a change after this is noticed.
        let state = build.state(deadline).await?.ok_or_else(missing)?;
        if !source.definition.time_series.as_ref().is_some_and(|series| state.is_of(series)) {
            return Err(Error::unavailable("the time series is of another definition"));
        }
        let up_to = state.progress.up_to.filter(|_| state.progress.scanned);
        let (raises, expire_after_days) = (state.raises, state.expire_after_days);
        Ok(Self { build, raises, up_to, expire_after_days, generations: Arc::default() })
    }

    /// Whether what counted then still counts.
    pub(crate) async fn still_counts(&self, deadline: Deadline) -> Result<bool> {
        let builds = Builds::of(self.build.source, deadline).await?;
        if builds.is_none_or(|builds| builds.current != self.build.number) {
            return Ok(false);
        }
        let state = self.build.state(deadline).await?;
        Ok(state.is_some_and(|state| state.raises == self.raises))
    }

    /// Hands each measurement that counts to `take`, with its owner, until that returns `false`. A
    /// measurement is given as an item.
    pub(crate) async fn read(
        &self,
        shape: &SummaryShape,
        filter: Document,
        mut take: impl FnMut(OwnerId, Seq, Instant, &RawDocument) -> bool + Send + 'static,
        deadline: Deadline,
    ) -> Result<()> {
        let source = self.build.source;
        let command = self.command(shape, filter, deadline);
        let database = source.reads.database.clone();
        let begun = async move { Ok(database.run_cursor_command(command).batch().await?) };
        let mut cursor = deadline.read(begun).await?;
        loop {
            let next = async move { Ok((cursor.try_next().await?, cursor)) };
            let (batch, rest) = deadline.read(next).await?;
            let Some(batch) = batch else { return Ok(()) };
            cursor = rest;
            // What is asked for later shows at least what this has shown, also by another primary.
            source.reads.time.learn(batch.as_raw_document().get_timestamp("operationTime").ok());
            let documents = batch.doc_slices()?;
            let mut measured = Vec::new();
            for document in documents {
                let document = document.map_err(mongodb::error::Error::from)?;
                measured.extend(
                    document.as_document().and_then(|document| StoredMeasurement::read(document, source)),
                );
            }
            self.learn_generations(&measured, deadline).await?;
            let generations = self.generations.lock();
            for StoredMeasurement { owner, generation, seq, date, document } in measured {
                if generations.get(&owner) == Some(&generation) && !take(owner, seq, date, document) {
                    return Ok(());
                }
            }
        }
    }

    /// Reads the generations of the owners of these measurements, as far as they are not known. One that
    /// changes later is noticed by [`SeriesSnapshot::still_counts`]: until then all that counted is there.
    async fn learn_generations(&self, measured: &[StoredMeasurement<'_>], deadline: Deadline) -> Result<()> {
        let owners: HashSet<_> = {
            let known = self.generations.lock();
            measured
                .iter()
                .map(|measured| &measured.owner)
                .filter(|owner| !known.contains_key(owner))
                .collect()
        };
        if owners.is_empty() {
            return Ok(());
        }
        let owners: Vec<_> = owners.into_iter().cloned().collect();
        let found = self.build.generations(&owners, deadline).await?;
        let current = |owner: OwnerId| {
            let current = found.get(&owner).map_or(0, |known| known.current);
            (owner, current)
        };
        self.generations.lock().extend(owners.into_iter().map(current));
        Ok(())
    }

    fn command(&self, shape: &SummaryShape, filter: Document, deadline: Deadline) -> Document {
        let source = self.build.source;
        let mut fields = doc! {
            "_id": 0, &*source.definition.date.name: 1, "seq": 1,
            // No property begins with a `_`.
            "_owner": "$meta.owner", "_generation": "$meta.generation",
        };
        fields.extend(shape.groups.iter().map(|name| (name.clone(), Bson::from(format!("$meta.{name}")))));
        for value in &shape.values {
            fields.insert(value.name.clone(), 1);
            for measure in &value.measures {
                if let Measure::Vwap { weight, .. } = measure {
                    fields.insert(weight.clone(), 1);
                }
            }
        }
        let mut concern = doc! { "level": "majority" };
        concern
            .extend(source.reads.time.newest().map(|newest| ("afterClusterTime".to_owned(), newest.into())));
        doc! {
            "aggregate": self.build.collection(),
            "pipeline": [{ "$match": filter }, { "$project": fields }],
            "cursor": { "batchSize": 20_000 },
            "readConcern": concern,
            "maxTimeMS": deadline.remaining_millis(),
        }
    }
}

/// A measurement that may count.
struct StoredMeasurement<'a> {
    owner: OwnerId,
    generation: i64,
    seq: Seq,
    date: Instant,
    document: &'a RawDocument,
}

impl<'a> StoredMeasurement<'a> {
    fn read(document: &'a RawDocument, source: &HistoryCollection) -> Option<Self> {
        let definition = &source.definition;
        let owner = owner_of(document.get("_owner").ok()??, definition.owner.kind)?;
        let generation = document.get_i64("_generation").unwrap_or(0);
        let date = document.get_datetime(&*definition.date.name).ok()?;
        let date = Instant::from_millis(date.timestamp_millis()).ok()?;
        let seq = Seq::new(document.get_i64("seq").ok()?.try_into().ok()?).ok()?;
        Some(Self { owner, generation, seq, date, document })
    }
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
        let add = |[one, other]: [i64; 2]| {
            let expected = expected.clone();
            added(query, snapshot, counting.as_ref(), ([one.min(other), one.max(other)], expected), deadline)
        };
        let added = try_join_all(windows.iter().copied().map(add)).await?;
        for ([begin, next], added) in windows.into_iter().zip(added) {
            match added {
                Some(added) => reading.lock().add(added, most_held),
                None => {
                    let filter = asked_for(query, &snapshot.build, [begin.min(next), begin.max(next)]);
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

/// What the database adds up between these moments. `None` if it must be read.
async fn added(
    query: &SeriesQuery,
    snapshot: &SeriesSnapshot<'_>,
    counting: Option<&Vec<Document>>,
    (ends, expected): ([i64; 2], Vec<bool>),
    deadline: Deadline,
) -> Result<Option<AddedWindow>> {
    let Some(counting) = counting else { return Ok(None) };
    let mut filter = asked_for(query, &snapshot.build, ends);
    filter.insert("$or", counting.clone());
    let most_held = most_held(&query.shape);
    let window =
        SeriesWindow { shape: &query.shape, ends, filter, expected, most_read: MOST_READ, most_held };
    snapshot.build.added(window, deadline).await
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
