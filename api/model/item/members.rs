//! A stored item becomes JSON, by its stored types alone.

use bson::raw::{RawBsonRef, RawDocument};

use super::decimal::Decimal;
use super::limits::MOST_LEVELS;
use super::number::{MAX_INTEGER, write_double};
use crate::domain::Instant;

/// What is wrong with a stored item: damage, or another program's writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corrupt {
    /// The names that lead to the field, with dots between them; empty for the item itself.
    pub field: String,
    /// What is wrong, as a sentence without a subject.
    pub detail: &'static str,
}

impl Corrupt {
    fn new(detail: &'static str) -> Self {
        Self { field: String::new(), detail }
    }

    fn within(mut self, name: &str) -> Self {
        self.field = if self.field.is_empty() { name.to_owned() } else { format!("{name}.{}", self.field) };
        self
    }
}

/// Appends a JSON string, with the escapes that JSON demands and no others.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a vector takes all bytes, and a text can be written");
}

const NOT_A_DATE: &str = "is not a date of the years 0000 to 9999";
const NOT_BSON: &str = "is not a BSON document";

/// Appends the members of a stored item to `out`, with a comma before each. Skips the engine's key. In stored
/// order, except that the date is last.
///
/// The order depends on the definition only as far as it never changes, so a full page is a function of its
/// bytes.
///
/// # Errors
/// A field has a type that no item has. `out` then ends anywhere.
pub fn write_members(
    document: &RawDocument,
    key_field: &str,
    date: &str,
    out: &mut Vec<u8>,
) -> Result<(), Corrupt> {
    let instant = read(document, key_field, date, &mut |token| token.write(out))?;
    JsonToken::Name(date).write(out);
    JsonToken::Instant(instant).write(out);
    Ok(())
}

/// Checks a stored item as [`write_members`] does, and returns its date.
///
/// # Errors
/// Same as [`write_members`].
pub fn check_stored(document: &RawDocument, key_field: &str, date: &str) -> Result<Instant, Corrupt> {
    read(document, key_field, date, &mut |_| ())
}

/// Appends any value to `out` as a stored one becomes JSON: dates and decimal numbers as strings.
///
/// # Errors
/// It has a type or a number that no item has. `out` then ends anywhere.
pub fn write_value(value: RawBsonRef<'_>, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    walk(value, 2, &mut |token| token.write(out))
}

/// Appends the name of a member to `out`, with a comma before it unless it is the first.
pub fn write_name(name: &str, out: &mut Vec<u8>) {
    JsonToken::Name(name).write(out);
}

/// Passes all members but the engine's key and the date to `visit`, and returns the date.
fn read<'a>(
    document: &'a RawDocument,
    key_field: &str,
    date: &str,
    visit: &mut impl FnMut(JsonToken<'a>),
) -> Result<Instant, Corrupt> {
    let mut instant = None;
    for element in document {
        let (name, value) = element.map_err(|_| Corrupt::new(NOT_BSON))?;
        match name.as_str() {
            name if name == key_field => Ok(()),
            name if name == date => instant_of(value).map(|found| instant = Some(found)),
            name => {
                visit(JsonToken::Name(name));
                walk(value, 2, visit)
            }
        }
        .map_err(|corrupt| corrupt.within(name.as_str()))?;
    }
    instant.ok_or_else(|| Corrupt::new(NOT_A_DATE).within(date))
}

/// Passes a value to `visit`, in the order of its JSON.
fn walk<'a>(value: RawBsonRef<'a>, level: u32, visit: &mut impl FnMut(JsonToken<'a>)) -> Result<(), Corrupt> {
    // An array is a document whose names are its indices.
    let (document, named, [open, close]) = match value {
        RawBsonRef::Document(document) => (Ok(document), true, ["{", "}"]),
        RawBsonRef::Array(array) => (RawDocument::from_bytes(array.as_bytes()), false, ["[", "]"]),
        scalar => {
            visit(JsonToken::of_scalar(scalar)?);
            return Ok(());
        }
    };
    if level > MOST_LEVELS {
        return Err(Corrupt::new("is nested deeper than 32 levels"));
    }
    visit(JsonToken::Literal(open));
    for element in document.map_err(|_| Corrupt::new(NOT_BSON))? {
        let (name, value) = element.map_err(|_| Corrupt::new(NOT_BSON))?;
        visit(if named { JsonToken::Name(name.as_str()) } else { JsonToken::Item });
        walk(value, level + 1, visit).map_err(|corrupt| corrupt.within(name.as_str()))?;
    }
    visit(JsonToken::Literal(close));
    Ok(())
}

/// The date of a stored item.
///
/// # Errors
/// It is missing, of another type, or outside the years.
pub fn date(document: &RawDocument, name: &str) -> Result<Instant, Corrupt> {
    let value = document.get(name).ok().flatten();
    value.ok_or(Corrupt::new(NOT_A_DATE)).and_then(instant_of).map_err(|corrupt| corrupt.within(name))
}

fn instant_of(value: RawBsonRef<'_>) -> Result<Instant, Corrupt> {
    match value {
        RawBsonRef::DateTime(date) => {
            Instant::from_millis(date.timestamp_millis()).map_err(|_| Corrupt::new(NOT_A_DATE))
        }
        _ => Err(Corrupt::new(NOT_A_DATE)),
    }
}

/// Appends a stored scalar to `out` as a field of CSV (RFC 4180): text without quotes, unless it needs them.
/// A text of no characters is two quotes, because an empty field is an absent property.
///
/// # Errors
/// The value is no scalar, or `null`, which CSV has no words for.
pub fn write_cell(value: RawBsonRef<'_>, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    match value {
        RawBsonRef::Document(_) | RawBsonRef::Array(_) | RawBsonRef::Null => {
            return Err(Corrupt::new("is no value that a field of CSV can hold"));
        }
        RawBsonRef::String(text) => {
            let plain = |byte: u8| !matches!(byte, b'"' | b',' | b'\r' | b'\n');
            if !text.is_empty() && text.bytes().all(plain) {
                out.extend_from_slice(text.as_bytes());
            } else {
                out.push(b'"');
                out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
                out.push(b'"');
            }
        }
        scalar => {
            let from = out.len();
            JsonToken::of_scalar(scalar)?.write(out);
            // Dates and decimal numbers are strings in JSON.
            if out[from..].starts_with(b"\"") {
                out.pop();
                out.remove(from);
            }
        }
    }
    Ok(())
}

/// What the JSON of an item consists of.
enum JsonToken<'a> {
    /// The name of the member that follows.
    Name(&'a str),
    /// The item of an array that follows.
    Item,
    /// A bracket, `null`, `true` or `false`.
    Literal(&'static str),
    Number(f64),
    Text(&'a str),
    Decimal(Decimal),
    Instant(Instant),
}

impl<'a> JsonToken<'a> {
    fn of_scalar(value: RawBsonRef<'a>) -> Result<Self, Corrupt> {
        Ok(match value {
            RawBsonRef::Null => Self::Literal("null"),
            RawBsonRef::Boolean(value) => Self::Literal(if value { "true" } else { "false" }),
            RawBsonRef::Int32(number) => Self::Number(f64::from(number)),
            RawBsonRef::Int64(number) if (-MAX_INTEGER..=MAX_INTEGER).contains(&number) => {
                Self::Number(number as f64)
            }
            RawBsonRef::Int64(_) => return Err(Corrupt::new("is an int64 beyond 2^53 - 1")),
            RawBsonRef::Double(number) if number.is_finite() => Self::Number(number),
            RawBsonRef::Double(_) => return Err(Corrupt::new("is not a finite number")),
            RawBsonRef::String(text) => Self::Text(text),
            RawBsonRef::Decimal128(number) => Decimal::of_bytes(number.bytes())
                .map(Self::Decimal)
                .ok_or_else(|| Corrupt::new("is not a decimal number of at most 34 digits"))?,
            date @ RawBsonRef::DateTime(_) => Self::Instant(instant_of(date)?),
            _ => return Err(Corrupt::new("has a type that no item has")),
        })
    }

    /// Appends its JSON, for a member or an item with the comma before it.
    fn write(self, out: &mut Vec<u8>) {
        if matches!(self, Self::Name(_) | Self::Item) && !matches!(out.last(), Some(b'{' | b'[')) {
            out.push(b',');
        }
        match self {
            Self::Name(name) => {
                write_string(name, out);
                out.push(b':');
            }
            Self::Item => {}
            Self::Literal(text) => out.extend_from_slice(text.as_bytes()),
            Self::Number(number) => write_double(number, out),
            Self::Text(text) => write_string(text, out),
            Self::Decimal(number) => {
                out.push(b'"');
                number.write(out);
                out.push(b'"');
            }
            Self::Instant(instant) => {
                out.push(b'"');
                out.extend_from_slice(&instant.rfc3339());
                out.push(b'"');
            }
        }
    }
}
