//! The schemas of single values, in requests and answers alike.

pub(crate) mod document;
pub(crate) mod examples;
pub(crate) mod headers;
pub(crate) mod items;
pub(crate) mod names;
#[cfg(test)]
mod oracle_tests;
pub(crate) mod views;
pub(crate) mod visit;

use pagebucket_page_views::{PagePath, Resolution};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};

/// A schema that is written in JSON Schema itself. Its properties keep their order.
pub(crate) fn schema(schema: Value) -> RefOr<Schema> {
    serde_json::from_value(schema).expect("a schema of ours is well-formed, as the OpenAPI test shows")
}

/// What one of our JSON files holds.
pub(crate) fn embedded<T: DeserializeOwned>(json: &'static str) -> T {
    serde_json::from_str(json).expect("a file of ours is well-formed, as the OpenAPI test shows")
}

/// An array of 1 to `most` values.
pub(crate) fn many(one: RefOr<Schema>, most: usize) -> RefOr<Schema> {
    schema(json!({ "type": "array", "items": one, "minItems": 1, "maxItems": most }))
}

/// A whole number from 1 to 2^53 - 1.
pub(crate) fn ordinal() -> RefOr<Schema> {
    schema(items::ordinal())
}

/// The schema that a definition gives for the ids of its owners.
pub(crate) const OWNER_ID: &str = "OwnerId";

/// The id of an owner.
pub(crate) fn owner_id() -> RefOr<Schema> {
    Ref::from_schema_name(OWNER_ID).into()
}

/// The member of an answer that says whose history it is
/// ([`OwnerMember`](pagebucket_model::domain::OwnerMember)).
pub(crate) fn owner_member() -> RefOr<Schema> {
    ObjectBuilder::new().property("{ownerField}", owner_id()).required("{ownerField}").into()
}

/// A whole number of this range.
pub(crate) fn whole(minimum: i64, maximum: u64) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::Integer))
        .minimum(Some(minimum))
        .maximum(Some(maximum as i64))
}

/// `asc` or `desc`.
pub(crate) fn order() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).enum_values(Some(["asc", "desc"]))
}

/// An instant in an answer.
pub(crate) fn instant() -> RefOr<Schema> {
    let description = "RFC 3339 in UTC, with exactly three fraction digits.";
    let pattern = items::INSTANT;
    let (format, longest) = ("date-time", items::INSTANT_LENGTH);
    schema(json!({
        "type": "string", "format": format, "description": description, "pattern": pattern, "maxLength": longest
    }))
}

/// The optional moment of a page view.
pub(crate) fn new_date() -> RefOr<Schema> {
    schema(new_instant(
        "RFC 3339, not finer than milliseconds, in the years 0000 to 9999 of UTC. Default: the time at which the request was received.",
    ))
}

/// An instant in a request.
pub(crate) fn date_time() -> RefOr<Schema> {
    schema(new_instant("RFC 3339, not finer than milliseconds, in the years 0000 to 9999 of UTC."))
}

/// A pattern and not the format `date-time`, which says nothing of fraction digits or leap seconds.
fn new_instant(description: &str) -> Value {
    json!({
        "type": "string",
        "description": description,
        "pattern": items::new_instant(),
        "maxLength": items::NEW_INSTANT_LENGTH,
        "examples": ["2004-01-09T00:00:00.000Z"],
    })
}

/// JSON Schema counts characters, not bytes, so only the description states the limit in bytes.
pub(crate) fn page_path() -> RefOr<Schema> {
    schema(json!({
        "type": "string",
        "description": "The path of a page: at most 512 bytes of UTF-8, beginning with `/`, without control characters, a query or a fragment. It is neither decoded nor normalised.",
        "minLength": 1,
        "maxLength": PagePath::MAX_LEN,
        "pattern": r"^/[^\u0000-\u001f\u007f-\u009f?#]*$",
    }))
}

/// The name of a resolution.
pub(crate) fn resolution() -> RefOr<Schema> {
    schema(json!({ "type": "string", "enum": Resolution::ALL.map(|resolution| resolution.to_string()) }))
}
