//! Histories of trades: appending to them, and reading them by window, by page, by trade, and as a file.

pub mod append;
pub mod export;
pub mod item;
pub mod list;
pub mod new_trade;
pub mod page;
pub mod trade;
pub mod upload;
