//! The schemas of single values, in requests and answers alike.

use serde_json::json;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{KnownFormat, Ref, RefOr, SchemaFormat};

use crate::definition::openapi;
use crate::domain::{MAX_SAFE_INTEGER, PagePath, Resolution};

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

/// The schema that a definition gives for the ids of its owners.
pub const OWNER_ID: &str = "OwnerId";

/// The id of an owner.
pub fn owner_id() -> RefOr<Schema> {
    Ref::from_schema_name(OWNER_ID).into()
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

/// `asc` or `desc`.
pub fn order() -> RefOr<Schema> {
    text().enum_values(Some(["asc", "desc"])).into()
}

/// An instant in an answer.
pub fn instant() -> RefOr<Schema> {
    text()
        .description(Some("RFC 3339 in UTC, with exactly three fraction digits."))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .pattern(Some(openapi::INSTANT))
        .into()
}

/// The optional moment of a page view.
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
    text().description(Some(description)).pattern(Some(openapi::new_instant()))
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
