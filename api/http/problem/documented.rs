//! Which problems each operation can answer with, for the OpenAPI document.

use std::borrow::Cow;
use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::{Value, json};
use utoipa::openapi::schema::{ArrayBuilder, Object, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, Ref, RefOr, Response, ResponseBuilder, example::ExampleBuilder,
};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

use super::kind::Kind;
use super::render::MEDIA_TYPE;
use crate::domain::Faults;

macro_rules! documented {
    ($($(#[$meta:meta])* $name:ident: [$($kind:ident),* $(,)?];)*) => {$(
        $(#[$meta])*
        pub struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                responses(&[$(Kind::$kind),*])
            }
        }
    )*};
}

documented! {
    /// Problems of an append.
    AppendProblems: [
        InvalidParameter, MalformedJson, NotAcceptable, BodyTimeout, HistoryExhausted, BodyTooLarge, UnsupportedMediaType,
        InvalidTrade, IdempotencyKeyReused, Internal, Overloaded, DatabaseUnavailable, ShuttingDown, TimedOut, PartlyStored, OutcomeUnknown,
        HttpVersionNotSupported,
    ];
    /// Problems of an upload to many histories.
    ManyProblems: [
        InvalidParameter, MalformedJson, NotAcceptable, BodyTimeout, UnsupportedMediaType, Internal, Overloaded,
        DatabaseUnavailable, ShuttingDown, TimedOut, PartlyStored, OutcomeUnknown, HttpVersionNotSupported,
    ];
    /// Problems of an export.
    ExportProblems: [
        InvalidParameter, NotAcceptable, Internal, Overloaded, DatabaseUnavailable, ShuttingDown, TimedOut, HttpVersionNotSupported,
    ];
    /// Problems of a read that always finds something.
    ReadProblems: [InvalidParameter, NotAcceptable, Internal, Overloaded, DatabaseUnavailable, ShuttingDown, TimedOut];
    /// Problems of a read of a page.
    PageProblems: [InvalidParameter, PageNotFound, NotAcceptable, Internal, Overloaded, DatabaseUnavailable, ShuttingDown, TimedOut];
    /// Problems of a read of a trade.
    TradeProblems: [InvalidParameter, TradeNotFound, NotAcceptable, Internal, Overloaded, DatabaseUnavailable, ShuttingDown, TimedOut];
    /// Problems of a read of the bucket of a minute.
    BucketProblems: [InvalidParameter, BucketNotFound, NotAcceptable, Internal, Overloaded, DatabaseUnavailable, ShuttingDown, TimedOut];
    /// Problems of counting page views.
    CountProblems: [
        InvalidParameter, MalformedJson, NotAcceptable, BodyTimeout, BodyTooLarge, UnsupportedMediaType, InvalidPageView, Internal,
        Overloaded, DatabaseUnavailable, ShuttingDown, TimedOut, PartlyStored, OutcomeUnknown,
    ];
    /// Problems of a preallocation.
    PreallocationProblems: [
        InvalidParameter, MalformedJson, NotAcceptable, BodyTimeout, BodyTooLarge, UnsupportedMediaType, InvalidPageView, Internal,
        Overloaded, DatabaseUnavailable, ShuttingDown, TimedOut, OutcomeUnknown,
    ];
    /// Problems of the readiness probe.
    ReadyProblems: [DatabaseUnavailable, ShuttingDown];
    /// Problems of a probe that does not access the database.
    ProbeProblems: [];
}

/// One response for each status, with an example of each kind. Every operation can also fail the check of its host.
fn responses(kinds: &[Kind]) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status: BTreeMap<u16, Vec<Kind>> = BTreeMap::new();
    for kind in kinds.iter().chain(&[Kind::MisdirectedRequest]) {
        by_status.entry(kind.spec().status.as_u16()).or_default().push(*kind);
    }
    by_status
        .into_iter()
        .map(|(status, kinds)| (status.to_string(), response(status, &kinds).into()))
        .collect()
}

fn response(status: u16, kinds: &[Kind]) -> Response {
    let about: Vec<_> =
        kinds.iter().map(|kind| format!("`{}`: {}", kind.spec().slug, kind.spec().about)).collect();
    let examples = kinds.iter().map(|kind| {
        let spec = kind.spec();
        (spec.slug, ExampleBuilder::new().summary(spec.title).value(Some(example(*kind))).build())
    });
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(ProblemSchema::name())))
        .examples_from_iter(examples)
        .build();
    let builder = ResponseBuilder::new().description(about.join("\n\n")).content(MEDIA_TYPE, content);
    if status != StatusCode::SERVICE_UNAVAILABLE.as_u16() {
        return builder.build();
    }
    let retry_after = HeaderBuilder::new()
        .schema(Some(whole(0)))
        .description(Some(
            "Seconds to wait before a retry. Absent if a retry could store or count something twice.",
        ))
        .build();
    builder.header("Retry-After", retry_after).build()
}

fn example(kind: Kind) -> Value {
    let spec = kind.spec();
    let mut example = json!({
        "type": kind.r#type(),
        "title": spec.title,
        "status": spec.status.as_u16(),
        "detail": spec.about,
        "instance": "/v1/customers/7/trades",
        "requestId": "3f9c2b7a51d84e06",
    });
    let members = match kind {
        Kind::InvalidParameter => {
            json!({ "errors": [{ "parameter": "page", "detail": "must be a whole number from 1 to 9007199254740991" }] })
        }
        Kind::InvalidTrade => json!({ "errors": [{ "pointer": "/0/qty", "detail": "is required" }] }),
        Kind::InvalidPageView => {
            json!({ "errors": [{ "pointer": "/0/path", "detail": "must begin with \"/\"" }] })
        }
        Kind::PartlyStored => {
            json!({ "ranges": [{ "firstSeq": 1, "lastSeq": 20 }], "notStoredItems": { "first": 20, "last": 24 } })
        }
        Kind::OutcomeUnknown => json!({ "ranges": [], "unknownItems": { "first": 0, "last": 24 } }),
        _ => json!({}),
    };
    if let (Value::Object(example), Value::Object(members)) = (&mut example, members) {
        example.extend(members);
    }
    example
}

/// The schema of every problem.
pub struct ProblemSchema;

impl ToSchema for ProblemSchema {
    fn name() -> Cow<'static, str> {
        "Problem".into()
    }
}

impl PartialSchema for ProblemSchema {
    fn schema() -> RefOr<Schema> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let fault = ObjectBuilder::new()
            .property("parameter", text().description(Some("Name of a parameter of the path or the query.")))
            .property("pointer", text().description(Some("JSON Pointer (RFC 6901) into the body.")))
            .property(
                "line",
                described(whole(1), "In a body of lines, the line that `pointer` refers to, counted from 1."),
            )
            .property("detail", text())
            .required("detail");
        let range = ObjectBuilder::new()
            .property("firstSeq", whole(1))
            .property("lastSeq", whole(1))
            .required("firstSeq")
            .required("lastSeq");
        let items = || {
            ObjectBuilder::new()
                .property("first", whole(0))
                .property("last", whole(0))
                .required("first")
                .required("last")
        };
        let lines = || {
            let range =
                ObjectBuilder::new().property("first", whole(1)).property("last", whole(1)).required("first");
            ArrayBuilder::new().items(range)
        };
        ObjectBuilder::new()
            .description(Some("An error (RFC 9457)."))
            .property(
                "type",
                text().description(Some("The kind of problem, as the address of its description.")),
            )
            .property("title", text().description(Some("The name of the kind, the same for every problem of one `type`.")))
            .property("status", whole(400))
            .property("detail", text().description(Some("What went wrong this time.")))
            .property("instance", text().description(Some("The path of the request.")))
            .property(
                "requestId",
                text().description(Some("The request's id, as in the header `x-request-id`.")),
            )
            .property(
                "errors",
                ArrayBuilder::new()
                    .items(fault)
                    .max_items(Some(Faults::KEPT))
                    .description(Some("What is wrong with the request: at most 100 faults.")),
            )
            .property("errorsOmitted", whole(1))
            .property(
                "ranges",
                ArrayBuilder::new().items(range).description(Some("Sequence numbers of the stored trades.")),
            )
            .property(
                "unknownItems",
                items().description(Some("Items of the request's array that may or may not be stored.")),
            )
            .property(
                "notStoredItems",
                items().description(Some("Items of the request's array that are not stored.")),
            )
            .property("stored", described(whole(0), "Lines of an upload that are stored."))
            .property("refused", described(whole(0), "Lines of an upload that are refused, each for a fault of its own."))
            .property("customers", described(whole(0), "Customers with at least one stored line."))
            .property("problems", ArrayBuilder::new().items(Ref::from_schema_name("LineProblem")))
            .property(
                "unknownLines",
                lines().description(Some("Lines of an upload, counted from 1, that may or may not be stored.")),
            )
            .property(
                "notStoredLines",
                lines().description(Some(
                    "Lines of an upload, counted from 1, that are not stored. The last range has no `last`: it has no end.",
                )),
            )
            .property("counted", described(whole(0), "Page views that are counted."))
            .property("unknown", described(whole(0), "Page views that may or may not be counted."))
            .property(
                "notCountedItems",
                ArrayBuilder::new().items(whole(0)).description(Some(
                    "Items of the request's array, or of its lines without the blank ones, counted from 0, that are not counted.",
                )),
            )
            .required("type")
            .required("title")
            .required("status")
            .required("detail")
            .required("instance")
            .required("requestId")
            .into()
    }
}

fn whole(minimum: i64) -> Object {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::Integer)).minimum(Some(minimum)).build()
}

fn described(mut schema: Object, words: &str) -> Object {
    schema.description = Some(words.to_owned());
    schema
}
