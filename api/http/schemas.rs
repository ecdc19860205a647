//! The schemas of single values, in requests and answers alike.

use serde_json::json;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};

use crate::domain::{MAX_SAFE_INTEGER, PagePath, Price, Resolution, Ticker};

/// A schema that is written in JSON Schema itself. Its properties keep their order.
pub fn schema(json: &str) -> RefOr<Schema> {
    serde_json::from_str(json).expect("a schema of ours is well-formed, as the OpenAPI test shows")
}

/// A whole number from 1 to 2^53 - 1.
pub fn ordinal() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::Integer))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(1))
        .maximum(Some(MAX_SAFE_INTEGER as i64))
        .into()
}

/// A whole number of this range.
pub fn whole(minimum: i64, maximum: u64) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::Integer))
        .minimum(Some(minimum))
        .maximum(Some(maximum as i64))
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::String))
}

/// `buy` or `sell`.
pub fn side() -> RefOr<Schema> {
    text().enum_values(Some(["buy", "sell"])).into()
}

/// `asc` or `desc`.
pub fn order() -> RefOr<Schema> {
    text().enum_values(Some(["asc", "desc"])).into()
}

/// Exactly what `domain::Ticker` parses.
pub fn ticker() -> RefOr<Schema> {
    text().min_length(Some(1)).max_length(Some(Ticker::MAX_LEN)).pattern(Some("^[A-Z0-9.-]{1,12}$")).into()
}

/// Exactly what `domain::Price` parses, in three shapes: 34 significant digits cannot be counted
/// across a point by a regular expression, but a length beside it can.
pub fn price() -> RefOr<Schema> {
    let shape = |pattern: String, longest: usize| text().pattern(Some(pattern)).max_length(Some(longest));
    let (digits, scale) = (Price::MAX_DIGITS, usize::from(Price::MAX_SCALE));
    OneOfBuilder::new()
        .description(Some("A positive decimal number in plain notation, with at most 34 significant digits: a string, so that no digit is lost."))
        .item(shape("^[1-9][0-9]*$".to_owned(), digits))
        .item(shape(r"^[1-9][0-9]*\.[0-9]+$".to_owned(), digits + ".".len()))
        .item(shape(format!(r"^0\.0*[1-9][0-9]{{0,{}}}$", digits - 1), scale + "0.".len()))
        .examples([json!("15.54")])
        .into()
}

/// An instant in an answer.
pub fn instant() -> RefOr<Schema> {
    text()
        .description(Some("RFC 3339 in UTC, with exactly three fraction digits."))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .pattern(Some(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"))
        .into()
}

/// The optional date of a new item.
pub fn new_date() -> RefOr<Schema> {
    new_instant("RFC 3339 with at most three fraction digits, in the years 0000 to 9999 of UTC. Default: the time at which the request was received.")
        .examples([json!("2004-01-09T00:00:00.000Z")])
        .into()
}

/// An instant in a request.
pub fn date_time() -> RefOr<Schema> {
    new_instant("RFC 3339 with at most three fraction digits, in the years 0000 to 9999 of UTC.").into()
}

/// A pattern and not the format `date-time`, which says nothing of fraction digits or leap seconds.
fn new_instant(description: &str) -> ObjectBuilder {
    let day = "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])";
    let time = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,3})?";
    let leap = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29";
    let offset = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
    text()
        .description(Some(description))
        .pattern(Some(format!("^([0-9]{{4}}-({day})|{leap})T{time}{offset}$")))
}

/// JSON Schema counts characters, not bytes, so only the description states the limit in bytes.
pub fn page_path() -> RefOr<Schema> {
    text()
        .description(Some("The path of a page: at most 512 bytes of UTF-8, beginning with `/`, without control characters, a query or a fragment. It is neither decoded nor normalised."))
        .min_length(Some(1))
        .max_length(Some(PagePath::MAX_LEN))
        .pattern(Some(r"^/[^\u0000-\u001f\u007f-\u009f?#]*$"))
        .into()
}

/// The name of a resolution.
pub fn resolution() -> RefOr<Schema> {
    text().enum_values(Some(Resolution::ALL.map(Resolution::name))).into()
}
