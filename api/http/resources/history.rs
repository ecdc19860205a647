//! Histories: appending, and reading by window, by page, by item, as a file, live, and summarised.

pub mod append;
pub mod export;
pub mod list;
pub mod live;
pub mod page;
pub mod summary;
pub mod upload;
