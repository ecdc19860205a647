//! Pages of items: their JSON, its documentation, and the page cache.

pub(crate) mod cache;
pub(crate) mod item_schemas;
pub(crate) mod item_view;
