//! Makes the collections of native time series: at a start, and for a rebuild beside the one that is read.

use std::sync::Arc;

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, doc};
use pagebucket_model::definition::TimeSeries;

use super::control::{Build, BuildState, Builds, COLLECTION, Series, next_number, public_name};
use super::feeder::Feeder;
use super::generations;
use super::unused_builds::{discard, drop_late, forget_generations, numbers};
use super::view::{Listed, drop_collection, listed, make, publish};
use crate::mongo::{COMMAND, Deadline, Error, Result};
use crate::store::collection::HistoryCollection;

impl Series {
    /// Whether the database lacks the time series that a definition asks for.
    pub(crate) async fn is_missing(&self) -> Result<bool> {
        Ok(self.source.definition.time_series.is_some() && self.state().await?.is_none())
    }

    /// The build that is read.
    async fn state(&self) -> Result<Option<BuildState>> {
        match Builds::of(&self.source, Deadline::within(COMMAND)).await? {
            Some(builds) => builds.current(&self.source).state(Deadline::within(COMMAND)).await,
            None => Ok(None),
        }
    }

    /// How a time series that exists differs from what its definition asks for, where that cannot change in
    /// place: the member, what is there, and what is asked for.
    pub(crate) async fn difference(&self) -> Result<Option<(&'static str, String, String)>> {
        let Some(series) = &self.source.definition.time_series else { return Ok(None) };
        let Some(state) = self.state().await? else { return Ok(None) };
        if state.is_of(series) {
            return Ok(None);
        }
        Ok(Some(if state.meta == series.meta {
            ("granularity", state.granularity, series.granularity.to_string())
        } else {
            ("meta", format!("{:?}", state.meta), format!("{:?}", series.meta))
        }))
    }

    /// Creates what is missing of the time series of a definition, and lets measurements expire as it says.
    pub(crate) async fn ensure(&self) -> Result<()> {
        let source = &*self.source;
        let Some(series) = &source.definition.time_series else { return Ok(()) };
        let deadline = || Deadline::within(COMMAND);
        let builds = match Builds::of(source, deadline()).await? {
            Some(builds) => builds,
            None => begin(source).await?,
        };
        let build = builds.current(source);
        let state = match build.state(deadline()).await? {
            Some(state) => state,
            None => create(build, series).await?,
        };
        publish(source).await?;
        if state.expire_after_days != series.expire_after_days.map(i64::from) {
            let seconds = series.expire_after_days.map(seconds_of);
            let seconds = seconds.map_or_else(|| Bson::from("off"), Bson::from);
            source
                .reads
                .run(doc! { "collMod": build.collection(), "expireAfterSeconds": seconds }, deadline())
                .await?;
            let days = match series.expire_after_days {
                Some(days) => doc! { "$set": { "expireAfterDays": i64::from(days) } },
                None => doc! { "$unset": { "expireAfterDays": "" } },
            };
            upsert(source, &build.id(), days).await?;
        }
        Ok(())
    }
}

/// Gives out the number of a first build, also after a time series that was dropped.
async fn begin(source: &HistoryCollection) -> Result<Builds> {
    let deadline = || Deadline::within(COMMAND);
    refuse_foreign(source).await?;
    let next = next_number(greatest(source).await?);
    // Another instance may have begun meanwhile.
    let set = doc! {
        "current": { "$ifNull": ["$current", &next] },
        "latest": { "$cond": [{ "$eq": [{ "$type": "$current" }, "missing"] }, next, "$latest"] },
    };
    // Before the collection is made, so that it counts as ours if this is interrupted.
    upsert(source, source.collection(), vec![doc! { "$set": set }]).await?;
    let builds = Builds::of(source, deadline()).await?;
    builds.ok_or_else(dropped)
}

/// The greatest number of a build that is there, whether it is remembered or not.
async fn greatest(source: &HistoryCollection) -> Result<i64> {
    Ok(numbers(source).await?.last().copied().unwrap_or(0))
}

fn dropped() -> Error {
    Error::Overtaken("the time series was dropped")
}

/// Creates the collection of a build, and its document last: a feeder needs it. A collection that is there
/// was made for this build, because its number is new.
async fn create(build: Build<'_>, series: &TimeSeries) -> Result<BuildState> {
    let (source, name) = (build.source, build.collection());
    let mut command = doc! {
        "create": &name,
        "timeseries": {
            "timeField": &*source.definition.date.name,
            "metaField": TimeSeries::META_FIELD,
            "granularity": series.granularity.to_string(),
        },
    };
    if let Some(days) = series.expire_after_days {
        command.insert("expireAfterSeconds", seconds_of(days));
    }
    make(source, command).await?;
    // Erasures delete by the owner, and a feeder looks how far an owner is fed. A key for each native bucket.
    let by_owner = doc! { "key": { "meta.owner": 1 }, "name": "meta.owner_1" };
    make(source, doc! { "createIndexes": &name, "indexes": [by_owner] }).await?;
    let pending =
        doc! { "key": { "pending": 1 }, "name": "pending_1", "partialFilterExpression": { "pending": true } };
    make(source, doc! { "createIndexes": generations::COLLECTION, "indexes": [pending] }).await?;
    let mut insert = doc! {
        "meta": &series.meta, "granularity": series.granularity.to_string(), "term": 0_i64, "raises": 0_i64,
        "until": DateTime::from_millis(0), "scanned": false, "batch": [],
    };
    if let Some(days) = series.expire_after_days {
        insert.insert("expireAfterDays", i64::from(days));
    }
    upsert(source, &build.id(), doc! { "$setOnInsert": insert }).await?;
    let state = build.state(Deadline::within(COMMAND)).await?;
    state.ok_or_else(dropped)
}

fn seconds_of(days: u32) -> i64 {
    i64::from(days) * 86_400
}

async fn upsert(source: &HistoryCollection, id: &str, change: impl Into<Bson>) -> Result<()> {
    let update = doc! { "q": { "_id": id }, "u": change, "upsert": true };
    source.update(COLLECTION, [update], Deadline::within(COMMAND)).await.map(drop)
}

async fn refuse_foreign(source: &HistoryCollection) -> Result<()> {
    let name = public_name(source.collection());
    match listed(source).await? {
        // It is left of a build that the database does not remember: a restore does not always replace all.
        Some(Listed::View { on, .. }) if on.starts_with(&format!("{name}_")) => Ok(()),
        Some(_) => Err(Error::internal(format!(
            "the collection {name} exists, and pagebucket has not created it: rename or drop it"
        ))),
        None => Ok(()),
    }
}

/// A time series that is rebuilt beside the one that is read.
pub struct Rebuild {
    source: Arc<HistoryCollection>,
    /// The last of them is this one.
    builds: Builds,
    feeder: Feeder,
}

impl Rebuild {
    /// Feeds a part. Returns whether nearly all is fed. After an error the rebuild must be begun again.
    pub async fn go_on(&mut self) -> Result<bool> {
        self.feeder.go_on().await?;
        self.feeder.is_near().await
    }

    /// Makes it the build that is read, and drops the one before. After an error what is read is either one
    /// or the other, and the next rebuild drops what is left.
    pub async fn swap(self) -> Result<()> {
        let Self { source, builds: Builds { current, latest, .. }, feeder } = self;
        feeder.end().await?;
        let swap = doc! {
            "q": { "_id": source.collection(), "building": latest, "current": current },
            "u": { "$set": { "current": latest }, "$unset": { "building": "" } },
        };
        if !source.update(COLLECTION, [swap], Deadline::within(COMMAND)).await? {
            return Err(Error::Overtaken("another rebuild has begun"));
        }
        drop_late(&source).await
    }
}

impl Series {
    /// Begins to rebuild it beside the one that is read. An interrupted earlier one is given up. `None` if
    /// the definition asks for no time series.
    pub async fn rebuild(&self) -> Result<Option<Rebuild>> {
        let source = Arc::clone(&self.source);
        let Some(series) = source.definition.time_series.clone() else { return Ok(None) };
        let deadline = || Deadline::within(COMMAND);
        if Builds::of(&source, deadline()).await?.is_none() {
            self.ensure().await?;
        }
        // Before any page is read: an erasure that does not see it has written its tombstone before.
        let next = next_number(greatest(&source).await?);
        let latest = vec![doc! { "$set": { "latest": &next, "building": next } }];
        let begun = doc! { "q": { "_id": source.collection() }, "u": latest };
        source.update(COLLECTION, [begun], deadline()).await?;
        let builds = Builds::of(&source, deadline()).await?.ok_or_else(dropped)?;
        create(Build { source: &source, number: builds.latest }, &series).await?;
        drop_late(&source).await?;
        let feeder = Feeder::take(Arc::clone(&source), builds.latest, ObjectId::new()).await?;
        let feeder = feeder.ok_or_else(dropped)?;
        Ok(Some(Rebuild { source, builds, feeder }))
    }

    /// Drops the time series of a history, all builds of it. Returns whether there was one. After an error it
    /// may be repeated.
    pub async fn remove(&self) -> Result<bool> {
        let source = &*self.source;
        let deadline = || Deadline::within(COMMAND);
        if Builds::of(source, deadline()).await?.is_none() {
            return Ok(false);
        }
        for number in numbers(source).await? {
            discard(Build { source, number }).await?;
        }
        forget_generations(source, source.collection()).await?;
        drop_collection(source, &public_name(source.collection())).await?;
        // Last: until then erasures look for builds. The greatest number stays.
        let update = doc! { "q": { "_id": source.collection() }, "u": { "$unset": { "current": "", "building": "" } } };
        source.update(COLLECTION, [update], deadline()).await?;
        Ok(true)
    }
}
