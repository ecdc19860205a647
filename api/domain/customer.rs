use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::Invalid;
use super::number::{MAX_SAFE_INTEGER, parse_digits};

/// Identifies a customer: a whole number, 1 to 2^53 - 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct CustomerId(u64);

impl CustomerId {
    /// # Errors
    /// The number is outside 1 to 2^53 - 1.
    pub fn new(id: u64) -> Result<Self, Invalid> {
        match id {
            1..=MAX_SAFE_INTEGER => Ok(Self(id)),
            _ => Err(rule()),
        }
    }

    /// The number itself.
    pub fn get(self) -> u64 {
        self.0
    }

    /// A hash that distributes customers evenly, even if their ids have a common stride.
    pub fn spread(self) -> u32 {
        // Fibonacci hashing (Knuth, TAOCP 6.4).
        (self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
    }
}

fn rule() -> Invalid {
    Invalid::new(format!(
        "must be a whole number from 1 to {MAX_SAFE_INTEGER}, in decimal digits without a sign or a leading zero"
    ))
}

impl FromStr for CustomerId {
    type Err = Invalid;

    /// Accepts one spelling of each id, without a sign or a leading zero, so that each history has one URL.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        parse_digits(text).and_then(|id| Self::new(id).ok()).ok_or_else(rule)
    }
}

impl fmt::Display for CustomerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_for_each_customer() {
        assert_eq!("123".parse::<CustomerId>().unwrap().get(), 123);
        assert_eq!("9007199254740991".parse::<CustomerId>().unwrap().get(), MAX_SAFE_INTEGER);
        for text in [
            "",
            "0",
            "-1",
            "+1",
            "01",
            "1.0",
            "1e3",
            " 1",
            "1_2",
            "9007199254740992",
            "١",
            "99999999999999999999",
        ] {
            assert!(text.parse::<CustomerId>().is_err(), "{text:?}");
        }
    }
}
