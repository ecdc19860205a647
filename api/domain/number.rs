//! Whole numbers in requests and answers.

/// 2^53 - 1, the greatest whole number that a JavaScript client reads exactly
/// (`Number.MAX_SAFE_INTEGER`, ECMA-262). No number in the API is greater.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Parses a number of decimal digits: no sign, no leading zero, at most 20 digits.
pub(super) fn parse_digits(text: &str) -> Option<u64> {
    let canonical = !text.starts_with('0') || text == "0";
    (canonical && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
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
