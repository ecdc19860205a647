//! The database of a command: the one that `--mongodb-uri` names, or the embedded one.

use super::exit::Failure;
use crate::config::{self, DatabaseArgs, HistoriesArgs};
use crate::definition::Definitions;
use crate::domain::Clock;
use crate::embedded::{self, Embedded, Role};
use crate::store::Capacity;
use crate::store::{ConnectError, Connection, MigrationError, ReadPreference, Store, Topology};

/// A database to use, and the private mongod that it may be in.
pub(super) struct Opened {
    pub(super) store: Store,
    embedded: Option<Embedded>,
}

/// Finds the database; starts the private mongod where none is named.
///
/// `initiate` first makes a fresh replica-set member a set.
pub(super) async fn open(args: &DatabaseArgs, role: Role, initiate: bool) -> Result<Opened, Failure> {
    // First, so that a mistake is told before a server is waited for.
    let definitions = definitions(&args.histories)?;
    let (uri, embedded) = match args.mongodb_uri.as_ref().filter(|uri| !uri.expose().is_empty()) {
        Some(uri) => (uri.expose().to_owned(), None),
        None => {
            let options = embedded::Options { data_dir: args.data_dir.clone(), mongod: args.mongod.clone() };
            let embedded = embedded::start(&options, role)
                .await
                .map_err(|error| Failure::Database(error.to_string()))?;
            (embedded.uri().to_owned(), Some(embedded))
        }
    };
    let connection =
        Connection { uri, database: args.database.clone(), pool_size: args.pool_size, observer: None };
    if embedded.is_none() {
        tracing::info!(server = connection.shown(), database = args.database, "using a MongoDB server");
    }
    match connect(connection, definitions, capacity(args), initiate && embedded.is_none()).await {
        Ok(store) => Ok(Opened { store, embedded }),
        Err(failure) => {
            stop(embedded).await;
            Err(failure)
        }
    }
}

fn capacity(args: &DatabaseArgs) -> Capacity {
    Capacity {
        queued_bytes: (args.max_queue_mib as usize) << 20,
        catalog_owners: args.catalog_size as usize,
        ..Capacity::default()
    }
}

/// The definitions of the histories.
///
/// # Errors
/// One of the files has a mistake, or two of them do not agree.
pub(super) fn definitions(args: &HistoriesArgs) -> Result<Definitions, Failure> {
    match &args.histories {
        None => Ok(Definitions::built_in()),
        Some(directory) => {
            Definitions::of_directory(directory).map_err(|error| Failure::Usage(error.to_string()))
        }
    }
}

async fn connect(
    connection: Connection,
    definitions: Definitions,
    capacity: Capacity,
    initiate: bool,
) -> Result<Store, Failure> {
    if initiate {
        connection.initiate().await?;
    }
    let store = Store::connect(connection, definitions, capacity, Clock::system()).await?;
    if store.topology() == Topology::Standalone {
        tracing::warn!(
            "the server is not a member of a replica set: nothing is replicated, and a lost answer leaves the \
             outcome of an append unknown; one node is enough for a replica set"
        );
    }
    Ok(store)
}

impl Opened {
    /// Applies what is pending, or with `only_check` refuses it; either way the collections are then
    /// those that this version knows.
    pub(super) async fn prepare(&self, only_check: bool) -> Result<(), Failure> {
        self.store.refuse_foreign_collections().await?;
        if only_check {
            let pending = self.store.pending_migrations().await?;
            if !pending.is_empty() {
                return Err(MigrationError::Pending(pending.join(", ")).into());
            }
        } else {
            self.store.migrate().await?;
        }
        self.store.check_collections().await?;
        Ok(())
    }

    /// Runs `work`, and stops the private mongod afterwards, whatever came of it.
    pub(super) async fn with<T>(
        self,
        work: impl AsyncFnOnce(&Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let result = work(&self).await;
        stop(self.embedded).await;
        result
    }
}

async fn stop(embedded: Option<Embedded>) {
    if let Some(embedded) = embedded {
        embedded.stop().await;
    }
}

impl From<config::ReadPreference> for ReadPreference {
    fn from(given: config::ReadPreference) -> Self {
        match given {
            config::ReadPreference::Primary => Self::Primary,
            config::ReadPreference::SecondaryPreferred => Self::SecondaryPreferred,
            config::ReadPreference::Nearest => Self::Nearest,
        }
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
