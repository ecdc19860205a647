use std::fmt;

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, date};
use serde::{Serialize, Serializer};

use super::Invalid;

/// A point in time, in whole milliseconds since 1970-01-01T00:00:00Z, like a BSON date. Years 0000 to 9999, as
/// in RFC 3339. No leap seconds, as in POSIX.
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

    /// Whole seconds since 1970, rounded down, negative before.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Parses RFC 3339, with `T` and `Z` in capitals: `2004-01-09T00:00:00.000Z`, `2004-01-09T01:00:00+01:00`.
    /// At most three fraction digits; a finer time is refused, never truncated.
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
        let bytes = text.as_bytes();
        if !text.is_ascii() || bytes.len() < 20 || bytes[10] != separator {
            return Err(notation());
        }
        let day = parse_day(&text[..10]).ok_or_else(notation)?;
        let time = &text[11..];
        let [hour, minute, second] = clock_fields(&time[..8]).ok_or_else(notation)?;
        let (fraction, offset) = match time[8..].strip_prefix('.') {
            Some(rest) => {
                let len = rest.bytes().take_while(u8::is_ascii_digit).count();
                if len > 3 {
                    return Err(Invalid::new(
                        "must not be finer than milliseconds: at most 3 fraction digits",
                    ));
                }
                (Some(&rest[..len]).filter(|digits| !digits.is_empty()).ok_or_else(notation)?, &rest[len..])
            }
            None => ("", &time[8..]),
        };
        let offset_minutes = parse_offset(offset).ok_or_else(notation)?;
        if second == 60 {
            return Err(Invalid::new("must not be a leap second: seconds go from 00 to 59"));
        }
        let no_such = || Invalid::new("must be a day and a time that exist");
        if hour > 23 || minute > 59 || second > 59 {
            return Err(no_such());
        }
        let day = day.ok_or_else(no_such)?;
        let seconds =
            i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second) - offset_minutes * 60;
        let millis: i64 =
            if fraction.is_empty() { 0 } else { format!("{fraction:0<3}").parse().unwrap_or(0) };
        Self::from_millis(midnight(day) + seconds * 1000 + millis)
    }

    /// Parses a day, `2004-01-09`, as its first moment in UTC.
    ///
    /// # Errors
    /// The notation is different, or the day does not exist.
    pub fn parse_date(text: &str) -> Result<Self, Invalid> {
        let day =
            parse_day(text).flatten().ok_or_else(|| Invalid::new("must be a day, such as \"2004-01-09\""))?;
        Self::from_millis(midnight(day))
    }
}

/// `None`: the text is not of the form `YYYY-MM-DD`. `Some(None)`: the day does not exist.
fn parse_day(text: &str) -> Option<Option<Date>> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let (year, month, day) = (digits(&text[..4])?, digits(&text[5..7])?, digits(&text[8..])?);
    Some(Date::new(year as i16, month as i8, day as i8).ok())
}

/// The fields of `HH:MM:SS`. Their ranges are not checked.
fn clock_fields(text: &str) -> Option<[u16; 3]> {
    let bytes = text.as_bytes();
    if bytes[2] != b':' || bytes[5] != b':' {
        return None;
    }
    Some([digits(&text[..2])?, digits(&text[3..5])?, digits(&text[6..])?])
}

/// The offset `Z` or `+HH:MM`, in minutes east of UTC.
fn parse_offset(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    if text.len() != 6 || text.as_bytes()[3] != b':' {
        return None;
    }
    let (hours, minutes) = (digits(&text[1..3])?, digits(&text[4..])?);
    (hours <= 23 && minutes <= 59).then_some(sign * (i64::from(hours) * 60 + i64::from(minutes)))
}

fn digits(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn midnight(day: Date) -> i64 {
    day.at(0, 0, 0, 0).duration_since(EPOCH).as_millis() as i64
}

impl Serialize for Instant {
    /// As the text that `Display` writes.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Instant {
    /// RFC 3339 in UTC with exactly three fraction digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Cannot saturate: MIN and MAX are within jiff's civil range.
        let civil = EPOCH.saturating_add(SignedDuration::from_millis(self.0));
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            civil.year(),
            civil.month(),
            civil.day(),
            civil.hour(),
            civil.minute(),
            civil.second(),
            civil.millisecond()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert_eq!(Instant::parse_rfc3339(text).unwrap().to_string(), utc, "{text}");
        }
    }

    #[test]
    fn refuses_what_it_cannot_keep() {
        for (text, part) in [
            ("2004-01-09T00:00:00.0000Z", "finer"),
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
}
