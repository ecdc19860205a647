use super::{Instant, Invalid, Resolution};

/// A minute of UTC in the years 0000 to 9999: whole minutes since 1970, negative before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minute(i64);

impl Minute {
    /// The length of a minute, in milliseconds.
    const MILLIS: i64 = Resolution::Minute.millis();

    /// The minute that contains this moment.
    pub fn of(instant: Instant) -> Self {
        Self(instant.millis().div_euclid(Self::MILLIS))
    }

    /// The minute that begins at this moment.
    ///
    /// # Errors
    /// The moment is not the beginning of a minute.
    pub fn beginning_at(instant: Instant) -> Result<Self, Invalid> {
        let minute = Self::of(instant);
        match minute.start() == instant {
            true => Ok(minute),
            false => Err(Invalid::new("must be on a whole minute")),
        }
    }

    /// The first moment of the minute.
    pub fn start(self) -> Instant {
        // Always in range: the years 0000 to 9999 begin and end with whole minutes.
        Instant::from_millis(self.0 * Self::MILLIS).unwrap_or(Instant::MIN)
    }

    /// The minute that is `minutes` later.
    ///
    /// # Errors
    /// That minute is after the year 9999.
    pub fn plus(self, minutes: u32) -> Result<Self, Invalid> {
        let later = Self(self.0 + i64::from(minutes));
        Instant::from_millis(later.0 * Self::MILLIS).map(|_| later)
    }

    /// The second of the minute that contains a moment, 0 to 59.
    pub fn second_of(instant: Instant) -> u8 {
        instant.seconds().rem_euclid(60) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        Instant::parse_rfc3339(text).unwrap()
    }

    #[test]
    fn a_moment_is_in_one_minute() {
        for (moment, minute, second) in [
            ("1970-01-01T00:00:00Z", 0, 0),
            ("1970-01-01T00:00:59.999Z", 0, 59),
            ("1970-01-01T00:01:00Z", 1, 0),
            ("1969-12-31T23:59:59.999Z", -1, 59),
            ("1969-12-31T23:59:00Z", -1, 0),
            ("1969-12-31T23:58:59.999Z", -2, 59),
        ] {
            assert_eq!(
                (Minute::of(at(moment)).0, Minute::second_of(at(moment))),
                (minute, second),
                "{moment}"
            );
        }
        for edge in [Instant::MIN, Instant::MAX] {
            let start = Minute::of(edge).start();
            assert!(start <= edge && edge.millis() - start.millis() < 60_000, "{edge}");
        }
        assert!(Minute::of(Instant::MAX).plus(1).is_err());
        assert_eq!(Minute::of(at("1969-12-31T23:59:59Z")).plus(1).unwrap().0, 0);
    }

    #[test]
    fn only_whole_minutes_begin_a_minute() {
        assert!(Minute::beginning_at(at("1969-12-31T23:59:00Z")).is_ok());
        for moment in ["1969-12-31T23:59:00.001Z", "2014-01-01T10:01:01Z"] {
            assert!(Minute::beginning_at(at(moment)).is_err(), "{moment}");
        }
    }
}
