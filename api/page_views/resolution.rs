//! The resolution of a series of page views, the spans of time of such a series, and the minutes that are
//! stored.

use pagebucket_model::domain::{Instant, Invalid};
use serde::Serialize;

/// The time that one point of a series covers. Hours and days are those of UTC. All days have the same number
/// of seconds, as all hours have, because an [`Instant`] has no leap seconds. The numbers are milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, derive_more::Display)]
#[display(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Resolution {
    /// A second.
    Second = 1_000,
    /// A minute.
    Minute = 60 * 1_000,
    /// An hour.
    Hour = 3_600 * 1_000,
    /// A day.
    Day = 86_400 * 1_000,
}

impl Resolution {
    /// All resolutions, finest first.
    pub const ALL: [Self; 4] = [Self::Second, Self::Minute, Self::Hour, Self::Day];

    /// # Errors
    /// The text is not the name of a resolution.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let named = Self::ALL.into_iter().find(|resolution| resolution.to_string() == text);
        named.ok_or_else(|| Invalid::new("must be \"second\", \"minute\", \"hour\" or \"day\""))
    }

    /// The length of the unit, in milliseconds.
    pub const fn millis(self) -> i64 {
        self as i64
    }

    /// The half-open span from `from` to `to`, rounded outward to whole units. `from` must not be later than
    /// `to`.
    ///
    /// # Errors
    /// The rounded span would end after the year 9999.
    pub fn around(self, from: Instant, to: Instant) -> Result<(Instant, Instant), Invalid> {
        let unit = self.millis();
        // Rounding down stays in range, because the year 0000 begins with a whole day.
        let first = Instant::from_millis(from.millis().div_euclid(unit) * unit)?;
        let up = -(-to.millis()).div_euclid(unit) * unit;
        let end = Instant::from_millis(up).map_err(|_| {
            let last = format!("must not be in the last {self} of the year 9999");
            Invalid::new(format!("{last}, where rounding it up leads out of it"))
        })?;
        Ok((first, end))
    }
}

/// A span of time as a series of points, one for each unit of its resolution: at most
/// [`SeriesSpan::MOST_POINTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesSpan {
    from: Instant,
    to: Instant,
    resolution: Resolution,
}

impl SeriesSpan {
    /// The most points of a series.
    pub const MOST_POINTS: u64 = 10_000;

    /// The number of points if the client gives no `from`.
    pub const USUAL_POINTS: i64 = 60;

    /// The points that cover the half-open span from `from` to `to`; without `from`, the last
    /// [`SeriesSpan::USUAL_POINTS`] points before `to`.
    ///
    /// # Errors
    /// See [`SpanError`].
    pub fn covering(from: Option<Instant>, to: Instant, resolution: Resolution) -> Result<Self, SpanError> {
        if from.is_some_and(|from| from > to) {
            return Err(SpanError::Reversed);
        }
        let (first, end) = resolution.around(from.unwrap_or(to), to).map_err(SpanError::To)?;
        let first = match from {
            Some(_) => first,
            // No point begins before the year 0000.
            None => Instant::from_millis(end.millis() - Self::USUAL_POINTS * resolution.millis())
                .unwrap_or(Instant::MIN),
        };
        let span = Self { from: first, to: end, resolution };
        if span.points() <= Self::MOST_POINTS {
            return Ok(span);
        }
        let fits = Resolution::ALL.into_iter().find(|coarser| {
            let units = (end.millis() - first.millis()) as u64 / coarser.millis() as u64;
            // Rounding may add one unit at each end.
            *coarser > resolution && units + 2 <= Self::MOST_POINTS
        });
        Err(SpanError::TooLong { points: span.points(), fits })
    }

    /// The beginning of the first point.
    pub fn from(self) -> Instant {
        self.from
    }

    /// The end of the last point.
    pub fn to(self) -> Instant {
        self.to
    }

    /// The time that one point covers.
    pub fn resolution(self) -> Resolution {
        self.resolution
    }

    /// Whether the span has more minutes than a series of minutes may have points. The database reads one
    /// document for each minute with views, whatever the resolution, so a long span may take long.
    pub fn is_long(self) -> bool {
        self.to.millis() - self.from.millis() > Self::MOST_POINTS as i64 * Resolution::Minute.millis()
    }

    /// The number of points.
    pub fn points(self) -> u64 {
        (self.to.millis() - self.from.millis()) as u64 / self.resolution.millis() as u64
    }

    /// The index of the point that contains this moment, if there is one.
    pub fn point(self, moment: Instant) -> Option<usize> {
        let inside = self.from <= moment && moment < self.to;
        inside.then(|| ((moment.millis() - self.from.millis()) / self.resolution.millis()) as usize)
    }

    /// The beginning of a point.
    pub fn beginning(self, point: usize) -> Instant {
        // Always in range: it is before the end.
        Instant::from_millis(self.from.millis() + point as i64 * self.resolution.millis()).unwrap_or(self.to)
    }
}

/// Why a span of time cannot be shown as a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanError {
    /// The span would end before it begins.
    Reversed,
    /// The span would end after the year 9999.
    To(Invalid),
    /// The span would have too many points.
    TooLong {
        /// How many points it would have.
        points: u64,
        /// The finest resolution at which the points are not too many, if there is one.
        fits: Option<Resolution>,
    },
}

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

    fn around(resolution: Resolution, from: &str, to: &str) -> (String, String) {
        let (from, to) = resolution.around(at(from), at(to)).unwrap();
        (from.to_string(), to.to_string())
    }

    #[test]
    fn rounds_outward() {
        use Resolution::{Day, Hour, Minute, Second};
        for (resolution, from, to, first, end) in [
            (
                Second,
                "2014-01-01T10:01:02.003Z",
                "2014-01-01T10:01:02.003Z",
                "2014-01-01T10:01:02",
                "2014-01-01T10:01:03",
            ),
            (
                Minute,
                "2014-01-01T10:01:02Z",
                "2014-01-01T10:02:00Z",
                "2014-01-01T10:01:00",
                "2014-01-01T10:02:00",
            ),
            (
                Minute,
                "2014-01-01T10:01:00Z",
                "2014-01-01T10:01:00Z",
                "2014-01-01T10:01:00",
                "2014-01-01T10:01:00",
            ),
            (
                Hour,
                "1969-12-31T23:59:59Z",
                "1970-01-01T00:00:01Z",
                "1969-12-31T23:00:00",
                "1970-01-01T01:00:00",
            ),
            (
                Day,
                "1969-12-31T23:59:59Z",
                "1969-12-31T23:59:59.999Z",
                "1969-12-31T00:00:00",
                "1970-01-01T00:00:00",
            ),
            (
                Day,
                "0000-01-01T00:00:01Z",
                "0000-01-01T00:00:02Z",
                "0000-01-01T00:00:00",
                "0000-01-02T00:00:00",
            ),
        ] {
            let expected = (format!("{first}.000Z"), format!("{end}.000Z"));
            assert_eq!(around(resolution, from, to), expected, "{resolution} {from} {to}");
        }
        assert!(Day.around(Instant::MIN, at("9999-12-31T00:00:00Z")).is_ok());
        assert!(Day.around(Instant::MIN, at("9999-12-31T00:00:00.001Z")).is_err());
        assert!(Second.around(Instant::MAX, Instant::MAX).is_err());
    }

    #[test]
    fn a_span_is_points_one_after_the_other() {
        let span = SeriesSpan::covering(
            Some(at("1969-12-31T23:58:30Z")),
            at("1970-01-01T00:01:30Z"),
            Resolution::Minute,
        );
        let span = span.unwrap();
        assert_eq!(span.points(), 4);
        assert_eq!(span.beginning(1), at("1969-12-31T23:59:00Z"));
        assert_eq!(span.point(at("1969-12-31T23:59:59.999Z")), Some(1));
        assert_eq!(span.point(at("1970-01-01T00:02:00Z")), None);
        assert_eq!(span.point(at("1969-12-31T23:57:59.999Z")), None);
        let empty = SeriesSpan::covering(Some(Instant::MIN), Instant::MIN, Resolution::Day).unwrap();
        assert_eq!((empty.points(), empty.point(Instant::MIN)), (0, None));
    }

    #[test]
    fn hours_and_days_may_be_long() {
        let long = |hours: i64, resolution| {
            let from = at("2014-01-01T00:00:00Z");
            let to = Instant::from_millis(from.millis() + hours * 3_600_000).unwrap();
            SeriesSpan::covering(Some(from), to, resolution).unwrap().is_long()
        };
        assert!(!long(2, Resolution::Second) && !long(166, Resolution::Minute));
        assert!(!long(166, Resolution::Hour) && long(167, Resolution::Hour));
        assert!(!long(6 * 24, Resolution::Day) && long(7 * 24, Resolution::Day));
    }

    #[test]
    fn the_usual_span_is_the_last_sixty_points() {
        let span = SeriesSpan::covering(None, at("2014-01-01T10:01:02Z"), Resolution::Minute).unwrap();
        assert_eq!((span.from(), span.points()), (at("2014-01-01T09:02:00Z"), 60));
        let first = SeriesSpan::covering(None, at("0000-01-01T00:00:02Z"), Resolution::Minute).unwrap();
        assert_eq!((first.from(), first.points()), (Instant::MIN, 1));
    }

    #[test]
    fn a_span_that_is_too_long_says_what_fits() {
        let covering = |hours: i64, resolution| {
            let from = at("2014-01-01T00:00:00Z");
            let to = Instant::from_millis(from.millis() + hours * 3_600_000).unwrap();
            SeriesSpan::covering(Some(from), to, resolution)
        };
        let too_long = |points, fits| Err(SpanError::TooLong { points, fits });
        assert!(covering(2, Resolution::Second).is_ok());
        assert_eq!(covering(3, Resolution::Second), too_long(10_800, Some(Resolution::Minute)));
        assert_eq!(covering(24, Resolution::Second), too_long(86_400, Some(Resolution::Minute)));
        assert_eq!(covering(24 * 30, Resolution::Second), too_long(2_592_000, Some(Resolution::Hour)));
        assert_eq!(covering(10_001, Resolution::Hour), too_long(10_001, Some(Resolution::Day)));
        assert_eq!(covering(10_000, Resolution::Hour).map(SeriesSpan::points), Ok(10_000));
        assert_eq!(covering(24 * 10_001, Resolution::Day), too_long(10_001, None));
        assert_eq!(
            SeriesSpan::covering(Some(Instant::MAX), Instant::MIN, Resolution::Day),
            Err(SpanError::Reversed)
        );
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
