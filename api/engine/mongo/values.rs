//! Values as the database stores and sends them.

use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime};
use pagebucket_model::domain::Instant;

/// A whole number, which servers send as int32, int64 or double.
pub(crate) fn whole_number(value: &Bson) -> Option<i64> {
    let whole = value.as_f64().filter(|number| number.fract() == 0.0);
    value.as_i32().map(i64::from).or(value.as_i64()).or(whole.map(|number| number as i64))
}

/// A date as the database stores and compares it.
pub(crate) fn date(instant: Instant) -> DateTime {
    DateTime::from_millis(instant.millis())
}

/// The moment of a stored date, if it is one of the years 0000 to 9999.
pub(crate) fn instant(date: DateTime) -> Option<Instant> {
    Instant::from_millis(date.timestamp_millis()).ok()
}

/// Bytes without a meaning for the database.
pub(crate) fn binary(bytes: impl Into<Vec<u8>>) -> Binary {
    Binary { subtype: BinarySubtype::Generic, bytes: bytes.into() }
}
