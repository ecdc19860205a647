//! What knows the driver, and neither histories nor page views: how a server is reached ([`connection`]), how
//! long it may take ([`deadline`]), what goes wrong ([`error`]), reads that never go back in time
//! ([`majority`]), writes that are applied at most once ([`session`]), what their answers mean ([`reply`]),
//! changes as they happen ([`change_log`]), what one instance at a time does ([`lease`]), what is wrong with
//! a server's version ([`server_version`]), and what is no MongoDB ([`emulation`]).

pub(crate) mod change_log;
pub(crate) mod connection;
pub(crate) mod deadline;
pub(crate) mod emulation;
pub(crate) mod error;
pub(crate) mod indexes;
pub(crate) mod lease;
pub(crate) mod log_place;
pub(crate) mod majority;
pub(crate) mod read_preference;
pub(crate) mod reply;
pub(crate) mod server_version;
pub(crate) mod session;
pub(crate) mod values;

pub use connection::{CommandObserver, ConnectError, ConnectionSettings, Topology};
pub(crate) use deadline::durable;
pub use deadline::{COMMAND, COMMIT, Deadline, NO_PRIMARY};
pub use error::{Corruption, Error, Gone, Reason, Result};
pub use server_version::ServerVersion;
