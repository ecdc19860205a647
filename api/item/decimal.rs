//! Decimal numbers of at most 34 digits, kept digit by digit, and their BSON.
//!
//! IEEE 754-2008, section 3.5.2, binary integer encoding: a sign bit, 14 bits of exponent biased by
//! 6176, 113 bits of coefficient; BSON stores the 128 bits little-endian.

use std::cmp::Ordering;

/// `coefficient * 10^exponent`, or its negative. `"15.50"` stays `"15.50"`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decimal {
    negative: bool,
    /// Below 10^34.
    coefficient: u128,
    exponent: i32,
}

/// Why a text is not a [`Decimal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotDecimal {
    /// It is not written in plain notation.
    Notation,
    /// It has more than 34 significant digits.
    Digits,
}

const BIAS: i32 = 6176;
const COEFFICIENT_BITS: u32 = 113;

impl Decimal {
    /// The largest number of significant digits (IEEE 754-2008, decimal128).
    pub(super) const MAX_DIGITS: usize = 34;
    /// The largest number of digits after the point (IEEE 754-2008: the least exponent of a decimal128).
    pub(super) const MAX_SCALE: usize = BIAS as usize;

    /// Parses plain notation: an optional minus sign, digits, and optionally a point and more digits. No exponent, and
    /// no leading zero except a single one before the point. There may be too many digits after the point: see
    /// [`Decimal::bytes`].
    pub(super) fn parse(text: &str) -> Result<Self, NotDecimal> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits.as_bytes()),
            None => (false, text.as_bytes()),
        };
        let (mut coefficient, mut significant, mut point) = (0_u128, 0, None);
        for (at, byte) in digits.iter().enumerate() {
            match byte {
                b'0'..=b'9' => {
                    significant += usize::from(significant > 0 || *byte != b'0');
                    if significant <= Self::MAX_DIGITS {
                        coefficient = coefficient * 10 + u128::from(byte - b'0');
                    }
                }
                b'.' if point.is_none() => point = Some(at),
                _ => return Err(NotDecimal::Notation),
            }
        }
        let whole = point.unwrap_or(digits.len());
        let scale = point.map(|point| digits.len() - point - 1);
        if whole == 0 || (whole > 1 && digits[0] == b'0') || scale == Some(0) {
            return Err(NotDecimal::Notation);
        }
        if significant > Self::MAX_DIGITS {
            return Err(NotDecimal::Digits);
        }
        let exponent = i32::try_from(scale.unwrap_or(0)).map_or(i32::MIN, |scale| -scale);
        Ok(Self { negative, coefficient, exponent })
    }

    /// Parses a JSON number, which may have an exponent. `None`: it has more than 34 significant digits, or no
    /// decimal128 is as small or as great.
    pub(super) fn parse_number(text: &str) -> Option<Self> {
        let (plain, exponent) = match text.split_once(['e', 'E']) {
            Some((plain, exponent)) => (plain, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let mut number = Self::parse(plain).ok()?;
        number.exponent = number.exponent.checked_add(exponent)?;
        (-2 * BIAS..=2 * BIAS).contains(&number.exponent).then_some(number)
    }

    /// -1, 0 or 1.
    pub(super) fn sign(&self) -> i8 {
        match (self.coefficient, self.negative) {
            (0, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        }
    }

    /// By value, without rounding: 1.0 is 1, and -0 is 0.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        match (self.sign(), other.sign()) {
            (1, 1) => self.compare_magnitude(other),
            (-1, -1) => other.compare_magnitude(self),
            (one, another) => one.cmp(&another),
        }
    }

    /// Both are not zero.
    fn compare_magnitude(&self, other: &Self) -> Ordering {
        let digits = |number: &Self| number.coefficient.ilog10() as i32;
        let first_digit = |number: &Self| i64::from(digits(number)) + i64::from(number.exponent);
        first_digit(self).cmp(&first_digit(other)).then_with(|| {
            // The first digits have the same place: with as many digits, the coefficients can be compared.
            let longest = digits(self).max(digits(other));
            let padded = |number: &Self| number.coefficient * 10_u128.pow((longest - digits(number)) as u32);
            padded(self).cmp(&padded(other))
        })
    }

    /// Its decimal128, unless it has more than 6,176 digits after the point.
    pub(super) fn bytes(&self) -> Option<[u8; 16]> {
        let exponent = self.exponent.checked_add(BIAS).and_then(|exponent| u128::try_from(exponent).ok())?;
        let sign = u128::from(self.negative) << 127;
        Some((sign | exponent << COEFFICIENT_BITS | self.coefficient).to_le_bytes())
    }

    /// Reads a decimal128. `None` for infinities, NaN, and numbers that have more than 34 digits in plain notation.
    pub(super) fn of_bytes(bytes: [u8; 16]) -> Option<Self> {
        let bits = u128::from_le_bytes(bytes);
        let (negative, rest) = (bits >> 127 == 1, bits & (u128::MAX >> 1));
        // Two leading ones mark infinities, NaN, and coefficients beyond 34 digits.
        if rest >> 125 == 0b11 {
            return None;
        }
        let exponent = (rest >> COEFFICIENT_BITS) as i32 - BIAS;
        let coefficient = rest & ((1 << COEFFICIENT_BITS) - 1);
        let below = |coefficient: &u128| *coefficient < 10_u128.pow(Self::MAX_DIGITS as u32);
        if exponent <= 0 {
            return below(&coefficient).then_some(Self { negative, coefficient, exponent });
        }
        // A positive exponent, such as 1E+3, comes from another program: convert it to plain notation.
        let shift = if coefficient == 0 { 0 } else { exponent as u32 };
        let power = 10_u128.checked_pow(shift)?;
        let coefficient = coefficient.checked_mul(power).filter(below)?;
        Some(Self { negative, coefficient, exponent: 0 })
    }
}

impl Decimal {
    /// Appends plain notation, as parsed.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let scale = self.exponent.min(0).unsigned_abs() as usize;
        let mut buffer = [b'0'; 39];
        let (mut at, mut rest) = (buffer.len(), self.coefficient);
        let mut push = |digit: u8| {
            at -= 1;
            buffer[at] = b'0' + digit;
        };
        // Division of 64 bits is many times faster, and enough for most numbers.
        while rest > u128::from(u64::MAX) {
            push((rest % 10) as u8);
            rest /= 10;
        }
        let mut rest = rest as u64;
        while rest != 0 {
            push((rest % 10) as u8);
            rest /= 10;
        }
        let digits = &buffer[at..];
        if self.negative {
            out.push(b'-');
        }
        // At least one digit before the point.
        match digits.len().checked_sub(scale).filter(|whole| *whole > 0) {
            Some(whole) => {
                out.extend_from_slice(&digits[..whole]);
                if scale > 0 {
                    out.push(b'.');
                }
                out.extend_from_slice(&digits[whole..]);
            }
            None => {
                out.push(b'0');
                if scale > 0 {
                    out.push(b'.');
                }
                out.resize(out.len() + scale - digits.len(), b'0');
                out.extend_from_slice(digits);
            }
        }
    }
}

/// The plain notation of a decimal128, with its digits as they were sent. `None` for infinities, NaN, and numbers that have
/// more than 34 digits in plain notation.
pub fn plain(bytes: [u8; 16]) -> Option<String> {
    let mut text = Vec::new();
    Decimal::of_bytes(bytes)?.write(&mut text);
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use mongodb::bson::Decimal128;

    use super::*;

    fn plain(decimal: Decimal) -> String {
        let mut out = Vec::new();
        decimal.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn through_bson(text: &str) -> Decimal {
        Decimal::of_bytes(Decimal::parse(text).unwrap().bytes().unwrap()).unwrap()
    }

    #[test]
    fn writes_the_digits_that_it_parsed() {
        let longest = format!("0.{}1", "0".repeat(6175));
        let zeros = format!("0.{}", "0".repeat(6176));
        for text in [
            "15.54",
            "4.82375000001",
            "1",
            "10",
            "0",
            "0.5",
            "0.0",
            "0.10",
            "-0.00",
            "-15.50",
            "0.00000001",
            "9999999999999999999999999999999999",
            "-0.1234567890123456789012345678901234",
            "1000000000.000000000000000000000000",
            &longest,
            &zeros,
        ] {
            assert_eq!(plain(Decimal::parse(text).unwrap()), text);
            assert_eq!(plain(through_bson(text)), text);
        }
    }

    #[test]
    fn agrees_with_the_drivers_reading_of_the_same_bits() {
        for text in
            ["15.54", "15.50", "1", "-3", "0.00000001", "9999999999999999999999999999999999", "4.82375000001"]
        {
            let bytes = Decimal::parse(text).unwrap().bytes().unwrap();
            assert_eq!(text.parse::<Decimal128>().unwrap().bytes(), bytes, "{text}");
        }
    }

    #[test]
    fn reads_numbers_of_other_programs() {
        let read = |text: &str| {
            let bytes = text.parse::<Decimal128>().unwrap().bytes();
            Decimal::of_bytes(bytes).map(plain)
        };
        for (text, plain) in [
            ("1E+3", "1000"),
            ("-12E+2", "-1200"),
            ("0E+40", "0"),
            ("1E+33", &format!("1{}", "0".repeat(33))),
        ] {
            assert_eq!(read(text).as_deref(), Some(plain));
        }
        for text in ["NaN", "Infinity", "-Infinity", "1E+34", "1E+6000"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_plain() {
        for text in [
            "", "-", "+1", "1e3", ".5", "5.", "-.5", "01", "-01", "1.2.3", "NaN", "Infinity", "1,5", " 1",
            "٣", "--1", ".",
        ] {
            assert_eq!(Decimal::parse(text).unwrap_err(), NotDecimal::Notation, "{text:?}");
        }
        for text in ["10000000000000000000000000000000000", "1.0000000000000000000000000000000000"] {
            assert_eq!(Decimal::parse(text).unwrap_err(), NotDecimal::Digits, "{text:?}");
        }
        for text in [format!("0.{}1", "0".repeat(6176)), format!("0.{}1", "0".repeat(70_000))] {
            assert_eq!(Decimal::parse(&text).unwrap().bytes(), None);
        }
    }

    #[test]
    fn compares_by_value() {
        let ascending = [
            "-1e40",
            "-9999999999999999999999999999999999",
            "-10",
            "-1.5",
            "-1",
            "-1e-7",
            "0",
            "1e-6000",
            "0.1",
            "0.10000000000000000000000001",
            "1",
            "1.0000000000000000000001",
            "9.99",
            "10",
            "100",
            "9999999999999999999999999999999999",
            "1e34",
        ]
        .map(|text| Decimal::parse_number(text).unwrap());
        for (at, one) in ascending.iter().enumerate() {
            for (other_at, other) in ascending.iter().enumerate() {
                assert_eq!(one.compare(other), at.cmp(&other_at), "{one:?} {other:?}");
            }
        }
        for (one, other) in [("1", "1.00"), ("-0", "0.0"), ("100", "1e2"), ("0.5", "5E-1")] {
            let (one, other) = (Decimal::parse_number(one).unwrap(), Decimal::parse_number(other).unwrap());
            assert_eq!(one.compare(&other), Ordering::Equal);
        }
    }
}
