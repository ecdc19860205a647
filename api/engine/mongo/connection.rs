//! Connecting to a server and checking its version and topology.

mod error;
mod open;
mod redaction;

pub use error::ConnectError;
pub(crate) use error::describe;
pub use open::{CommandObserver, ConnectionSettings, Topology};
