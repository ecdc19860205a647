//! Appends that a client may send again: each is stored once, however often it is sent.
//!
//! Each trade of a keyed append carries a hash of customer, key and its index in the request
//! ([`identity`]), so that a request which is sent again asks for the same hashes. A *record* per key
//! says where to look for them ([`record`]):
//!
//! 1. `from`, the total of a known tail, is read before the record exists: no trade of the request
//!    is at or before it.
//! 2. The record is awaited at majority before any trade is sent, also by an attempt that finds it
//!    there ([`mod@register`]). It expires a while after it was last touched, by the server's clock. One that was
//!    inserted with an old time is touched again first ([`server_time`]).
//! 3. Before a trade is appended at its own `seq` s, its hash has been looked for, at majority, in all
//!    of `(from, s)` ([`request`], [`mod@scan`]). Two attempts of one request never share a command, so
//!    that what stands before a trade in its own command is not of its request. A refused append
//!    looks again at what was added since.
//!
//! The append compares its position ([`super`]), so that check and append are atomic without a lock
//! or a transaction, across instances and restarts. When s follows `from` at once, which is almost
//! always, there is nothing to look at. Of two attempts under way at once one is refused, looks
//! again, and finds what the other has stored.
//!
//! A known tail may be old. Then `from` is low, which is right, but the search is long. So `from` may be raised
//! ([`raise`]):
//!
//! - to the total of a newer tail, as long as no other attempt has found the record and this one has stored
//!   nothing: no trade of the request can be at or before it. A first attempt whose append is refused does so, and
//!   need not search what another writer has added;
//! - to where a search has come without a trade of the request, so that a repeat goes on from there.
//!
//! A long search is never part of a commit: its request leaves the commit, and comes back
//! ([`catch_up`](super::catch_up)).
//!
//! An upload has a record, too, and a key for each line: [`lines`] says what is different, and [`append_lines`](super::append_lines) appends them.
//!
//! What a request is answered is a function of where its trades are and of the record's `date`, so
//! that each attempt is answered the same. `outcome` in the record only spares later repeats the
//! search; it is durable before the first repeat is answered.

mod identity;
mod lines;
#[cfg(test)]
mod model;
mod raise;
mod recent;
mod record;
mod register;
mod registration;
mod request;
mod retention;
mod scan;
mod search;
mod server_time;

pub(super) use identity::{Fingerprint, RecordId, TradeKey};
pub(super) use lines::{LineSearch, NumberedTrade, Tag};
pub(super) use raise::{confirm, keep_looked};
pub(super) use recent::{Recent, Run};
pub(super) use record::{Record, set_outcome};
pub(super) use register::{MOST as MOST_REGISTRATIONS, register, updates};
pub(super) use registration::{Registered, Registration};
pub use request::LineRefusal;
pub(super) use request::{Placed, RequestSearch};
pub(in crate::store) use retention::keep_for;
pub(super) use scan::{Goal, NEAR, Searches, scan};
pub(super) use search::Search;
pub(super) use server_time::ServerTime;
