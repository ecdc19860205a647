//! Histories: appending, and reading by window, by page, by item, and as a file.

pub mod append;
pub mod export;
pub mod list;
pub mod page;
pub mod upload;
