//! Reads: pages, the state of a history, items of dates or with values, exports, and the list of owners.
//!
//! - Every read has read concern majority ([`majority`](crate::mongo::majority)): what may still roll back is
//!   not shown, cached or called immutable. A read shows at least what an earlier read showed and what was
//!   acknowledged before.
//! - A page by its number is one seek ([`find`](mod@find)): by the order of `_id` and a skip within 16 pages
//!   of either end, else by the unique index on owner and page. A window touches ⌈limit / `pageSize`⌉ + 1
//!   buckets at most.
//! - A cursor is a sequence number. New items shift nothing, so a walk sees every item once. A window with
//!   `asOf` is a snapshot, exact and final by invariants 4 and 5 ([`high_water`](mod@high_water)). An offset
//!   is a sequence number too, counted from either end of the totals: there is no `skip` over items.
//! - Pages before a tail never change, so pages that are read later still belong to the moment at which the
//!   tail was read ([`reader`](mod@reader)). Simultaneous readers share commands
//!   ([`group_read`](mod@group_read)).
//! - A span of time is two queries: full pages by their partial index ([`date_scan`](mod@date_scan)), and the
//!   tail.
//! - A filter examines at most 1,000 pages, and says how far it came ([`matching`](mod@matching)).
//! - No read relies on an exclusive bound on a clustered `_id`: mongod 8.0.19 and 8.2.6 get `$lt` wrong
//!   (SERVER-121822). The upper bound is a key that no bucket can have.
//! - Every command names the shard key by equality, with the exceptions of
//!   [`sharding`](crate::care::sharding).

pub(crate) mod cursor_search;
pub(crate) mod date_scan;
pub(crate) mod export;
pub(crate) mod find;
pub(crate) mod group_read;
pub(crate) mod high_water;
pub(crate) mod matching;
pub(crate) mod owners;
pub(crate) mod reader;
