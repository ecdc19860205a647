//! The handlers, by resource. [`crate::routes`] mounts them.

pub mod erasure;
pub mod history;
pub mod links;
pub mod owners;
pub mod page_views;
pub mod probes;
