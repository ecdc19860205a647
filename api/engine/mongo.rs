//! What knows the driver, and neither histories nor page views: how a server is reached ([`connection`]), how
//! long it may take ([`deadline`]), what goes wrong ([`error`]), reads that never go back in time
//! ([`majority`]), writes that are applied at most once ([`session`]), what their answers mean ([`reply`]),
//! changes as they happen ([`change_log`]), and what is wrong with a server's version ([`server_version`]).

pub mod change_log;
pub mod connection;
pub mod deadline;
pub mod error;
pub mod indexes;
pub mod log_place;
pub mod majority;
pub mod read_preference;
pub mod reply;
pub mod server_version;
pub mod session;
pub mod values;

pub use connection::{CommandObserver, ConnectError, ConnectionSettings, Topology};
pub use deadline::{COMMAND, COMMIT, Deadline, NO_PRIMARY};
pub use error::{Corruption, Error, Gone, Reason, Result};
pub use server_version::ServerVersion;
