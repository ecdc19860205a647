//! Uploads: one item a line, any number of lines, stored as they arrive.
//!
//! A task of its own reads the body ([`read`]), and hands parsed lines to the engine
//! ([`pagebucket_streams::ingest`]) no faster than the engine takes them. Memory is therefore bounded, and a
//! slow database slows the client. If the client disconnects, the engine continues with what was read: every
//! complete line is stored, or its outcome is logged.
//!
//! An upload has no deadline as a whole. Its bounds are: the body must keep a minimum pace ([`read`]); the
//! client must read each piece of the answer in time; the database may be away for longer than an election
//! takes ([`run`]). When the service stops, no more is read, and a second later no more is sent, so that the
//! upload ends before the drain does.
//!
//! Uploads have permits of their own (`--max-uploads`), so that they never keep other requests out
//! ([`crate::admission`]). They share one memory budget ([`crate::admission::uploads`]).
//!
//! The answer accounts for every line: stored, refused, unknown or not stored ([`ending`]). It is one
//! summary, or one outcome a line ([`outcomes`]).

mod ending;
mod metrics;
mod outcomes;
mod read;
mod run;
mod views;

use axum::response::Response;
use pagebucket_model::domain::OwnerId;

use crate::pages::item_schemas::{ItemInput, ItemLineInput};
use crate::problem::{ManyUploadsProblems, OutcomesProblems, UploadProblems};
use crate::request::params::{Address, KeyHeader};
use run::Upload;
use views::{ManyUploadedView, OutcomeView, UploadedView};

/// Upload {manyItems}
///
/// Stores any number of {manyItems}, one {item} a line, at the end of the {owner}'s history. Lines are stored
/// in order as they arrive, and a refused line does not affect the others. The body may have any length and
/// has no deadline. The answer is one summary, when the body has ended.
///
/// With an `Idempotency-Key` the upload may be repeated, whatever its outcome. Sent again, from the first
/// line on, it continues where it ended: each line is identified by its number.
#[utoipa::path(
    post,
    path = "/v1/{owners}/{ownerId}/{items}/upload",
    operation_id = "upload{Items}",
    params(Address<OwnerId>, KeyHeader),
    request_body(
        content = ItemInput, content_type = "application/x-ndjson",
        description = "One JSON object a line, each of at most 64 KiB. Blank lines are ignored.",
        example = json!("{newItem}")
    ),
    responses(
        (
            status = 200, description = "Every line is stored durably, or refused.", body = UploadedView,
            example = json!({
                "{ownerField}": "{ownerExample}", "ranges": [{ "firstSeq": 1, "lastSeq": 2 }], "stored": 2, "refused": 0,
                "problems": []
            })
        ),
        UploadProblems,
    ),
)]
pub(crate) async fn of_one(upload: Upload) -> Response {
    upload.answer().await
}

/// Upload {manyItems}, with an outcome for each line
///
/// Stores lines as `upload{Items}` does. The answer begins at once, and has one outcome for each line, in
/// order, as it is stored; the client must read it while it sends. Needs HTTP/1.1 or later.
#[utoipa::path(
    post,
    path = "/v1/{owners}/{ownerId}/{items}/upload.ndjson",
    operation_id = "upload{Items}WithOutcomes",
    params(Address<OwnerId>, KeyHeader),
    request_body(
        content = ItemInput, content_type = "application/x-ndjson",
        description = "One JSON object a line, each of at most 64 KiB. Blank lines are ignored.",
        example = json!("{newItem}")
    ),
    responses(
        (
            status = 200,
            description = "One outcome for each line. If the last outcome has no `line`, the upload ended early, and that outcome says why.",
            body = OutcomeView, content_type = "application/x-ndjson", example = json!({ "line": 1, "seq": 1 })
        ),
        OutcomesProblems,
    ),
)]
pub(crate) async fn of_one_with_outcomes(upload: Upload) -> Response {
    upload.answer_by_line()
}

/// Upload {manyItems} of many {manyOwners}
///
/// Stores lines as `upload{Items}` does, each with its `{ownerField}`, at the end of the history of its
/// {owner}. The {manyItems} of each {owner} are stored in order as they arrive, and each {owner} has keys of
/// its own. The summary counts up to 10,000 {manyOwners}; `moreOwners` says that there are more.
#[utoipa::path(
    post,
    path = "/v1/{items}/upload",
    operation_id = "upload{Items}Of{Owners}",
    params(KeyHeader),
    request_body(
        content = ItemLineInput, content_type = "application/x-ndjson",
        description = "One JSON object a line, each of at most 64 KiB. Blank lines are ignored.",
        example = json!("{newLine}")
    ),
    responses(
        (
            status = 200, description = "Every line is stored durably, or refused.", body = ManyUploadedView,
            example = json!({ "owners": 2, "stored": 2, "refused": 0, "problems": [] })
        ),
        ManyUploadsProblems,
    ),
)]
pub(crate) async fn of_many(upload: Upload) -> Response {
    upload.answer().await
}

/// Upload {manyItems} of many {manyOwners}, with an outcome for each line
///
/// Stores lines as `upload{Items}Of{Owners}` does, and answers as `upload{Items}WithOutcomes` does.
#[utoipa::path(
    post,
    path = "/v1/{items}/upload.ndjson",
    operation_id = "upload{Items}Of{Owners}WithOutcomes",
    params(KeyHeader),
    request_body(
        content = ItemLineInput, content_type = "application/x-ndjson",
        description = "One JSON object a line, each of at most 64 KiB. Blank lines are ignored.",
        example = json!("{newLine}")
    ),
    responses(
        (
            status = 200,
            description = "One outcome for each line. If the last outcome has no `line`, the upload ended early, and that outcome says why.",
            body = OutcomeView, content_type = "application/x-ndjson",
            example = json!({ "line": 1, "{ownerField}": "{ownerExample}", "seq": 1 })
        ),
        OutcomesProblems,
    ),
)]
pub(crate) async fn of_many_with_outcomes(upload: Upload) -> Response {
    upload.answer_by_line()
}
