//! The end of an upload: a summary, or the problem that ended it early.

use std::io::ErrorKind;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::summary::Summary;
use super::views::{CountsView, LinesView, ManyUploadedView, UploadedView};
use crate::domain::CustomerId;
use crate::http::history::append::view::RangeView;
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
pub(super) fn of(report: Report, summary: Summary, customer: Option<CustomerId>) -> Result<View, Problem> {
    let Report { stored, refused, ranges, customers, end, unknown_lines, left_lines, .. } = report;
    let mut problems = summary.problems;
    problems.sort_by_key(|problem| problem.line);
    let problems_omitted = Some(summary.omitted).filter(|&omitted| omitted > 0);
    let counts = CountsView { stored, refused, problems, problems_omitted };
    let view = match customer {
        Some(customer_id) => View::One(UploadedView {
            customer_id,
            ranges: ranges.kept().iter().map(RangeView::new).collect(),
            ranges_omitted: Some(ranges.omitted()).filter(|&omitted| omitted > 0),
            counts,
        }),
        None => View::Many(ManyUploadedView {
            customers: customers.count(),
            more_customers: customers.more(),
            counts,
        }),
    };
    let Some(end) = end else { return Ok(view) };
    let unknown: u64 = report.unknown.iter().map(|unknown| unknown.rows).sum();
    let customer = customer.map(|customer| customer.get());
    let is_unknown = unknown > 0 || matches!(end, End::Database(Cause::OutcomeUnknown));
    let (kind, why) = match &end {
        End::Database(cause) => {
            let (kind, why) = problem::why(cause);
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
        Problem::new(kind, detail).with(members(view, unknown_lines, left_lines))
    };
    Err(problem.logging(move || {
        tracing::warn!(customer, stored, refused, unknown, ?end, "an upload ended early");
        if let End::Database(cause) = &end {
            problem::log_cause(cause);
        }
    }))
}

/// What is known of the lines of an upload that ended early.
fn members(view: View, unknown: Vec<Lines>, not_stored: Vec<Lines>) -> Map<String, Value> {
    let view = serde_json::to_value(view).expect("a summary holds only texts and numbers");
    let Value::Object(mut members) = view else { unreachable!("a summary is an object") };
    members.remove("customerId");
    let views = |lines: Vec<_>| json!(lines.into_iter().map(LinesView::from).collect::<Vec<_>>());
    if !unknown.is_empty() {
        members.insert("unknownLines".to_owned(), views(unknown));
    }
    members.insert("notStoredLines".to_owned(), views(not_stored));
    members
}
