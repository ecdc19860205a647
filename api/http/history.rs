//! Histories of trades: appending, and reading by window, by page, by trade, and as a file.

pub mod append;
pub mod export;
pub mod item;
pub mod list;
pub mod new_trade;
pub mod page;
pub mod trade;
pub mod upload;
