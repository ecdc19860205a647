use serde_json::value::RawValue;

use crate::domain::Json;
use crate::item::canonical;
use crate::item::levels::MOST_LEVELS;
use crate::item::number::double;

/// A value of `enum` or `const`.
#[derive(Debug, PartialEq)]
pub(super) enum Constant {
    Null,
    Boolean(bool),
    Number(f64),
    Text(String),
    /// The canonical form of an array or an object.
    Nested(Vec<u8>),
}

impl Constant {
    /// `None` for a number beyond a double, or a text that is not Unicode.
    pub(super) fn new(raw: &RawValue) -> Option<Self> {
        Some(match Json::read(raw) {
            Json::Null => Self::Null,
            Json::Bool => Self::Boolean(raw.get() == "true"),
            Json::Number(text) => Self::Number(double(text)?),
            Json::String(text) => Self::Text(text?.into_owned()),
            Json::Array(_) | Json::Object(_) => Self::Nested(canonical_form(raw)),
        })
    }

    /// Whether the values are equal as JSON: numbers by value, objects without order. `json` is `raw`, read.
    pub(super) fn equals(&self, json: &Json<'_>, raw: &RawValue) -> bool {
        match (self, json) {
            (Self::Null, Json::Null) => true,
            (Self::Boolean(value), Json::Bool) => *value == (raw.get() == "true"),
            (Self::Number(value), Json::Number(text)) => double(text) == Some(*value),
            (Self::Text(value), Json::String(Some(text))) => value == text,
            (Self::Nested(form), Json::Array(_) | Json::Object(_)) => *form == canonical_form(raw),
            _ => false,
        }
    }
}

pub(super) fn canonical_form(raw: &RawValue) -> Vec<u8> {
    let mut form = Vec::new();
    canonical::write(raw, MOST_LEVELS + 1, &mut form);
    form
}
