use std::fmt;
use std::num::NonZeroU64;

use serde::{Serialize, Serializer};

use super::Invalid;

/// A positive decimal number, kept digit by digit: `coefficient * 10^-scale`.
///
/// It is what an IEEE 754 decimal128 holds without rounding, so the database gives back the digits
/// that the client sent, trailing zeros included: `"15.50"` stays `"15.50"`.
///
/// Both numbers together have 126 bits. They are packed into two words, the first of which is never 0, so that a price
/// takes 16 bytes, and an `Option` of one no more: an upload holds many.
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
    /// The most significant digits (IEEE 754-2008, decimal128).
    pub const MAX_DIGITS: usize = 34;
    /// The most digits behind the point (IEEE 754-2008: the least exponent of a decimal128).
    pub const MAX_SCALE: u16 = 6176;

    /// # Errors
    /// Zero, more than 34 digits, or more than 6,176 places.
    pub fn new(coefficient: u128, scale: u16) -> Result<Self, Invalid> {
        if coefficient == 0 {
            return Err(Invalid::new("must be greater than 0"));
        }
        if coefficient >= 10_u128.pow(Self::MAX_DIGITS as u32) {
            return Err(Invalid::new("must have at most 34 significant digits"));
        }
        if scale > Self::MAX_SCALE {
            return Err(Invalid::new("must have at most 6176 digits behind the point"));
        }
        let high = u64::from(scale) << SCALE_AT | ((coefficient >> 64) as u64) << 1;
        Ok(Self { high: NonZeroU64::MIN | high, low: coefficient as u64 })
    }

    /// From plain notation: digits, and a point with digits behind it or none. No sign, no
    /// exponent, no leading zero but the one before the point.
    ///
    /// # Errors
    /// Another notation, or a number that [`Price::new`] refuses.
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

    /// All its digits, as a whole number below 10^34.
    pub fn coefficient(self) -> u128 {
        let upper = (self.high.get() & ((1 << SCALE_AT) - 1)) >> 1;
        u128::from(upper) << 64 | u128::from(self.low)
    }

    /// How many of them are behind the point.
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
        // One digit more than the scale, so that there is always one before the point.
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
    fn gives_back_the_digits_it_was_given() {
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
