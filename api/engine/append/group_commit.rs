//! Group commit: requests that queue while a commit is under way go together into the next commit.
//!
//! A *committer* ([`committer`]) takes the requests that queued during its last commit, merges them by key,
//! and sends a few commands of many statements. There is no timer and no added latency when idle; under load
//! one journal flush serves many requests. A [`BatchPolicy`] decides what a key is, how requests merge and
//! what is remembered between commits. Items are kept in order by owner ([`crate::store`]); page views are
//! summed by page and minute (`api/page_views/policy.rs`).
//!
//! Commands are numbered ([`session`](crate::mongo::session)), so a command whose answer is lost is replayed
//! and applied at most once. An answer is judged statement by statement ([`reply`](crate::mongo::reply)).
//!
//! # Deadlines
//!
//! A commit's deadline is the latest deadline of its requests, so the request with the least time left does
//! not shorten the time of the others. Each request has at least [`COMMIT`](crate::mongo::COMMIT) left when
//! the commit takes it: long enough to replay a command until another primary answers. A request with less
//! time is not taken. It is answered on its own, as not stored, before any part of it is sent. The same holds
//! for a request that was refused and would be placed again. If a request's own deadline passes while its
//! commit goes on, only that request is answered that its outcome is unknown.
//!
//! # Queue
//!
//! A request waits with a [`Ticket`], which holds its room in a bounded [`Queue`]; the client waits with the
//! other half, [`Pending`]. One key may hold a quarter of the queue, so a key whose commit takes long leaves
//! room for others. The same holds for one client, a [`QueueClient`], however many keys its requests have.

mod committer;
mod ticket;

pub use committer::{BatchPolicy, Committers, Handle, Messages};
pub(crate) use ticket::{Full, QueueReservation};
pub use ticket::{NoAnswer, Pending, Queue, QueueClient, Ticket};
