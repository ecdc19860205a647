//! What goes out: what is done with an answer between its handler and the connection.

pub(crate) mod compression;
pub(crate) mod log;
pub(crate) mod logged;
pub(crate) mod measures;
pub(crate) mod memory;
pub(crate) mod notes;
pub(crate) mod render;
pub(crate) mod request_id;
pub(crate) mod route_name;
