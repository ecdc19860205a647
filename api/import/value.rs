//! The value of a cell, and how it becomes JSON.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::date;
use super::extended_json::{self, Wrapped, wrapped};
use super::json::{write_instant, write_number, write_string};
use crate::domain::{Instant, Invalid, Json};
use crate::item::ColumnKind;

/// What a cell holds.
#[derive(Debug)]
pub(super) enum Value<'a> {
    /// Nothing, not even quotes: a field of CSV.
    Empty,
    /// A CSV field, or a JSON string.
    Text(Cow<'a, str>),
    /// A number of JSON, by its digits; of Extended JSON, any text.
    Number(Cow<'a, str>),
    /// Certainly milliseconds since 1970.
    Millis(Cow<'a, str>),
    /// Any other value of JSON.
    Json(&'a RawValue),
    /// What is no text, such as "a string with a lone surrogate".
    NotText(&'static str),
}

/// Number of characters of a value that a message repeats.
const SHOWN: usize = 40;

impl<'a> Value<'a> {
    /// A value of JSON that should be a scalar. Never descends more than three levels, however deep it is nested.
    pub(super) fn read(raw: &'a RawValue) -> Self {
        match Json::read(raw) {
            Json::Number(digits) => Self::Number(digits.into()),
            Json::String(Some(text)) => Self::Text(text),
            Json::String(None) => Self::NotText("a string with a lone surrogate"),
            Json::Object(members) => match wrapped(&members) {
                Some(Wrapped::Number(digits) | Wrapped::Decimal(digits)) => Self::Number(digits),
                Some(Wrapped::Date(text)) => Self::Text(text),
                Some(Wrapped::Millis(text)) => Self::Millis(text),
                None => Self::Json(raw),
            },
            _ => Self::Json(raw),
        }
    }

    /// Appends the JSON of the value, of this kind if it can be. What is of another kind becomes JSON that the schema
    /// refuses.
    ///
    /// # Errors
    /// It is of another kind, and the schema has no words for that.
    pub(super) fn write(&self, kind: Option<ColumnKind>, out: &mut Vec<u8>) -> Result<(), Invalid> {
        if self.is_null() {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match kind {
            Some(ColumnKind::Date) => write_instant(self.date()?, out),
            Some(ColumnKind::Decimal) => write_string(self.number()?, out),
            // The schema refuses a fraction as what is no integer, and 1e999 as what is no double.
            Some(ColumnKind::Integer) => write_number(self.number()?, b"0.5", out),
            Some(ColumnKind::Number) => write_number(self.number()?, b"1e999", out),
            Some(ColumnKind::Boolean | ColumnKind::Text) | None => match self {
                Self::Text(text) if kind == Some(ColumnKind::Boolean) && is_boolean(text) => {
                    out.extend_from_slice(text.as_bytes());
                }
                Self::Text(text) => write_string(text, out),
                Self::Number(digits) => write_number(digits, b"0", out),
                Self::Json(raw) => extended_json::write(raw, out),
                Self::Empty if kind == Some(ColumnKind::Boolean) => {
                    return Err(Invalid::new("must be a boolean"));
                }
                // The schema may have more to say than that it is required.
                Self::Empty => write_string("", out),
                Self::Millis(_) | Self::NotText(_) => return Err(Invalid::new("must be a string")),
            },
        }
        Ok(())
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Json(raw) if raw.get() == "null")
    }

    fn date(&self) -> Result<Instant, Invalid> {
        match self {
            Self::Millis(text) => date::parse_millis(text),
            value => date::parse(value.number()?),
        }
    }

    /// A number, or a text of it.
    pub(super) fn number(&self) -> Result<&str, Invalid> {
        match self {
            Self::Empty => Ok(""),
            Self::Text(text) | Self::Number(text) => Ok(text),
            Self::Millis(_) => Err(Invalid::new("must be a number")),
            Self::Json(_) | Self::NotText(_) => Err(Invalid::new("must be a number or a string")),
        }
    }

    /// The value, for the end of a sentence, with control characters escaped.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Empty => ", not \"\"".to_owned(),
            Self::Text(text) | Self::Number(text) | Self::Millis(text) => {
                let beginning: String = text.chars().take(SHOWN).collect();
                let more = if beginning.len() < text.len() { "…" } else { "" };
                format!(", not {beginning:?}{more}")
            }
            Self::Json(raw) => format!(", not {}", Json::read(raw).kind()),
            Self::NotText(kind) => format!(", not {kind}"),
        }
    }
}

fn is_boolean(text: &str) -> bool {
    matches!(text, "true" | "false")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_values_are_unwrapped() {
        for (json, value) in [
            (r#""a""#, r#"Text("a")"#),
            ("4.82375000001", r#"Number("4.82375000001")"#),
            (r#"{"$numberInt":"-5"}"#, r#"Number("-5")"#),
            (r#"{"$numberLong":"5"}"#, r#"Number("5")"#),
            (r#"{"$numberDecimal":"15.50"}"#, r#"Number("15.50")"#),
            (r#"{"$numberDouble":"448.0"}"#, r#"Number("448")"#),
            (r#"{"$numberDouble":"15.54"}"#, r#"Number("15.54")"#),
            (r#"{"$date":"2004-01-09T00:00:00Z"}"#, r#"Text("2004-01-09T00:00:00Z")"#),
            (r#"{"$date":{"$numberLong":"-1"}}"#, r#"Millis("-1")"#),
            (r#"{"$date":1073606400000}"#, r#"Millis("1073606400000")"#),
            (r#"{"$date":{"$date":{"$date":1}}}"#, r#"Json(RawValue({"$date":{"$date":{"$date":1}}}))"#),
            (r#"{"$numberLong":"5","x":1}"#, r#"Json(RawValue({"$numberLong":"5","x":1}))"#),
            ("[[]]", "Json(RawValue([[]]))"),
            (r#""\ud800""#, r#"NotText("a string with a lone surrogate")"#),
        ] {
            assert_eq!(format!("{:?}", Value::read(Json::check(json.as_bytes()).unwrap())), value, "{json}");
        }
    }
}
