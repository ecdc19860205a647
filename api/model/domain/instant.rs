//! Points in time and spans of time, in milliseconds.

use std::fmt;

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};
use serde::{Serialize, Serializer};

use super::Invalid;

/// A point in time, in whole milliseconds since 1970-01-01T00:00:00Z, like a BSON date. Years 0000 to 9999,
/// as in RFC 3339. No leap seconds, as in POSIX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(i64);

const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

impl Instant {
    /// 0000-01-01T00:00:00.000Z
    pub const MIN: Self = Self(-62_167_219_200_000);
    /// 9999-12-31T23:59:59.999Z
    pub const MAX: Self = Self(253_402_300_799_999);

    /// # Errors
    /// The moment is outside the years 0000 to 9999.
    pub fn from_millis(millis: i64) -> Result<Self, Invalid> {
        match Self(millis) {
            instant if (Self::MIN..=Self::MAX).contains(&instant) => Ok(instant),
            _ => Err(Invalid::new("must be in the years 0000 to 9999, in UTC")),
        }
    }

    /// Milliseconds since 1970, negative before.
    pub fn millis(self) -> i64 {
        self.0
    }

    /// RFC 3339 in UTC with exactly three fraction digits, as ASCII. Every item of a page and of an export is
    /// written with one, so this does without the machinery of `fmt`.
    pub fn rfc3339(self) -> [u8; 24] {
        let civil = self.civil();
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let fields = [
            (0..4, civil.year()),
            (5..7, civil.month().into()),
            (8..10, civil.day().into()),
            (11..13, civil.hour().into()),
            (14..16, civil.minute().into()),
            (17..19, civil.second().into()),
            (20..23, civil.millisecond()),
        ];
        for (place, mut number) in fields {
            for digit in text[place].iter_mut().rev() {
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
        }
        text
    }

    fn civil(self) -> DateTime {
        // Cannot saturate: MIN and MAX are within jiff's civil range.
        EPOCH.saturating_add(SignedDuration::from_millis(self.0))
    }

    /// Whole seconds since 1970, rounded down, negative before.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Parses RFC 3339, with `T` and `Z` in capitals: `2004-01-09T00:00:00.000Z`,
    /// `2004-01-09T01:00:00+01:00`. At most three fraction digits, or up to nine that end with zeros, as
    /// Python, Go and PostgreSQL write them. A finer time is refused, never truncated.
    ///
    /// # Errors
    /// The notation is different, the day or the time does not exist, it is a leap second, or the year is
    /// outside 0000 to 9999.
    pub fn parse_rfc3339(text: &str) -> Result<Self, Invalid> {
        Self::parse_with_separator(text, b'T')
    }

    /// Same as [`Instant::parse_rfc3339`], with another byte between day and time, such as a space.
    ///
    /// # Errors
    /// Same as [`Instant::parse_rfc3339`].
    pub fn parse_with_separator(text: &str, separator: u8) -> Result<Self, Invalid> {
        let notation = || {
            Invalid::new(
                "must be an RFC 3339 date-time with at most 3 fraction digits and an offset, such as \"2004-01-09T00:00:00.000Z\"",
            )
        };
        let ascii = Some(text.as_bytes()).filter(|bytes| bytes.is_ascii());
        let (seconds, rest) = ascii.and_then(|bytes| bytes.split_at_checked(19)).ok_or_else(notation)?;
        let (day, time) = seconds.split_at(10);
        if !has_form(day, DAY) || time[0] != separator || !has_form(&time[1..], b"00:00:00") {
            return Err(notation());
        }
        let (point, rest) = rest.split_at(usize::from(rest.starts_with(b".")));
        let (fraction, offset) = rest.split_at(rest.iter().take_while(|byte| byte.is_ascii_digit()).count());
        if point.is_empty() != fraction.is_empty() {
            return Err(notation());
        }
        let (kept, finer) = fraction.split_at(fraction.len().min(3));
        if fraction.len() > 9 || finer.iter().any(|digit| *digit != b'0') {
            let rule = "must not be finer than milliseconds: at most 3 fraction digits, or up to 9 that end with zeros";
            return Err(Invalid::new(rule));
        }
        let civil = &text[..seconds.len() + point.len() + kept.len()];
        let minutes_east = minutes_east(offset).ok_or_else(notation)?;
        if seconds.ends_with(b":60") {
            return Err(Invalid::new("must not be a leap second: seconds go from 00 to 59"));
        }
        let civil = civil.parse().map_err(|_| Invalid::new("must be a day and a time that exist"))?;
        Self::from_millis(millis(civil) - minutes_east * 60_000)
    }

    /// Parses a day, `2004-01-09`, as its first moment in UTC.
    ///
    /// # Errors
    /// The notation is different, or the day does not exist.
    pub fn parse_date(text: &str) -> Result<Self, Invalid> {
        let day = has_form(text.as_bytes(), DAY).then(|| text.parse().ok()).flatten();
        let day = day.ok_or_else(|| Invalid::new("must be a day, such as \"2004-01-09\""))?;
        Self::from_millis(millis(day))
    }
}

const DAY: &[u8] = b"0000-00-00";

/// Whether the text has this form, in which `0` stands for any digit.
fn has_form(text: &[u8], form: &[u8]) -> bool {
    let fits = |(byte, form): (&u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form };
    text.len() == form.len() && text.iter().zip(form).all(fits)
}

/// The offset `Z` or `+HH:MM`, in minutes east of UTC.
fn minutes_east(offset: &[u8]) -> Option<i64> {
    let (sign, digits) = match offset {
        b"Z" => return Some(0),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let two = |at: usize| 10 * i64::from(digits[at] - b'0') + i64::from(digits[at + 1] - b'0');
    let (hours, minutes) = has_form(digits, b"00:00").then(|| (two(0), two(3)))?;
    (hours <= 23 && minutes <= 59).then_some(sign * (60 * hours + minutes))
}

fn millis(civil: DateTime) -> i64 {
    civil.duration_since(EPOCH).as_millis() as i64
}

impl Serialize for Instant {
    /// As the text that `Display` writes.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(str::from_utf8(&self.rfc3339()).expect("digits are UTF-8"))
    }
}

impl fmt::Display for Instant {
    /// RFC 3339 in UTC with exactly three fraction digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.rfc3339()).expect("digits are UTF-8"))
    }
}

/// A half-open span of time: at or after one moment, and before another. Either end may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateRange {
    from: Option<Instant>,
    to: Option<Instant>,
}

impl DateRange {
    /// # Errors
    /// `to` is before `from`. If they are equal, the span is empty.
    pub fn new(from: Option<Instant>, to: Option<Instant>) -> Result<Self, Invalid> {
        match (from, to) {
            (Some(from), Some(to)) if to < from => Err(Invalid::new("must not be before `from`")),
            _ => Ok(Self { from, to }),
        }
    }

    /// The first moment in the span, unless it is open.
    pub fn from(self) -> Option<Instant> {
        self.from
    }

    /// The first moment after the span, unless it is open.
    pub fn to(self) -> Option<Instant> {
        self.to
    }

    /// Whether this moment is in the span.
    pub fn contains(self, date: Instant) -> bool {
        self.from.is_none_or(|from| from <= date) && self.to.is_none_or(|to| date < to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_displayed_as_its_day_and_time() {
        let (least, most) = (Instant::MIN.millis(), Instant::MAX.millis());
        let spread = (0..200_000).map(|step| least + step * ((most - least) / 200_000) + step % 86_400_000);
        for millis in spread.chain([least, most, -1, 0, 1]) {
            let instant = Instant::from_millis(millis.min(most)).unwrap();
            assert_eq!(instant.to_string(), format!("{:.3}Z", instant.civil()));
        }
    }

    #[test]
    fn is_written_as_it_was_read() {
        for text in [
            "1970-01-01T00:00:00.000Z",
            "0000-01-01T00:00:00.000Z",
            "9999-12-31T23:59:59.999Z",
            "1969-12-31T23:59:59.999Z",
            "1900-02-28T12:34:56.007Z",
            "2000-02-29T00:00:00.120Z",
        ] {
            assert_eq!(Instant::parse_rfc3339(text).unwrap().to_string(), text);
        }
        assert_eq!(Instant::parse_rfc3339("9999-12-31T23:59:59.999Z").unwrap(), Instant::MAX);
        assert_eq!(Instant::parse_rfc3339("0000-01-01T00:00:00Z").unwrap(), Instant::MIN);
        assert_eq!(Instant::parse_rfc3339("1969-12-31T23:59:59.999Z").unwrap().seconds(), -1);
    }

    #[test]
    fn offsets_are_normalised() {
        for (text, utc) in [
            ("2004-01-09T01:30:00+01:30", "2004-01-09T00:00:00.000Z"),
            ("2004-01-09T00:00:00.5-00:00", "2004-01-09T00:00:00.500Z"),
            ("2004-01-08T20:00:00-04:00", "2004-01-09T00:00:00.000Z"),
            ("2004-01-09T00:00:00.000000+00:00", "2004-01-09T00:00:00.000Z"),
            ("2004-01-09T00:00:00.123000Z", "2004-01-09T00:00:00.123Z"),
            ("2004-01-09T00:00:00.120000000Z", "2004-01-09T00:00:00.120Z"),
        ] {
            assert_eq!(Instant::parse_rfc3339(text).unwrap().to_string(), utc, "{text}");
        }
    }

    #[test]
    fn refuses_what_it_cannot_keep() {
        for (text, part) in [
            ("2004-01-09T00:00:00.1230001Z", "finer"),
            ("2004-01-09T00:00:00.0000000000Z", "finer"),
            ("2004-01-09T00:00:001Z", "RFC 3339"),
            ("2016-12-31T23:59:60Z", "leap second"),
            ("2004-02-30T00:00:00Z", "exist"),
            ("2004-01-09T24:00:00Z", "exist"),
            ("9999-12-31T23:59:59-00:01", "9999"),
            ("0000-01-01T00:00:00+00:01", "0000"),
            ("2004-01-09 00:00:00Z", "RFC 3339"),
            ("2004-01-09t00:00:00z", "RFC 3339"),
            ("2004-01-09T00:00:00", "RFC 3339"),
            ("2004-01-09T00:00:00.Z", "RFC 3339"),
            ("2004-01-09T00:00:00+24:00", "RFC 3339"),
            ("2004-01-09", "RFC 3339"),
            ("+002004-01-09T00:00:00Z", "RFC 3339"),
            ("２004-01-09T00:00:00Z", "RFC 3339"),
            ("", "RFC 3339"),
        ] {
            let detail = Instant::parse_rfc3339(text).unwrap_err().to_string();
            assert!(detail.contains(part), "{text}: {detail}");
        }
    }

    fn at(millis: i64) -> Instant {
        Instant::from_millis(millis).unwrap()
    }

    #[test]
    fn begins_with_from_and_ends_before_to() {
        let range = DateRange::new(Some(at(5)), Some(at(7))).unwrap();
        assert_eq!([4, 5, 6, 7].map(|millis| range.contains(at(millis))), [false, true, true, false]);
        let since = DateRange::new(Some(at(5)), None).unwrap();
        assert_eq!([4, 5, 9].map(|millis| since.contains(at(millis))), [false, true, true]);
        let until = DateRange::new(None, Some(at(5))).unwrap();
        assert_eq!([-9, 4, 5].map(|millis| until.contains(at(millis))), [true, true, false]);
    }

    #[test]
    fn may_be_empty_but_not_reversed() {
        assert!(!DateRange::new(Some(at(5)), Some(at(5))).unwrap().contains(at(5)));
        assert!(DateRange::new(Some(at(6)), Some(at(5))).is_err());
    }
}
