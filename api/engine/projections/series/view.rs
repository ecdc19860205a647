//! The name under which other programs read a time series: a view of what counts in the build that is read.
//!
//! Its `$match` names the owners of other generations than 0. No measurement is joined with the generation of
//! its owner: a join took 25 µs a measurement on mongod 6.0.5, many times as long as all else. So the view is
//! changed whenever a generation changes, before measurements are deleted because of that. A program that
//! reads it sees each item once before and after.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use mongodb::bson::{Bson, Document, doc};
use pagebucket_model::definition::TimeSeries;
use pagebucket_model::domain::OwnerId;

use super::control::{Build, Builds, public_name};
use super::generations::{self, OwnerGeneration};
use crate::mongo::error::{NAMESPACE_EXISTS, NAMESPACE_NOT_FOUND, code};
use crate::mongo::{COMMAND, Deadline, Result};
use crate::store::collection::{HistoryCollection, owner_bson};

/// The most owners that a view, or a question, names. A view is written with each change.
pub(crate) const MOST_NAMED: usize = 10_000;

/// What has the public name.
pub(crate) enum Listed {
    /// A collection: that of a build of an earlier version, or one that a late insert has created.
    Collection,
    /// A view on a collection.
    View {
        /// The collection.
        on: String,
        /// What the view reads of it.
        pipeline: Vec<Bson>,
    },
}

/// What has the public name; `None` if nothing has it.
pub(crate) async fn listed(source: &HistoryCollection) -> Result<Option<Listed>> {
    let found = list(source, doc! { "name": public_name(source.collection()) }).await?.pop();
    Ok(found.map(|found| {
        let Ok(options) = found.get_document("options") else { return Listed::Collection };
        // A native time series is listed with the collection of its own buckets.
        let is_view = found.get_str("type").is_ok_and(|kind| kind == "view");
        match (options.get_str("viewOn"), options.get_array("pipeline")) {
            (Ok(on), Ok(pipeline)) if is_view => {
                Listed::View { on: on.to_owned(), pipeline: pipeline.clone() }
            }
            _ => Listed::Collection,
        }
    }))
}

/// The names of the collections of builds: of native time series as ours are, and of what a late insert has
/// created again.
pub(crate) async fn names(source: &HistoryCollection) -> Result<Vec<String>> {
    let public = public_name(source.collection());
    let ours = doc! {
        "name": { "$regex": format!("^{public}_[0-9]+$") }, "type": "timeseries",
        "options.timeseries.metaField": TimeSeries::META_FIELD,
    };
    // A shorter number may be the name that another program has given.
    let late = doc! { "name": { "$regex": format!("^{public}_[0-9]{{10}}$") }, "type": "collection" };
    let found = list(source, doc! { "$or": [ours, late] }).await?;
    Ok(found.iter().filter_map(|found| Some(found.get_str("name").ok()?.to_owned())).collect())
}

async fn list(source: &HistoryCollection, filter: Document) -> Result<Vec<Document>> {
    let command = doc! { "listCollections": 1, "filter": filter };
    let reply = source.reads.run(command, Deadline::within(COMMAND)).await?;
    let batch = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    let batch = batch.ok().into_iter().flatten();
    Ok(batch.filter_map(|found| found.as_document().cloned()).collect())
}

/// Says that a generation of a build has changed: readers that have begun read again, and the view shows what
/// counts now. To be called before what does not count any more is deleted.
pub(crate) async fn tell_readers(build: Build<'_>) -> Result<()> {
    build.note_raise().await?;
    publish(build.source).await
}

/// Lets the public name show what counts in the build that is read. A collection that has the name is
/// dropped, unless it is that build.
pub(crate) async fn publish(source: &HistoryCollection) -> Result<()> {
    let (name, deadline) = (public_name(source.collection()), || Deadline::within(COMMAND));
    // Another instance may have written an earlier one meanwhile.
    loop {
        let Some(builds) = Builds::of(source, deadline()).await? else { return Ok(()) };
        let build = builds.current(source);
        if build.is_public() {
            return Ok(());
        }
        let changed = build.changed(None, deadline()).await?;
        let (target, counting) = (build.collection(), what_counts(build, &changed));
        match listed(source).await? {
            Some(Listed::View { on, pipeline }) if on == target && pipeline == counting => return Ok(()),
            Some(Listed::View { .. }) => {
                let change = doc! { "collMod": &name, "viewOn": target, "pipeline": counting };
                source.reads.write(change, deadline()).await?;
            }
            Some(Listed::Collection) => drop_collection(source, &name).await?,
            None => make(source, doc! { "create": &name, "viewOn": target, "pipeline": counting }).await?,
        }
    }
}

/// What a view reads of a build, if these owners have other generations than 0.
fn what_counts(build: Build<'_>, changed: &HashMap<OwnerId, OwnerGeneration>) -> Vec<Bson> {
    let pipeline = if changed.len() <= MOST_NAMED {
        vec![doc! { "$match": { "$or": that_count(changed) } }, doc! { "$unset": "meta.generation" }]
    } else {
        let id = doc! { "$concat": [format!("{}/", build.id()), { "$toString": "$meta.owner" }] };
        let join = doc! { "from": generations::COLLECTION, "localField": "_known", "foreignField": "_id", "as": "_known" };
        let current = doc! { "$ifNull": [{ "$first": "$_known.current" }, 0_i64] };
        let counts = doc! { "$eq": [{ "$ifNull": ["$meta.generation", 0_i64] }, current] };
        vec![
            // No property begins with a `_`.
            doc! { "$set": { "_known": id } },
            doc! { "$lookup": join },
            doc! { "$match": { "$expr": counts } },
            doc! { "$unset": ["_known", "meta.generation"] },
        ]
    };
    pipeline.into_iter().map(Bson::from).collect()
}

/// The measurements that count if these owners, at most [`MOST_NAMED`], have other generations than 0: those
/// for which one of the conditions holds.
pub(crate) fn that_count(changed: &HashMap<OwnerId, OwnerGeneration>) -> Vec<Document> {
    let mut of_generations: BTreeMap<i64, BTreeSet<&OwnerId>> = BTreeMap::new();
    for (owner, generation) in changed {
        of_generations.entry(generation.current).or_default().insert(owner);
    }
    let ids = |owners: BTreeSet<&OwnerId>| Bson::Array(owners.into_iter().map(owner_bson).collect());
    // By the metaField alone, so that native buckets are chosen without being opened.
    let others = doc! { "meta.generation": null, "meta.owner": { "$nin": ids(changed.keys().collect()) } };
    let of_generation =
        |(generation, owners)| doc! { "meta.generation": generation, "meta.owner": { "$in": ids(owners) } };
    [others].into_iter().chain(of_generations.into_iter().map(of_generation)).collect()
}

/// Runs a command that makes something. It may exist.
pub(crate) async fn make(source: &HistoryCollection, command: Document) -> Result<()> {
    run_unless(NAMESPACE_EXISTS, source, command).await
}

/// Drops a collection or a view. It need not exist.
pub(crate) async fn drop_collection(source: &HistoryCollection, name: &str) -> Result<()> {
    run_unless(NAMESPACE_NOT_FOUND, source, doc! { "drop": name }).await
}

/// Runs a command, unless it is done: the error with the code `done` says so.
async fn run_unless(done: i32, source: &HistoryCollection, mut command: Document) -> Result<()> {
    command.insert("writeConcern", doc! { "w": "majority" });
    let database = source.reads.database.clone();
    let run = async move {
        match database.run_command(command).await {
            Err(error) if code(&error) == Some(done) => Ok(()),
            run => Ok(run.map(drop)?),
        }
    };
    Deadline::within(COMMAND).read(run).await
}
