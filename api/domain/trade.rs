use std::fmt;

use serde::{Serialize, Serializer};

use super::number::{MAX_SAFE_INTEGER, parse_digits};
use super::{Instant, Invalid, Price};

/// One transaction of a customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trade {
    /// Bought or sold.
    pub side: Side,
    /// The security.
    pub ticker: Ticker,
    /// The number of units.
    pub qty: Quantity,
    /// The price of one unit, if the client gave one.
    pub price: Option<Price>,
    /// The date of the trade.
    pub date: Instant,
}

/// Whether the customer bought or sold: `type` in JSON and in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// `"buy"`
    Buy,
    /// `"sell"`
    Sell,
}

impl Side {
    /// The side's name in JSON and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Buy => "buy",
            Self::Sell => "sell",
        }
    }

    /// # Errors
    /// The text is neither `buy` nor `sell`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        match text {
            "buy" => Ok(Self::Buy),
            "sell" => Ok(Self::Sell),
            _ => Err(Invalid::new("must be \"buy\" or \"sell\"")),
        }
    }
}

/// The symbol of a security: 1 to 12 of `A`-`Z`, `0`-`9`, `.`, `-`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticker {
    bytes: [u8; Self::MAX_LEN],
    len: u8,
}

impl Ticker {
    /// The longest symbol, in characters.
    pub const MAX_LEN: usize = 12;

    /// # Errors
    /// The symbol is too short or too long, or contains another character.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let allowed = |byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-');
        if !(1..=Self::MAX_LEN).contains(&text.len()) || !text.bytes().all(allowed) {
            return Err(Invalid::new("must be 1 to 12 of the characters A-Z, 0-9, \".\" and \"-\""));
        }
        let mut bytes = [0; Self::MAX_LEN];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self { bytes, len: text.len() as u8 })
    }

    /// The symbol as text.
    pub fn as_str(&self) -> &str {
        // Always `Ok`: `parse` accepts only ASCII.
        str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl Serialize for Ticker {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl fmt::Debug for Ticker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticker({})", self.as_str())
    }
}

/// A number of units: a whole number, 1 to 2^53 - 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Quantity(u64);

impl Quantity {
    /// # Errors
    /// The number is outside 1 to 2^53 - 1.
    pub fn new(qty: u64) -> Result<Self, Invalid> {
        match qty {
            1..=MAX_SAFE_INTEGER => Ok(Self(qty)),
            _ => Err(Self::rule()),
        }
    }

    /// Parses decimal digits, without a sign, a fraction or an exponent.
    ///
    /// # Errors
    /// The notation is different, or the number is outside 1 to 2^53 - 1.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        parse_digits(text).and_then(|n| Self::new(n).ok()).ok_or_else(Self::rule)
    }

    fn rule() -> Invalid {
        Invalid::new(format!(
            "must be a whole number from 1 to {MAX_SAFE_INTEGER}, written without a fraction or an exponent"
        ))
    }

    /// The number itself.
    pub fn get(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
impl Trade {
    /// A purchase of `qty` shares at the beginning of 1970.
    pub(crate) fn example(qty: u64) -> Self {
        let (ticker, qty) = (Ticker::parse("MDB").unwrap(), Quantity::new(qty).unwrap());
        Self { side: Side::Buy, ticker, qty, price: None, date: Instant::from_millis(0).unwrap() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticker_has_only_allowed_characters() {
        for text in ["A", "BRK.B", "BF-A", "ABCDEFGHIJKL", "7203"] {
            assert_eq!(Ticker::parse(text).unwrap().as_str(), text);
        }
        for text in ["", "a", "ABCDEFGHIJKLM", "A B", "A\0", "Ä", "A\n"] {
            assert!(Ticker::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_quantity_is_whole() {
        assert_eq!(Quantity::parse("9007199254740991").unwrap().get(), MAX_SAFE_INTEGER);
        for text in ["0", "-1", "419.0", "4e2", "007", "9007199254740992", "1e400", "9223372036854775808"] {
            assert!(Quantity::parse(text).is_err(), "{text:?}");
        }
    }
}
