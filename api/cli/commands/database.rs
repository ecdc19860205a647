//! The database of a command: the one that `--mongodb-uri` names, or the embedded one; and which of its
//! histories is meant.

use std::sync::Arc;

use clap::Args;
use futures_util::future::OptionFuture;
use pagebucket_embedded::{Embedded, Role};
use pagebucket_engine::internal::tasks;
use pagebucket_engine::{
    Capacity, ConnectError, ConnectionSettings, Engine, MigrationError, Store, Topology,
};
use pagebucket_model::definition::{Definition, Definitions};
use pagebucket_model::domain::{Clock, Invalid, OwnerId};

use super::exit::{Failure, Signals};
use crate::config::{CapacityArgs, DatabaseArgs, HistoriesArgs, MongodbUri};

/// A database to use, and the private mongod that it may be in.
pub(crate) struct Opened {
    pub(crate) store: Store,
    embedded: Option<Embedded>,
}

/// What is done about a server that is not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unready {
    /// It is refused soon.
    Refuse,
    /// It may still be starting: it is waited for.
    Await,
    /// It is waited for, and a fresh member of a replica set is made a set.
    Initiate,
}

/// Finds the database; starts the private mongod where none is named.
pub(crate) async fn open(
    args: &DatabaseArgs,
    capacity: &CapacityArgs,
    role: Role,
    unready: Unready,
) -> Result<Opened, Failure> {
    // First, so that a mistake is told before a server is waited for.
    let definitions = definitions(&args.histories)?;
    let (uri, embedded) = match server(args) {
        Some(uri) => (uri.to_owned(), None),
        None => {
            let options = pagebucket_embedded::Options {
                data_dir: args.data_dir.clone(),
                mongod: args.mongod.clone(),
                start_task: |name, work| tasks::start(name, work),
            };
            let embedded = pagebucket_embedded::start(&options, role)
                .await
                .map_err(|error| Failure::Database(error.to_string()))?;
            (embedded.uri().to_owned(), Some(embedded))
        }
    };
    let connection = ConnectionSettings {
        uri,
        database: args.database.clone(),
        pool_size: capacity.pool_size,
        observer: None,
    };
    if embedded.is_none() {
        tracing::info!(server = connection.shown(), database = args.database, "using a MongoDB server");
    }
    let capacity = Capacity {
        queued_bytes: (capacity.max_queue_mib as usize) << 20,
        catalog_owners: capacity.catalog_size as usize,
        ..Capacity::default()
    };
    let connecting = async {
        match unready {
            Unready::Initiate if embedded.is_none() => connection.initiate().await?,
            Unready::Await if embedded.is_none() => connection.await_start().await?,
            _ => {}
        }
        let store = Store::connect(connection, definitions, capacity, Clock::system()).await?;
        if store.topology() == Topology::Standalone {
            tracing::warn!(
                "the server is not a member of a replica set: nothing is replicated, and a lost answer leaves the \
                 outcome of an append unknown; one node is enough for a replica set"
            );
        }
        Ok(store)
    };
    match connecting.await {
        Ok(store) => Ok(Opened { store, embedded }),
        Err(failure) => {
            OptionFuture::from(embedded.map(Embedded::stop)).await;
            Err(failure)
        }
    }
}

/// The connection string of the server that is named.
fn server(args: &DatabaseArgs) -> Option<&str> {
    args.mongodb_uri.as_ref().map(MongodbUri::expose).filter(|uri| !uri.is_empty())
}

/// The definitions of the histories.
///
/// # Errors
/// One of the files has a mistake, or two of them do not agree.
pub(crate) fn definitions(args: &HistoriesArgs) -> Result<Definitions, Failure> {
    let Some(directory) = &args.histories else { return Ok(Definitions::built_in()) };
    Definitions::of_directory(directory).map_err(|error| Failure::Usage(error.to_string()))
}

/// The flag that names a history.
#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    /// Name of the history. Not needed where there is only one.
    #[arg(long, value_name = "NAME")]
    history: Option<String>,
}

impl HistoryArgs {
    /// As the flag with this value, or without it.
    pub(crate) fn named(history: Option<String>) -> Self {
        Self { history }
    }

    /// The definition that is meant.
    ///
    /// # Errors
    /// No history has the name, or no name is given and there are several histories.
    pub(crate) fn of<'a>(&self, definitions: &'a Definitions) -> Result<&'a Arc<Definition>, Failure> {
        let mut all = definitions.iter();
        let problem = match (&self.history, all.next(), all.next()) {
            (Some(name), ..) => match definitions.get(name) {
                Some(definition) => return Ok(definition),
                None => format!("--history {name}: there is no such history"),
            },
            (None, Some(only), None) => return Ok(only),
            (None, ..) => "there are several histories; name one with --history NAME".to_owned(),
        };
        let names: Vec<_> = definitions.iter().map(|definition| &*definition.name).collect();
        Err(Failure::Usage(format!("{problem} (there are {})", names.join(", "))))
    }

    /// The engine of that history.
    ///
    /// # Errors
    /// As [`HistoryArgs::of`].
    pub(crate) fn engine<'a>(&self, store: &'a Store) -> Result<&'a Engine, Failure> {
        let engine = store.history(&self.of(store.definitions())?.name);
        Ok(engine.expect("a store has an engine for each of its definitions"))
    }
}

/// The id of an owner of a history, as the value of a flag: `7` or `customers=7`.
///
/// # Errors
/// It is none, or the history has owners of another collection.
pub(crate) fn parse_owner(text: &str, definition: &Definition, flag: &str) -> Result<OwnerId, Failure> {
    let (name, owner) = (&definition.name, &definition.owner);
    let id = match text.split_once('=') {
        None => text,
        Some((collection, id)) if collection == owner.collection => id,
        Some(_) => {
            let collection = &owner.collection;
            let refused =
                format!("{flag} {text}: the owners of {name} are {collection}, as in {collection}=ID");
            return Err(Failure::Usage(refused));
        }
    };
    owner.kind.parse(id).map_err(|Invalid(rule)| Failure::Usage(format!("{flag} {rule}")))
}

/// For a command that needs what is there: with a mistake in `--data-dir`, or without the `--mongodb-uri`
/// that was meant, it would make an empty database, and find nothing in it.
///
/// # Errors
/// The database is the embedded one, and there is no directory of its data.
fn must_exist(args: &DatabaseArgs) -> Result<(), Failure> {
    if server(args).is_none() && !args.data_dir.exists() {
        let directory = args.data_dir.display();
        return Err(Failure::Usage(format!(
            "--data-dir {directory}: there is no such directory, and no --mongodb-uri names a server"
        )));
    }
    Ok(())
}

/// Finds the database as a tool, and does `work` with it. A signal ends that, if it comes first. A database
/// that is not there yet is refused: [`creating`] and [`storing`] are for the commands that may make one.
pub(crate) async fn with<T>(
    args: &DatabaseArgs,
    unready: Unready,
    work: impl AsyncFnOnce(&Opened, Signals) -> Result<T, Failure>,
) -> Result<T, Failure> {
    must_exist(args)?;
    creating(args, unready, work).await
}

/// As [`with`], and makes the private database if there is none.
pub(crate) async fn creating<T>(
    args: &DatabaseArgs,
    unready: Unready,
    work: impl AsyncFnOnce(&Opened, Signals) -> Result<T, Failure>,
) -> Result<T, Failure> {
    after(open(args, &CapacityArgs::default(), Role::Tool, unready), work).await
}

/// [`creating`] for work that stores items.
pub(crate) async fn storing<T>(
    args: &DatabaseArgs,
    capacity: &CapacityArgs,
    work: impl AsyncFnOnce(&Opened, Signals) -> Result<T, Failure>,
) -> Result<T, Failure> {
    after(open(args, capacity, Role::Tool, Unready::Refuse), work).await
}

async fn after<T>(
    opening: impl Future<Output = Result<Opened, Failure>>,
    work: impl AsyncFnOnce(&Opened, Signals) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // Signals come first, so that an early one also stops the private mongod.
    let mut signals = Signals::new()?;
    let opened = signals.unless(opening).await?;
    opened.with(async |opened| work(opened, signals).await).await
}

/// [`with`] for work that a signal may end at any time.
pub(crate) async fn interruptible<T>(
    args: &DatabaseArgs,
    work: impl AsyncFnOnce(&Opened) -> Result<T, Failure>,
) -> Result<T, Failure> {
    with(args, Unready::Refuse, async |opened, mut signals| signals.unless(work(opened)).await).await
}

impl Opened {
    /// Logs which version the server has, what is known to be wrong with it, and what it lacks.
    pub(crate) async fn judge_server(&self) {
        let version = self.store.server_version();
        tracing::info!(%version, topology = ?self.store.topology(), "the server answers");
        let missing = self.store.missing_features().await;
        for warning in version.warnings(Clock::system().now(), &missing) {
            tracing::warn!("{warning}");
        }
    }

    /// Applies what is pending, or with `only_check` refuses it; either way the collections are then
    /// those that this version knows.
    pub(crate) async fn prepare(&self, only_check: bool) -> Result<(), Failure> {
        self.store.refuse_foreign_collections().await?;
        if only_check {
            self.refuse_pending().await?;
        } else {
            self.store.migrate().await?;
        }
        self.store.check_collections().await?;
        Ok(())
    }

    /// Refuses a database on which migrations are pending.
    pub(crate) async fn refuse_pending(&self) -> Result<(), Failure> {
        let pending = self.store.pending_migrations().await?;
        if pending.is_empty() { Ok(()) } else { Err(MigrationError::Pending(pending.join(", ")).into()) }
    }

    /// Runs `work`, and stops the private mongod afterwards, whatever came of it.
    pub(crate) async fn with<T>(
        self,
        work: impl AsyncFnOnce(&Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let result = work(&self).await;
        OptionFuture::from(self.embedded.map(Embedded::stop)).await;
        result
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::InvalidUri(_) => Self::Usage(error.to_string()),
            _ => Self::Database(error.to_string()),
        }
    }
}

impl From<MigrationError> for Failure {
    fn from(error: MigrationError) -> Self {
        Self::Database(error.to_string())
    }
}
