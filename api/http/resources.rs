//! The handlers, by resource. [`crate::routes`] mounts them.

pub(crate) mod erasure;
pub(crate) mod history;
pub(crate) mod links;
pub(crate) mod owners;
pub(crate) mod page_views;
pub(crate) mod probes;
