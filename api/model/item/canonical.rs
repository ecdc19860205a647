//! The canonical form of JSON (RFC 8785): equal values have equal forms.

use serde_json::value::RawValue;

use super::limits::MOST_LEVELS;
use super::members::write_string;
use super::number::{double, write_double};
use crate::domain::Json;

/// The canonical form (RFC 8785) of each item of a request's body: names sorted, numbers as ECMAScript writes
/// them, no white space. One item, and an array of that item, are the same request. Equal requests have equal
/// forms, whatever the schema says.
///
/// What no schema accepts is left as it was sent: numbers beyond a double, lone surrogates, more than 32
/// levels. A body that is not JSON has no items.
pub fn canonical(bytes: &[u8]) -> Vec<Vec<u8>> {
    let Ok(raw) = Json::check(bytes) else { return Vec::new() };
    match Json::read(raw) {
        Json::Array(items) => items.into_iter().map(form).collect(),
        _ => vec![form(raw)],
    }
}

/// The canonical form of one value.
pub(crate) fn form(raw: &RawValue) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.get().len());
    write(raw, MOST_LEVELS + 1, &mut out);
    out
}

/// Appends the canonical form of one value, down to so many levels.
fn write(raw: &RawValue, levels: u32, out: &mut Vec<u8>) {
    let as_sent = |out: &mut Vec<u8>| out.extend_from_slice(raw.get().as_bytes());
    if levels == 0 {
        return as_sent(out);
    }
    match Json::read(raw) {
        Json::Null | Json::Bool | Json::String(None) => as_sent(out),
        Json::Number(text) => match double(text) {
            Some(number) => write_double(number, out),
            None => as_sent(out),
        },
        Json::String(Some(text)) => write_string(&text, out),
        Json::Array(items) => {
            out.push(b'[');
            for (index, item) in items.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, levels - 1, out);
            }
            out.push(b']');
        }
        Json::Object(mut members) => {
            // RFC 8785, section 3.2.3: by UTF-16 code units.
            members.sort_by(|one, other| {
                let [one, other] =
                    [one, other].map(|member| member.name.as_deref().unwrap_or_default().encode_utf16());
                one.cmp(other)
            });
            out.push(b'{');
            for (index, member) in members.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(member.name.as_deref().unwrap_or_default(), out);
                out.push(b':');
                write(member.value, levels - 1, out);
            }
            out.push(b'}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        canonical(text.as_bytes()).into_iter().map(|form| String::from_utf8(form).unwrap()).collect()
    }

    #[test]
    fn one_spelling_for_equal_items() {
        let form = of(r#" {"b": [1.0, 2e0, -0, 1E-7], "a": "\u0041\/\u000a", "€": null, "😀": true} "#);
        assert_eq!(form, [r#"{"a":"A/\n","b":[1,2,0,1e-7],"€":null,"😀":true}"#]);
        assert_eq!(of(r#"[{"a":1}]"#), of(r#"{ "a" : 1.0 }"#));
        assert_eq!(of("[1,[2]]"), ["1", "[2]"]);
        // U+10000 is before U+FFFF in UTF-16.
        assert_eq!(of("{\"\u{ffff}\":1,\"\u{10000}\":2}"), ["{\"\u{10000}\":2,\"\u{ffff}\":1}"]);
    }

    #[test]
    fn hostile_texts_are_left_alone() {
        assert_eq!(of("1e400"), ["1e400"]);
        assert_eq!(of(r#""\ud800""#), [r#""\ud800""#]);
        assert_eq!(of("{").len(), 0);
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(of(&format!("[{deep}]")), [deep]);
    }
}
