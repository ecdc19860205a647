//! The name under which others read a time series: that of the first build, and later of a view on the build that is read.

use mongodb::bson::{Document, doc};

use super::control::{BuildName, public_name};
use crate::history::collection::HistoryCollection;
use crate::mongo::error::{NAMESPACE_EXISTS, NAMESPACE_NOT_FOUND, code};
use crate::mongo::{COMMAND, Deadline, Result};

/// What has the public name.
pub(super) struct Listed {
    /// The collection that it is a view on; `None` for a collection.
    pub(super) view_on: Option<String>,
}

/// What has the public name; `None` if nothing has it.
pub(super) async fn listed(source: &HistoryCollection) -> Result<Option<Listed>> {
    let command = doc! { "listCollections": 1, "filter": { "name": public_name(source.collection()) } };
    let reply = source.run(command, Deadline::within(COMMAND)).await?;
    let batch = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    let found = batch.ok().and_then(|batch| batch.first()?.as_document());
    Ok(found.map(|found| {
        let view_on = found.get_document("options").and_then(|options| options.get_str("viewOn"));
        // A native time series is listed with the collection of its own buckets.
        let is_view = found.get_str("type").is_ok_and(|kind| kind == "view");
        Listed { view_on: view_on.ok().filter(|_| is_view).map(str::to_owned) }
    }))
}

/// Makes the public name a view on a build that is not the first one. What had the name is dropped.
pub(super) async fn publish(source: &HistoryCollection, build: &BuildName) -> Result<()> {
    let name = public_name(source.collection());
    let target = Some(build.collection());
    while listed(source).await?.and_then(|listed| listed.view_on) != target {
        // Another build, or what a late insert has created.
        drop_collection(source, &name).await?;
        make(source, doc! { "create": &name, "viewOn": build.collection(), "pipeline": [] }).await?;
    }
    Ok(())
}

/// Runs a command that makes something. It may exist.
pub(super) async fn make(source: &HistoryCollection, mut command: Document) -> Result<()> {
    command.insert("writeConcern", doc! { "w": "majority" });
    let database = source.reads.database.clone();
    let deadline = Deadline::within(COMMAND);
    let made = async move {
        match database.run_command(command).await {
            Err(error) if code(&error) == Some(NAMESPACE_EXISTS) => Ok(()),
            made => Ok(made.map(drop)?),
        }
    };
    deadline.read(made).await
}

/// Drops a collection or a view. It need not exist.
pub(super) async fn drop_collection(source: &HistoryCollection, name: &str) -> Result<()> {
    let database = source.reads.database.clone();
    let command = doc! { "drop": name, "writeConcern": { "w": "majority" } };
    let dropped = async move {
        match database.run_command(command).await {
            Err(error) if code(&error) == Some(NAMESPACE_NOT_FOUND) => Ok(()),
            dropped => Ok(dropped.map(drop)?),
        }
    };
    Deadline::within(COMMAND).read(dropped).await
}
