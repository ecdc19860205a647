//! Summaries: what the items of a history add up to by spans of time, from its pages, and from tiles.
//!
//! `pagebucket_model::summary` adds items up without rounding and knows no database. What stretches of a
//! history add up to can be merged in any order, so a stretch is read from its pages, or from a tile.
//!
//! A *tile* is a document that says what the items of 64 full pages add up to, by quarters of an hour and all
//! declared groups, or without groups if that is too long ([`pagebucket_model::summary::write_tile`]). It is
//! a function of pages that never change: inserting it twice inserts the same document, no transaction is
//! needed, and nothing makes it invalid. A tile is never needed: what it does not answer is read from its
//! pages. Only kept tiles are, because their pages are deleted.
//!
//! # Tiles are deleted with their pages
//!
//! - The insert of a tile has the [`fence`](mod@crate::store::collection::fence) of a statement that opens a
//!   page. Late, the command fails ([`make`](mod@make)).
//! - Erasure and its sweep delete the tiles of the owner, of all definitions. So do housekeeping after an
//!   erasure and a reopening. Retirement deletes the tiles that have one of the pages that it deletes.
//! - A tile that has a page before `firstPage` is not read.
//!
//! # Reading
//!
//! Dates are out of order, so tiles and pages are read in the order of their least dates
//! ([`scan`](mod@scan)); with `order=desc` in that of their greatest dates, backwards. [`choice`](mod@choice)
//! chooses them:
//!
//! - A request looks at the dates of the first 200,000 tiles, which an instance reads once and remembers
//!   ([`known`](mod@known)), and reads the 1,000 with the least dates. The least date of the tiles that it
//!   leaves out is the *horizon*, where the next request goes on.
//! - Pages that no tile covers, and those of tiles that cannot answer, such as stubs, are chosen by the index
//!   over dates, or by their numbers if they are few. Where tiles say that 2,000 of these pages end before a
//!   date, no key of a later page is examined.
//! - Tiles are read without an index, because `_id` has the owner and the number. Of a clustered collection
//!   mongod 6.0.5 examines all documents for an `$in` of `_id`s, and later versions all between the least and
//!   the greatest. So tiles that are near each other are read together, by `$in` with `$gte` and `$lte`
//!   ([`tiles`](mod@tiles)).
//!
//! # Kept tiles
//!
//! Kept tiles (`--keep-summaries`, [`kept`](mod@kept)) outlive their pages. A retirement first stores the
//! tile of its pages, and then raises `firstPage` to the page after a whole tile. A kept tile counts only if
//! all of its pages are before `firstPage`. So an item is in a kept tile or on a page, never in both or in
//! none, wherever the retirement ends. If `firstPage` was inside a tile before, that tile is of the pages
//! from there on.
//!
//! # Refused
//!
//! - Tiles of fewer than 64 pages at the end of the retired pages, so that each page could go when its time
//!   has come. They would be as long as the pages, and merging two into one while others read both needs a
//!   transaction.
//! - Sums by the database. `$sum` rounds decimals to 34 digits silently, and MongoDB has no sum of products
//!   that is rounded once. A summary that is not exact would differ by the order of its pages.
//! - A tile of each page, or sums in the bucket. Both would cost every append, and a page of ten items has
//!   nearly as many sums as items.

pub(crate) mod choice;
mod dated_pages;
pub(crate) mod kept;
pub(crate) mod known;
pub(crate) mod make;
pub(crate) mod makers;
pub(crate) mod scan;
pub(crate) mod tile_id;
pub(crate) mod tiles;
