//! Histories of the items of one definition, in buckets. A page is a bucket.
//!
//! An item is a BSON document and a date ([`pagebucket_model::item::Item`]); nothing here looks inside. A
//! [`Definition`](pagebucket_model::definition::Definition) names the collection, the field of the owner and
//! the size of a page.
//!
//! A bucket's `_id` is `owner_second`, with the second in ten digits, zero-padded
//! ([`bucket_id`](mod@buckets::bucket_id)). The order of `_id` is the order of pages (invariant 3). A bucket
//! holds at most `pageSize` items, and every bucket except the last, the *tail*, holds exactly as many
//! (invariant 2). A full bucket never changes (invariant 4). The permanent name of a page is its number
//! `page`; that of an item is its sequence number, `(page - 1) * pageSize + position` (invariant 5). Totals
//! are read from the tail; nothing is ever counted.

pub(crate) mod buckets;
pub(crate) mod collection;
pub(crate) mod epoch;
pub(crate) mod histories;
pub(crate) mod reads;
