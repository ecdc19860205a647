//! A stored number: how it is read, compared and answered.

use std::cmp::Ordering;

use bson::raw::RawBsonRef;
use serde::{Serialize, Serializer};

use crate::definition::StoredNumber;
use crate::item::Decimal;

/// A number of an item.
#[derive(Debug, Clone, Copy)]
pub enum Quantity {
    /// Of an integer, which is a number in JSON.
    Integer(i64),
    /// Of a decimal, which is a string in JSON.
    Decimal(Decimal),
    /// Of a double, which is a number in JSON.
    Double(f64),
}

impl Quantity {
    /// Reads a stored value. `None` for a value that is no such number: an earlier schema may have allowed
    /// it.
    pub fn of(value: RawBsonRef<'_>, kind: StoredNumber) -> Option<Self> {
        match (kind, value) {
            (StoredNumber::Integer, RawBsonRef::Int64(number)) => Some(Self::Integer(number)),
            (StoredNumber::Integer, RawBsonRef::Int32(number)) => Some(Self::Integer(number.into())),
            (StoredNumber::Decimal, RawBsonRef::Decimal128(number)) => {
                Decimal::of_bytes(number.bytes()).map(Self::Decimal)
            }
            (StoredNumber::Double, RawBsonRef::Double(number)) => Some(Self::Double(number)),
            (StoredNumber::Double, RawBsonRef::Int64(number)) => Some(Self::Double(number as f64)),
            (StoredNumber::Double, RawBsonRef::Int32(number)) => Some(Self::Double(number.into())),
            _ => None,
        }
    }

    /// How many digits it has after the point, as a decimal.
    pub(crate) fn scale(&self) -> usize {
        match self {
            Self::Decimal(number) => number.digits().2,
            Self::Integer(_) | Self::Double(_) => 0,
        }
    }

    /// The number as a decimal. `None` for a double.
    pub fn exact(&self) -> Option<Decimal> {
        match self {
            Self::Integer(number) => Some(Decimal::of_integer(*number)),
            Self::Decimal(number) => Some(*number),
            Self::Double(_) => None,
        }
    }

    /// By value. Only of two numbers of the same property.
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => one.cmp(other),
            (Self::Decimal(one), Self::Decimal(other)) => one.compare(other),
            (Self::Double(one), Self::Double(other)) => one.partial_cmp(other).unwrap_or(Ordering::Equal),
            _ => Ordering::Equal,
        }
    }
}

impl Serialize for Quantity {
    /// As items are answered.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Decimal(number) => serializer.collect_str(number),
            // As every number of an item: 1 and not 1.0.
            Self::Double(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
                serializer.serialize_i64(*number as i64)
            }
            Self::Double(number) => serializer.serialize_f64(*number),
        }
    }
}
