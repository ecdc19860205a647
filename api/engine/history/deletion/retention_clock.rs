//! The time by which pages are retired. What is retired cannot be brought back, and a clock may be wrong for a minute.
//!
//! Two clocks must agree on the time, that of the server and that of this instance, and the earlier one counts. And the time
//! must go on as the monotonic clock does: after a leap ahead, which would retire far more than the last round, rounds wait. If
//! the time stays so for a day, it is right: the machine has slept.

use std::time::Duration;

use pagebucket_model::domain::Clock;
use parking_lot::Mutex;
use tokio::time::Instant;

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

#[derive(Debug)]
pub(crate) struct RetentionClock(Mutex<Last>);

/// The last time that was not in doubt.
#[derive(Debug)]
struct Last {
    millis: i64,
    at: Instant,
    /// Since when the time has leapt.
    leapt: Option<Instant>,
}

impl RetentionClock {
    /// Begins with the time of this instance.
    pub(crate) fn new(own: &Clock) -> Self {
        Self(Mutex::new(Last { millis: own.now().millis(), at: Instant::now(), leapt: None }))
    }

    /// The time, in milliseconds since 1970, by the server's clock and by that of this instance.
    ///
    /// # Errors
    /// It is in doubt.
    pub(crate) fn time(&self, server: i64, own: &Clock) -> Result<i64, Doubt> {
        self.0.lock().next(server, own.now().millis(), Instant::now())
    }
}

impl Last {
    fn next(&mut self, server: i64, own: i64, at: Instant) -> Result<i64, Doubt> {
        let (ahead, millis) = (server.saturating_sub(own), server.min(own));
        if ahead.unsigned_abs() > TOLERANCE.as_millis() as u64 {
            return Err(if ahead > 0 { Doubt::Ahead(hours(ahead)) } else { Doubt::Behind(hours(-ahead)) });
        }
        let elapsed = at.saturating_duration_since(self.at).as_millis() as i64;
        let leap = millis.saturating_sub(self.millis.saturating_add(elapsed));
        if leap > LEAP.as_millis() as i64 {
            let leapt = *self.leapt.get_or_insert(at);
            if at.saturating_duration_since(leapt) < WAIT {
                return Err(Doubt::Leap(hours(leap)));
            }
        }
        *self = Self { millis, at, leapt: None };
        Ok(millis)
    }
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
        last: Last,
        at: Instant,
        right: i64,
    }

    impl Rounds {
        fn new() -> Self {
            let at = Instant::now();
            Self { last: Last { millis: BEGIN, at, leapt: None }, at, right: BEGIN }
        }

        fn next(&mut self, server_ahead: i64, own_ahead: i64) -> Result<i64, Doubt> {
            self.at += MINUTE;
            self.right += MINUTE.as_millis() as i64;
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
    fn it_leaps_before_the_first_round_too() {
        assert_eq!(Rounds::new().next(60 * DAY, 60 * DAY), Err(Doubt::Leap(1_440)));
    }
}
