//! What a handler asks of a request: its parameters, its body, its key, and how long it may take.

pub(crate) mod body;
pub(crate) mod context;
pub(crate) mod deadline;
pub(crate) mod id;
pub(crate) mod lifetime;
pub(crate) mod logged;
pub(crate) mod params;
pub(crate) mod unreserved;
pub(crate) mod watch;
