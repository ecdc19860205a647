//! JSON, read level by level without loss.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// One level of a JSON text, without loss: numbers as they were written (also 1e400 and 419.0), and repeated
/// names. Lower levels are read on demand, so deep nesting costs nothing.
#[derive(Debug)]
pub enum Json<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// The characters of the number.
    Number(&'a str),
    /// `None` if the string contains a lone surrogate, which is not Unicode text.
    String(Option<Cow<'a, str>>),
    /// The items, not read yet.
    Array(Vec<&'a RawValue>),
    /// The members in order.
    Object(Vec<Member<'a>>),
}

/// One member of an object.
#[derive(Debug)]
pub struct Member<'a> {
    /// `None` if the name contains a lone surrogate.
    pub name: Option<Cow<'a, str>>,
    /// The value, not read yet.
    pub value: &'a RawValue,
}

/// A text that is not JSON (RFC 8259).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotJson(String);

impl NotJson {
    /// What is wrong with a text that is a single line: the place is a byte of it.
    pub fn in_one_line(&self) -> String {
        // The parser calls it line 1.
        self.0.replace(" at line 1 column ", ", at byte ")
    }
}

impl<'a> Json<'a> {
    /// Checks that all of `bytes` is one JSON text, of any depth.
    ///
    /// # Errors
    /// `bytes` are not JSON; the error says where.
    pub fn check(bytes: &'a [u8]) -> Result<&'a RawValue, NotJson> {
        serde_json::from_slice(bytes).map_err(|error| NotJson(error.to_string()))
    }

    /// Reads one level of a text that [`Json::check`] has accepted.
    pub fn read(raw: &'a RawValue) -> Self {
        let text = raw.get();
        match text.as_bytes()[0] {
            b'n' => Self::Null,
            b't' | b'f' => Self::Bool,
            b'"' => Self::String(unicode(raw)),
            b'[' => Self::Array(serde_json::from_str(text).unwrap_or_default()),
            b'{' => Self::Object(
                serde_json::Deserializer::from_str(text).deserialize_map(MemberVisitor).unwrap_or_default(),
            ),
            _ => Self::Number(text),
        }
    }

    /// The type of the value, as the end of a sentence: "must be a string, not ...".
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

fn unicode(raw: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(serde::Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    // Most strings have no escape: they are the text between the quotation marks.
    if let Some(text) = raw.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'))
        && !text.contains('\\')
    {
        return Some(Cow::Borrowed(text));
    }
    serde_json::from_str::<Text<'_>>(raw.get()).ok().map(|Text(text)| text)
}

/// Collects the members of an object.
struct MemberVisitor;

impl<'de> Visitor<'de> for MemberVisitor {
    type Value = Vec<Member<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            members.push(Member { name: unicode(name), value });
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Json<'_> {
        Json::read(Json::check(text.as_bytes()).unwrap())
    }

    #[test]
    fn keeps_what_a_value_tree_would_lose() {
        assert!(matches!(read("1e400"), Json::Number("1e400")));
        assert!(matches!(read(" 419.0 "), Json::Number("419.0")));
        assert!(matches!(read(r#""\ud800""#), Json::String(None)));
        assert!(matches!(read(r#""\u0000""#), Json::String(Some(text)) if text == "\0"));
        let Json::Object(members) = read(r#"{"a":1,"a":2,"\ud800":3,"\u0062":4}"#) else { panic!() };
        let names: Vec<_> = members.iter().map(|member| member.name.as_deref()).collect();
        assert_eq!(names, [Some("a"), Some("a"), None, Some("b")]);
    }

    #[test]
    fn ten_thousand_levels_are_one_level() {
        let text = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let Json::Array(items) = read(&text) else { panic!() };
        assert_eq!(items.len(), 1);
    }

    #[test]
    fn refuses_what_is_not_json() {
        for text in ["", "{", "[1,]", "NaN", "01", "'a'", "{\"a\":1}x", "\"\u{1}\"", "\u{feff}{}", "+1", ".5"]
        {
            assert!(Json::check(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(Json::check(b"\"\xff\"").is_err());
    }
}
