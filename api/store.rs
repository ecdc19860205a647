//! MongoDB: documents, statements, appends, reads, migrations. Never names axum or utoipa.
//!
//! [`Store`] is the entry point. [`history`] implements the bucket pattern for histories, [`page_views`] the
//! same pattern for counters; the documentation of each begins with its design. [`migrations`] creates the
//! collections, [`collections`] checks that they are still there, and [`connection`] opens and checks the
//! server.

mod capacity;
mod collections;
mod connection;
mod deadline;
mod epoch;
mod error;
mod group_commit;
pub mod history;
mod indexes;
mod majority;
mod migrations;
pub mod page_views;
mod read_preference;
mod ttl_index;
mod whole_number;

use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::doc;
use mongodb::{Client, Database};
use tokio::sync::OnceCell;

pub use capacity::Capacity;
pub use connection::{CommandObserver, ConnectError, Connection, Topology};
pub use deadline::{COMMAND, COMMIT, Deadline, NO_PRIMARY};
pub use epoch::Epoch;
pub use error::{Corruption, Error};
pub use migrations::{Migration, MigrationError};
pub use read_preference::ReadPreference;

use crate::domain::Clock;
use group_commit::Sessions;
use history::Trades;
use page_views::PageViews;

/// A database with pagebucket's collections in it. Cheap to clone; clones share their connections.
///
/// A store may only be used on the tokio runtime that created it.
#[derive(Clone, Debug)]
pub struct Store {
    client: Client,
    database: Database,
    topology: Topology,
    trades: Trades,
    page_views: PageViews,
    epoch: Arc<OnceCell<Epoch>>,
}

impl Store {
    /// Connects, and checks that the server is one that this version can use.
    ///
    /// # Errors
    /// No server answers in time, the server is too old, or the connection string is invalid.
    pub async fn connect(
        connection: Connection,
        capacity: Capacity,
        clock: Clock,
    ) -> Result<Self, ConnectError> {
        let (client, topology) = connection.open().await?;
        let database = client.database(&connection.database);
        let sessions = Arc::new(Sessions::new(client.clone(), topology));
        let trades = Trades::new(database.clone(), Arc::clone(&sessions), clock, capacity);
        let page_views = PageViews::new(database.clone(), sessions, capacity);
        Ok(Self { client, database, topology, trades, page_views, epoch: Arc::default() })
    }

    /// The histories of trades.
    pub fn trades(&self) -> &Trades {
        &self.trades
    }

    /// The views of pages.
    pub fn page_views(&self) -> &PageViews {
        &self.page_views
    }

    /// The same database, with full pages and page views read from the preferred members.
    #[must_use]
    pub fn preferring(self, preference: ReadPreference) -> Self {
        let trades = self.trades.preferring(preference);
        Self { trades, page_views: self.page_views.preferring(preference), ..self }
    }

    /// The same database, with views acknowledged as soon as one server has them in memory. They may be lost:
    /// only for benchmarks.
    #[cfg(feature = "bench")]
    #[must_use]
    pub fn counting_at_w1(self) -> Self {
        Self { page_views: self.page_views.counting_at_w1(Capacity::default()), ..self }
    }

    /// What kind of deployment this is.
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// Sets how long page views are kept after their minute, in whole seconds. `None` keeps them without a
    /// limit.
    ///
    /// # Errors
    /// The database does not answer, or the user may not change an index.
    pub async fn keep_views_for(&self, retention: Option<Duration>) -> Result<(), ConnectError> {
        let seconds = retention.map(|retention| retention.as_secs() as i64);
        let kept = ttl_index::expire_after(&self.database, page_views::COLLECTION, "timestamp", seconds);
        kept.await.map_err(|error| ConnectError::Unexpected(error.to_string()))
    }

    /// Before migrations: refuses a `trades` collection that is not ours.
    ///
    /// # Errors
    /// The collection exists but is not clustered, or the database does not answer.
    pub async fn refuse_foreign_collections(&self) -> Result<(), ConnectError> {
        collections::refuse_foreign(&self.database).await
    }

    /// After migrations: refuses a collection that is missing or lacks one of its guards.
    ///
    /// # Errors
    /// A collection is missing, it differs from what migrations create, or the database does not answer.
    pub async fn check_collections(&self) -> Result<(), ConnectError> {
        collections::check_guards(&self.database).await
    }

    /// Sets how long idempotency keys are kept after their last use, in whole seconds.
    ///
    /// # Errors
    /// The database does not answer, or the user may not change an index.
    pub async fn keep_keys_for(&self, retention: Duration) -> Result<(), ConnectError> {
        let kept = history::keep_keys_for(&self.database, retention).await;
        kept.map_err(|error| ConnectError::Unexpected(error.to_string()))
    }

    /// Checks that the primary answers within `limit`.
    ///
    /// # Errors
    /// The primary does not answer in time.
    pub async fn ping(&self, limit: Duration) -> Result<(), Error> {
        let database = self.client.database("admin");
        let ping = async move {
            database.run_command(doc! { "ping": 1 }).await?;
            Ok(())
        };
        Deadline::within(limit).read(ping).await
    }

    /// The database's epoch. It is read once and then kept in memory.
    ///
    /// # Errors
    /// The database does not answer in time, or it is not migrated.
    pub async fn epoch(&self, deadline: Deadline) -> Result<Epoch, Error> {
        self.epoch.get_or_try_init(|| epoch::read(&self.database, deadline)).await.copied()
    }

    /// The names of the pending migrations, in order.
    ///
    /// # Errors
    /// The migrations of this binary do not fit those of the database.
    pub async fn pending_migrations(&self) -> Result<Vec<&'static str>, MigrationError> {
        let pending = migrations::pending(&self.database, migrations::embedded()?).await?;
        Ok(pending.iter().map(|migration| migration.name).collect())
    }

    /// Applies the pending migrations and returns their names.
    ///
    /// # Errors
    /// The migrations of this binary do not fit those of the database, or a command was refused.
    pub async fn migrate(&self) -> Result<Vec<&'static str>, MigrationError> {
        self.apply(migrations::embedded()?).await
    }

    /// Same as [`Store::migrate`], with other files.
    ///
    /// # Errors
    /// Same as [`Store::migrate`].
    pub async fn apply(&self, files: Vec<Migration>) -> Result<Vec<&'static str>, MigrationError> {
        migrations::apply(&self.database, files).await
    }
}
