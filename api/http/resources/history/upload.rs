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
use serde_json::json;

use crate::admission::accept::{JSON, NDJSON};
use crate::pages::item_schemas::{ItemInput, ItemLineInput};
use crate::problem::ProblemKind::{
    Erased, HistoryExhausted, HttpVersionNotSupported, IdempotencyKeyReused, PartlyStored, Retired,
    UnsupportedMediaType,
};
use crate::problem::{BODY, COMMON, problems};
use crate::request::params::{KeyHeader, Params};
use crate::schemas::document::{Documented, RouteDocument, content};
use crate::schemas::names::Names;
use run::Upload;
use views::{ManyUploadedView, OutcomeView, UploadedView};

/// What is sent.
const LINES: &str = "One JSON object a line, each of at most 64 KiB. Blank lines are ignored.";

/// What is answered line by line.
const OUTCOMES: &str = "One outcome for each line. If the last outcome has no `line`, the upload ended early, and that outcome says why.";

pub(crate) fn document(names: &Names<'_>) -> Documented {
    let Names { owner_field, items_type, owner, item, many_items, examples, .. } = names;
    let example = json!({
        (owner_field): examples.owner, "ranges": [{ "firstSeq": 1, "lastSeq": 2 }], "stored": 2, "refused": 0, "problems": []
    });
    RouteDocument::of(
        names,
        format!("upload{items_type}"),
        format!("Upload {many_items}"),
        format!("Stores any number of {many_items}, one {item} a line, at the end of the {owner}'s history. Lines \
        are stored in order as they arrive, and a refused line does not affect the others. The body may \
        have any length and has no deadline. The answer is one summary, when the body has ended.\n\n\
        With an `Idempotency-Key` the upload may be repeated, whatever its outcome. Sent again, from \
        the first line on, it continues where it ended: each line is identified by its number."),
    )
    .parameters([OwnerId::documented(names), KeyHeader::documented()].concat())
    .takes::<ItemInput>(NDJSON, LINES, |line| content(line, examples.new_item.clone()))
    .answers(200, "Every line is stored durably, or refused.")
    .shows::<UploadedView>(JSON, example)
    .problems(problems(names, &[COMMON, &[PartlyStored], BODY, &[HistoryExhausted, Retired, Erased, IdempotencyKeyReused]]))
}

pub(crate) async fn of_one(upload: Upload) -> Response {
    upload.answer().await
}

pub(crate) fn document_with_outcomes(names: &Names<'_>) -> Documented {
    let Names { items_type, many_items, examples, .. } = names;
    RouteDocument::of(
        names,
        format!("upload{items_type}WithOutcomes"),
        format!("Upload {many_items}, with an outcome for each line"),
        format!("Stores lines as `upload{items_type}` does. The answer begins at once, and has one outcome for each \
        line, in order, as it is stored; the client must read it while it sends. Needs HTTP/1.1 or later."),
    )
    .parameters([OwnerId::documented(names), KeyHeader::documented()].concat())
    .takes::<ItemInput>(NDJSON, LINES, |line| content(line, examples.new_item.clone()))
    .answers(200, OUTCOMES)
    .shows::<OutcomeView>(NDJSON, json!({ "line": 1, "seq": 1 }))
    .problems(problems(names, &[COMMON, &[UnsupportedMediaType, HttpVersionNotSupported]]))
}

pub(crate) async fn of_one_with_outcomes(upload: Upload) -> Response {
    upload.answer_by_line()
}

pub(crate) fn document_of_many(names: &Names<'_>) -> Documented {
    let Names { owner_field, owners_type, items_type, owner, many_owners, many_items, examples, .. } = names;
    RouteDocument::of(
        names,
        format!("upload{items_type}Of{owners_type}"),
        format!("Upload {many_items} of many {many_owners}"),
        format!("Stores lines as `upload{items_type}` does, each with its `{owner_field}`, at the end of the history of \
        its {owner}. The {many_items} of each {owner} are stored in order as they arrive, and each {owner} \
        has keys of its own. The summary counts up to 10,000 {many_owners}; `moreOwners` says that there \
        are more."),
    )
    .parameters(KeyHeader::documented())
    .takes::<ItemLineInput>(NDJSON, LINES, |line| content(line, examples.new_line.clone()))
    .answers(200, "Every line is stored durably, or refused.")
    .shows::<ManyUploadedView>(JSON, json!({ "owners": 2, "stored": 2, "refused": 0, "problems": [] }))
    .problems(problems(names, &[COMMON, &[PartlyStored], BODY]))
}

pub(crate) async fn of_many(upload: Upload) -> Response {
    upload.answer().await
}

pub(crate) fn document_of_many_with_outcomes(names: &Names<'_>) -> Documented {
    let Names { owner_field, owners_type, items_type, many_owners, many_items, examples, .. } = names;
    RouteDocument::of(
        names,
        format!("upload{items_type}Of{owners_type}WithOutcomes"),
        format!("Upload {many_items} of many {many_owners}, with an outcome for each line"),
        format!("Stores lines as `upload{items_type}Of{owners_type}` does, and answers as `upload{items_type}WithOutcomes` does."),
    )
    .parameters(KeyHeader::documented())
    .takes::<ItemLineInput>(NDJSON, LINES, |line| content(line, examples.new_line.clone()))
    .answers(200, OUTCOMES)
    .shows::<OutcomeView>(NDJSON, json!({ "line": 1, (owner_field): examples.owner, "seq": 1 }))
    .problems(problems(names, &[COMMON, &[UnsupportedMediaType, HttpVersionNotSupported]]))
}

pub(crate) async fn of_many_with_outcomes(upload: Upload) -> Response {
    upload.answer_by_line()
}
