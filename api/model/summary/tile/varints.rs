//! Numbers of any length as bytes: seven bits in each byte, the lowest first (LEB128). Small numbers are
//! short.

use num_bigint::{BigInt, BigUint, Sign};

use crate::summary::whole_number::WholeNumber;

/// Bytes of a number that fits into 128 bits.
const MOST_BYTES: usize = 19;

/// Bytes of a number that fits into 126 bits.
const SHORT: usize = 18;

/// Bytes of a number that fits into 63 bits, as nearly all do: they are read in a fraction of the time.
const FEW_BYTES: usize = 9;

/// Writes numbers one after the other.
#[derive(Debug, Default)]
pub(crate) struct TileWriter(pub(crate) Vec<u8>);

/// Reads what a [`TileWriter`] has written. `None` is damage.
#[derive(Debug)]
pub(crate) struct TileReader<'a>(pub(crate) &'a [u8]);

impl TileWriter {
    pub(crate) fn whole(&mut self, number: impl Into<u128>) {
        let mut rest = number.into();
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
    }

    /// A number of less than 127 bits.
    pub(crate) fn signed(&mut self, number: i128) {
        self.whole(zigzag(number));
    }

    /// A number of any length: twice its magnitude, and 1 if it is negative.
    pub(crate) fn big(&mut self, number: &WholeNumber) {
        match number {
            // Twice the magnitude of any other fits into 128 bits.
            WholeNumber::Short(number) if *number != i128::MIN => {
                self.whole(number.unsigned_abs() << 1 | u128::from(*number < 0));
            }
            number => self.long(&number.into()),
        }
    }

    fn long(&mut self, number: &BigInt) {
        let digits = (number.magnitude() << 1_u32) + u32::from(number.sign() == Sign::Minus);
        let mut digits = digits.to_radix_le(0x80);
        let last = digits.len() - 1;
        digits[..last].iter_mut().for_each(|digit| *digit |= 0x80);
        self.0.extend(digits);
    }
}

impl<'a> TileReader<'a> {
    /// The bytes of the next number.
    fn number(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| byte & 0x80 == 0)?;
        self.bytes(end + 1)
    }

    pub(crate) fn whole(&mut self) -> Option<u128> {
        let bytes = self.number().filter(|bytes| bytes.len() <= MOST_BYTES)?;
        if bytes.len() <= FEW_BYTES {
            return Some(few(bytes).into());
        }
        let most = u128::MAX >> 7;
        bytes
            .iter()
            .rev()
            .try_fold(0, |number: u128, byte| (number <= most).then(|| number << 7 | u128::from(byte & 0x7f)))
    }

    pub(crate) fn small(&mut self) -> Option<u64> {
        if let [byte @ ..0x80, rest @ ..] = self.0 {
            self.0 = rest;
            return Some((*byte).into());
        }
        self.whole()?.try_into().ok()
    }

    pub(crate) fn signed(&mut self) -> Option<i128> {
        self.whole().map(unzigzag)
    }

    pub(crate) fn big(&mut self) -> Option<WholeNumber> {
        let bytes = self.number()?;
        if bytes.len() <= SHORT {
            let number = match bytes.len() {
                ..=FEW_BYTES => few(bytes).into(),
                _ => bytes.iter().rev().fold(0, |number, byte| number << 7 | u128::from(byte & 0x7f)),
            };
            let magnitude = (number >> 1) as i128;
            return Some(WholeNumber::Short(if number & 1 == 1 { -magnitude } else { magnitude }));
        }
        let digits: Vec<u8> = bytes.iter().map(|byte| byte & 0x7f).collect();
        let number = BigUint::from_radix_le(&digits, 0x80)?;
        let sign = if number.bit(0) { Sign::Minus } else { Sign::Plus };
        Some(BigInt::from_biguint(sign, number >> 1_u32).into())
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }
}

/// The number of these bytes, which are few.
fn few(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f))
}

/// Numbers near zero become small ones: 0, -1, 1, -2, 2 are 0 to 4.
pub(crate) fn zigzag(number: i128) -> u128 {
    ((number << 1) ^ (number >> 127)) as u128
}

pub(crate) fn unzigzag(number: u128) -> i128 {
    (number >> 1) as i128 ^ -((number & 1) as i128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let signed = [0, 1, -1, 63, 64, -64, -65, i128::from(i64::MIN), (1 << 120) - 1, -(1 << 120)];
        let mut writer = TileWriter::default();
        for number in signed {
            writer.signed(number);
            writer.big(&WholeNumber::Short(number));
        }
        let long = [BigInt::from(-7) << 1_000_u32, i128::MIN.into(), i128::MAX.into()].map(WholeNumber::from);
        long.iter().for_each(|number| writer.big(number));
        writer.whole(u128::MAX);
        let mut reader = TileReader(&writer.0);
        for number in signed {
            assert_eq!((reader.signed(), reader.big()), (Some(number), Some(WholeNumber::Short(number))));
        }
        long.into_iter().for_each(|number| assert_eq!(reader.big(), Some(number)));
        assert_eq!(reader.whole(), Some(u128::MAX));
        assert!(reader.0.is_empty());
        assert_eq!((reader.whole(), reader.bytes(1)), (None, None));
        assert_eq!(TileReader(&[0xff; 18]).whole(), None, "its last byte is missing");
        assert_eq!(TileReader(&[[0xff; 19].as_slice(), &[1]].concat()).whole(), None, "too long");
    }
}
