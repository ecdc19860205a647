//! MongoDB: documents, statements, appends, reads, migrations. Never names axum or utoipa.
//!
//! [`Store`] is the entry point. [`mongo`] knows the driver. [`history`] implements the bucket pattern for histories, [`page_views`]
//! the same pattern for counters; the documentation of each begins with its design. [`api_keys`] keeps the records of API
//! keys. [`migrations`] creates the collections, [`collections`] checks that they are still there.

pub mod adoptions;
pub mod api_keys;
mod capacity;
mod collections;
mod group_commit;
pub mod history;
mod housekeeping;
mod migrations;
mod mongo;
pub mod page_views;
mod poll;
mod sharding;
mod store;
mod unserved;

pub use capacity::{Ages, Capacity};
pub use housekeeping::Housekeeping;
pub use migrations::epoch::Epoch;
pub use migrations::histories::KnownHistory;
pub use migrations::{Migration, MigrationError};
pub use mongo::read_preference::criteria;
pub use mongo::{
    COMMAND, COMMIT, CommandObserver, ConnectError, Connection, Corruption, Deadline, Error, Gone,
    NO_PRIMARY, Result, Topology,
};
pub use sharding::{ShardKey, shard_keys};
pub use store::Store;
