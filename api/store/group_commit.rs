//! Group commit: what queues while a commit is under way goes together into the next one.
//!
//! A *committer* ([`committer`]) drains what has queued while its last commit was under way, merges it by
//! key, and sends few commands of many statements: no timer, no added latency when idle, one journal
//! flush for many requests under load. What a key is, how requests merge and what is remembered in
//! between is the business of a [`BatchPolicy`]: trades are kept in order by customer ([`super::history`]), page
//! views are summed by page and minute ([`super::page_views`]).
//!
//! Commands are numbered ([`session`]), so that one whose answer is lost is replayed and applied
//! at most once, and an answer is read statement by statement ([`reply`]).
//!
//! # Deadlines
//!
//! A commit's deadline is the latest of its requests', so that the request with the least time left does not cut
//! the time of the others. Each of them has [`COMMIT`](super::COMMIT) left when the commit takes it: long
//! enough to replay a command until another primary answers. A request with less is not taken. It is answered
//! alone, as not stored, before anything of it is sent; so is one that was refused and would be placed
//! again. A request whose own deadline passes while its commit goes on is told alone that its outcome is unknown.
//!
//! # Queue
//!
//! A request waits with a [`Ticket`], which holds its room in a bounded [`Queue`]; its client waits with
//! the other half. One key may hold a quarter of the queue, so that a key whose commit takes long leaves room for
//! others.

mod committer;
mod reply;
mod session;
mod ticket;

pub(super) use committer::{BatchPolicy, Busy, Committers, Handle, Messages};
pub(super) use reply::{Answer, Verdict, judge};
pub(super) use session::{Command, Outcome, Sessions, durable};
pub(super) use ticket::{Full, NoAnswer, Pending, Queue, Room, Ticket};
