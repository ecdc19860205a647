//! What a handler asks of a request: its parameters, its body, its key, and how long it may take.

pub mod body;
pub mod context;
pub mod deadline;
pub mod id;
pub mod lifetime;
pub mod logged;
pub mod params;
pub mod unreserved;
pub mod watch;
