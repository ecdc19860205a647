//! Whole numbers of any length.

use num_bigint::BigInt;

/// A whole number. It is short if it fits, and then needs no memory elsewhere: nearly all sums are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WholeNumber {
    Short(i128),
    Long(BigInt),
}

impl WholeNumber {
    pub(crate) fn add(&mut self, other: &Self) {
        let short = self.shorts(other).and_then(|(one, other)| one.checked_add(other));
        *self = match short {
            Some(sum) => Self::Short(sum),
            None => (BigInt::from(&*self) + BigInt::from(other)).into(),
        };
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        let short = self.shorts(other).and_then(|(one, other)| one.checked_mul(other));
        short.map_or_else(|| (BigInt::from(self) * BigInt::from(other)).into(), Self::Short)
    }

    fn shorts(&self, other: &Self) -> Option<(i128, i128)> {
        match (self, other) {
            (Self::Short(one), Self::Short(other)) => Some((*one, *other)),
            _ => None,
        }
    }
}

impl From<&WholeNumber> for BigInt {
    fn from(number: &WholeNumber) -> Self {
        match number {
            WholeNumber::Short(number) => (*number).into(),
            WholeNumber::Long(number) => number.clone(),
        }
    }
}

impl From<BigInt> for WholeNumber {
    fn from(number: BigInt) -> Self {
        i128::try_from(&number).map_or(Self::Long(number), Self::Short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_short_again() {
        let greatest = || WholeNumber::Short(i128::MAX);
        let mut sum = greatest();
        sum.add(&WholeNumber::Short(1));
        assert_eq!(sum, WholeNumber::Long(BigInt::from(i128::MAX) + 1));
        sum.add(&WholeNumber::Short(-1));
        assert_eq!(sum, greatest());
        assert_eq!(greatest().times(&WholeNumber::Short(-1)), WholeNumber::Short(-i128::MAX));
        let product = greatest().times(&greatest());
        assert_eq!(product, WholeNumber::Long(BigInt::from(i128::MAX) * i128::MAX));
    }
}
