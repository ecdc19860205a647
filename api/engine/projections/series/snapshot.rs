//! The measurements of a build that count at one moment.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::TryStreamExt;
use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Bson, Document, doc};
use pagebucket_model::definition::Measure;
use pagebucket_model::domain::{Instant, OwnerId, Seq};
use pagebucket_model::summary::SummaryShape;
use parking_lot::Mutex;

use super::control::{Build, Builds};
use crate::mongo::{Deadline, Error, Result};
use crate::store::collection::{HistoryCollection, owner_of};

/// What is read of a build, as it was at one moment.
#[derive(Clone)]
pub(crate) struct SeriesSnapshot<'a> {
    pub(crate) build: Build<'a>,
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
