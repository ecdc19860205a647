//! Who may use each operation, from the table of routes, and what other clients are answered.

use pagebucket_model::domain::Scope;
use serde_json::{Value, json};
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Ref, RefOr, Responses};

use super::features::Features;
use crate::admission::gate::Access;
use crate::problem::{ProblemKind, responses};
use crate::schemas::headers::rates;
use crate::schemas::names::Names;

/// The name of the only security scheme.
const BEARER: &str = "bearer";

/// The security schemes of the document.
pub(crate) fn schemes(features: Features) -> Value {
    let mut description = match (features.tokens, features.keys) {
        (true, true) => "An access token of the issuer (a JWT), or a key of the server (`pb_...`).",
        (true, false) => "An access token of the issuer (a JWT).",
        (false, _) => "A key of the server (`pb_...`).",
    }
    .to_owned();
    if features == Features::ALL {
        description +=
            " Only a server that authenticates its clients (`--auth`) asks for it; others ignore it.";
    }
    json!({ BEARER: { "type": "http", "scheme": "bearer", "description": description } })
}

/// Writes into an operation its tag, who may use it, and what other clients are answered.
pub(crate) fn complete_operation(
    operation: &mut Operation,
    tag: &str,
    access: Access,
    features: Features,
    names: &Names<'_>,
) {
    let access = features.open.access(access);
    operation.tags = Some(vec![tag.to_owned()]);
    operation.responses.responses.extend(responses(refusals(access, features), names));
    if operation.responses.responses.contains_key("429") {
        tell_rates(&mut operation.responses);
    }
    let about = operation.description.get_or_insert_default();
    if access == Access::Erasing && features.erasing_off {
        about.push_str(
            "\n\nWithout authentication it is 403, unless the server was started with `--allow-erase`.",
        );
    }
    if features.authenticates() {
        let required = (access != Access::Everyone).then(|| SecurityRequirement::new(BEARER, [""; 0]));
        operation.security = Some(required.into_iter().collect());
        about.push_str(&format!("\n\n{}", sentence(access, names)));
    }
}

/// Adds the headers of rate limits to every answer to clients that are limited, unless the server failed.
fn tell_rates(responses: &mut Responses) {
    for (status, answer) in &mut responses.responses {
        // A request for another host is refused before anything else.
        if let RefOr::T(answer) = answer
            && **status < *"500"
            && status != "421"
        {
            let reference = |name| RefOr::Ref(Ref::new(format!("#/components/headers/{name}")));
            answer.headers.extend(rates().map(|(name, _)| (name.to_owned(), reference(name))));
        }
    }
}

/// What clients are answered that may not use an operation, or not so often.
fn refusals(access: Access, features: Features) -> Vec<ProblemKind> {
    let guarded = features.authenticates() && access != Access::Everyone;
    // Of probes and metrics only the check of a token or key is limited.
    let counted = if access == Access::With(Scope::Metrics) { guarded } else { access != Access::Everyone };
    let refusals = [
        (guarded, ProblemKind::Unauthorized),
        (guarded && access.scope().is_some(), ProblemKind::Forbidden),
        (access == Access::Erasing && features.erasing_off, ProblemKind::ErasingOff),
        (counted && features.rate_limits, ProblemKind::TooManyRequests),
    ];
    refusals.into_iter().filter_map(|(refuses, kind)| refuses.then_some(kind)).collect()
}

/// Who may use an operation.
fn sentence(access: Access, Names { owner, many_owners, .. }: &Names<'_>) -> String {
    match access {
        Access::Everyone => "Needs no token.".to_owned(),
        Access::Authenticated => "Needs a token or a key, with any scope.".to_owned(),
        Access::With(scope) => format!("Needs the scope `{scope}`."),
        Access::OfOwner(scope) => format!("Needs the scope `{scope}`, for this {owner}."),
        Access::Erasing => format!("Needs the scope `{}`, for this {owner}.", Scope::Admin),
        Access::OfAllOwners(scope) => format!("Needs the scope `{scope}`, for all {many_owners}."),
        Access::OfWatched(scope) => format!("Needs the scope `{scope}`, for each owner that `watch` names."),
    }
}
