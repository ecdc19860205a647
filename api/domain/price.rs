use std::fmt;
use std::num::NonZeroU64;

use serde::{Serialize, Serializer};

use super::Invalid;

/// A positive decimal number, kept digit by digit: `coefficient * 10^-scale`.
///
/// An IEEE 754 decimal128 holds every price without rounding, so the database returns the digits that the
/// client sent, including trailing zeros: `"15.50"` stays `"15.50"`.
///
/// Both numbers together have 126 bits. They are packed into two words. The first word is never 0, so a price
/// and an `Option` of a price both take 16 bytes: an upload holds many.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Price {
    /// From the top: the scale, the upper 50 bits of the coefficient, and a bit that is always set.
    high: NonZeroU64,
    /// The lower 64 bits of the coefficient.
    low: u64,
}

/// Where the scale begins in [`Price::high`].
const SCALE_AT: u32 = 51;

// 10^34 - 1 has 113 bits, and 6,176 has 13.
const _: () = assert!(10_u128.pow(Price::MAX_DIGITS as u32) <= 1 << (64 + SCALE_AT - 1));
const _: () = assert!((Price::MAX_SCALE as u64) < 1 << (64 - SCALE_AT));
const _: () = assert!(size_of::<Option<Price>>() == 16);

impl Price {
    /// The largest number of significant digits (IEEE 754-2008, decimal128).
    pub const MAX_DIGITS: usize = 34;
    /// The largest number of digits after the point (IEEE 754-2008: the least exponent of a decimal128).
    pub const MAX_SCALE: u16 = 6176;

    /// # Errors
    /// The coefficient is 0 or has more than 34 digits, or the scale is more than 6,176.
    pub fn new(coefficient: u128, scale: u16) -> Result<Self, Invalid> {
        if coefficient == 0 {
            return Err(Invalid::new("must be greater than 0"));
        }
        if coefficient >= 10_u128.pow(Self::MAX_DIGITS as u32) {
            return Err(Invalid::new("must have at most 34 significant digits"));
        }
        if scale > Self::MAX_SCALE {
            return Err(Invalid::new("must have at most 6176 digits after the point"));
        }
        let high = u64::from(scale) << SCALE_AT | ((coefficient >> 64) as u64) << 1;
        Ok(Self { high: NonZeroU64::MIN | high, low: coefficient as u64 })
    }

    /// Parses plain notation: digits, optionally followed by a point and more digits. No sign, no exponent, and
    /// no leading zero except a single one before the point.
    ///
    /// # Errors
    /// The notation is different, or [`Price::new`] refuses the number.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let notation =
            || Invalid::new("must be a positive decimal number in plain notation, such as \"15.54\"");
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return Err(notation()),
            None => (text, ""),
        };
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty()
            || !digits(whole)
            || !digits(fraction)
            || (whole.len() > 1 && whole.starts_with('0'))
        {
            return Err(notation());
        }
        let significant = format!("{whole}{fraction}");
        let significant = significant.trim_start_matches('0');
        if significant.len() > Self::MAX_DIGITS {
            return Err(Invalid::new("must have at most 34 significant digits"));
        }
        let scale = u16::try_from(fraction.len()).unwrap_or(u16::MAX);
        Self::new(significant.parse().unwrap_or(0), scale)
    }

    /// All digits, as a whole number below 10^34.
    pub fn coefficient(self) -> u128 {
        let upper = (self.high.get() & ((1 << SCALE_AT) - 1)) >> 1;
        u128::from(upper) << 64 | u128::from(self.low)
    }

    /// The number of digits after the point.
    pub fn scale(self) -> u16 {
        (self.high.get() >> SCALE_AT) as u16
    }
}

impl fmt::Debug for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Price({self})")
    }
}

impl Serialize for Price {
    /// As the text that `Display` writes.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Price {
    /// Plain notation, as parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = usize::from(self.scale());
        // At least one digit more than the scale, so that there is always one before the point.
        let digits = format!("{:0>width$}", self.coefficient(), width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        f.write_str(whole)?;
        if !fraction.is_empty() {
            write!(f, ".{fraction}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_the_digits_that_it_parsed() {
        let longest = format!("0.{}1", "0".repeat(6175));
        for text in [
            "15.54",
            "4.82375000001",
            "1",
            "10",
            "0.5",
            "15.50",
            "0.00000001",
            "9999999999999999999999999999999999",
            "0.1234567890123456789012345678901234",
            &longest,
        ] {
            assert_eq!(Price::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn keeps_both_of_its_numbers() {
        for coefficient in [1, 2, u128::from(u64::MAX), 1 << 64, 10_u128.pow(34) - 1] {
            for scale in [0, 1, 15, 4096, Price::MAX_SCALE] {
                let price = Price::new(coefficient, scale).unwrap();
                assert_eq!((price.coefficient(), price.scale()), (coefficient, scale));
            }
        }
    }

    #[test]
    fn refuses_what_is_not_plain() {
        let too_fine = format!("0.{}1", "0".repeat(6176));
        let beyond_u16 = format!("0.{}1", "0".repeat(70_000));
        for text in [
            "",
            "0",
            "0.0",
            "-1",
            "+1",
            "1e3",
            ".5",
            "5.",
            "01",
            "1.2.3",
            "NaN",
            "Infinity",
            "1,5",
            " 1",
            "٣",
            "10000000000000000000000000000000000",
            "1.0000000000000000000000000000000000",
            &too_fine,
            &beyond_u16,
        ] {
            assert!(Price::parse(text).is_err(), "{text:?}");
        }
    }
}
