//! Which problems each operation can answer with, for the OpenAPI document.

use std::collections::BTreeMap;

use pagebucket_model::domain::Faults;
use serde_json::{Map, Value, json};
use utoipa::IntoResponses;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{RefOr, Response};

use super::content::{MEDIA_TYPE, Problem};
use super::kind::ProblemKind::{self, *};
use crate::schemas::embedded;

/// Problems of every operation under `/v1`.
const COMMON: &[ProblemKind] =
    &[InvalidParameter, NotAcceptable, Internal, Overloaded, DatabaseUnavailable, ShuttingDown, TimedOut];

/// Problems of every operation that reads a body.
const BODY: &[ProblemKind] = &[MalformedJson, BodyTimeout, UnsupportedMediaType, OutcomeUnknown];

macro_rules! documented {
    ($($(#[$meta:meta])* $name:ident: $($kinds:expr),*;)*) => {$(
        $(#[$meta])*
        pub(crate) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                // Every operation can also fail the check of its host.
                let kinds: [&[ProblemKind]; _] = [$($kinds),*, &[MisdirectedRequest]];
                responses(&kinds.concat())
            }
        }
    )*};
}

documented! {
    /// Problems of an append.
    AppendProblems: COMMON, &[PartlyStored], BODY,
        &[HistoryExhausted, Retired, Erased, UnexpectedSeq, BodyTooLarge, InvalidItem, IdempotencyKeyReused];
    /// Problems of an upload to one history.
    UploadProblems: COMMON, &[PartlyStored], BODY, &[HistoryExhausted, Retired, Erased, IdempotencyKeyReused];
    /// Problems of an upload to many histories.
    ManyUploadsProblems: COMMON, &[PartlyStored], BODY;
    /// Problems of an upload that is answered line by line, before the answer begins.
    OutcomesProblems: COMMON, &[UnsupportedMediaType, HttpVersionNotSupported];
    /// Problems of an export.
    ExportProblems: COMMON, &[Retired, Erased, HttpVersionNotSupported];
    /// Problems of a live stream, before it begins.
    LiveProblems: COMMON, &[Retired, Erased];
    /// Problems of a live stream of all owners, before it begins.
    OwnersLiveProblems: COMMON, &[PositionTooOld, NotAvailable];
    /// Problems of a read that always finds something.
    ReadProblems: COMMON;
    /// Problems of a summary of an owner.
    SummaryProblems: COMMON, &[Erased];
    /// Problems of a summary by spans of time.
    SeriesProblems: COMMON, &[Retired, Erased, SummaryTooLarge, SummaryNotReady];
    /// Problems of a summary over all owners.
    AllSeriesProblems: COMMON, &[SummaryTooLarge];
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

/// One response for each status, with an example of each kind.
pub(crate) fn responses(kinds: &[ProblemKind]) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status: BTreeMap<u16, Vec<ProblemKind>> = BTreeMap::new();
    for kind in kinds {
        by_status.entry(kind.spec().status.as_u16()).or_default().push(*kind);
    }
    by_status.into_iter().map(|(status, kinds)| (status.to_string(), response(status, &kinds))).collect()
}

fn response(status: u16, kinds: &[ProblemKind]) -> RefOr<Response> {
    let about: Vec<_> =
        kinds.iter().map(|kind| format!("`{}`: {}", kind.spec().slug, kind.spec().about)).collect();
    let titled = |kind: &ProblemKind| json!({ "summary": kind.spec().title, "value": example(*kind) });
    let examples: Map<_, _> = kinds.iter().map(|kind| (kind.spec().slug.to_owned(), titled(kind))).collect();
    let content = json!({ "schema": { "$ref": "#/components/schemas/Problem" }, "examples": examples });
    let mut response = json!({ "description": about.join("\n\n"), "content": { MEDIA_TYPE: content } });
    if let Some((header, description)) = header(status).filter(|_| kinds != [ErasingOff]) {
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

/// The file has, by slug, the extra members of each problem's example, and the `detail` of a problem with
/// faults.
fn example(kind: ProblemKind) -> Value {
    let mut examples: BTreeMap<String, Map<String, Value>> = embedded(include_str!("examples.json"));
    let members = examples.remove(kind.spec().slug).unwrap_or_default();
    let problem = Problem::new(kind, kind.spec().about).with(members);
    problem.body(&[("instance", "{instance}"), ("requestId", "3f9c2b7a51d84e06")])
}

/// The schema of every problem, and those that it refers to, by their names. The names of a body have no
/// bound but that of the body, which the operator chooses; so have pointers to what they name.
pub(crate) fn schemas() -> BTreeMap<String, RefOr<Schema>> {
    embedded(include_str!("schemas.json"))
}

const _: () = assert!(Faults::KEPT == 100, "the schema states it");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_of_a_kind() {
        let examples: Map<String, Value> = embedded(include_str!("examples.json"));
        let known = |slug: &String| ProblemKind::ALL.iter().any(|kind| kind.spec().slug == slug);
        assert!(examples.keys().all(known), "{examples:?}");
    }
}
