//! Whether storing a value has lost anything of it.

use std::cmp::Ordering;

use bson::raw::{RawArray, RawBsonRef, RawDocument};

use super::decimal::Decimal;

/// Whether `stored`, which a schema has made from `given`, is all of it: no digit, member or type is lost,
/// except that numbers of all types are one, and that a text may have become the number or the date that it
/// spells.
pub fn is_lossless(given: RawBsonRef<'_>, stored: RawBsonRef<'_>) -> bool {
    match (given, stored) {
        (RawBsonRef::String(given), RawBsonRef::String(stored)) => given == stored,
        // A text that the schema reads spells one value. A double is compared below: it may have fewer digits
        // than the text.
        (
            RawBsonRef::String(_),
            RawBsonRef::DateTime(_)
            | RawBsonRef::Int64(_)
            | RawBsonRef::Decimal128(_)
            | RawBsonRef::Boolean(_),
        ) => true,
        (RawBsonRef::String(given), RawBsonRef::Double(_)) => {
            are_equal(Decimal::parse_number(given), number(stored))
        }
        (RawBsonRef::DateTime(given), RawBsonRef::DateTime(stored)) => given == stored,
        (RawBsonRef::Boolean(given), RawBsonRef::Boolean(stored)) => given == stored,
        (RawBsonRef::Null, RawBsonRef::Null) => true,
        (RawBsonRef::Document(given), RawBsonRef::Document(stored)) => is_lossless_document(given, stored),
        (RawBsonRef::Array(given), RawBsonRef::Array(stored)) => is_lossless_array(given, stored),
        (given, RawBsonRef::DateTime(date)) => {
            are_equal(number(given), Decimal::parse(&date.timestamp_millis().to_string()).ok())
        }
        (given, stored) => are_equal(number(given), number(stored)),
    }
}

fn are_equal(one: Option<Decimal>, other: Option<Decimal>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one.compare(&other) == Ordering::Equal)
}

fn is_lossless_document(given: &RawDocument, stored: &RawDocument) -> bool {
    let count = |document: &RawDocument| document.iter().count();
    count(given) == count(stored)
        && given.iter().all(|member| {
            let Ok((name, given)) = member else { return false };
            stored.get(name.as_str()).ok().flatten().is_some_and(|stored| is_lossless(given, stored))
        })
}

fn is_lossless_array(given: &RawArray, stored: &RawArray) -> bool {
    let (mut given, mut stored) = (given.into_iter(), stored.into_iter());
    loop {
        match (given.next(), stored.next()) {
            (None, None) => return true,
            (Some(Ok(given)), Some(Ok(stored))) if is_lossless(given, stored) => {}
            _ => return false,
        }
    }
}

/// A number of any type, digit by digit; of a double the shortest digits that name it.
fn number(value: RawBsonRef<'_>) -> Option<Decimal> {
    match value {
        RawBsonRef::Int32(number) => Decimal::parse_number(&number.to_string()),
        RawBsonRef::Int64(number) => Decimal::parse_number(&number.to_string()),
        RawBsonRef::Double(number) => Decimal::parse_number(&format!("{number:e}")),
        RawBsonRef::Decimal128(number) => Decimal::of_bytes(number.bytes()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bson::{Bson, DateTime, RawDocumentBuf, doc, oid::ObjectId};

    use super::*;

    fn kept(given: impl Into<Bson>, stored: impl Into<Bson>) -> bool {
        let raw = |value: Bson| RawDocumentBuf::try_from(&doc! { "v": value }).unwrap();
        let (given, stored) = (raw(given.into()), raw(stored.into()));
        is_lossless(given.get("v").unwrap().unwrap(), stored.get("v").unwrap().unwrap())
    }

    #[test]
    fn numbers_are_one_and_types_are_not() {
        let decimal = |text: &str| Bson::Decimal128(text.parse().unwrap());
        for number in [
            Bson::Int32(5),
            Bson::Int64(5),
            Bson::Double(5.0),
            decimal("5"),
            decimal("5.0"),
            decimal("50E-1"),
        ] {
            assert!(kept(number.clone(), 5_i64) && kept(5_i64, number.clone()), "{number}");
            assert!(!kept(number.clone(), 6_i64) && !kept(number, "5"));
        }
        assert!(kept(15.54, decimal("15.54")) && !kept(15.5, decimal("15.54")));
        assert!(kept(1e-7, decimal("0.0000001")) && kept(1e21, 1e21) && !kept(f64::NAN, f64::NAN));
        let date = |millis| DateTime::from_millis(millis);
        assert!(kept(date(5), date(5)) && !kept(date(5), date(6)) && kept(5_i64, date(5)));
        assert!(!kept(date(5), "1970-01-01T00:00:00.005Z") && !kept(ObjectId::new(), "x"));
        assert!(kept("1.50", 1.5) && kept("1e3", 1000.0) && !kept("0.10000000000000000001", 0.1));
        assert!(kept("5", 5_i64) && kept("a", "a") && !kept("a", "b"));
        assert!(kept(doc! { "a": [1, { "b": 2.0 }] }, doc! { "a": [1_i64, { "b": 2 }] }));
        assert!(!kept(doc! { "a": 1 }, doc! { "a": 1, "b": 2 }) && !kept(vec![1, 2], vec![1]));
    }
}
