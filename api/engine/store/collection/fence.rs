//! The fence: a statement that opens a page carries a time by the database's clock, and the database refuses
//! it later.
//!
//! What an instance checks does not stop a packet that is late: a process may stop after its check, and a
//! connection may hold a command back. So the check is part of the statement, which is a pipeline:
//!
//! ```text
//! update { q: {_id: "123_" + second, customerId: 123, count: 0, firstPage: {$exists: false}},
//!          u: [{$replaceWith: {$cond: [{$lt: ["$$CLUSTER_TIME", deadline]}, {$literal: bucket},
//!                                      {$literal: the same bucket with history: []}]}}],
//!          upsert: true, hint: {_id: 1} }, maxTimeMS: 10,000
//! ```
//!
//! In time it stores the bucket. Late, the validator's `$expr` refuses the bucket without items, and the
//! append is placed again. If the `_id` is taken, also by a marker, it is E11000. A statement for a page that
//! is not full has no fence: if its page was deleted, the validator refuses it by its count. The upsert of a
//! tombstone, and of the marker that a reopening leaves, has the same fence: after a reopening a late one
//! would begin another erasure.
//!
//! Many new pages are *inserted*, which takes the database a fifth of the time of the upserts. An insert has
//! no condition, so the bucket carries both times, and the validator compares them:
//!
//! ```text
//! insert { …, history: […], opened: Timestamp(0, 0), openable: deadline }
//! ```
//!
//! The server puts its cluster time in the place of an empty time stamp on the first level of an inserted
//! document, before it waits for a lock. Late, the validator's `$expr` refuses `opened > openable`; it also
//! refuses an `opened` that no server has filled in. Where an attempt was refused, the next one upserts.
//!
//! The times come from the database alone:
//!
//! - A read is justified by a time that was shown before it was asked ([`ReadTime`]): a marker that it does
//!   not show is written later. The statement is refused [`Ages::tail`](crate::capacity::Ages::tail) after
//!   that time.
//! - Pages are deleted when the database has shown a time at which every such statement is refused, and those
//!   that had begun before have ended ([`ServerClock::settled`]): the clock of a command stands still while
//!   it runs, so a command that waits for a lock would be stored past its deadline. So it has a time limit,
//!   [`Ages::command`](crate::capacity::Ages::command).
//!
//! In a replica set the clock is the cluster time. It never goes back, and only times of majority reads are
//! relied on, so every later primary has them. A clock that jumps ahead makes the database refuse earlier. On
//! a standalone server the clock is that of its machine, and setting it back opens the fence again.
//! [`deletion`](mod@crate::care::deletion) adds up the times.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mongodb::bson::{Bson, DateTime, Document, Timestamp, doc};
use pagebucket_model::domain::Clock;
use parking_lot::Mutex;

use super::moment::Moment;
use crate::mongo::Topology;

/// A time before a read. What the read does not show was written later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadTime {
    /// By the clocks of this machine.
    pub(crate) moment: Moment,
    /// By the database's clock, in milliseconds since 1970.
    pub(crate) server: i64,
}

/// What the database's clock has shown. In a replica set only times of majority reads, in whole seconds.
#[derive(Debug, Default)]
pub(crate) struct ServerClock {
    /// Times, each with the moment after which it was shown, in their order.
    times: Mutex<VecDeque<(i64, Moment)>>,
    /// Whether the latest time is not to be relied on.
    doubted: AtomicBool,
}

impl ServerClock {
    /// Learns a time, in milliseconds since 1970, from an answer that has just arrived. Times that are older
    /// than another one that is `settled` are forgotten.
    pub(crate) fn learn(&self, server: i64, now: Moment, settled: Duration) {
        let mut times = self.times.lock();
        self.doubted.store(false, Ordering::Relaxed);
        times.push_back((server, now));
        while times.get(1).is_some_and(|(_, at)| at.has_run(settled)) {
            times.pop_front();
        }
    }

    /// The latest time, as that of a read that is asked now; `None` if it is older than `limit`.
    pub(crate) fn before_now(&self, limit: Duration, clock: &Clock) -> Option<ReadTime> {
        let times = self.times.lock();
        let (server, at) = *times.back().filter(|_| !self.doubted.load(Ordering::Relaxed))?;
        at.is_within(limit, clock).then(|| ReadTime { moment: Moment::now(clock), server })
    }

    /// Makes the next read ask for the time, because the database has refused to open a page: its clock may
    /// be far ahead of the latest time.
    pub(crate) fn doubt(&self) {
        self.doubted.store(true, Ordering::Relaxed);
    }

    /// A time that the database's clock had shown when all commands began that may still run: each runs for
    /// at most `command`. `None` if it has not been observed for as long as that. A clock that jumps ahead
    /// only makes it later.
    pub(crate) fn settled(&self, command: Duration) -> Option<i64> {
        let times = self.times.lock();
        times.iter().rev().find(|(_, at)| at.has_run(command)).map(|(server, _)| *server)
    }
}

/// Until when a command may open a page, or write a marker, by the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence {
    topology: Topology,
    /// In milliseconds since 1970.
    until: i64,
}

impl Fence {
    pub(crate) fn until(topology: Topology, until: i64) -> Self {
        Self { topology, until }
    }

    /// A fence that is closed: the database refuses every command that has it. For batches that need none.
    pub(crate) fn closed(topology: Topology) -> Self {
        Self { topology, until: 0 }
    }

    /// The end, for a document that the validator compares with the time of its insert; `None` on a
    /// standalone server, which has no cluster time.
    pub(crate) fn last_time(self) -> Option<Timestamp> {
        (self.topology != Topology::Standalone).then(|| self.end())
    }

    /// The condition, inside of a command, that the database's clock is before the end.
    pub(crate) fn is_open(self) -> Document {
        let (clock, until): (_, Bson) = match self.topology {
            Topology::Standalone => ("$$NOW", DateTime::from_millis(self.until).into()),
            Topology::Replicated | Topology::Sharded => ("$$CLUSTER_TIME", self.end().into()),
        };
        doc! { "$lt": [clock, until] }
    }

    /// By the cluster time. Both times are cut to whole seconds.
    fn end(self) -> Timestamp {
        Timestamp { time: (self.until.div_euclid(1000) + 2).clamp(0, u32::MAX.into()) as u32, increment: 0 }
    }
}

/// The database's time, inside of a command, as a date.
pub(crate) fn now(topology: Topology) -> Bson {
    match topology {
        Topology::Standalone => "$$NOW".into(),
        Topology::Replicated | Topology::Sharded => doc! { "$toDate": "$$CLUSTER_TIME" }.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: Duration = Duration::from_secs(20);

    fn ago(seconds: u64) -> Moment {
        Moment::before_now(Duration::from_secs(seconds), &Clock::system())
    }

    #[test]
    fn a_time_is_settled_when_commands_of_before_have_ended() {
        let clock = ServerClock::default();
        assert_eq!(clock.settled(COMMAND), None);
        clock.learn(1_000, ago(40), COMMAND);
        clock.learn(2_000, ago(30), COMMAND);
        assert_eq!(clock.settled(COMMAND), Some(2_000));
        clock.learn(125_000, ago(19), COMMAND);
        assert_eq!(clock.settled(COMMAND), Some(2_000), "a jump ahead waits like every other time");
        assert_eq!(clock.settled(Duration::from_secs(19)), Some(125_000));
        clock.learn(126_000, ago(0), COMMAND);
        assert_eq!(clock.times.lock().len(), 3, "what is older than a settled time is forgotten");
    }

    #[test]
    fn a_read_is_justified_by_a_recent_time() {
        let (clock, here) = (ServerClock::default(), Clock::system());
        assert_eq!(clock.before_now(COMMAND, &here), None);
        clock.learn(1_000, ago(21), COMMAND);
        assert_eq!(clock.before_now(COMMAND, &here), None);
        clock.learn(2_000, ago(19), COMMAND);
        let read = clock.before_now(COMMAND, &here).unwrap();
        assert_eq!(read.server, 2_000);
        assert!(
            read.moment.is_within(Duration::from_secs(1), &here),
            "the read is asked later than the time was shown"
        );
        clock.doubt();
        assert_eq!(clock.before_now(COMMAND, &here), None);
        clock.learn(3_000, ago(0), COMMAND);
        assert_eq!(clock.before_now(COMMAND, &here).unwrap().server, 3_000);
    }

    #[test]
    fn the_condition_is_of_the_clock_that_the_database_has() {
        let cluster = |time| doc! { "$lt": ["$$CLUSTER_TIME", Timestamp { time, increment: 0 }] };
        assert_eq!(Fence::until(Topology::Replicated, 60_999).is_open(), cluster(62));
        assert_eq!(Fence::until(Topology::Replicated, i64::MAX).is_open(), cluster(u32::MAX));
        assert_eq!(Fence::until(Topology::Replicated, i64::MIN).is_open(), cluster(0));
        assert_eq!(Fence::closed(Topology::Sharded).is_open(), cluster(2), "of 1970");
        assert_eq!(
            Fence::until(Topology::Sharded, 60_999).last_time(),
            Some(Timestamp { time: 62, increment: 0 })
        );
        assert_eq!(Fence::until(Topology::Standalone, 60_999).last_time(), None);
        let now = |millis| doc! { "$lt": ["$$NOW", DateTime::from_millis(millis)] };
        assert_eq!(Fence::until(Topology::Standalone, 60_999).is_open(), now(60_999));
        assert_eq!(Fence::closed(Topology::Standalone).is_open(), now(0));
    }
}
