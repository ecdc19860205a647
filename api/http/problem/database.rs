//! Problems of the database. The store's errors are mapped without a wildcard arm, so that a new one does not
//! compile until someone decides.

use std::borrow::Cow;
use std::sync::Arc;

use pagebucket_engine::appends::{AppendCause, AppendError};
use pagebucket_engine::{Error, Gone};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{OwnerId, PageNumber, Seq, SeqRange};
use pagebucket_page_views::{CountCause, CountError};
use serde_json::{Value, json};

use super::cause::LoggedCause;
use super::content::Problem;
use super::kind::ProblemKind;

impl From<Error> for Problem {
    /// For a request that stores nothing.
    fn from(error: Error) -> Self {
        let (kind, why) = why(&error);
        let problem = Self::new(kind, why);
        match error {
            Error::Gone(gone) => problem.gone(gone),
            error => problem.caused_by(LoggedCause::Database(error)),
        }
    }
}

impl Problem {
    /// For a request for what a history, which begins with this page and this item, no longer has.
    pub fn retired(first_page: PageNumber, first_seq: Seq) -> Self {
        Error::from(Gone::Retired { first_page, first_seq }).into()
    }

    /// Adds where a history begins that lost its first pages, or when its owner was erased.
    #[must_use]
    pub fn gone(self, gone: Gone) -> Self {
        match gone {
            Gone::Retired { first_page, first_seq } => {
                self.with([("firstPage", json!(first_page)), ("firstSeq", json!(first_seq))])
            }
            Gone::Erased { at } => self.with(at.map(|at| ("erasedAt", json!(at)))),
        }
    }
}

impl Problem {
    /// For an append of `count` items to `owner`'s history that was not stored completely. `keyed`: the
    /// request has a key, so that all of it may be sent again, and an earlier one may have stored something.
    pub fn of_append(
        definition: &Definition,
        owner: &OwnerId,
        error: AppendError,
        count: usize,
        keyed: bool,
    ) -> Self {
        let many = definition.item.noun().many();
        let AppendError { progress, unknown, cause } = error;
        let ranges = progress.ranges();
        let stored = ranges.iter().map(SeqRange::count).sum::<usize>();
        let may_succeed = may_succeed(&cause);
        let (kind, why) = why_not_stored(&cause);
        let mut problem = if unknown > 0 || kind == ProblemKind::OutcomeUnknown {
            let rest = format!("Those {many} that are not in `ranges` may or may not be stored");
            let care = if keyed { "." } else { ": read the end of the history before you send them again." };
            Self::new(ProblemKind::OutcomeUnknown, format!("{why} {rest}{care}"))
        } else if stored > 0 {
            let first = format!("Only the first {stored} of {count} {many} are stored.");
            Self::new(ProblemKind::PartlyStored, format!("{first} {why}"))
        } else {
            let nothing = if keyed { "This request stored nothing." } else { "Nothing was stored." };
            Self::new(kind, format!("{why} {nothing}"))
        };
        if keyed && may_succeed {
            problem.detail.push_str(" Send the request again with the same `Idempotency-Key`.");
            problem.retry_after = Some(1);
        }
        if stored > 0 || unknown > 0 {
            let range = |range: &SeqRange| json!({ "firstSeq": range.first, "lastSeq": range.last });
            let ranges: Vec<_> = ranges.iter().map(range).collect();
            problem = problem.with([("ranges", json!(ranges))]);
            problem = problem.with(items("unknownItems", stored, stored + unknown));
            problem = problem.with(items("notStoredItems", stored + unknown, count));
        }
        match &cause {
            AppendCause::Database(Error::Gone(gone)) => problem = problem.gone(*gone),
            // The log gets nothing: clients that compete are refused all the time, and a key that was used
            // again is its client's mistake.
            AppendCause::UnexpectedTotal(total) => return problem.with([("totalItems", json!(total))]),
            AppendCause::KeyReused => return problem,
            _ => {}
        }
        let (history, owner) = (Arc::clone(&definition.name), owner.clone());
        problem.caused_by(LoggedCause::Append { history, owner, items: count, stored, unknown, cause })
    }

    /// For a count of `all` views of which not all were counted.
    pub fn of_count(error: CountError, all: u64) -> Self {
        let CountError { counted, unknown, not_counted, cause } = error;
        let (kind, why) = why_not_counted(&cause);
        let mut problem = if unknown > 0 || kind == ProblemKind::OutcomeUnknown {
            let told = format!(
                "Of {all} views, {counted} are counted, and {unknown} may or may not be. If you send those {unknown} \
                 again, they may be counted twice."
            );
            Self::new(ProblemKind::OutcomeUnknown, format!("{why} {told}"))
                .with([("counted", json!(counted)), ("unknown", json!(unknown))])
        } else if counted > 0 {
            Self::new(ProblemKind::PartlyStored, format!("Only {counted} of {all} views are counted. {why}"))
                .with([("counted", json!(counted))])
        } else {
            Self::new(kind, format!("{why} Nothing was counted."))
        };
        if !problem.members.is_empty() && !not_counted.is_empty() {
            problem = problem.with([("notCountedItems", json!(not_counted))]);
        }
        problem.caused_by(LoggedCause::Count { views: all, counted, unknown, cause })
    }

    /// For a preallocation that failed, or whose outcome is unknown.
    pub fn of_preallocation(cause: CountCause) -> Self {
        let (kind, why) = why_not_counted(&cause);
        let problem = Self::new(kind, format!("{why} The preallocation may be repeated."));
        problem.caused_by(LoggedCause::Preallocation(cause))
    }
}

/// Items of the request's array, counted from 0, from `start` until before `end`, if there are any.
fn items(name: &'static str, start: usize, end: usize) -> Option<(&'static str, Value)> {
    (start < end).then(|| (name, json!({ "first": start, "last": end - 1 })))
}

/// The kind and the text that a client may see for `error`.
fn why(error: &Error) -> (ProblemKind, &'static str) {
    match error {
        Error::Unavailable(_) => (ProblemKind::DatabaseUnavailable, "The database does not answer."),
        Error::Overtaken(_) => (ProblemKind::DatabaseUnavailable, "Another process has changed the same."),
        Error::DiskFull => (ProblemKind::DatabaseUnavailable, "The disk of the database is full."),
        Error::OtherEpoch => (ProblemKind::DatabaseUnavailable, "A backup was restored."),
        Error::Corrupt(_) => {
            (ProblemKind::Internal, "A stored document is damaged. The server's log says which.")
        }
        Error::Gone(Gone::Retired { .. }) => {
            (ProblemKind::Retired, "The history no longer has this: it begins at `firstPage`.")
        }
        Error::Gone(Gone::Erased { .. }) => (ProblemKind::Erased, "The histories of this owner are erased."),
        Error::Internal(_) => {
            (ProblemKind::Internal, "The server's log has the details under this request id.")
        }
    }
}

/// Whether the same request may succeed later.
fn may_succeed(cause: &AppendCause) -> bool {
    match cause {
        AppendCause::OutcomeUnknown
        | AppendCause::Overloaded
        | AppendCause::ClientOverloaded
        | AppendCause::Late
        | AppendCause::Contended => true,
        AppendCause::KeyReused | AppendCause::UnexpectedTotal(_) | AppendCause::SecondsExhausted(_) => false,
        AppendCause::Database(error) => !matches!(error, Error::Gone(_)),
    }
}

/// The kind and the text that a client may see for items that are not stored.
pub(crate) fn why_not_stored(cause: &AppendCause) -> (ProblemKind, Cow<'static, str>) {
    let (kind, why) = match cause {
        AppendCause::UnexpectedTotal(total) => {
            let why = format!(
                "The history's total is {total}, so the first item would not get the number after `expectedSeq`."
            );
            return (ProblemKind::UnexpectedSeq, why.into());
        }
        AppendCause::OutcomeUnknown => (ProblemKind::OutcomeUnknown, "The database gave no answer in time."),
        AppendCause::Overloaded => (ProblemKind::Overloaded, "Too many appends are waiting."),
        AppendCause::ClientOverloaded => {
            (ProblemKind::Overloaded, "Too many appends of this client are waiting.")
        }
        AppendCause::Late => (ProblemKind::Overloaded, "The append could not be committed in time."),
        AppendCause::Contended => (ProblemKind::Overloaded, "Too many appends to this history at once."),
        AppendCause::SecondsExhausted(_) => (
            ProblemKind::HistoryExhausted,
            "The next bucket of this history would begin after the last possible second.",
        ),
        AppendCause::KeyReused => {
            (ProblemKind::IdempotencyKeyReused, "The `Idempotency-Key` was used for other items.")
        }
        AppendCause::Database(error) => why(error),
    };
    (kind, why.into())
}

/// The kind and the text that a client may see for views that are not counted.
fn why_not_counted(cause: &CountCause) -> (ProblemKind, Cow<'static, str>) {
    let (kind, why) = match cause {
        CountCause::TooManyCounters { counters, most } => {
            let why = format!(
                "The body adds to {counters} counters, one for each page and second. The server accepts at most {most} \
                 at once (`--max-queue-mib`). Send the body in parts."
            );
            return (ProblemKind::BodyTooLarge, why.into());
        }
        CountCause::OutcomeUnknown => (ProblemKind::OutcomeUnknown, "The database gave no answer in time."),
        CountCause::Overloaded => (ProblemKind::Overloaded, "Too many page views are waiting."),
        CountCause::Database(error) => why(error),
    };
    (kind, why.into())
}

#[cfg(test)]
mod tests {
    mod appends {
        use std::sync::Mutex;

        use super::super::*;
        use pagebucket_engine::appends::AppendProgress;
        use pagebucket_model::domain::Seq;

        fn told(cause: AppendCause, stored: u64, unknown: usize) -> (Problem, Value) {
            let seq = |number| Seq::new(number).unwrap();
            let ranges =
                if stored > 0 { vec![SeqRange { first: seq(1), last: seq(stored) }] } else { vec![] };
            let error = AppendError { progress: AppendProgress::replayed(ranges), unknown, cause };
            let problem = Problem::of_append(&Definition::trades(), &OwnerId::Integer(7), error, 25, false);
            let members = serde_json::to_value(&*problem.members).unwrap();
            (problem, members)
        }

        fn causes() -> Vec<(AppendCause, ProblemKind)> {
            let driver = || "driver's words".to_owned();
            vec![
                (AppendCause::Overloaded, ProblemKind::Overloaded),
                (AppendCause::ClientOverloaded, ProblemKind::Overloaded),
                (AppendCause::Late, ProblemKind::Overloaded),
                (AppendCause::Contended, ProblemKind::Overloaded),
                (AppendCause::KeyReused, ProblemKind::IdempotencyKeyReused),
                (AppendCause::Database(Gone::Erased { at: None }.into()), ProblemKind::Erased),
                (
                    AppendCause::SecondsExhausted(pagebucket_engine::appends::SecondsExhausted),
                    ProblemKind::HistoryExhausted,
                ),
                (AppendCause::Database(Error::unavailable(driver())), ProblemKind::DatabaseUnavailable),
                (AppendCause::Database(Error::internal(driver())), ProblemKind::Internal),
                (AppendCause::Database(Error::DiskFull), ProblemKind::DatabaseUnavailable),
            ]
        }

        /// What is logged meanwhile.
        fn logged_by(work: impl FnOnce()) -> String {
            #[derive(Clone, Default)]
            struct Lines(Arc<Mutex<Vec<u8>>>);
            impl std::io::Write for Lines {
                fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                    self.0.lock().unwrap().write(bytes)
                }
                fn flush(&mut self) -> std::io::Result<()> {
                    Ok(())
                }
            }
            // Another test's thread, which has no subscriber, would otherwise decide that the log is off.
            let nowhere = tracing_subscriber::fmt().with_writer(std::io::sink).finish();
            let _ = tracing::subscriber::set_global_default(nowhere);
            let lines = Lines::default();
            let writer = lines.clone();
            let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
            tracing::subscriber::with_default(log, work);
            String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
        }

        #[test]
        fn every_append_that_is_not_stored_whole_is_logged() {
            for (cause, _) in
                causes().into_iter().chain([(AppendCause::OutcomeUnknown, ProblemKind::OutcomeUnknown)])
            {
                let is_mistake = matches!(cause, AppendCause::KeyReused);
                let words = cause.to_string();
                let mut problem = None;
                let unasked = logged_by(|| problem = Some(told(cause, 10, 5).0));
                assert_eq!(unasked, "");
                let log = logged_by(|| problem = problem.take().map(Problem::logged));
                assert_eq!(logged_by(|| problem = problem.take().map(Problem::logged)), "");
                if is_mistake {
                    assert_eq!(log, "", "a client's mistake");
                    continue;
                }
                let line = log.lines().next().unwrap_or_default();
                for part in
                    [" WARN ", "history=trades", "owner=7", "items=25", "stored=10", "unknown=5", &words]
                {
                    assert!(line.contains(part), "{part}: {log}");
                }
            }
        }

        #[test]
        fn nothing_stored_is_said_only_where_nothing_is() {
            for (cause, kind) in causes() {
                let (problem, members) = told(cause, 0, 0);
                assert_eq!(problem.kind, kind);
                assert!(problem.detail.ends_with(" Nothing was stored."), "{}", problem.detail);
                assert_eq!(members, json!({}));
            }
            let (first_page, first_seq) = (PageNumber::new(3).unwrap(), Seq::new(21).unwrap());
            let gone = Gone::Retired { first_page, first_seq };
            let (problem, members) = told(AppendCause::Database(gone.into()), 0, 0);
            assert_eq!(problem.kind, ProblemKind::Retired);
            assert_eq!(members, json!({ "firstPage": 3, "firstSeq": 21 }));
            let (problem, members) = told(AppendCause::UnexpectedTotal(0), 0, 0);
            assert_eq!(problem.kind, ProblemKind::UnexpectedSeq);
            assert_eq!(
                logged_by(|| drop(problem.clone().logged())),
                "",
                "clients that compete are refused all the time"
            );
            assert_eq!(members, json!({ "totalItems": 0 }));
            assert!(problem.detail.ends_with(" Nothing was stored."), "{}", problem.detail);
            for (cause, _) in causes() {
                let (problem, members) = told(cause, 20, 0);
                assert_eq!(problem.kind, ProblemKind::PartlyStored);
                let detail = &problem.detail;
                assert!(detail.starts_with("Only the first 20 of 25 trades are stored. "), "{detail}");
                assert!(!detail.contains("Nothing") && !detail.contains("driver"), "{detail}");
                let range = json!({ "firstSeq": 1, "lastSeq": 20 });
                assert_eq!(
                    members,
                    json!({ "ranges": [range], "notStoredItems": { "first": 20, "last": 24 } })
                );
            }
            for (cause, _) in
                causes().into_iter().chain([(AppendCause::OutcomeUnknown, ProblemKind::OutcomeUnknown)])
            {
                let (problem, members) = told(cause, 10, 5);
                assert_eq!(problem.kind, ProblemKind::OutcomeUnknown);
                assert!(problem.detail.contains("may or may not be stored"), "{}", problem.detail);
                assert!(!problem.detail.contains("Nothing was"), "{}", problem.detail);
                assert_eq!(members["unknownItems"], json!({ "first": 10, "last": 14 }));
                assert_eq!(members["notStoredItems"], json!({ "first": 15, "last": 24 }));
            }
        }
    }

    mod counts {
        use super::super::*;

        fn told(cause: CountCause, counted: u64, unknown: u64) -> (Problem, Value) {
            let problem =
                Problem::of_count(CountError { counted, unknown, not_counted: vec![3, 4], cause }, 25);
            let members = serde_json::to_value(&*problem.members).unwrap();
            (problem, members)
        }

        fn causes() -> [(CountCause, ProblemKind); 4] {
            let words = || "driver's words".to_owned();
            [
                (CountCause::TooManyCounters { counters: 1_001, most: 1_000 }, ProblemKind::BodyTooLarge),
                (CountCause::Overloaded, ProblemKind::Overloaded),
                (CountCause::Database(Error::unavailable(words())), ProblemKind::DatabaseUnavailable),
                (CountCause::Database(Error::internal(words())), ProblemKind::Internal),
            ]
        }

        #[test]
        fn nothing_counted_is_said_only_where_nothing_is() {
            for (cause, kind) in causes() {
                let (problem, members) = told(cause, 0, 0);
                assert_eq!((problem.kind, members), (kind, json!({})));
                assert!(problem.detail.ends_with(" Nothing was counted."), "{}", problem.detail);
            }
            for (cause, _) in causes() {
                let (problem, members) = told(cause, 20, 0);
                assert_eq!(
                    (problem.kind, members),
                    (ProblemKind::PartlyStored, json!({ "counted": 20, "notCountedItems": [3, 4] }))
                );
                assert!(
                    problem.detail.starts_with("Only 20 of 25 views are counted. "),
                    "{}",
                    problem.detail
                );
                assert!(!problem.detail.contains("Nothing") && !problem.detail.contains("driver"));
            }
            for (cause, counted) in
                causes().map(|(cause, _)| (cause, 10)).into_iter().chain([(CountCause::OutcomeUnknown, 0)])
            {
                let (problem, members) = told(cause, counted, 5);
                assert_eq!(
                    (problem.kind, members),
                    (
                        ProblemKind::OutcomeUnknown,
                        json!({ "counted": counted, "unknown": 5, "notCountedItems": [3, 4] })
                    )
                );
                assert!(problem.detail.contains("5 may or may not be"), "{}", problem.detail);
            }
        }
    }
}
