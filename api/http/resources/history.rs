//! Histories: appending, and reading by window, by page, by item, as a file, live, and summarised.

pub(crate) mod append;
pub(crate) mod export;
pub(crate) mod list;
pub(crate) mod live;
pub(crate) mod page;
pub(crate) mod summary;
pub(crate) mod upload;
