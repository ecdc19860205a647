//! Which problems each operation can answer with, for the OpenAPI document.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{RefOr, Response};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

use super::content::Problem;
use super::kind::Kind::{self, *};
use super::render::MEDIA_TYPE;
use crate::domain::Faults;
use crate::http::access::Access;
use crate::http::schemas::schema;

/// Problems of every operation under `/v1`.
const COMMON: &[Kind] =
    &[InvalidParameter, NotAcceptable, Internal, Overloaded, DatabaseUnavailable, ShuttingDown, TimedOut];

/// Problems of every operation that reads a body.
const BODY: &[Kind] = &[MalformedJson, BodyTimeout, UnsupportedMediaType, OutcomeUnknown];

macro_rules! documented {
    ($($(#[$meta:meta])* $name:ident: $($kinds:expr),*;)*) => {$(
        $(#[$meta])*
        pub struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                // Every operation can also fail the check of its host.
                let kinds: [&[Kind]; _] = [$($kinds),*, &[MisdirectedRequest]];
                responses(&kinds.concat())
            }
        }
    )*};
}

documented! {
    /// Problems of an append.
    AppendProblems: COMMON, &[PartlyStored], BODY,
        &[HistoryExhausted, Erased, BodyTooLarge, InvalidItem, IdempotencyKeyReused];
    /// Problems of an upload to one history.
    UploadProblems: COMMON, &[PartlyStored], BODY, &[HistoryExhausted, Erased, IdempotencyKeyReused];
    /// Problems of an upload to many histories.
    ManyUploadsProblems: COMMON, &[PartlyStored], BODY;
    /// Problems of an upload that is answered line by line, before the answer begins.
    OutcomesProblems: COMMON, &[UnsupportedMediaType, HttpVersionNotSupported];
    /// Problems of an export.
    ExportProblems: COMMON, &[Retired, Erased, HttpVersionNotSupported];
    /// Problems of a read that always finds something.
    ReadProblems: COMMON;
    /// Problems of a summary of an owner.
    SummaryProblems: COMMON, &[Erased];
    /// Problems of an erasure.
    ErasureProblems: COMMON;
    /// Problems of a read of a page.
    PageProblems: COMMON, &[PageNotFound, Retired, Erased];
    /// Problems of a listing.
    ListProblems: COMMON, &[PageNotFound, Retired, Erased, RangeNotSatisfiable];
    /// Problems of a read of an item.
    ItemProblems: COMMON, &[ItemNotFound, Retired, Erased];
    /// Problems of a read of the bucket of a minute.
    BucketProblems: COMMON, &[BucketNotFound];
    /// Problems of counting page views.
    CountProblems: COMMON, &[PartlyStored], BODY, &[BodyTooLarge, InvalidPageView];
    /// Problems of a preallocation.
    PreallocationProblems: COMMON, BODY, &[BodyTooLarge, InvalidPageView];
    /// Problems of the readiness probe.
    ReadyProblems: &[Internal, DatabaseUnavailable, ShuttingDown];
    /// Problems of a probe that does not access the database.
    ProbeProblems: &[Internal];
}

/// What the gate answers at a route with this access to clients that may not pass.
pub fn refusals(access: Access) -> BTreeMap<String, RefOr<Response>> {
    responses(match (access, access.scope()) {
        (Access::Everyone, _) => &[],
        (_, None) => &[Unauthorized, TooManyRequests],
        (_, Some(_)) => &[Unauthorized, Forbidden, TooManyRequests],
    })
}

/// One response for each status, with an example of each kind.
fn responses(kinds: &[Kind]) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status: BTreeMap<u16, Vec<Kind>> = BTreeMap::new();
    for kind in kinds {
        by_status.entry(kind.spec().status.as_u16()).or_default().push(*kind);
    }
    by_status.into_iter().map(|(status, kinds)| (status.to_string(), response(status, &kinds))).collect()
}

fn response(status: u16, kinds: &[Kind]) -> RefOr<Response> {
    let about: Vec<_> =
        kinds.iter().map(|kind| format!("`{}`: {}", kind.spec().slug, kind.spec().about)).collect();
    let titled = |kind: &Kind| json!({ "summary": kind.spec().title, "value": example(*kind) });
    let examples: Map<_, _> = kinds.iter().map(|kind| (kind.spec().slug.to_owned(), titled(kind))).collect();
    let content = json!({ "schema": { "$ref": "#/components/schemas/Problem" }, "examples": examples });
    let mut response = json!({ "description": about.join("\n\n"), "content": { MEDIA_TYPE: content } });
    if let Some((header, description)) = header(status) {
        response["headers"] = json!({ header: { "description": description } });
    }
    serde_json::from_value(response).expect("a response of ours is well-formed, as the OpenAPI test shows")
}

/// The header of the problems with this status, and its description.
fn header(status: u16) -> Option<(&'static str, &'static str)> {
    Some(match status {
        401 | 403 => ("WWW-Authenticate", "What is wrong with the token (RFC 6750)."),
        416 => ("Content-Range", "The number of items that the history has: `items */34`."),
        429 => ("Retry-After", "Seconds to wait before a retry."),
        503 => (
            "Retry-After",
            "Seconds to wait before a retry. Absent if a retry could store or count something twice.",
        ),
        _ => return None,
    })
}

fn example(kind: Kind) -> Value {
    let members = match kind {
        InvalidParameter => {
            json!({ "errors": [{ "parameter": "page", "detail": "must be a whole number from 1 to 9007199254740991" }] })
        }
        InvalidItem => json!({ "errors": [{ "pointer": "{faultPointer}", "detail": "{faultDetail}" }] }),
        InvalidPageView => {
            json!({ "errors": [{ "pointer": "/0/path", "detail": "must begin with \"/\"" }] })
        }
        PartlyStored => {
            json!({ "ranges": [{ "firstSeq": 1, "lastSeq": 20 }], "notStoredItems": { "first": 20, "last": 24 } })
        }
        Retired => json!({ "firstPage": 3, "firstSeq": 21 }),
        OutcomeUnknown => json!({ "ranges": [], "unknownItems": { "first": 0, "last": 24 } }),
        _ => json!({}),
    };
    let members = members.as_object().cloned().unwrap_or_default();
    let problem = Problem::new(kind, kind.spec().about).with(members);
    problem.body([("instance", "{instance}"), ("requestId", "3f9c2b7a51d84e06")])
}

impl ToSchema for Problem {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.extend(PARTS.map(|(name, part)| (name.to_owned(), schema(part))));
    }
}

impl PartialSchema for Problem {
    /// The schema of every problem.
    fn schema() -> RefOr<Schema> {
        schema(SCHEMA)
    }
}

const _: () = assert!(Faults::KEPT == 100, "the schema states it");

/// The names of a body have no bound but that of the body, which the operator chooses; so have pointers to what they name.
const SCHEMA: &str = r##"{
    "type": "object",
    "description": "An error (RFC 9457).",
    "required": ["type", "title", "status", "detail", "instance", "requestId"],
    "properties": {
        "type": { "type": "string", "maxLength": 64, "pattern": "^/problems#[a-z-]+$", "description": "The kind of problem, as the address of its description." },
        "title": { "type": "string", "maxLength": 64, "description": "The name of the kind, the same for every problem of one `type`." },
        "status": { "type": "integer", "minimum": 400, "maximum": 599 },
        "detail": { "type": "string", "maxLength": 65536, "description": "What went wrong this time." },
        "instance": { "type": "string", "maxLength": 65536, "description": "The path of the request." },
        "requestId": { "type": "string", "maxLength": 128, "pattern": "^[A-Za-z0-9_.:-]+$", "description": "The request's id, as in the header `x-request-id`." },
        "errors": { "type": "array", "maxItems": 100, "items": { "$ref": "#/components/schemas/ProblemError" }, "description": "What is wrong with the request: at most 100 faults." },
        "errorsOmitted": { "type": "integer", "minimum": 1, "description": "Number of further faults." },
        "ranges": { "type": "array", "maxItems": 1000, "items": { "$ref": "#/components/schemas/SeqRange" }, "description": "Sequence numbers of the stored items." },
        "firstPage": { "type": "integer", "minimum": 2, "maximum": 9007199254740991, "description": "The first page that the history still has." },
        "firstSeq": { "type": "integer", "minimum": 2, "maximum": 9007199254740991, "description": "The first item on that page." },
        "unknownItems": { "$ref": "#/components/schemas/IndexRange", "description": "Items of the request's array that may or may not be stored." },
        "notStoredItems": { "$ref": "#/components/schemas/IndexRange", "description": "Items of the request's array that are not stored." },
        "stored": { "type": "integer", "minimum": 0, "description": "Lines of an upload that are stored." },
        "refused": { "type": "integer", "minimum": 0, "description": "Lines of an upload that are refused, each for a fault of its own." },
        "owners": { "type": "integer", "minimum": 0, "maximum": 10000, "description": "Owners with at least one stored line." },
        "moreOwners": { "type": "boolean", "description": "Whether there are more owners, which were not counted." },
        "problems": { "type": "array", "maxItems": 100, "items": { "$ref": "#/components/schemas/LineProblem" }, "description": "Faults of the first refused lines." },
        "unknownLines": { "type": "array", "maxItems": 20000, "items": { "$ref": "#/components/schemas/LineRange" }, "description": "Lines of an upload, counted from 1, that may or may not be stored." },
        "notStoredLines": { "type": "array", "maxItems": 20000, "items": { "$ref": "#/components/schemas/LineRange" }, "description": "Lines of an upload, counted from 1, that are not stored. The last range has no `last`: it has no end." },
        "counted": { "type": "integer", "minimum": 0, "description": "Page views that are counted." },
        "unknown": { "type": "integer", "minimum": 0, "description": "Page views that may or may not be counted." },
        "notCountedItems": { "type": "array", "maxItems": 400000000, "items": { "type": "integer", "minimum": 0 },
            "description": "Items of the request's array, or of its lines without the blank ones, counted from 0, that are not counted." }
    }
}"##;

/// The schemas that [`SCHEMA`] refers to.
const PARTS: [(&str, &str); 3] = [
    (
        "ProblemError",
        r##"{
            "type": "object",
            "description": "One thing that is wrong with a request.",
            "required": ["detail"],
            "properties": {
                "parameter": { "type": "string", "maxLength": 64, "description": "Name of a parameter of the path or the query, or of a header." },
                "pointer": { "type": "string", "maxLength": 2147483647, "description": "JSON Pointer (RFC 6901) into the body." },
                "line": { "type": "integer", "minimum": 1, "description": "In a body of lines, the line that `pointer` refers to, counted from 1." },
                "detail": { "type": "string", "maxLength": 65536, "description": "What is wrong." }
            }
        }"##,
    ),
    (
        "IndexRange",
        r##"{
            "type": "object",
            "description": "Consecutive items of an array, counted from 0, both ends included.",
            "required": ["first", "last"],
            "properties": { "first": { "type": "integer", "minimum": 0 }, "last": { "type": "integer", "minimum": 0 } }
        }"##,
    ),
    (
        "LineRange",
        r##"{
            "type": "object",
            "description": "Consecutive lines, counted from 1, both ends included.",
            "required": ["first"],
            "properties": {
                "first": { "type": "integer", "minimum": 1 },
                "last": { "type": "integer", "minimum": 1, "description": "Absent if the range has no end." }
            },
            "examples": [{ "first": 12, "last": 15 }]
        }"##,
    ),
];
