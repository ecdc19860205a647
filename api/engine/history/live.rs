//! Live readers: each gets what is appended to a history, in order, without a gap, from the position that it names.
//!
//! What is delivered follows by `seq`, so that nothing is delivered before everything in front of it. Commits of this process,
//! and a change stream for those of others ([`feed`](mod@feed)), *wake* ([`watched`](mod@crate::history::collection::watched)).
//!
//! The readers of one owner share a *room* ([`room`](mod@room)), which learns what is new once for all of them: from the change that
//! woke it, if that has what follows, otherwise by a read. A [`LiveReader`] holds a position and no queue: one whose position is not
//! in the pages that the room has just learned reads the history by itself, a bounded part at a time.
//!
//! A reader of all owners ([`followers`](mod@followers)) learns who has something new, and how much. What such readers share is a
//! *bulletin* ([`bulletin`](mod@bulletin)). Their place is one in the database's log, because no history has an order of all owners.

mod bulletin;
pub(super) mod changes;
pub(super) mod feed;
mod followers;
mod reader;
mod room;

pub(super) use followers::Followers;
pub use followers::{FollowError, OwnersNews, OwnersReader};
pub use reader::{LivePage, LiveReader, LiveStart};
pub(super) use room::Rooms;
