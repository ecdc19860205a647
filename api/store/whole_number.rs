//! Whole numbers in replies.

use mongodb::bson::Bson;

/// A whole number, which servers send as int32, int64 or double.
pub(super) fn read(value: &Bson) -> Option<i64> {
    value.as_i32().map(i64::from).or(value.as_i64()).or(value.as_f64().map(|number| number as i64))
}
