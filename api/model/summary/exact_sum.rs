//! Sums of integers and decimals without rounding, and quotients of two sums, rounded once.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint, Sign};
use smallvec::SmallVec;

use super::whole_number::WholeNumber;
use crate::item::Decimal;

/// A sum of numbers and products. Its value does not depend on the order in which they are added.
///
/// Numbers are added by how many digits they have after the point, so that an addition is short whatever the
/// others have: in the order of these scales, of which mostly there is one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExactSum(SmallVec<[(u32, WholeNumber); 1]>);

impl ExactSum {
    /// Adds a number.
    pub(crate) fn add(&mut self, number: &Decimal) {
        let (coefficient, scale) = parts(number);
        self.add_parts(&coefficient, scale);
    }

    /// Adds the product of two numbers.
    pub(crate) fn add_product(&mut self, one: &Decimal, other: &Decimal) {
        let ((one, scale), (other, more)) = (parts(one), parts(other));
        self.add_parts(&one.times(&other), scale + more);
    }

    /// Adds all that another sum has.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (scale, coefficient) in &other.0 {
            self.add_parts(coefficient, *scale);
        }
    }

    /// What it has of each number of digits after the point, in the order of these numbers.
    pub(crate) fn terms(&self) -> &[(u32, WholeNumber)] {
        &self.0
    }

    /// Adds a term of more digits after the point than all others.
    pub(crate) fn push(&mut self, scale: u32, coefficient: WholeNumber) {
        self.0.push((scale, coefficient));
    }

    fn add_parts(&mut self, coefficient: &WholeNumber, scale: u32) {
        match self.0.binary_search_by_key(&scale, |(scale, _)| *scale) {
            Ok(at) => self.0[at].1.add(coefficient),
            Err(at) => self.0.insert(at, (scale, coefficient.clone())),
        }
    }

    /// The digits of the sum, and how many of them are after the point: as many as any of the numbers has
    /// there.
    fn total(&self) -> (BigInt, u32) {
        self.0.iter().fold((BigInt::ZERO, 0), |(sum, reached), (scale, coefficient)| {
            (sum * BigInt::from(power(scale - reached)) + BigInt::from(coefficient), *scale)
        })
    }

    /// The most digits after the point that it has.
    pub(crate) fn scale(&self) -> usize {
        self.0.last().map_or(0, |(scale, _)| *scale as usize)
    }

    /// The sum as a decimal. It loses zeros at its end if it would have too many digits. `None`: it has more
    /// than 34 significant digits.
    pub(crate) fn to_decimal(&self) -> Option<Decimal> {
        let (coefficient, scale) = self.total();
        let mut digits = coefficient.magnitude().to_string();
        let mut scale = scale as usize;
        while digits.len() > Decimal::MAX_DIGITS && scale > 0 && digits.ends_with('0') {
            digits.pop();
            scale -= 1;
        }
        let fits = digits.len() <= Decimal::MAX_DIGITS;
        Decimal::of_digits(coefficient.sign() == Sign::Minus, fits.then(|| digits.parse().ok())??, scale)
    }

    /// Whether the sum is 0.
    pub(crate) fn is_zero(&self) -> bool {
        self.total().0 == BigInt::ZERO
    }

    /// This sum by another one, which is not 0: rounded once to 34 significant digits, and to 6,176 after the
    /// point, half to even; without zeros at the end. `None`: it needs more digits before the point.
    pub(crate) fn divided_by(&self, divisor: &Self) -> Option<Decimal> {
        let ((dividend, scale), (divisor, less)) = (self.total(), divisor.total());
        let negative = dividend.sign() != divisor.sign() && dividend != BigInt::ZERO;
        let exponent = i64::from(less) - i64::from(scale);
        let (dividend, divisor) = (dividend.magnitude(), divisor.magnitude());
        let length = |number: &BigUint| number.to_string().len() as i64;
        let most = Decimal::MAX_DIGITS as i64;
        // With this many more digits the quotient has 34 or 35 of them.
        let mut shift = most - (length(dividend) - length(divisor));
        let limit = BigUint::from(10_u128.pow(Decimal::MAX_DIGITS as u32));
        if scaled(dividend, shift) / scaled(divisor, -shift) >= limit {
            shift -= 1;
        }
        shift = shift.min(Decimal::MAX_SCALE as i64 + exponent);
        let mut quotient = rounded(&scaled(dividend, shift), &scaled(divisor, -shift));
        let mut scale = shift - exponent;
        let ten = BigUint::from(10_u32);
        // What was rounded up to a power of ten has one digit too many, which is 0.
        while (scale > 0 || quotient >= limit)
            && quotient != BigUint::ZERO
            && &quotient % &ten == BigUint::ZERO
        {
            quotient /= &ten;
            scale -= 1;
        }
        if quotient == BigUint::ZERO {
            return Some(Decimal::ZERO);
        }
        let quotient = if scale < 0 { quotient * power(scale.unsigned_abs() as u32) } else { quotient };
        Decimal::of_digits(negative, u128::try_from(&quotient).ok()?, scale.max(0) as usize)
    }
}

fn parts(number: &Decimal) -> (WholeNumber, u32) {
    let (negative, coefficient, scale) = number.digits();
    // It has 34 digits at most.
    let signed = if negative { -(coefficient as i128) } else { coefficient as i128 };
    (WholeNumber::Short(signed), scale as u32)
}

fn power(exponent: u32) -> BigUint {
    BigUint::from(10_u32).pow(exponent)
}

/// With this many more digits; the same number if it is negative.
fn scaled(number: &BigUint, shift: i64) -> BigUint {
    number * power(shift.max(0) as u32)
}

/// The quotient as a whole number, half to even.
fn rounded(dividend: &BigUint, divisor: &BigUint) -> BigUint {
    let quotient = dividend / divisor;
    let rest = (dividend - &quotient * divisor) * 2_u32;
    match rest.cmp(divisor) {
        Ordering::Greater => quotient + 1_u32,
        Ordering::Equal if quotient.bit(0) => quotient + 1_u32,
        _ => quotient,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        Decimal::of_bytes(text.parse::<bson::Decimal128>().unwrap().bytes()).unwrap()
    }

    fn sum(numbers: &[&str]) -> ExactSum {
        let mut sum = ExactSum::default();
        numbers.iter().for_each(|text| sum.add(&number(text)));
        sum
    }

    fn text(decimal: Option<Decimal>) -> Option<String> {
        decimal.map(|decimal| decimal.to_string())
    }

    #[test]
    fn adds_without_rounding() {
        let nines = "9999999999999999999999999999999999";
        let smallest = format!("0.{}1", "0".repeat(6175));
        for (numbers, expected) in [
            (&["15.50", "0.5"][..], Some("16.00")),
            (&[], Some("0")),
            (&["-1.5", "1.50"], Some("0.00")),
            (&["-0.0", "-0"], Some("0.0")),
            (&["0.1", "0.2"], Some("0.3")),
            (&[nines, "0.5"], None),
            (&[nines, "1"], None),
            (&[nines, "0.00"], Some(nines)),
            (&[nines, nines, "-9999999999999999999999999999999998", "-1"], Some(nines)),
            (&[&format!("-{nines}"), "0.5", "-0.5"], Some("-9999999999999999999999999999999999")),
            (&[nines, &smallest], None),
            (&["1", &smallest, &format!("-{smallest}")], Some("1.000000000000000000000000000000000")),
            (&[&smallest, &smallest], Some(&smallest.replace('1', "2"))),
        ] {
            assert_eq!(text(sum(numbers).to_decimal()).as_deref(), expected, "{numbers:?}");
        }
    }

    #[test]
    fn divides_and_rounds_once() {
        let nines = "9999999999999999999999999999999999";
        for (dividend, divisor, expected) in [
            ("31.08", "2", "15.54"),
            ("10", "4", "2.5"),
            ("-10", "4", "-2.5"),
            ("10", "-4", "-2.5"),
            ("0.00", "-3", "0"),
            ("1000", "10", "100"),
            ("1", "3", "0.3333333333333333333333333333333333"),
            ("-2", "3", "-0.6666666666666666666666666666666667"),
            ("200", "3", "66.66666666666666666666666666666667"),
            (nines, "1", nines),
            (nines, "10", "999999999999999999999999999999999.9"),
            // 35 digits, of which the last is 5: half to even.
            ("6000000000000000000000000000000001", "4", "1500000000000000000000000000000000"),
            ("6000000000000000000000000000000003", "4", "1500000000000000000000000000000001"),
            ("2000000000000000000000000000000001", "2", "1000000000000000000000000000000000"),
            ("2000000000000000000000000000000003", "2", "1000000000000000000000000000000002"),
        ] {
            let quotient = sum(&[dividend]).divided_by(&sum(&[divisor]));
            assert_eq!(text(quotient).as_deref(), Some(expected), "{dividend} / {divisor}");
        }
        let mut product = ExactSum::default();
        product.add_product(&number(nines), &number("10"));
        product.add(&number("5"));
        assert_eq!(text(product.divided_by(&sum(&["10"]))), None, "9…9.5 rounds to 35 digits");
        let up = text(product.divided_by(&sum(&["100"])));
        assert_eq!(
            up.as_deref(),
            Some("1000000000000000000000000000000000"),
            "9…9.95 rounds to a power of ten"
        );
        let tiny = format!("0.{}1", "0".repeat(6175));
        let half = |times: usize| text(sum(&vec![&*tiny; times]).divided_by(&sum(&["2"]))).unwrap();
        assert_eq!(half(1), "0", "half of the smallest number is as near to 0");
        assert_eq!(half(3), tiny.replace('1', "2"));
    }
}
