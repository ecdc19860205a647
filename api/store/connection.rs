//! Connecting to a server and checking its version and topology.

mod address;
mod error;
mod initiate;
mod open;
mod redaction;

pub use address::{CommandObserver, Connection};
pub use error::ConnectError;
pub(super) use error::describe;
pub use open::Topology;
