//! Appends with an idempotency key: each is stored once, however often a client sends it.
//!
//! Each item of a keyed append carries a hash of owner, key and index in the request
//! ([`identity`](crate::store::buckets::identity)), so a repeated request has the same hashes. One *record*
//! per key says where to search for them ([`record`]):
//!
//! 1. `from`, the total of a known tail, is read before the record exists: every item of the request is after
//!    it.
//! 2. The record is awaited at majority before any item is sent, also by an attempt that finds an existing
//!    record ([`mod@register`]). The record expires some time after its last touch, by the server's clock. If
//!    it was inserted with an old time, it is touched again before any item is sent ([`mod@record`]).
//! 3. Before an item is appended at `seq` s, its hash has been searched for, at majority, in all of `(from,
//!    s)` ([`key_search`], [`page_search`]). Two attempts of one request never share a command, so the
//!    earlier items in the same command belong to other requests or to this attempt. After a refusal, the
//!    items added since are searched too.
//!
//! The append compares its position ([`super`]), so check and append are atomic without a lock or a
//! transaction, across instances and restarts. In almost all cases s follows `from` directly, and there is
//! nothing to search. Of two attempts under way at once, one is refused, searches again, and finds what the
//! other has stored.
//!
//! A known tail may be old. Then `from` is low, which is correct, but the search is long. So `from` may be
//! raised ([`record`]):
//!
//! - to the total of a newer tail, as long as no other attempt has found the record and this one has stored
//!   nothing. Then no item of the request can be at or before that total. A first attempt whose append is
//!   refused does so, and need not search what another writer has added;
//! - to the position that a search has reached without finding an item of the request, so that a repeat goes
//!   on from there.
//!
//! A long search is never part of a commit: its request leaves the commit and returns later
//! ([`commit`](super::commit)).
//!
//! An upload also has a record, and a key for each line. [`line_keys`] describes the differences;
//! [`append_lines`](super::lines) appends the lines.
//!
//! The answer to a request depends only on the addresses of its items and on the record's `date`, so each
//! attempt gets the same answer. `outcome` in the record only saves later repeats the search; it is durable
//! before the first repeat is answered.
//!
//! A model (`model.rs`) explores every interleaving of two attempts, a repeat, another writer, crashes,
//! failovers and late commands, and shows that each relaxation of these rules doubles or loses an item.

mod key_search;
mod line_keys;
#[cfg(test)]
mod model;
mod page_search;
mod recent_keys;
mod record;
mod register;

pub(crate) use key_search::KeySearch;
pub(crate) use line_keys::Tag;
pub(crate) use page_search::{Goal, near, scan, search_to_end};
pub(crate) use recent_keys::{Recent, Run};
pub(crate) use record::{COLLECTION as RECORDS, keep_for};
pub(crate) use record::{Record, confirm, keep_looked, query, read as read_record, set_outcome};
pub(crate) use register::{Registered, Registration, registrar, updates};
