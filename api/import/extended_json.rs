//! Values of MongoDB Extended JSON (version 2, canonical and relaxed, and version 1's dates), as
//! `mongoexport` writes them.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::date;
use super::json::{write_instant, write_number, write_string};
use crate::domain::{Json, Member};

/// Deeper values are left as they are: the schema refuses them.
const MOST_LEVELS: u32 = 33;

/// Appends any value as plain JSON: dates and decimal numbers are strings.
pub(super) fn write(raw: &RawValue, out: &mut Vec<u8>) {
    if raw.get().contains('$') {
        write_levels(raw, MOST_LEVELS, out);
    } else {
        out.extend_from_slice(raw.get().as_bytes());
    }
}

fn write_levels(raw: &RawValue, levels: u32, out: &mut Vec<u8>) {
    let as_it_is = |out: &mut Vec<u8>| out.extend_from_slice(raw.get().as_bytes());
    match Json::read(raw) {
        _ if levels == 0 => as_it_is(out),
        Json::Array(items) => {
            out.push(b'[');
            for (index, item) in items.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_levels(item, levels - 1, out);
            }
            out.push(b']');
        }
        Json::Object(members) => match wrapped(&members) {
            Some(Wrapped::Number(digits)) => write_number(&digits, raw.get().as_bytes(), out),
            Some(Wrapped::Decimal(digits)) => write_string(&digits, out),
            Some(Wrapped::Date(text)) => match date::parse(&text) {
                Ok(instant) => write_instant(instant, out),
                Err(_) => write_string(&text, out),
            },
            Some(Wrapped::Millis(text)) => match date::parse_millis(&text) {
                Ok(instant) => write_instant(instant, out),
                Err(_) => as_it_is(out),
            },
            // A name that is no text cannot be repeated, and no item has one.
            None if members.iter().any(|member| member.name.is_none()) => as_it_is(out),
            None => {
                out.push(b'{');
                for (index, Member { name, value }) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_string(name.as_deref().unwrap_or_default(), out);
                    out.push(b':');
                    write_levels(value, levels - 1, out);
                }
                out.push(b'}');
            }
        },
        _ => as_it_is(out),
    }
}

/// What an object stands for that is no object.
pub(super) enum Wrapped<'a> {
    Number(Cow<'a, str>),
    Decimal(Cow<'a, str>),
    Date(Cow<'a, str>),
    Millis(Cow<'a, str>),
}

/// `{"$numberLong": "5"}` and the like: an object of one member that is one scalar. Never descends more than two levels.
pub(super) fn wrapped<'a>(members: &[Member<'a>]) -> Option<Wrapped<'a>> {
    let [Member { name: Some(name), value }] = members else { return None };
    Some(match (&**name, Json::read(value)) {
        ("$numberInt" | "$numberLong", Json::String(Some(digits))) => Wrapped::Number(digits),
        ("$numberDecimal", Json::String(Some(digits))) => Wrapped::Decimal(digits),
        // Canonical Extended JSON writes every double with a point, whole ones too.
        ("$numberDouble", Json::String(Some(digits))) => {
            Wrapped::Number(digits.strip_suffix(".0").map(|whole| whole.to_owned().into()).unwrap_or(digits))
        }
        ("$date", Json::String(Some(text))) => Wrapped::Date(text),
        ("$date", Json::Number(millis)) => Wrapped::Millis(millis.into()),
        // Not by recursion: nested as deep as a row is long, it would not fit the stack.
        ("$date", Json::Object(members)) => match members.as_slice() {
            [Member { name: Some(name), value }] if name == "$numberLong" => match Json::read(value) {
                Json::String(Some(millis)) => Wrapped::Millis(millis),
                _ => return None,
            },
            _ => return None,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_values_are_unwrapped() {
        let plain = |json: &str| {
            let mut out = Vec::new();
            write(Json::check(json.as_bytes()).unwrap(), &mut out);
            String::from_utf8(out).unwrap()
        };
        for (json, expected) in [
            (
                r#"{"a":[{"$numberInt":"5"},{"b\n":{"$date":{"$numberLong":"0"}}}],"c":{"$numberDecimal":"1.50"}}"#,
                r#"{"a":[5,{"b\n":"1970-01-01T00:00:00.000Z"}],"c":"1.50"}"#,
            ),
            (r#"{"$date":"2004-01-09"}"#, r#""2004-01-09T00:00:00.000Z""#),
            (r#"{"$date":"soon"}"#, r#""soon""#),
            (
                r#"[{"$numberDouble":"NaN"},{"$oid":"a"},1e400,"$"]"#,
                r#"[{"$numberDouble":"NaN"},{"$oid":"a"},1e400,"$"]"#,
            ),
        ] {
            assert_eq!(plain(json), expected);
        }
        let deep = format!("{}1{}", r#"{"$a":"#.repeat(7_000), "}".repeat(7_000));
        assert_eq!(plain(&deep), deep);
    }
}
