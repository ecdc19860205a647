//! Values of MongoDB Extended JSON (version 2, canonical and relaxed, and version 1's dates), as
//! `mongoexport` writes them.

use serde_json::value::RawValue;

use super::trade::Value;
use crate::domain::{Json, Member};

/// A value; `None` for `null`. Never descends more than three levels, however deep it is nested.
pub(super) fn read(raw: &RawValue) -> Option<Value<'_>> {
    Some(match Json::read(raw) {
        Json::Null => return None,
        Json::Number(digits) => Value::Number(digits.into()),
        Json::String(Some(text)) => Value::Text(text),
        Json::String(None) => Value::Other("a string with a lone surrogate"),
        Json::Object(members) => wrapped(&members),
        other => Value::Other(other.kind()),
    })
}

/// `{"$numberLong": "5"}` and the like: an object of one member that is one scalar.
fn wrapped<'a>(members: &[Member<'a>]) -> Value<'a> {
    let other = Value::Other("an object");
    let [Member { name: Some(name), value }] = members else { return other };
    match (&**name, Json::read(value)) {
        ("$numberInt" | "$numberLong" | "$numberDecimal", Json::String(Some(digits))) => {
            Value::Number(digits)
        }
        // Canonical Extended JSON writes every double with a point, whole ones too.
        ("$numberDouble", Json::String(Some(digits))) => {
            Value::Number(digits.strip_suffix(".0").map(|whole| whole.to_owned().into()).unwrap_or(digits))
        }
        ("$date", Json::String(Some(text))) => Value::Text(text),
        ("$date", Json::Number(millis)) => Value::Millis(millis.into()),
        // Not by recursion: nested as deep as a row is long, it would not fit the stack.
        ("$date", Json::Object(members)) => match members.as_slice() {
            [Member { name: Some(name), value }] if name == "$numberLong" => match Json::read(value) {
                Json::String(Some(millis)) => Value::Millis(millis),
                _ => other,
            },
            _ => other,
        },
        _ => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_values_are_unwrapped() {
        for (json, value) in [
            (r#""a""#, Value::Text("a".into())),
            ("4.82375000001", Value::Number("4.82375000001".into())),
            (r#"{"$numberInt":"-5"}"#, Value::Number("-5".into())),
            (r#"{"$numberLong":"5"}"#, Value::Number("5".into())),
            (r#"{"$numberDecimal":"15.50"}"#, Value::Number("15.50".into())),
            (r#"{"$numberDouble":"448.0"}"#, Value::Number("448".into())),
            (r#"{"$numberDouble":"15.54"}"#, Value::Number("15.54".into())),
            (r#"{"$date":"2004-01-09T00:00:00Z"}"#, Value::Text("2004-01-09T00:00:00Z".into())),
            (r#"{"$date":{"$numberLong":"-1"}}"#, Value::Millis("-1".into())),
            (r#"{"$date":1073606400000}"#, Value::Millis("1073606400000".into())),
            (r#"{"$date":{"$date":{"$date":1}}}"#, Value::Other("an object")),
            (r#"{"$numberLong":"5","x":1}"#, Value::Other("an object")),
            (r#"{"$oid":"6553e2b0c0ffee0000000000"}"#, Value::Other("an object")),
            ("[[]]", Value::Other("an array")),
            ("true", Value::Other("a boolean")),
            (r#""\ud800""#, Value::Other("a string with a lone surrogate")),
        ] {
            assert_eq!(read(Json::check(json.as_bytes()).unwrap()), Some(value), "{json}");
        }
        assert_eq!(read(Json::check(b"null").unwrap()), None);
        let deep = format!("{}1{}", r#"{"$date":"#.repeat(7_000), "}".repeat(7_000));
        assert_eq!(read(Json::check(deep.as_bytes()).unwrap()), Some(Value::Other("an object")));
    }
}
