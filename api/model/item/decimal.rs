//! Decimal numbers of at most 34 digits, kept digit by digit, and their BSON.
//!
//! IEEE 754-2008, section 3.5.2, binary integer encoding: a sign bit, 14 bits of exponent biased by
//! 6176, 113 bits of coefficient; BSON stores the 128 bits little-endian.

use std::cmp::Ordering;
use std::fmt;

use super::number::shortest_double;

/// `coefficient * 10^exponent`, or its negative. `"15.50"` stays `"15.50"`.
#[derive(Debug, Clone, Copy)]
pub struct Decimal {
    negative: bool,
    /// Below 10^34.
    coefficient: u128,
    exponent: i32,
}

/// Why a text is not a [`Decimal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotDecimal {
    /// It is not written in plain notation.
    Notation,
    /// It has more than 34 significant digits.
    Digits,
}

const BIAS: i32 = 6176;
const COEFFICIENT_BITS: u32 = 113;

impl Decimal {
    /// Without digits after the point.
    pub const ZERO: Self = Self { negative: false, coefficient: 0, exponent: 0 };
    /// The largest number of significant digits (IEEE 754-2008, decimal128).
    pub const MAX_DIGITS: usize = 34;
    /// The largest number of digits after the point (IEEE 754-2008: the least exponent of a decimal128).
    pub const MAX_SCALE: usize = BIAS as usize;

    /// Parses plain notation: an optional minus sign, digits, and optionally a point and more digits. No
    /// exponent, and no leading zero except a single one before the point. There may be too many digits after
    /// the point: see [`Decimal::bytes`].
    pub(crate) fn parse(text: &str) -> Result<Self, NotDecimal> {
        let (negative, unsigned) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = [whole, fraction].concat();
        let zero_leads = whole.len() > 1 && whole.starts_with('0');
        if whole.is_empty()
            || zero_leads
            || unsigned.ends_with('.')
            || !digits.bytes().all(|digit| digit.is_ascii_digit())
        {
            return Err(NotDecimal::Notation);
        }
        let significant = digits.trim_start_matches('0');
        if significant.len() > Self::MAX_DIGITS {
            return Err(NotDecimal::Digits);
        }
        let exponent = i32::try_from(fraction.len()).map_or(i32::MIN, |scale| -scale);
        Ok(Self { negative, coefficient: significant.parse().unwrap_or(0), exponent })
    }

    /// Parses a JSON number, which may have an exponent. `None`: it has more than 34 significant digits, or
    /// no decimal128 is as small or as great.
    pub(crate) fn parse_number(text: &str) -> Option<Self> {
        let (plain, exponent) = match text.split_once(['e', 'E']) {
            Some((plain, exponent)) => (plain, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let mut number = Self::parse(plain).ok()?;
        number.exponent = number.exponent.checked_add(exponent)?;
        (-2 * BIAS..=2 * BIAS).contains(&number.exponent).then_some(number)
    }

    /// An integer.
    pub fn of_integer(number: i64) -> Self {
        Self { negative: number < 0, coefficient: number.unsigned_abs().into(), exponent: 0 }
    }

    /// The number with these digits, `scale` of them after the point. `None`: it has more than 34 digits, or
    /// more than 6,176 after the point.
    pub fn of_digits(negative: bool, coefficient: u128, scale: usize) -> Option<Self> {
        let fits = coefficient < 10_u128.pow(Self::MAX_DIGITS as u32) && scale <= Self::MAX_SCALE;
        fits.then_some(Self { negative, coefficient, exponent: -(scale as i32) })
    }

    /// Whether it is below zero or a negative zero, its digits, and how many of them are after the point.
    /// Only for numbers in plain notation, as all stored ones are.
    pub fn digits(&self) -> (bool, u128, usize) {
        (self.negative, self.coefficient, self.exponent.min(0).unsigned_abs() as usize)
    }

    /// -1, 0 or 1.
    pub(crate) fn sign(&self) -> i8 {
        i8::from(self.coefficient > 0) * if self.negative { -1 } else { 1 }
    }

    /// By value, without rounding: 1.0 is 1, and -0 is 0.
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self.sign(), other.sign()) {
            (1, 1) => self.compare_magnitude(other),
            (-1, -1) => other.compare_magnitude(self),
            (one, another) => one.cmp(&another),
        }
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        // Most numbers of a property have as many digits after the point.
        if self.exponent == other.exponent {
            return self.coefficient.cmp(&other.coefficient);
        }
        self.magnitude().cmp(&other.magnitude())
    }

    /// The place of the first digit, and the digits. Zero has none.
    fn magnitude(&self) -> (i64, String) {
        let digits = self.coefficient.to_string();
        (i64::from(self.exponent) + digits.len() as i64, digits.trim_end_matches('0').to_owned())
    }

    /// Its decimal128, unless it has more than 6,176 digits after the point.
    pub(crate) fn bytes(&self) -> Option<[u8; 16]> {
        let exponent = self.exponent.checked_add(BIAS).and_then(|exponent| u128::try_from(exponent).ok())?;
        let sign = u128::from(self.negative) << 127;
        Some((sign | exponent << COEFFICIENT_BITS | self.coefficient).to_le_bytes())
    }

    /// Appends plain notation: as parsed, unless it had an exponent.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
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
        if self.coefficient > 0 {
            out.resize(out.len() + self.exponent.max(0) as usize, b'0');
        }
    }

    /// Reads a decimal128. `None` for infinities, NaN, and numbers that have more than 34 digits in plain
    /// notation.
    pub fn of_bytes(bytes: [u8; 16]) -> Option<Self> {
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

impl fmt::Display for Decimal {
    /// In plain notation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write(&mut text);
        f.write_str(str::from_utf8(&text).expect("digits are UTF-8"))
    }
}

/// The plain notation of a decimal128, with its digits as they were sent. `None` for infinities, NaN, and
/// numbers that have more than 34 digits in plain notation.
pub fn plain(bytes: [u8; 16]) -> Option<String> {
    Decimal::of_bytes(bytes).map(|number| number.to_string())
}

/// A number of JSON, which may have an exponent, in plain notation with all its digits: `1E-7` becomes
/// `0.0000001`. `None`: it is no such number, or has more than 34 significant digits before its exponent.
pub fn plain_number(text: &str) -> Option<String> {
    Decimal::parse_number(text).map(|number| number.to_string())
}

/// The digits of a whole number of JSON: `5` of `5.0`, `5.00` and `0.5E1`. `None`: it is not whole, or as
/// [`plain_number`].
pub fn whole_number(text: &str) -> Option<String> {
    let mut plain = plain_number(text)?;
    if let Some((whole, fraction)) = plain.split_once('.') {
        let whole = fraction.bytes().all(|digit| digit == b'0').then_some(whole.len())?;
        plain.truncate(whole);
    }
    Some(plain)
}

/// Whether a double keeps all digits of a number of JSON: it is written with these digits, zeros at the end
/// aside.
pub fn is_a_double(text: &str) -> bool {
    let shortest = shortest_double(text).and_then(|shortest| Decimal::parse_number(&shortest));
    let number = Decimal::parse_number(text);
    number.zip(shortest).is_some_and(|(number, shortest)| number.compare(&shortest) == Ordering::Equal)
}

/// Whether `number` is a multiple of `of`, which is positive: both as the shortest decimal numbers that a
/// double is written with, so that `0.3` is a multiple of `0.1`.
pub(crate) fn is_multiple(number: f64, of: f64) -> bool {
    let shortest = |number: f64| Decimal::parse_number(ryu_js::Buffer::new().format_finite(number));
    let (Some(number), Some(of)) = (shortest(number), shortest(of)) else { return false };
    match number.exponent - of.exponent {
        // Shortest digits are below 10^21, so ten times a remainder fits.
        shift @ 0.. => {
            (0..shift).fold(number.coefficient % of.coefficient, |rest, _| rest * 10 % of.coefficient) == 0
        }
        shift => {
            let power = 10_u128.checked_pow(shift.unsigned_abs());
            let of = power.and_then(|power| power.checked_mul(of.coefficient));
            // A product that does not fit is greater than the number.
            of.map_or(number.coefficient == 0, |of| number.coefficient.is_multiple_of(of))
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::Decimal128;

    use super::*;

    fn written(decimal: Decimal) -> String {
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
            assert_eq!(written(Decimal::parse(text).unwrap()), text);
            assert_eq!(written(through_bson(text)), text);
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
        let read = |text: &str| plain(text.parse::<Decimal128>().unwrap().bytes());
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
    fn exponents_become_digits() {
        for (text, plain, whole) in [
            ("1E-7", "0.0000001", None),
            ("0E-8", "0.00000000", Some("0")),
            ("1E+3", "1000", Some("1000")),
            ("-1.50e+1", "-15.0", Some("-15")),
            ("0e40", "0", Some("0")),
            ("5.00", "5.00", Some("5")),
            ("7.5", "7.5", None),
            ("1e35", &format!("1{}", "0".repeat(35)), Some(&*format!("1{}", "0".repeat(35)))),
        ] {
            assert_eq!((plain_number(text).as_deref(), whole_number(text).as_deref()), (Some(plain), whole));
        }
        for text in ["", "NaN", "1e", "e3", "+1", "1E+99999"] {
            assert_eq!((plain_number(text), whole_number(text)), (None, None), "{text}");
        }
    }

    #[test]
    fn a_double_has_so_many_digits() {
        for text in ["0.1", "1.50", "9007199254740992", "1e300", "100000000000000000000000", "-0"] {
            assert!(is_a_double(text), "{text}");
        }
        for text in ["9007199254740993", "1152921504606846976", "0.10000000000000000001", "1e400", "x"] {
            assert!(!is_a_double(text), "{text}");
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

    #[test]
    fn multiples_are_decimal() {
        for (number, of) in [
            (0.3, 0.1),
            (4.35, 0.01),
            (1e22, 1.0),
            (1e300, 7e-300_f64.max(1e-5)),
            (0.0, 0.1),
            (-7.5, 2.5),
            (1e-7, 1e-8),
            (19.99, 0.01),
        ] {
            assert!(is_multiple(number, of), "{number} of {of}");
        }
        for (number, of) in [(0.35, 0.1), (1e-8, 1e-7), (10.0, 3.0), (1e22, 3.0), (5e-324, 1e300)] {
            assert!(!is_multiple(number, of), "{number} of {of}");
        }
    }
}
