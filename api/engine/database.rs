//! A database: its histories and keys, and what brings its collections up to date.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mongodb::Database;
use mongodb::bson::doc;
use pagebucket_model::definition::Definitions;
use pagebucket_model::domain::{Clock, ReadPreference};
use tokio::sync::{Mutex, OnceCell, watch};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::adoptions::Adoptions;
use crate::api_keys::ApiKeys;
use crate::append::keys;
use crate::append::queue::AppendQueue;
use crate::capacity::Capacity;
use crate::care::collection_guards;
use crate::care::deletion::retire::Retention;
use crate::care::migrations::{self, Migration, MigrationError};
use crate::care::sharding::{self, ShardKey};
use crate::documents::Documents;
use crate::engine::{Engine, StoreContext};
use crate::housekeeping::{self, Housekeeping};
use crate::live::feed;
use crate::marker_poll;
use crate::mongo::error::{BAD_VALUE, UNSUPPORTED, code};
use crate::mongo::majority::MonotonicReads;
use crate::mongo::session::Sessions;
use crate::mongo::{
    COMMAND, ConnectError, ConnectionSettings, Corruption, Deadline, Error, ServerVersion, Topology, durable,
    indexes,
};
use crate::projections::summaries::kept::forget_unretired;
use crate::projections::summaries::tiles;
use crate::store::collection::DatabaseAccess;
use crate::store::epoch::{self, Epoch};
use crate::store::histories::{self, KnownHistory};
use crate::tasks::KeptTasks;
use crate::undefined_histories::UndefinedHistories;

/// A database with pagebucket's collections in it. Cheap to clone; clones share their connections.
///
/// A store may only be used on the tokio runtime that created it.
#[derive(Clone, Debug)]
pub struct Store {
    database: Database,
    topology: Topology,
    server_version: ServerVersion,
    definitions: Definitions,
    histories: Vec<Engine>,
    unserved: UndefinedHistories,
    appends: AppendQueue,
    documents: Documents,
    api_keys: ApiKeys,
    epoch: Arc<OnceCell<Epoch>>,
    /// How often it has changed while there were live readers.
    epoch_renewals: watch::Sender<u64>,
    /// When the last ping was sent that was answered.
    pinged: Arc<Mutex<Option<Instant>>>,
    tasks: KeptTasks,
    /// What asks for markers, and what notifies live readers.
    _handles: Arc<[AbortOnDropHandle<()>; 2]>,
}

impl Store {
    /// Connects, and checks that the server is one that this version can use.
    pub async fn connect(
        connection: ConnectionSettings,
        definitions: Definitions,
        capacity: Capacity,
        clock: Clock,
    ) -> Result<Self, ConnectError> {
        let (client, topology, server_version) = connection.open().await?;
        let database = client.database(&connection.database);
        let access = DatabaseAccess {
            reads: MonotonicReads::of(database.clone()),
            sessions: Arc::new(Sessions::new(client, topology)),
            clock,
            server_clock: Arc::default(),
            ages: capacity.ages,
        };
        let (reads, sessions) = (access.reads.clone(), Arc::clone(&access.sessions));
        let context = StoreContext {
            access,
            appends: AppendQueue::new(capacity),
            scan_turn: Arc::default(),
            catalog_owners: capacity.catalog_owners,
        };
        let histories: Vec<_> =
            definitions.iter().map(|definition| Engine::new(Arc::clone(definition), &context)).collect();
        let tasks = KeptTasks::default();
        let poll = marker_poll::start(&tasks, reads.clone(), histories.clone(), capacity.ages).await;
        let sources = histories.iter().map(|engine| engine.live_history().clone()).collect();
        let epoch_renewals = watch::Sender::default();
        let feed = feed::start(&tasks, database.clone(), topology, sources, epoch_renewals.clone());
        Ok(Self {
            api_keys: ApiKeys::new(reads.clone(), Arc::clone(&sessions)),
            documents: Documents {
                reads,
                sessions,
                concern: durable,
                preference: ReadPreference::Primary,
                capacity,
            },
            database,
            topology,
            server_version,
            definitions,
            histories,
            appends: context.appends.clone(),
            unserved: UndefinedHistories::new(context),
            epoch: Arc::default(),
            epoch_renewals,
            pinged: Arc::default(),
            tasks,
            _handles: Arc::new([poll, feed]),
        })
    }

    /// The engines of all histories, in the order of their definitions.
    pub fn histories(&self) -> &[Engine] {
        &self.histories
    }

    /// Waits until no appends are queued, including those of clients that have disconnected. New appends are
    /// refused meanwhile.
    pub async fn drain_appends(&self) {
        self.appends.all.drain().await;
    }

    /// What the histories are.
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// The engine of the histories with this name.
    pub fn history(&self, name: &str) -> Option<&Engine> {
        self.histories.iter().find(|engine| &*engine.definition().name == name)
    }

    /// The same database, with full pages and page views read from the preferred members.
    #[must_use]
    pub fn preferring(self, preference: ReadPreference) -> Self {
        let histories = self.histories.iter().map(|engine| engine.preferring(preference)).collect();
        Self { histories, documents: Documents { preference, ..self.documents }, ..self }
    }

    /// What kind of deployment this is.
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// The version of the server that answered first.
    pub fn server_version(&self) -> &ServerVersion {
        &self.server_version
    }

    /// What the server says that it does not have, of what can be asked without a write: each with what it
    /// means. A migration is refused by a server without clustered collections.
    pub async fn missing_features(&self) -> Vec<&'static str> {
        let streams = "change streams: live readers are served by polls alone, and time series are not fed";
        let schemas = "validators with $jsonSchema: migrations are refused";
        let features = [
            // A standalone server has none either, and is warned of.
            (self.topology != Topology::Standalone).then(|| {
                let pipeline = vec![doc! { "$changeStream": {} }];
                (doc! { "aggregate": 1, "pipeline": pipeline, "explain": true }, streams)
            }),
            Some((
                doc! { "aggregate": "histories", "pipeline": [{ "$match": { "$jsonSchema": {} } }] },
                schemas,
            )),
        ];
        let mut missing = Vec::new();
        for (mut command, feature) in features.into_iter().flatten() {
            command.insert("cursor", doc! { "batchSize": 0 });
            let answer = self.database.run_command(command).await;
            let refused = answer.err().and_then(|error| code(&error));
            if refused.is_some_and(|code| code == BAD_VALUE || UNSUPPORTED.contains(&code)) {
                missing.push(feature);
            }
        }
        missing
    }

    /// After migrations: refuses a collection that is missing or lacks one of its guards.
    pub async fn check_collections(&self) -> Result<(), ConnectError> {
        collection_guards::check_guards(&self.database, &self.definitions).await
    }

    /// Checks that the primary answers within `limit`. One call asks at a time; its answer is also that of
    /// the calls that were waiting when it asked. So simultaneous probes take no connections from appends and
    /// reads.
    pub async fn ping(&self, limit: Duration) -> Result<(), Error> {
        let (began, deadline) = (Instant::now(), Deadline::within(limit));
        let mut pinged = deadline.wait_for(self.pinged.lock()).await.ok_or_else(Error::no_answer)?;
        if pinged.is_none_or(|sent| sent < began) {
            let sent = Instant::now();
            let database = self.database.client().database("admin");
            let ping = async move { Ok(database.run_command(doc! { "ping": 1 }).await.map(drop)?) };
            deadline.read(ping).await?;
            *pinged = Some(sent);
        }
        Ok(())
    }

    /// Its tasks.
    #[doc(hidden)]
    pub fn tasks(&self) -> &KeptTasks {
        &self.tasks
    }

    /// Applies the pending migrations and returns their names.
    pub async fn migrate(&self) -> Result<Vec<String>, MigrationError> {
        self.apply(migrations::embedded()?).await
    }
}

/// What a service needs beside its histories, for our own crates.
#[doc(hidden)]
impl Store {
    /// For a crate that keeps documents that are no histories.
    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// What is remembered of adoptions.
    pub fn adoptions(&self) -> Adoptions {
        Adoptions::new(self.database.clone())
    }

    /// The API keys.
    pub fn api_keys(&self) -> &ApiKeys {
        &self.api_keys
    }

    /// The engines of all histories of a collection of owners that the database remembers, for erasures:
    /// first those that are defined here, then the others.
    ///
    /// # Errors
    /// The database does not answer in time, or an owner cannot be erased from one of the histories: its
    /// creation is not complete, or what the database remembers of it is damaged.
    pub async fn histories_of(&self, owners: &str, deadline: Deadline) -> Result<Vec<Engine>, Error> {
        let served = self.histories.iter().filter(|engine| engine.definition().owner.collection == owners);
        let mut engines: Vec<_> = served.cloned().collect();
        let owner = engines.first().map(|engine| engine.definition().owner.clone());
        for engine in self.unserved.engines(&self.definitions, Some(owners), deadline).await? {
            let (definition, field) = (engine.definition(), "owner");
            if owner.as_ref().is_some_and(|owner| *owner != definition.owner) {
                let id = format!("{} of {}", definition.name, histories::COLLECTION);
                let detail = format!("is not that of the other histories of {owners}");
                return Err(Corruption::new(id, field, detail).into());
            }
            engines.push(engine);
        }
        Ok(engines)
    }

    /// One round of housekeeping: retires by these retentions, by the names of their histories, finishes
    /// deletions, and sweeps tombstones, these two also in histories without a definition. `None` if another
    /// instance is at it. After an error, what is left is for the next round.
    pub async fn run_housekeeping(
        &self,
        retention: &BTreeMap<Box<str>, Retention>,
    ) -> Result<Option<Housekeeping>, Error> {
        let unserved = self.unserved.engines(&self.definitions, None, Deadline::within(COMMAND));
        housekeeping::keep(&self.database, &self.histories, unserved, retention).await
    }

    /// The same database, with views acknowledged as soon as one server has them in memory. They may be lost:
    /// only for benchmarks.
    #[cfg(feature = "bench")]
    #[must_use]
    pub fn counting_at_w1(self) -> Self {
        Self { documents: Documents { concern: |_| doc! { "w": 1 }, ..self.documents }, ..self }
    }

    /// Distributes the collections over the shards of a cluster, each in at least `chunks` chunks, and
    /// returns how many each has. Done again, it does only what is missing. Use it after migrations, on a
    /// [`Topology::Sharded`].
    pub async fn shard(&self, chunks: u64) -> Result<Vec<(ShardKey, u64)>, Error> {
        sharding::shard(&self.database, &self.definitions, chunks).await
    }

    /// Sets how long page views are kept after their minute, in whole seconds. `None` keeps them without a
    /// limit.
    pub async fn keep_views_for(&self, retention: Option<Duration>) -> Result<(), ConnectError> {
        let seconds = retention.map(|retention| retention.as_secs() as i64);
        let kept = indexes::expire_after(&self.database, collection_guards::PAGE_VIEWS, "timestamp", seconds);
        Ok(kept.await?)
    }

    /// Sets how long idempotency keys are kept after their last use, in whole seconds.
    pub async fn keep_keys_for(&self, retention: Duration) -> Result<(), ConnectError> {
        Ok(keys::keep_for(&self.database, retention).await?)
    }

    /// Before migrations: refuses a collection with the name of a history that is not ours.
    pub async fn refuse_foreign_collections(&self) -> Result<(), ConnectError> {
        collection_guards::refuse_foreign(&self.database, &self.definitions).await
    }

    /// What of the collections is not as migrations create it: a line for each. [`Engine`]s verify what is in
    /// the collections.
    pub async fn verify_collections(&self) -> Result<Vec<String>, ConnectError> {
        collection_guards::differences(&self.database, &self.definitions).await
    }

    /// The database's epoch. It is read once and then kept in memory.
    pub async fn epoch(&self, deadline: Deadline) -> Result<Epoch, Error> {
        self.epoch.get_or_try_init(|| epoch::read(&self.database, deadline)).await.copied()
    }

    /// Changes when the database gets another epoch while there are live readers: what they have is of
    /// another database.
    pub fn epoch_renewals(&self) -> watch::Receiver<u64> {
        self.epoch_renewals.subscribe()
    }

    /// Gives the database another epoch, after a backup was restored: earlier tags then belong to another
    /// database. Instances that run keep the epoch that they have read. Tiles of summaries are deleted first,
    /// because they may be of pages that the backup does not have; kept ones, unless their pages are retired
    /// in the backup, too. Time series are made again: they may have items of the lost histories, and a
    /// restore may leave collections that the backup does not have.
    pub async fn renew_epoch(&self) -> Result<(), Error> {
        tiles::forget_all(&self.database).await?;
        let unserved = self.unserved.engines(&self.definitions, None, Deadline::within(COMMAND)).await?;
        for engine in self.histories.iter().chain(&unserved) {
            forget_unretired(&engine.reads().source).await?;
            engine.series().remove().await?;
        }
        epoch::renew(&self.database, Deadline::within(COMMAND)).await?;
        for engine in &self.histories {
            engine.series().ensure().await?;
        }
        Ok(())
    }

    /// The histories that the database has, by name, whether they are defined here or not.
    pub async fn known_histories(&self) -> Result<Vec<KnownHistory>, Error> {
        let documents = histories::all(&self.database).await?;
        documents.into_iter().map(|(name, document)| KnownHistory::read(name, &document)).collect()
    }

    /// The names of the pending migrations, in order.
    pub async fn pending_migrations(&self) -> Result<Vec<String>, MigrationError> {
        let mut names =
            migrations::pending_names(&self.database, migrations::embedded()?, &self.definitions).await?;
        for engine in &self.histories {
            if engine.series().is_missing().await? {
                names.push(series_name(engine));
            }
        }
        Ok(names)
    }

    /// Same as [`Store::migrate`], with other files.
    pub async fn apply(&self, files: Vec<Migration>) -> Result<Vec<String>, MigrationError> {
        let mut applied = migrations::apply(&self.database, files, &self.definitions).await?;
        for engine in &self.histories {
            if let Some((member, stored, given)) = engine.series().difference().await? {
                let history = engine.definition().name.to_string();
                return Err(MigrationError::SeriesRedefined { history, member, stored, given });
            }
            let is_new = engine.series().is_missing().await?;
            engine.series().ensure().await?;
            applied.extend(is_new.then(|| series_name(engine)));
        }
        Ok(applied)
    }

    /// Feeds the native time series of all histories that have one, as long as the handles are kept.
    pub fn feed_series(&self) -> Vec<AbortOnDropHandle<()>> {
        self.histories.iter().filter_map(|history| history.series().feed(&self.tasks)).collect()
    }
}

/// A native time series, in a list of migrations.
fn series_name(engine: &Engine) -> String {
    format!("time series of {}", engine.definition().name)
}
