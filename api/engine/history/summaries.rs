//! Summaries: what the items of a history add up to, from its pages, and from tiles.
//!
//! A *tile* is a document that says what the items of 64 full pages add up to, by quarters of an hour and all declared groups, or without groups if that is too long
//! ([`pagebucket_model::summary::write_tile`]). A tile is a function of pages that never change: to insert it twice inserts the same, and nothing
//! makes it invalid. It is never needed: what a tile does not answer is read from its pages. Only kept tiles are: their pages are deleted.
//!
//! | File | What it knows |
//! |---|---|
//! | `scan.rs` | one summary: tiles and pages in the order of their least dates |
//! | `choice.rs` | which tiles and pages those are |
//! | `tile_id.rs` | the `_id` of a tile |
//! | `tiles.rs` | tiles in the database: reading them, deleting them |
//! | `known.rs` | which tiles there are, in memory |
//! | `make.rs` | making one from its pages |
//! | `makers.rs` | who makes them: after an answer, and as a part of housekeeping |
//! | `kept.rs` | those that outlive their pages |

pub(super) mod choice;
pub(super) mod kept;
pub(super) mod known;
pub(super) mod make;
pub(super) mod makers;
pub(super) mod scan;
pub(super) mod tile_id;
pub(super) mod tiles;
