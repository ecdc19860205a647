//! Converts a [`Price`] to and from decimal128, without rounding.
//!
//! IEEE 754-2008, section 3.5.2, binary integer encoding: a sign bit, 14 bits of exponent biased by
//! 6176, 113 bits of coefficient; BSON stores the 128 bits little-endian.

use mongodb::bson::Decimal128;

use crate::domain::Price;

const BIAS: u128 = 6176;
const COEFFICIENT_BITS: u32 = 113;

pub(super) fn encode(price: Price) -> Decimal128 {
    let exponent = BIAS - u128::from(price.scale());
    Decimal128::from_bytes((exponent << COEFFICIENT_BITS | price.coefficient()).to_le_bytes())
}

/// `None` for values that a [`Price`] cannot have: negative numbers, zero, infinities, NaN, and more than 34
/// digits in plain notation.
pub(super) fn decode(decimal: Decimal128) -> Option<Price> {
    let bits = u128::from_le_bytes(decimal.bytes());
    let (sign, rest) = (bits >> 127, bits & (u128::MAX >> 1));
    // Two leading ones mark infinities, NaN, and coefficients beyond 34 digits.
    if sign == 1 || rest >> 125 == 0b11 {
        return None;
    }
    let exponent = rest >> COEFFICIENT_BITS;
    let coefficient = rest & ((1 << COEFFICIENT_BITS) - 1);
    if exponent <= BIAS {
        return Price::new(coefficient, (BIAS - exponent) as u16).ok();
    }
    // A positive exponent, such as 1E+3, comes from another program: convert it to plain notation.
    let shift = u32::try_from(exponent - BIAS).ok().filter(|&shift| shift < Price::MAX_DIGITS as u32)?;
    Price::new(coefficient.checked_mul(10_u128.pow(shift))?, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_drivers_reading_of_the_same_bits() {
        for text in
            ["15.54", "15.50", "1", "0.00000001", "9999999999999999999999999999999999", "4.82375000001"]
        {
            let price = Price::parse(text).unwrap();
            assert_eq!(encode(price).to_string().parse::<Decimal128>().unwrap(), encode(price));
            assert_eq!(text.parse::<Decimal128>().unwrap(), encode(price), "{text}");
            assert_eq!(decode(encode(price)), Some(price));
        }
        let finest = Price::parse(&format!("0.{}1", "0".repeat(6175))).unwrap();
        assert_eq!(decode(encode(finest)), Some(finest));
    }

    #[test]
    fn reads_numbers_of_other_programs() {
        let decode = |text: &str| decode(text.parse().unwrap()).map(|price| price.to_string());
        assert_eq!(decode("1E+3").as_deref(), Some("1000"));
        for text in ["-1", "0", "NaN", "Infinity", "-Infinity", "1E+40"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
