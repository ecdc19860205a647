//! Reads: pages, the state of a history, items of dates or with values, exports, and the list of owners.

pub(super) mod coalesce;
pub(super) mod cursor_search;
pub(super) mod date_scan;
pub(super) mod export;
pub(super) mod find;
pub(super) mod high_water;
pub(super) mod matching;
pub(super) mod owners;
pub(super) mod reader;
