//! The value of a cell, and how it becomes JSON. It may be MongoDB Extended JSON (version 2, canonical and
//! relaxed, and version 1's dates), as `mongoexport` writes it.
//!
//! A number is read by its value, whatever it is written as: `5.0` and `{"$numberDecimal": "0.5E1"}` are
//! integers. The texts of JSON and of CSV are read by their notation: in them an exponent shows that a
//! spreadsheet has rounded.

use std::borrow::Cow;

use bson::spec::BinarySubtype;
use bson::{Bson, Uuid};
use pagebucket_model::domain::{Instant, Invalid, Json, Member, OwnerId, OwnerType};
use pagebucket_model::item::{ColumnKind, is_a_double, plain_number, shortest_double, whole_number};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// What a cell holds.
#[derive(Debug)]
pub(crate) enum CellValue<'a> {
    /// Nothing, not even quotes: a field of CSV.
    Empty,
    /// A CSV field, or a JSON string.
    Text(Cow<'a, str>),
    /// A number of JSON, by its digits; of Extended JSON, any text.
    Number(Cow<'a, str>),
    /// A decimal number of Extended JSON: any text.
    Decimal(Cow<'a, str>),
    /// A date of Extended JSON: any text.
    Date(Cow<'a, str>),
    /// Certainly milliseconds since 1970.
    Millis(Cow<'a, str>),
    /// Any other value of JSON.
    Json(&'a RawValue),
    /// What is no text, such as "a string with a lone surrogate".
    NotText(&'static str),
}

/// Why a value has no JSON.
#[derive(Debug, derive_more::From)]
pub(crate) enum Unwritable {
    /// It breaks this rule.
    #[from]
    Invalid(Invalid),
    /// It should be a number, and is none: the schema has the rule.
    NotANumber,
    /// It has a whole number that a double would round.
    #[from]
    Rounded(Rounded),
}

/// A whole number that a double would round.
#[derive(Debug)]
pub(crate) struct Rounded(pub(crate) String);

/// Number of characters of a value that a message repeats.
const SHOWN: usize = 40;

impl<'a> CellValue<'a> {
    /// A value of JSON that should be a scalar. Never descends more than three levels, however deep it is
    /// nested.
    pub(crate) fn read(raw: &'a RawValue) -> Self {
        match Json::read(raw) {
            Json::Number(digits) => Self::Number(digits.into()),
            Json::String(Some(text)) => Self::Text(text),
            Json::String(None) => Self::NotText("a string with a lone surrogate"),
            Json::Object(members) => wrapped(&members).unwrap_or(Self::Json(raw)),
            _ => Self::Json(raw),
        }
    }

    /// The JSON of the value, of this kind if it can be. JSON of another kind is for the schema to refuse.
    ///
    /// # Errors
    /// JSON cannot write it.
    pub(crate) fn json(&self, kind: Option<ColumnKind>) -> Result<Box<RawValue>, Unwritable> {
        Ok(match (kind, self) {
            (_, Self::Json(raw)) if self.is_null() => (*raw).to_owned(),
            (Some(ColumnKind::Date), _) => json(&self.date()?),
            (Some(ColumnKind::Decimal), Self::Number(text)) if is_scientific(text) => {
                // Of a double the zeros before the exponent are its program's: `1.0E-7`.
                let shortest = shortest_double(text).filter(|_| is_a_double(text));
                json(&by_value(shortest.as_deref().unwrap_or(text), plain_number))
            }
            (Some(ColumnKind::Decimal), Self::Decimal(text)) => json(&by_value(text, plain_number)),
            (Some(ColumnKind::Decimal), _) => json(self.number()?),
            (Some(ColumnKind::Integer), _) => number(&self.whole()?)?,
            (Some(ColumnKind::Number), _) => {
                let text = self.number()?;
                let is_decimal = matches!(self, Self::Decimal(_));
                let number = number(text)?;
                if is_rounded(text) || is_decimal && !is_a_double(text) {
                    return Err(
                        Invalid::new("must be a number that a double can hold without rounding").into()
                    );
                }
                number
            }
            (Some(ColumnKind::Boolean), Self::Text(text) | Self::Date(text))
                if matches!(&**text, "true" | "false") =>
            {
                json(&(text == "true"))
            }
            (Some(ColumnKind::Boolean), Self::Empty) => return Err(Invalid::new("must be a boolean").into()),
            (_, Self::Text(text) | Self::Date(text)) => json(text),
            (_, Self::Number(digits) | Self::Decimal(digits)) => number(digits)?,
            (_, Self::Json(raw)) => plain(raw)?,
            // The schema may have more to say than that it is required.
            (_, Self::Empty) => json(""),
            (_, Self::Millis(_) | Self::NotText(_)) => return Err(Invalid::new("must be a string").into()),
        })
    }

    /// The id of an owner.
    ///
    /// # Errors
    /// It is none of this type.
    pub(crate) fn owner(&self, kind: OwnerType) -> Result<OwnerId, Invalid> {
        match self {
            Self::Json(raw)
                if kind == OwnerType::Uuid
                    && let Some(text) = uuid(raw) =>
            {
                return kind.parse(&text);
            }
            Self::Empty | Self::Text(_) | Self::Date(_) => {}
            _ if kind.is_text() => return Err(Invalid::new("must be a string")),
            _ => {}
        }
        kind.parse(&self.whole()?)
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Json(raw) if raw.get() == "null")
    }

    fn date(&self) -> Result<Instant, Invalid> {
        match self {
            Self::Millis(text) => parse_millis(text),
            value => parse_date(&value.whole()?),
        }
    }

    /// The digits of a whole number, or what there is instead.
    fn whole(&self) -> Result<Cow<'_, str>, Invalid> {
        Ok(match self {
            Self::Number(text) | Self::Decimal(text) => by_value(text, whole_number),
            other => other.number()?.into(),
        })
    }

    /// A number, or a text of it.
    fn number(&self) -> Result<&str, Invalid> {
        match self {
            Self::Empty => Ok(""),
            Self::Text(text) | Self::Number(text) | Self::Decimal(text) | Self::Date(text) => Ok(text),
            Self::Millis(_) => Err(Invalid::new("must be a number")),
            Self::Json(_) | Self::NotText(_) => Err(Invalid::new("must be a number or a string")),
        }
    }

    /// The value in a sentence, with control characters escaped.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Empty => "\"\"".to_owned(),
            Self::Json(raw) => Json::read(raw).kind().to_owned(),
            Self::NotText(kind) => (*kind).to_owned(),
            Self::Text(text)
            | Self::Number(text)
            | Self::Decimal(text)
            | Self::Date(text)
            | Self::Millis(text) => {
                let beginning: String = text.chars().take(SHOWN).collect();
                let more = if beginning.len() < text.len() { "…" } else { "" };
                format!("{beginning:?}{more}")
            }
        }
    }
}

/// The text of a native UUID. Of the old subtype, in the order of its bytes, as Python has written it.
pub fn uuid_text(subtype: BinarySubtype, bytes: &[u8]) -> Option<String> {
    let is_uuid = matches!(subtype, BinarySubtype::Uuid | BinarySubtype::UuidOld);
    let bytes = bytes.try_into().ok().filter(|_| is_uuid)?;
    Some(Uuid::from_bytes(bytes).to_string())
}

/// The text of a native UUID of Extended JSON.
fn uuid(raw: &RawValue) -> Option<String> {
    match Bson::try_from(serde_json::from_str::<Value>(raw.get()).ok()?).ok()? {
        Bson::Binary(binary) => uuid_text(binary.subtype, &binary.bytes),
        _ => None,
    }
}

/// A number by its value, if it has this form.
fn by_value(text: &str, form: fn(&str) -> Option<String>) -> Cow<'_, str> {
    form(text).map_or(text.into(), Cow::from)
}

fn is_scientific(text: &str) -> bool {
    text.contains(['e', 'E'])
}

/// Digits of 2^53 - 1: a whole number that has fewer is a double.
const LONG: usize = 16;

/// Whether a double would round this whole number. What has a fraction or an exponent is the nearest double,
/// as in all JSON.
fn is_rounded(text: &str) -> bool {
    text.len() >= LONG && !text.contains('.') && !is_scientific(text) && !is_a_double(text)
}

/// The JSON of a text, of a date or of `true` or `false`.
pub(crate) fn json(value: &(impl Serialize + ?Sized)) -> Box<RawValue> {
    to_raw_value(value).expect("a text can be written")
}

/// Deeper values are left as they are: the schema refuses them.
const MOST_LEVELS: u32 = 33;

/// Any value as plain JSON: dates and decimal numbers are strings.
///
/// # Errors
/// A double would round a whole number in it.
pub(crate) fn plain(raw: &RawValue) -> Result<Box<RawValue>, Rounded> {
    let mut runs = raw.get().as_bytes().chunk_by(|one, next| one.is_ascii_digit() && next.is_ascii_digit());
    if runs.any(|run| run.len() >= LONG)
        && let Some(number) = rounded(raw, MOST_LEVELS)
    {
        return Err(Rounded(number));
    }
    let plain = raw.get().contains('$').then(|| to_raw_value(&Plain(raw, MOST_LEVELS)));
    Ok(plain.and_then(Result::ok).unwrap_or_else(|| raw.to_owned()))
}

/// The first whole number in a value that a double would round, within these levels.
fn rounded(raw: &RawValue, levels: u32) -> Option<String> {
    match Json::read(raw) {
        _ if levels == 0 => None,
        Json::Number(digits) => is_rounded(digits).then(|| digits.to_owned()),
        Json::Array(items) => items.into_iter().find_map(|item| rounded(item, levels - 1)),
        Json::Object(members) => match wrapped(&members) {
            Some(CellValue::Number(digits)) => is_rounded(&digits).then(|| digits.into_owned()),
            Some(_) => None,
            None => members.iter().find_map(|member| rounded(member.value, levels - 1)),
        },
        _ => None,
    }
}

/// A value, and the levels of it that are rewritten.
struct Plain<'a>(&'a RawValue, u32);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self(raw, levels) = self;
        match Json::read(raw) {
            _ if levels == 0 => raw.serialize(to),
            Json::Array(items) => to.collect_seq(items.into_iter().map(|item| Plain(item, levels - 1))),
            Json::Object(members) => match wrapped(&members) {
                Some(CellValue::Number(digits)) => match number(&digits) {
                    Ok(number) => number.serialize(to),
                    Err(_) => raw.serialize(to),
                },
                Some(CellValue::Date(text)) if let Ok(instant) = parse_date(&text) => instant.serialize(to),
                Some(CellValue::Decimal(text) | CellValue::Date(text)) => to.serialize_str(&text),
                Some(CellValue::Millis(text)) if let Ok(instant) = parse_millis(&text) => {
                    instant.serialize(to)
                }
                // A name that is no text cannot be repeated, and no item has one.
                None if members.iter().any(|member| member.name.is_none()) => raw.serialize(to),
                Some(_) => raw.serialize(to),
                None => to.collect_map(members.iter().map(|Member { name, value }| {
                    (name.as_deref().unwrap_or_default(), Plain(value, levels - 1))
                })),
            },
            _ => raw.serialize(to),
        }
    }
}

/// A number of JSON.
///
/// # Errors
/// The text is none.
pub(crate) fn number(text: &str) -> Result<Box<RawValue>, Unwritable> {
    // JSON allows white space around a number.
    let bare = text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && text.ends_with(|last: char| last.is_ascii_digit());
    let number = bare.then(|| RawValue::from_string(text.to_owned()).ok());
    number.flatten().ok_or(Unwritable::NotANumber)
}

/// `{"$numberLong": "5"}` and the like: an object of one member that is one scalar. Never descends more than
/// two levels.
fn wrapped<'a>(members: &[Member<'a>]) -> Option<CellValue<'a>> {
    let [Member { name: Some(name), value }] = members else { return None };
    Some(match (&**name, Json::read(value)) {
        ("$numberInt" | "$numberLong", Json::String(Some(digits))) => CellValue::Number(digits),
        ("$numberDecimal", Json::String(Some(digits))) => CellValue::Decimal(digits),
        // Its digits depend on the program that has written it: `1.0E-7`, `1e-07`.
        ("$numberDouble", Json::String(Some(digits))) => {
            let shortest = number(&digits).ok().and_then(|_| shortest_double(&digits));
            CellValue::Number(shortest.map_or(digits, Cow::from))
        }
        ("$date", Json::String(Some(text))) => CellValue::Date(text),
        ("$date", Json::Number(millis)) => CellValue::Millis(millis.into()),
        // Not by recursion: nested as deep as a row is long, it would not fit the stack.
        ("$date", Json::Object(members)) => match members.as_slice() {
            [Member { name: Some(name), value }] if name == "$numberLong" => match Json::read(value) {
                Json::String(Some(millis)) => CellValue::Millis(millis),
                _ => return None,
            },
            _ => return None,
        },
        _ => return None,
    })
}

/// From RFC 3339, the same with a space for the `T`, a bare day (its first moment in UTC), or
/// milliseconds since 1970.
///
/// # Errors
/// Anything else, or a bare number within 10^10 of zero: see [`SMALLEST_MILLIS`].
fn parse_date(text: &str) -> Result<Instant, Invalid> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let instant = parse_millis(text)?;
        if instant.millis().unsigned_abs() < SMALLEST_MILLIS {
            return Err(Invalid::new(
                "must not be a number this small: a number is milliseconds since 1970, and this one looks like seconds, a year or a day without dashes",
            ));
        }
        return Ok(instant);
    }
    match text.as_bytes().get(10) {
        Some(b' ') => Instant::parse_with_separator(text, b' '),
        Some(b'T') => Instant::parse_rfc3339(text),
        None if text.len() == 10 => Instant::parse_date(text),
        _ => Err(Invalid::new(
            "must be a date-time with an offset, such as \"2004-01-09T00:00:00Z\" or \"2004-01-09 00:00:00+00:00\", a day, such as \"2004-01-09\", or milliseconds since 1970",
        )),
    }
}

/// From milliseconds since 1970 in decimal digits, negative before; however small.
///
/// # Errors
/// Not such a number, or outside the years 0000 to 9999.
fn parse_millis(text: &str) -> Result<Instant, Invalid> {
    // `i64::from_str` alone would take a plus sign.
    let millis = text.parse().ok().filter(|_| !text.starts_with('+'));
    millis.map_or_else(
        || Err(Invalid::new("must be whole milliseconds since 1970, in the years 0000 to 9999")),
        Instant::from_millis,
    )
}

/// A smaller bare number is refused: seconds do not reach 10^10 before the year 2286, and
/// milliseconds are beyond it since April 1970. Taking one for the other would put a whole file into
/// January 1970, in a store that corrects no item.
const SMALLEST_MILLIS: u64 = 10_000_000_000;

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
            (r#"{"$numberDecimal":"15.50"}"#, r#"Decimal("15.50")"#),
            (r#"{"$numberDouble":"448.0"}"#, r#"Number("448")"#),
            (r#"{"$numberDouble":"15.54"}"#, r#"Number("15.54")"#),
            (r#"{"$numberDouble":"1.0E-7"}"#, r#"Number("1e-7")"#),
            (r#"{"$numberDouble":"NaN"}"#, r#"Number("NaN")"#),
            (r#"{"$date":"2004-01-09T00:00:00Z"}"#, r#"Date("2004-01-09T00:00:00Z")"#),
            (r#"{"$date":{"$numberLong":"-1"}}"#, r#"Millis("-1")"#),
            (r#"{"$date":1073606400000}"#, r#"Millis("1073606400000")"#),
            (r#"{"$date":{"$date":{"$date":1}}}"#, r#"Json(RawValue({"$date":{"$date":{"$date":1}}}))"#),
            (r#"{"$numberLong":"5","x":1}"#, r#"Json(RawValue({"$numberLong":"5","x":1}))"#),
            ("[[]]", "Json(RawValue([[]]))"),
            (r#""\ud800""#, r#"NotText("a string with a lone surrogate")"#),
        ] {
            assert_eq!(
                format!("{:?}", CellValue::read(Json::check(json.as_bytes()).unwrap())),
                value,
                "{json}"
            );
        }
    }

    #[test]
    fn nested_values_are_unwrapped() {
        let plain = |json: &str| plain(Json::check(json.as_bytes()).unwrap()).unwrap().get().to_owned();
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

    #[test]
    fn four_forms_are_read() {
        for (text, instant) in [
            ("2004-01-09T00:00:00Z", "2004-01-09T00:00:00.000Z"),
            ("2004-01-09T01:30:00.5+01:30", "2004-01-09T00:00:00.500Z"),
            ("2004-01-09 00:00:00+00:00", "2004-01-09T00:00:00.000Z"),
            ("2004-01-09", "2004-01-09T00:00:00.000Z"),
            ("1073606400000", "2004-01-09T00:00:00.000Z"),
            ("-1073606400000", "1935-12-25T00:00:00.000Z"),
        ] {
            assert_eq!(parse_date(text).unwrap().to_string(), instant, "{text}");
        }
        assert_eq!(parse_millis("-1").unwrap().to_string(), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
        for (text, part) in [
            ("1073606400", "seconds"),
            ("20040109", "without dashes"),
            ("2004", "a year"),
            ("2004-01-09 00:00:00", "offset"),
            ("09.01.2004", "a day"),
            ("01/09/2004 10:00", "RFC 3339"),
            ("", "offset"),
            ("-", "offset"),
            ("1.5e12", "offset"),
            ("99999999999999999999", "0000 to 9999"),
            ("999999999999999", "0000 to 9999"),
            ("2004-01-09T00:00:00.123456Z", "finer"),
        ] {
            let sentence = parse_date(text).unwrap_err().to_string();
            assert!(sentence.contains(part), "{text}: {sentence}");
        }
        assert!(parse_millis("+1").is_err());
    }
}
