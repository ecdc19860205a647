//! Whole numbers in requests and answers.

use std::ops::RangeInclusive;

use super::Invalid;

/// 2^53 - 1, the greatest whole number that a JavaScript client reads exactly
/// (`Number.MAX_SAFE_INTEGER`, ECMA-262). No number in the API is greater.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Parses a number of decimal digits: no sign, no leading zero, at most 20 digits.
pub(crate) fn parse_digits(text: &str) -> Option<u64> {
    let canonical = !text.starts_with('0') || text == "0";
    (canonical && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// A whole number of this range.
///
/// # Errors
/// There is no number, or it is outside of the range.
pub(crate) fn whole(number: Option<u64>, range: RangeInclusive<u64>) -> Result<u64, Invalid> {
    number.filter(|number| range.contains(number)).ok_or_else(|| {
        let (least, most) = range.into_inner();
        Invalid::new(format!(
            "must be a whole number from {least} to {most}, in decimal digits without a sign or a leading zero"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_bounded() {
        assert_eq!(parse_digits("18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_digits("18446744073709551616"), None);
        assert_eq!(parse_digits(""), None);
    }
}
