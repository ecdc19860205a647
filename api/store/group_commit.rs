//! Group commit: what queues while a commit is under way goes together into the next one.
//!
//! A *committer* ([`committer`]) drains what has queued while its last commit was under way, merges it by
//! key, and sends few commands of many statements: no timer, no added latency when idle, one journal
//! flush for many requests under load. What a key is, how requests merge and what is remembered in
//! between is the business of a [`Ledger`]: trades are kept in order by customer ([`super::trades`]), page
//! views are summed by page and minute ([`super::page_views`]).
//!
//! A request waits with a [`Ticket`], which holds its room in a bounded [`Queue`]; its client waits with
//! the other half. Commands are numbered ([`session`]), so that one whose answer is lost is replayed and
//! applied at most once, and an answer is read statement by statement ([`reply`]).

mod committer;
mod reply;
mod session;
mod ticket;

pub(super) use committer::{Address, Busy, Committers, Ledger};
pub(super) use reply::{Answer, Verdict, judge};
pub(super) use session::{Command, Outcome, Sessions, durable};
pub(super) use ticket::{NoAnswer, Pending, Queue, Room, Ticket};
