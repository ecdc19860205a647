//! The time by which pages are retired. Retired pages cannot be brought back, and a clock may be wrong for a
//! minute.
//!
//! Two clocks must agree within an hour, that of the server and that of this instance, and the earlier one
//! counts. And the time must go on as the monotonic clock does: after a leap of a day since an earlier round
//! or since the start, rounds wait. If the time stays so for a day, it is right: the machine has slept.
//!
//! The collection `migrations` remembers the last time that was not in doubt, and the leap that rounds wait
//! for. So an instance that starts while both clocks are wrong waits too, and restarts do not shorten the
//! day. To that instance a service that was stopped for more than a day has leapt, too.

use std::time::Duration;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Bson, DateTime, doc};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::mongo::values::in_millis;
use crate::mongo::{Deadline, Result};
use crate::store::collection::HistoryCollection;
use crate::store::epoch::COLLECTION;

/// The `_id` of what the database remembers, beside the lock of housekeeping.
const ID: &str = "retention";

/// How far the remembered time may be behind.
const REMEMBER: Duration = Duration::from_secs(3_600);

/// By how much the two clocks may differ.
const TOLERANCE: Duration = Duration::from_secs(3_600);

/// By how much the time may get ahead of the monotonic clock between two rounds.
const LEAP: Duration = Duration::from_secs(86_400);

/// For how long rounds wait after a leap.
const WAIT: Duration = Duration::from_secs(86_400);

/// Why the time is in doubt. The numbers are hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// The two clocks differ.
    #[error("the clock of the database is {0} h ahead of that of this instance")]
    Ahead(i64),
    /// The same, the other way round.
    #[error("the clock of the database is {0} h behind that of this instance")]
    Behind(i64),
    /// Both clocks have leapt.
    #[error(
        "the time has leapt ahead by {0} h since an earlier round; if it stays so, pages are retired after a day"
    )]
    Leap(i64),
}

/// The clock by which pages are retired, of all histories of a database.
#[derive(Debug, Default)]
pub(crate) struct RetentionClock(Mutex<Option<TrustedTime>>);

/// What the database remembers, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RememberedTime {
    /// The last time that was not in doubt.
    certain: i64,
    /// The time to which the clocks have leapt since.
    leapt: Option<i64>,
}

/// The last time that was not in doubt.
#[derive(Debug)]
struct TrustedTime {
    millis: i64,
    at: Instant,
    leapt: Option<Leap>,
    /// What the database remembers of it.
    remembered: Option<RememberedTime>,
}

/// A leap of the time.
#[derive(Debug, Clone, Copy)]
struct Leap {
    /// The time to which it has leapt.
    millis: i64,
    /// When; `None` if an earlier process has met it.
    at: Option<Instant>,
}

impl RetentionClock {
    /// The time by the server's clock and by that of this instance, in milliseconds since 1970, if it is not
    /// in doubt.
    pub(crate) async fn time(
        &self,
        source: &HistoryCollection,
        deadline: Deadline,
    ) -> Result<Result<i64, Doubt>> {
        if self.0.lock().is_none() {
            let remembered = remembered(source, deadline).await?;
            let last = TrustedTime::begin(remembered, source.clock.now().millis(), Instant::now());
            self.0.lock().get_or_insert(last);
        }
        let server = source.server_time(deadline).await?;
        let (time, changed) = {
            let mut last = self.0.lock();
            let last = last.as_mut().expect("it is known from the first call on");
            let time = last.next(server, source.clock.now().millis(), Instant::now());
            let new = RememberedTime { certain: last.millis, leapt: last.leapt.map(|leap| leap.millis) };
            let is_known = !matches!(time, Err(Doubt::Ahead(_) | Doubt::Behind(_)));
            (time, Some(new).filter(|new| is_known && new.is_news(last.remembered)))
        };
        if let Some(changed) = changed {
            remember(source, changed, deadline).await?;
            self.0.lock().iter_mut().for_each(|last| last.remembered = Some(changed));
        }
        Ok(time)
    }
}

impl RememberedTime {
    /// Whether the database should remember this instead of what it remembers.
    fn is_news(self, old: Option<Self>) -> bool {
        let is_behind = |old: Self| self.certain.abs_diff(old.certain) >= REMEMBER.as_millis() as u64;
        old.is_none_or(|old| old.leapt != self.leapt || is_behind(old))
    }
}

impl TrustedTime {
    /// Begins with what the database remembers, or else with the time of this instance.
    fn begin(remembered: Option<RememberedTime>, own: i64, at: Instant) -> Self {
        let RememberedTime { certain, leapt } =
            remembered.unwrap_or(RememberedTime { certain: own, leapt: None });
        Self { millis: certain, at, leapt: leapt.map(|millis| Leap { millis, at: None }), remembered }
    }

    fn next(&mut self, server: i64, own: i64, at: Instant) -> Result<i64, Doubt> {
        let (ahead, millis) = (server.saturating_sub(own), server.min(own));
        if ahead.unsigned_abs() > TOLERANCE.as_millis() as u64 {
            return Err(if ahead > 0 { Doubt::Ahead(hours(ahead)) } else { Doubt::Behind(hours(-ahead)) });
        }
        let elapsed = in_millis(at.saturating_duration_since(self.at));
        let leap = millis.saturating_sub(self.millis.saturating_add(elapsed));
        if leap > in_millis(LEAP) {
            // One to a later time was another one.
            let known = self.leapt.filter(|leapt| leapt.at.is_some() || leapt.millis <= millis);
            let leapt = *self.leapt.insert(known.unwrap_or(Leap { millis, at: Some(at) }));
            let waited = match leapt.at {
                Some(begin) => at.saturating_duration_since(begin),
                None => Duration::from_millis(millis.abs_diff(leapt.millis)),
            };
            if waited < WAIT {
                return Err(Doubt::Leap(hours(leap)));
            }
        }
        (self.millis, self.at, self.leapt) = (millis, at, None);
        Ok(millis)
    }
}

/// Reads what the database remembers. What is damaged is not relied on.
async fn remembered(source: &HistoryCollection, deadline: Deadline) -> Result<Option<RememberedTime>> {
    let read = |found: &RawDocument| {
        let millis = |field| found.get_datetime(field).ok().map(DateTime::timestamp_millis);
        Ok(millis("certain").map(|certain| RememberedTime { certain, leapt: millis("leapt") }))
    };
    Ok(source.reads.by_id(COLLECTION, ID, deadline, read).await?.flatten())
}

async fn remember(
    source: &HistoryCollection,
    RememberedTime { certain, leapt }: RememberedTime,
    deadline: Deadline,
) -> Result<()> {
    let leapt = leapt.map_or(Bson::Null, |leapt| DateTime::from_millis(leapt).into());
    let new = doc! { "$set": { "certain": DateTime::from_millis(certain), "leapt": leapt } };
    let update = doc! { "q": { "_id": ID }, "u": new, "upsert": true };
    source.update(COLLECTION, [update], deadline).await.map(drop)
}

fn hours(millis: i64) -> i64 {
    millis / 3_600_000
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const DAY: i64 = 86_400_000;
    const BEGIN: i64 = 1_700_000_000_000;

    /// The time by both clocks, a minute after the last.
    struct Rounds {
        last: TrustedTime,
        at: Instant,
        right: i64,
    }

    impl Rounds {
        fn new() -> Self {
            let at = Instant::now();
            Self { last: TrustedTime::begin(None, BEGIN, at), at, right: BEGIN }
        }

        fn next(&mut self, server_ahead: i64, own_ahead: i64) -> Result<i64, Doubt> {
            self.at += MINUTE;
            self.right += in_millis(MINUTE);
            let time = self.last.next(self.right + server_ahead, self.right + own_ahead, self.at);
            time.map(|time| time - self.right)
        }
    }

    #[test]
    fn two_clocks_must_agree() {
        let mut rounds = Rounds::new();
        assert_eq!(rounds.next(0, 0), Ok(0));
        assert_eq!(rounds.next(60 * DAY, 0), Err(Doubt::Ahead(1_440)));
        assert_eq!(rounds.next(0, 60 * DAY), Err(Doubt::Behind(1_440)));
        assert_eq!(rounds.next(0, -60 * DAY), Err(Doubt::Ahead(1_440)));
        assert_eq!(rounds.next(0, 0), Ok(0));
        assert_eq!(rounds.next(1_000, 0), Ok(0), "the earlier one");
        assert_eq!(rounds.next(1_000, 2_000), Ok(1_000));
    }

    #[test]
    fn a_leap_of_both_clocks_waits() {
        let mut rounds = Rounds::new();
        assert_eq!(rounds.next(0, 0), Ok(0));
        for _ in 0..3 {
            assert_eq!(rounds.next(60 * DAY, 60 * DAY), Err(Doubt::Leap(1_440)));
        }
        assert_eq!(rounds.next(0, 0), Ok(0), "it was wrong for some minutes");
        // A machine has slept: the time stays so.
        let mut waits = 0;
        while rounds.next(3 * DAY, 3 * DAY).is_err() {
            waits += 1;
        }
        assert_eq!(waits, 24 * 60);
        assert_eq!(rounds.next(3 * DAY, 3 * DAY), Ok(3 * DAY));
        // Back is never too far: less is retired.
        assert_eq!(rounds.next(0, 0), Ok(0));
    }

    #[test]
    fn an_instance_begins_with_what_the_database_remembers() {
        let at = Instant::now();
        let begin = |certain, leapt| TrustedTime::begin(Some(RememberedTime { certain, leapt }), BEGIN, at);
        let next = |mut last: TrustedTime, days: i64| {
            let now = BEGIN + days * DAY;
            let time = last.next(now, now, at).map(|time| (time - BEGIN) / DAY);
            (time, last.leapt.map(|leap| (leap.millis - BEGIN) / DAY))
        };
        assert_eq!(next(begin(BEGIN, None), 1), (Ok(1), None));
        assert_eq!(
            next(begin(BEGIN, None), 60),
            (Err(Doubt::Leap(1_440)), Some(60)),
            "both clocks are wrong"
        );
        assert_eq!(next(begin(BEGIN, Some(BEGIN + 3 * DAY)), 3), (Err(Doubt::Leap(72)), Some(3)));
        assert_eq!(next(begin(BEGIN, Some(BEGIN + 3 * DAY)), 4), (Ok(4), None), "it has stayed so for a day");
        assert_eq!(
            next(begin(BEGIN, Some(BEGIN + 60 * DAY)), 5),
            (Err(Doubt::Leap(120)), Some(5)),
            "another leap"
        );
        assert_eq!(next(begin(BEGIN, Some(BEGIN + 60 * DAY)), 0), (Ok(0), None), "it was wrong");
    }

    #[test]
    fn it_is_written_once_an_hour_and_when_a_leap_begins_or_ends() {
        let known = |hours: i64, leapt| RememberedTime { certain: BEGIN + hours * 3_600_000, leapt };
        assert!(known(0, None).is_news(None));
        assert!(!known(0, None).is_news(Some(known(0, None))));
        assert!(known(1, None).is_news(Some(known(0, None))) && known(0, None).is_news(Some(known(1, None))));
        assert!(
            known(0, Some(1)).is_news(Some(known(0, None)))
                && known(0, None).is_news(Some(known(0, Some(1))))
        );
    }

    #[test]
    fn it_leaps_before_the_first_round_too() {
        assert_eq!(Rounds::new().next(60 * DAY, 60 * DAY), Err(Doubt::Leap(1_440)));
    }
}
