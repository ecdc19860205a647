//! Dates as files have them.

use crate::domain::{Instant, Invalid};

/// From RFC 3339, the same with a space for the `T`, a bare day (its first moment in UTC), or
/// milliseconds since 1970.
///
/// # Errors
/// Anything else, or a bare number within 10^10 of zero: see [`SMALLEST_MILLIS`].
pub(super) fn parse(text: &str) -> Result<Instant, Invalid> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let instant = parse_millis(text)?;
        if instant.millis().unsigned_abs() < SMALLEST_MILLIS {
            return Err(Invalid::new(
                "must not be a number this small: a number is milliseconds since 1970, and this one looks like seconds, a year or a day without dashes",
            ));
        }
        return Ok(instant);
    }
    match text.as_bytes().get(10) {
        Some(b' ') => Instant::parse_with_separator(text, b' '),
        Some(b'T') => Instant::parse_rfc3339(text),
        None if text.len() == 10 => Instant::parse_date(text),
        _ => Err(Invalid::new(
            "must be a date-time with an offset, such as \"2004-01-09T00:00:00Z\" or \"2004-01-09 00:00:00+00:00\", a day, such as \"2004-01-09\", or milliseconds since 1970",
        )),
    }
}

/// From milliseconds since 1970 in decimal digits, negative before; however small.
///
/// # Errors
/// Not such a number, or outside the years 0000 to 9999.
pub(super) fn parse_millis(text: &str) -> Result<Instant, Invalid> {
    // `i64::from_str` alone would take a plus sign.
    let millis = text.parse().ok().filter(|_| !text.starts_with('+'));
    millis.map_or_else(
        || Err(Invalid::new("must be whole milliseconds since 1970, in the years 0000 to 9999")),
        Instant::from_millis,
    )
}

/// A smaller bare number is refused: seconds do not reach 10^10 before the year 2286, and
/// milliseconds are beyond it since April 1970. Taking one for the other would put a whole file into
/// January 1970, in a store that never deletes.
const SMALLEST_MILLIS: u64 = 10_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_forms_are_read() {
        for (text, instant) in [
            ("2004-01-09T00:00:00Z", "2004-01-09T00:00:00.000Z"),
            ("2004-01-09T01:30:00.5+01:30", "2004-01-09T00:00:00.500Z"),
            ("2004-01-09 00:00:00+00:00", "2004-01-09T00:00:00.000Z"),
            ("2004-01-09", "2004-01-09T00:00:00.000Z"),
            ("1073606400000", "2004-01-09T00:00:00.000Z"),
            ("-1073606400000", "1935-12-25T00:00:00.000Z"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), instant, "{text}");
        }
        assert_eq!(parse_millis("-1").unwrap().to_string(), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
        for (text, part) in [
            ("1073606400", "seconds"),
            ("20040109", "without dashes"),
            ("2004", "a year"),
            ("2004-01-09 00:00:00", "offset"),
            ("09.01.2004", "a day"),
            ("01/09/2004 10:00", "RFC 3339"),
            ("", "offset"),
            ("-", "offset"),
            ("1.5e12", "offset"),
            ("99999999999999999999", "0000 to 9999"),
            ("999999999999999", "0000 to 9999"),
            ("2004-01-09T00:00:00.123456Z", "finer"),
        ] {
            let sentence = parse(text).unwrap_err().to_string();
            assert!(sentence.contains(part), "{text}: {sentence}");
        }
        assert!(parse_millis("+1").is_err());
    }
}
