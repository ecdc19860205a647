//! Pages of items: their JSON, its documentation, and the page cache.

pub mod cache;
pub mod item_schemas;
pub mod item_view;
