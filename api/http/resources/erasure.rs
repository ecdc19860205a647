//! The erasure of an owner: everything that the histories of its collection of owners have of it, also those
//! that the database remembers and that are not served here.
//!
//! The engine erases in steps of bounded size, and each step that was done stays done. A request does as many
//! as fit into its time. Housekeeping, or the same request again, does the rest.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::future::try_join_all;
use pagebucket_engine::erasures::Erasure;
use pagebucket_engine::{Deadline, Engine, Error};
use pagebucket_model::definition::capitalised;
use pagebucket_model::domain::{Instant, OwnerId, OwnerMember, Peer};
use pagebucket_model::metric::ERASURES;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::path::ParameterBuilder;

use crate::admission::accept::JSON;
use crate::admission::context::{Granted, RequestContext};
use crate::answer::logged::one_word;
use crate::problem::{COMMON, Problem, problems};
use crate::request::params::{Address, Params};
use crate::schemas::document::{Documented, RouteDocument};
use crate::schemas::names::Names;
use crate::schemas::{instant, owner_member};
use crate::state::Api;

/// The units of a step for each history: it deletes up to 1,000 pages, as a preallocation writes 60
/// documents.
const UNITS: usize = 60;

/// Another step begins only while this much of the request's time is left. A step takes far less if the
/// database is well.
const STEP: Duration = Duration::from_secs(15);

/// How far the erasure of {anOwner} is.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OwnerErasure)]
struct ErasureView {
    #[serde(flatten)]
    #[schema(schema_with = owner_member)]
    owner: OwnerMember,
    status: Status,
    /// Whether the last sweep is done, after which nothing of the {owner} can appear again. Absent while
    /// `status` is `erasing`.
    swept: Option<bool>,
    /// Only before the last sweep: housekeeping does it soon after this moment.
    #[schema(schema_with = instant)]
    sweep_after: Option<Instant>,
}

/// `erasing`: pages are left, which are no longer answered. `erased`: nothing is left but a tombstone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ErasureStatus)]
enum Status {
    Erasing,
    Erased,
}

pub(crate) fn document(names: &Names<'_>) -> Documented {
    let Names { owner_field, owner_type, owner, an_owner, examples, .. } = names;
    let capital_owner = capitalised(an_owner);
    let erased = json!({
        (owner_field): examples.owner, "status": "erased", "swept": false, "sweepAfter": "2026-11-20T12:02:00.000Z"
    });
    // Swagger UI sends the example of a parameter, and a click must not delete.
    let withheld = |parameter| ParameterBuilder::from(parameter).example(None).build();
    RouteDocument::of(
        names,
        format!("erase{owner_type}"),
        format!("Erase {an_owner}"),
        format!("Deletes all histories of {an_owner}, for good. From the first answer on, reads and appends of the \
        {owner} are 410 `erased`, on other servers within seconds, and lists leave the {owner} out. The \
        request may be repeated. 202 means that pages are still being deleted: the server continues by \
        itself, or faster if the request is repeated. 200 means that only a tombstone is left, which \
        keeps the {owner}'s id from being used again. {capital_owner} that never existed gets the same answers, \
        and a tombstone. Copies that clients have kept stay with them."),
    )
    .parameters(OwnerId::documented(names).into_iter().map(withheld).collect())
    .answers(200, "Only a tombstone is left.")
    .shows::<ErasureView>(JSON, erased)
    .answers(202, "Pages are still being deleted. They are no longer answered.")
    .shows::<ErasureView>(JSON, json!({ (owner_field): examples.owner, "status": "erasing" }))
    .problems(problems(names, &[COMMON]))
}

pub(crate) async fn erase(
    State(api): State<Arc<Api>>,
    Address { engine: first, params: owner }: Address<OwnerId>,
    Granted { deadline, quota }: Granted,
    request: Request,
) -> Result<Response, Problem> {
    quota.charge(UNITS)?;
    let collection = &first.definition().owner.collection;
    let engines = api.store.histories_of(collection, deadline).await;
    let engines = engines.map_err(|error| Problem::from(error).adding("Nothing was erased."))?;
    quota.charge(UNITS * engines.len())?;
    // Before the first step, so that no erasure is without its line.
    audit(&request, collection, &owner);
    // All tombstones first: records of keys stay as long as a history is not erased.
    let begun = try_join_all(engines.iter().map(|engine| engine.erasures().erase(&owner, deadline)));
    let begun = begun.await.map_err(unfinished)?;
    let erasures = engines.iter().zip(begun).map(|(engine, begun)| go_on(engine, &owner, begun, deadline));
    let erasures = try_join_all(erasures).await.map_err(unfinished)?;
    let is_over = |erasure: &Erasure| matches!(erasure, Erasure::Erased | Erasure::Swept);
    let is_erased = erasures.iter().all(is_over);
    let swept = erasures.iter().all(|erasure| *erasure == Erasure::Swept);
    let mut sweep_after = None;
    if is_erased && !swept {
        let sweeps = engines.iter().map(|engine| engine.erasures().sweep_after(&owner, deadline));
        sweep_after = try_join_all(sweeps).await.map_err(unfinished)?.into_iter().max().flatten();
    }
    let (code, status, result) = match (is_erased, swept) {
        (false, _) => (StatusCode::ACCEPTED, Status::Erasing, "erasing"),
        (true, false) => (StatusCode::OK, Status::Erased, "erased"),
        (true, true) => (StatusCode::OK, Status::Erased, "swept"),
    };
    metrics::counter!(ERASURES, "result" => result).increment(1);
    let owner = OwnerMember::new(&first.definition().owner.field, &owner);
    let view = ErasureView { owner, status, swept: is_erased.then_some(swept), sweep_after };
    Ok((code, Json(view)).into_response())
}

/// Step after step, while there is time.
async fn go_on(
    engine: &Engine,
    owner: &OwnerId,
    mut erasure: Erasure,
    deadline: Deadline,
) -> Result<Erasure, Error> {
    loop {
        // Keys may be left where no page was.
        let is_over = !matches!(erasure, Erasure::Nothing | Erasure::Erasing);
        if is_over || deadline.remaining() < STEP {
            return Ok(erasure);
        }
        erasure = engine.erasures().go_on(owner, deadline).await?;
    }
}

/// The problem of an erasure that may have begun.
fn unfinished(error: Error) -> Problem {
    Problem::from(error).adding("Pages may be deleted already. Send the request again.")
}

/// Writes a line to the audit log.
fn audit(request: &Request, owners: &str, owner: &OwnerId) {
    let context = RequestContext::of(request.extensions());
    let (principal, Peer(peer)) = (context.principal_name().map(one_word), context.connection.peer);
    tracing::warn!(target: "pagebucket::audit", principal = principal.as_deref(), %peer, owners, %owner, "an owner is to be erased");
}
