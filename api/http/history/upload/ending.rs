//! The end of an upload: a summary, or the problem that ended it early.

use std::io::ErrorKind;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::summary::Summary;
use super::views::{CountsView, LinesView, ManyUploadedView, UploadedView};
use crate::definition::Definition;
use crate::domain::OwnerId;
use crate::http::history::append::view::RangeView;
use crate::http::history::item_view::OwnerMember;
use crate::http::problem::{self, Kind, Problem};
use crate::ingest::{End, Lines, Report};
use crate::store::history::Cause;

/// The summary of either kind of upload.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum View {
    One(UploadedView),
    Many(ManyUploadedView),
}

/// The summary of an upload to one history, or to many; or the problem that ended it, with all that is
/// known of its lines.
pub(super) fn of(
    definition: &Arc<Definition>,
    report: Report,
    summary: Summary,
    owner: Option<&OwnerId>,
) -> Result<View, Problem> {
    let Report { stored, refused, ranges, owners, more_owners, end, unknown_lines, left_lines, .. } = report;
    let mut problems = summary.problems;
    problems.sort_by_key(|problem| problem.line);
    let problems_omitted = Some(summary.omitted).filter(|&omitted| omitted > 0);
    let counts = CountsView { stored, refused, problems, problems_omitted };
    let view = match owner {
        Some(owner) => View::One(UploadedView {
            owner: OwnerMember::new(definition, owner),
            ranges: ranges.kept.iter().map(RangeView::new).collect(),
            ranges_omitted: Some(ranges.omitted).filter(|&omitted| omitted > 0),
            counts,
        }),
        None => View::Many(ManyUploadedView { owners: owners.len(), more_owners, counts }),
    };
    let Some(end) = end else { return Ok(view) };
    let unknown: u64 = report.unknown.iter().map(|unknown| unknown.rows).sum();
    let owner = owner.map(ToString::to_string);
    let is_unknown = unknown > 0 || matches!(end, End::Database(Cause::OutcomeUnknown));
    let (kind, why) = match &end {
        End::Database(cause) => {
            let (kind, why) = problem::why_not_stored(cause);
            (kind, why.to_owned())
        }
        End::Interrupted => (Kind::ShuttingDown, "This instance is stopping.".to_owned()),
        // The reader wrote this text.
        End::Unreadable(error) if error.kind() == ErrorKind::TimedOut => {
            (Kind::BodyTimeout, error.to_string())
        }
        End::Unreadable(error) if error.kind() == ErrorKind::BrokenPipe => {
            (Kind::TimedOut, "The client did not read the answer in time.".to_owned())
        }
        End::Unreadable(_) | End::BadRow | End::Server(_) => {
            (Kind::MalformedJson, "The body is incomplete.".to_owned())
        }
    };
    let problem = if stored == 0 && matches!(end, End::Database(Cause::KeyReused)) {
        Problem::new(kind, format!("{why} This request stored nothing."))
    } else {
        let (kind, detail) = if is_unknown {
            (Kind::OutcomeUnknown, format!("{why} Lines in `unknownLines` may or may not be stored."))
        } else if stored > 0 {
            (Kind::PartlyStored, format!("{why} Lines in `notStoredLines` are not stored."))
        } else {
            (kind, format!("{why} Nothing was stored."))
        };
        Problem::new(kind, detail).with(members(definition, view, unknown_lines, left_lines))
    };
    Err(problem.logging(move || {
        tracing::warn!(owner, stored, refused, unknown, ?end, "an upload ended early");
        if let End::Database(cause) = &end {
            problem::log_cause(cause);
        }
    }))
}

/// What is known of the lines of an upload that ended early.
fn members(
    definition: &Definition,
    view: View,
    unknown: Vec<Lines>,
    not_stored: Vec<Lines>,
) -> Map<String, Value> {
    let view = serde_json::to_value(view).expect("a summary holds only texts and numbers");
    let Value::Object(mut members) = view else { unreachable!("a summary is an object") };
    members.remove(&definition.owner.field);
    let views = |lines: Vec<_>| json!(lines.into_iter().map(LinesView::from).collect::<Vec<_>>());
    if !unknown.is_empty() {
        members.insert("unknownLines".to_owned(), views(unknown));
    }
    members.insert("notStoredLines".to_owned(), views(not_stored));
    members
}
