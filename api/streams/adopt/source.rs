//! The collection that is adopted.

use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::bson::{Binary, Document, Timestamp, doc};
use mongodb::error::Error as DriverError;
use mongodb::options::SelectionCriteria;
use mongodb::raw_batch_cursor::RawBatchCursor;
use mongodb::results::{CollectionSpecification, CollectionType};
use mongodb::{Collection, Database};
use pagebucket_engine::internal::{ChangeLog, LogScope, LogStart};
use pagebucket_engine::{ConnectError, ConnectionSettings, Error, Topology};
use pagebucket_model::domain::ReadPreference;
use tokio::task::JoinError;

/// The parts of a document of which progress is counted.
pub(crate) const PARTS: u64 = 1_000_000;

/// How long a change stream waits for changes before it says that there are none.
const AWAIT: Duration = Duration::from_millis(500);

/// Documents of a batch: few enough that the first of them do not wait for the others.
pub(crate) const BATCH: u32 = 1_000;

/// The collection that is adopted.
#[derive(Debug)]
pub struct Source {
    database: Database,
    collection: String,
    topology: Topology,
    criteria: Option<SelectionCriteria>,
    /// `None` if it does not exist, or may not be looked up.
    kind: Option<CollectionType>,
}

/// Why a source cannot be used: a sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It cannot be reached.
    #[error("the source: {0}")]
    Connect(#[from] ConnectError),
    /// It does not answer, or refuses a command.
    #[error("the source: {0}")]
    Database(#[from] Error),
    /// It has no change streams.
    #[error(
        "the source is not a member of a replica set, so it has no change stream to follow: leave out --follow, or make it a \
         replica set of one node"
    )]
    Standalone,
    /// It is no collection with change streams.
    #[error(
        "only a collection can be followed, and the source is a view or a time-series collection: leave out \
         --follow"
    )]
    NotFollowed,
    /// An owner has several items with one identity, or one without any. The text says which.
    #[error(
        "the source cannot be adopted, because `_id` must identify an item, and {0}; a view can give each document an `_id` of \
         its own"
    )]
    Unidentified(String),
    /// The place of a resume token is gone.
    #[error("the source's oplog no longer reaches back to where following stopped")]
    Expired,
    /// Nothing can be followed any more.
    #[error("the collection of the source was dropped or renamed: there is nothing to follow any more")]
    Invalidated,
    /// A bug of ours.
    #[error("reading the source failed: {0}")]
    Failed(#[from] JoinError),
    /// The shape of its documents is not clear.
    #[error("{0}")]
    Shape(String),
}

impl From<DriverError> for SourceError {
    fn from(error: DriverError) -> Self {
        Self::Database(error.into())
    }
}

impl Source {
    /// Connects to the server of the source, of any version.
    ///
    /// # Errors
    /// It does not answer, or the connection string is invalid.
    pub async fn open(
        connection: &ConnectionSettings,
        collection: &str,
        preference: ReadPreference,
    ) -> Result<Self, SourceError> {
        let (client, topology) = connection.open_any().await?;
        let (database, collection) = (client.database(&connection.database), collection.to_owned());
        let mut source = Self {
            database,
            collection,
            topology,
            criteria: pagebucket_engine::internal::criteria(preference),
            kind: None,
        };
        source.kind = source.specification().await.map(|found| found.collection_type);
        Ok(source)
    }

    /// Database and collection, `shop.trades`: the name of the source in the identities of its items.
    pub fn name(&self) -> String {
        format!("{}.{}", self.database.name(), self.collection)
    }

    /// Whether both are the same collection, also by another connection string: servers give each collection
    /// a UUID.
    pub async fn is(&self, other: &Self) -> bool {
        let uuid = self.uuid().await;
        uuid.is_some() && uuid == other.uuid().await
    }

    async fn uuid(&self) -> Option<Binary> {
        self.specification().await?.info.uuid
    }

    async fn specification(&self) -> Option<CollectionSpecification> {
        let filter = doc! { "name": &self.collection };
        let mut found = self.database.list_collections().filter(filter).await.ok()?;
        found.try_next().await.ok()?
    }

    /// Whether the server has a unique index on `_id`, over all documents: shards have one each.
    pub(crate) fn has_unique_ids(&self) -> bool {
        self.kind == Some(CollectionType::Collection) && self.topology != Topology::Sharded
    }

    /// Refuses a source that has no change stream.
    pub(crate) fn can_be_followed(&self) -> Result<(), SourceError> {
        match (&self.kind, self.topology) {
            (Some(CollectionType::View | CollectionType::Timeseries), _) => Err(SourceError::NotFollowed),
            (_, Topology::Standalone) => Err(SourceError::Standalone),
            _ => Ok(()),
        }
    }

    /// A time of the source: what was written before it is read after it. `None` for a standalone server.
    pub(crate) async fn now(&self) -> Result<Option<Timestamp>, SourceError> {
        let answer = self.database.client().database("admin").run_command(doc! { "ping": 1 }).await?;
        Ok(answer.get_timestamp("operationTime").ok())
    }

    /// The position of progress at the end, roughly.
    ///
    /// # Errors
    /// The source does not answer.
    pub async fn size(&self) -> Result<u64, SourceError> {
        Ok(self.documents_collection().estimated_document_count().await? * PARTS)
    }

    /// Some documents, in no order.
    pub(crate) async fn sample(&self, most: i64) -> Result<Vec<Document>, SourceError> {
        let found = self.documents_collection().find(doc! {}).limit(most).await?;
        Ok(found.try_collect().await?)
    }

    /// Runs a pipeline at majority, on a member that has seen `after`, with options of the command.
    pub(crate) async fn aggregate(
        &self,
        pipeline: Vec<Document>,
        after: Option<Timestamp>,
        options: Document,
    ) -> Result<RawBatchCursor, SourceError> {
        let mut concern = doc! { "level": "majority" };
        if let Some(after) = after {
            concern.insert("afterClusterTime", after);
        }
        let mut command = doc! {
            "aggregate": &self.collection, "pipeline": pipeline, "readConcern": concern, "cursor": { "batchSize": BATCH },
        };
        command.extend(options);
        // Also of later batches: by default they are 16 MiB, and nothing is stored while one is read.
        let mut sent = self.database.run_cursor_command(command).batch_size(BATCH);
        if let Some(criteria) = &self.criteria {
            sent = sent.selection_criteria(criteria.clone());
        }
        Ok(sent.batch().await?)
    }

    /// The changes after `token`, or from now on.
    pub(crate) fn changes(&self, token: Option<&Document>) -> ChangeLog {
        let collection = Some(self.collection.clone());
        let database = self.database.clone();
        let scope = LogScope { database, collection, pipeline: Vec::new(), batch: BATCH, wait: AWAIT };
        ChangeLog::new(scope, token.cloned(), || Box::pin(async { Ok(LogStart::Now) }))
    }

    fn documents_collection(&self) -> Collection<Document> {
        self.database.collection(&self.collection)
    }
}
