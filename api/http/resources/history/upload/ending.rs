//! The end of an upload: a summary with the faults of its first refused lines, or the problem that ended it
//! early.

use std::borrow::Cow;
use std::sync::Arc;

use pagebucket_engine::Error;
use pagebucket_engine::appends::AppendCause;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Faults, OwnerId, OwnerMember};
use pagebucket_streams::ingest::{End, LineRange, Report, StreamEvent, StreamWatch, Unreadable};
use serde_json::{Map, Value, json};

use super::read::{BadLine, LEAST};
use super::views::{CountsView, LineProblemView, ManyUploadedView, UploadedView};
use crate::problem::{self, LoggedCause, Problem, ProblemKind};
use crate::resources::history::append::RangeView;

/// Most lines whose faults are listed; the others are only counted.
const MOST: usize = 100;

/// Most bytes of listed faults: names of unknown members may be long.
const MOST_BYTES: usize = 128 * 1024;

/// The faults of the first refused lines.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    problems: Vec<LineProblemView>,
    omitted: u64,
    bytes: usize,
}

impl StreamWatch<BadLine> for Summary {
    fn hear(&mut self, event: StreamEvent<'_, BadLine>) {
        match event {
            StreamEvent::Bad(bad) => self.tell(bad.line, &bad.why.faults),
            StreamEvent::Sent(sent) => {
                for (row, refusal) in sent.refused() {
                    self.tell(row.line, &Faults::of_whole(refusal.to_string()));
                }
            }
            StreamEvent::Came(_)
            | StreamEvent::Progress(_)
            | StreamEvent::Waiting(_)
            | StreamEvent::Interrupted(_) => {}
        }
    }
}

impl Summary {
    fn tell(&mut self, line: u64, faults: &Faults) {
        if self.problems.len() == MOST || self.bytes >= MOST_BYTES {
            self.omitted += 1;
            return;
        }
        let problem = LineProblemView::new(line, faults);
        self.bytes +=
            problem.errors.iter().map(|fault| fault.pointer.len() + fault.detail.len()).sum::<usize>();
        self.problems.push(problem);
    }

    /// The summary of an upload to one history, or to many; or the problem that ended it, with all that is
    /// known of its lines.
    pub(crate) fn end(
        mut self,
        definition: &Arc<Definition>,
        report: Report,
        owner: Option<&OwnerId>,
    ) -> Result<Map<String, Value>, Problem> {
        let Report { stored, refused, ranges, owners, more_owners, end, unknown_lines, left_lines, .. } =
            report;
        self.problems.sort_by_key(|problem| problem.line);
        let some = |omitted| Some(omitted).filter(|&omitted| omitted > 0);
        let counts =
            CountsView { stored, refused, problems: self.problems, problems_omitted: some(self.omitted) };
        let summary = match owner {
            Some(owner) => serde_json::to_value(UploadedView {
                owner: OwnerMember::new(&definition.owner.field, owner),
                ranges: ranges.kept.iter().map(RangeView::new).collect(),
                ranges_omitted: some(ranges.omitted),
                counts,
            }),
            None => serde_json::to_value(ManyUploadedView { owners: owners.len(), more_owners, counts }),
        };
        let Ok(Value::Object(mut summary)) = summary else { unreachable!("a summary is an object") };
        let Some(end) = end else { return Ok(summary) };
        let unknown: u64 = report.unknown.iter().map(|unknown| unknown.rows).sum();
        let is_unknown = unknown > 0 || matches!(end, End::Database(AppendCause::OutcomeUnknown));
        let (kind, why) = why_ended(&end);
        let problem = if stored == 0 && matches!(end, End::Database(AppendCause::KeyReused)) {
            Problem::new(kind, format!("{why} This request stored nothing."))
        } else {
            let (kind, detail) = if is_unknown {
                (
                    ProblemKind::OutcomeUnknown,
                    format!("{why} Lines in `unknownLines` may or may not be stored."),
                )
            } else if stored > 0 {
                (ProblemKind::PartlyStored, format!("{why} Lines in `notStoredLines` are not stored."))
            } else {
                (kind, format!("{why} Nothing was stored."))
            };
            summary.remove(&definition.owner.field);
            if !unknown_lines.is_empty() {
                summary.insert("unknownLines".to_owned(), ranges_of(unknown_lines));
            }
            summary.insert("notStoredLines".to_owned(), ranges_of(left_lines));
            Problem::new(kind, detail).with(summary)
        };
        let problem = match &end {
            End::Database(AppendCause::Database(Error::Gone(gone))) => problem.gone(*gone),
            _ => problem,
        };
        let owner = owner.cloned();
        Err(problem.caused_by(LoggedCause::Upload { owner, stored, refused, unknown, end }))
    }
}

/// The kind and the text of the problem that has ended an upload, without what became of its lines.
fn why_ended(end: &End) -> (ProblemKind, Cow<'static, str>) {
    let (kind, why) = match end {
        End::Database(cause) => return problem::why_not_stored(cause),
        End::Interrupted => (ProblemKind::ShuttingDown, "This instance is stopping."),
        End::Unreadable(Unreadable::TooSlow(span)) => {
            let seconds = span.as_secs();
            let why = format!(
                "The body came too slowly: neither an item nor {LEAST} bytes in {seconds} s of waiting. Lines that are \
                 refused do not count."
            );
            return (ProblemKind::BodyTimeout, why.into());
        }
        End::Unreadable(Unreadable::Expired) => {
            (ProblemKind::Unauthorized, "The token or key is no longer valid.")
        }
        End::Unreadable(Unreadable::NotTaken) => {
            (ProblemKind::TimedOut, "The client did not read the answer in time.")
        }
        End::Unreadable(Unreadable::Incomplete | Unreadable::Failed(_)) | End::BadRow | End::Server(_) => {
            (ProblemKind::MalformedJson, "The body is incomplete.")
        }
    };
    (kind, why.into())
}

/// Ranges of lines, both ends included. One without `last` has no end.
fn ranges_of(lines: Vec<LineRange>) -> Value {
    let range = |LineRange { first, last }| match last {
        Some(last) => json!({ "first": first, "last": last }),
        None => json!({ "first": first }),
    };
    lines.into_iter().map(range).collect()
}
