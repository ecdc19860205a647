//! Which problems each operation can answer with, for the OpenAPI document.

use std::collections::BTreeMap;

use pagebucket_model::domain::Faults;
use serde_json::{Map, Value, json};
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};

use super::content::{MEDIA_TYPE, Problem};
use super::kind::ProblemKind::{self, *};
use crate::schemas::embedded;
use crate::schemas::headers::{self, NamedHeader};
use crate::schemas::names::Names;

/// Problems of every operation under `/v1`.
pub(crate) const COMMON: &[ProblemKind] =
    &[InvalidParameter, NotAcceptable, Internal, Overloaded, DatabaseUnavailable, ShuttingDown, TimedOut];

/// Problems of every operation that reads a body.
pub(crate) const BODY: &[ProblemKind] = &[MalformedJson, BodyTimeout, UnsupportedMediaType, OutcomeUnknown];

/// The answers of an operation with these problems. Every operation can also fail the check of its host.
pub(crate) fn problems(names: &Names<'_>, kinds: &[&[ProblemKind]]) -> BTreeMap<String, RefOr<Response>> {
    responses(kinds.concat().into_iter().chain([MisdirectedRequest]), names)
}

/// One response for each status, with an example of each kind.
pub(crate) fn responses(
    kinds: impl IntoIterator<Item = ProblemKind>,
    names: &Names<'_>,
) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status: BTreeMap<u16, Vec<ProblemKind>> = BTreeMap::new();
    for kind in kinds {
        by_status.entry(kind.spec().status.as_u16()).or_default().push(kind);
    }
    let response =
        |(status, kinds): (u16, Vec<_>)| (status.to_string(), response(status, &kinds, names).into());
    by_status.into_iter().map(response).collect()
}

fn response(status: u16, kinds: &[ProblemKind], names: &Names<'_>) -> ResponseBuilder {
    let about: Vec<_> =
        kinds.iter().map(|kind| format!("`{}`: {}", kind.spec().slug, kind.spec().about)).collect();
    let titled = |kind: &ProblemKind| {
        let (slug, title) = (kind.spec().slug, kind.spec().title);
        (slug, ExampleBuilder::new().summary(title).value(Some(example(*kind, names))))
    };
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem")));
    let content = content.examples_from_iter(kinds.iter().map(titled)).build();
    let response = ResponseBuilder::new().description(about.join("\n\n")).content(MEDIA_TYPE, content);
    match header(status).filter(|_| kinds != [ErasingOff]) {
        Some((name, header)) => response.header(name, header),
        None => response,
    }
}

/// The header of the problems with this status.
fn header(status: u16) -> Option<NamedHeader> {
    Some(match status {
        401 | 403 => headers::www_authenticate("What is wrong with the token (RFC 6750)."),
        416 => headers::content_range("The number of items that the history has: `items */34`."),
        429 => headers::retry_after("Seconds to wait before a retry."),
        503 => headers::retry_after(
            "Seconds to wait before a retry. Absent if a retry could store or count something twice.",
        ),
        _ => return None,
    })
}

/// The file has, by slug, the extra members of each problem's example, and the `detail` of a problem with
/// faults. What is wrong with an item depends on its definition.
fn example(kind: ProblemKind, names: &Names<'_>) -> Value {
    let mut examples: BTreeMap<String, Map<String, Value>> = embedded(include_str!("examples.json"));
    let members = examples.remove(kind.spec().slug).unwrap_or_default();
    let mut problem = Problem::new(kind, kind.spec().about).with(members);
    if kind == InvalidItem {
        let [pointer, detail] = &names.examples.fault;
        let fault = json!({ "pointer": pointer, "detail": detail });
        problem =
            problem.with([("detail", json!(format!("`{pointer}` {detail}."))), ("errors", json!([fault]))]);
    }
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
