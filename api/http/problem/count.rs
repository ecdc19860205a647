//! Problems of page views.

use std::borrow::Cow;

use super::content::Problem;
use super::database;
use super::kind::Kind;
use crate::store::page_views::{CountCause, CountError};

impl Problem {
    /// For a count of `all` views of which not all were counted.
    pub fn of_count(error: CountError, all: u64) -> Self {
        let CountError { counted, unknown, not_counted, cause } = error;
        let (kind, why) = why(&cause);
        let log = move || {
            tracing::warn!(views = all, counted, unknown, %cause, "not all page views were counted");
            log_cause(&cause);
        };
        let mut problem = if unknown > 0 || kind == Kind::OutcomeUnknown {
            let told = format!(
                "Of {all} views, {counted} are counted, and {unknown} may or may not be. If you send those {unknown} \
                 again, they may be counted twice."
            );
            Self::new(Kind::OutcomeUnknown, format!("{why} {told}"))
        } else if counted > 0 {
            Self::new(Kind::PartlyStored, format!("Only {counted} of {all} views are counted. {why}"))
        } else {
            return Self::new(kind, format!("{why} Nothing was counted.")).logging(log);
        };
        problem.members.counted = Some(counted);
        problem.members.not_counted_items = not_counted;
        problem.members.unknown = Some(unknown).filter(|_| problem.kind == Kind::OutcomeUnknown);
        problem.logging(log)
    }

    /// For a preallocation that failed, or whose outcome is unknown.
    pub fn of_preallocation(cause: CountCause) -> Self {
        let (kind, why) = why(&cause);
        Self::new(kind, format!("{why} The preallocation may be repeated.")).logging(move || {
            tracing::warn!(%cause, "a preallocation failed, or its outcome is unknown");
            log_cause(&cause);
        })
    }
}

/// The kind and the text that a client may see for `cause`.
fn why(cause: &CountCause) -> (Kind, Cow<'static, str>) {
    let (kind, why) = match cause {
        CountCause::TooManyCounters { counters, most } => {
            let why = format!(
                "The body adds to {counters} counters, one for each page and second. The server accepts at most {most} \
                 at once (`--max-queue`). Send the body in parts."
            );
            return (Kind::BodyTooLarge, why.into());
        }
        CountCause::OutcomeUnknown => (Kind::OutcomeUnknown, "The database gave no answer in time."),
        CountCause::Overloaded => (Kind::Overloaded, "Too many page views are waiting."),
        CountCause::Database(error) => database::why(error),
    };
    (kind, why.into())
}

/// Logs the details of `cause` that its name does not have.
fn log_cause(cause: &CountCause) {
    if let CountCause::Database(error) = cause {
        database::log(error);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::store;

    fn told(cause: CountCause, counted: u64, unknown: u64) -> (Problem, Value) {
        let problem = Problem::of_count(CountError { counted, unknown, not_counted: vec![3, 4], cause }, 25);
        let members = serde_json::to_value(&*problem.members).unwrap();
        (problem, members)
    }

    fn causes() -> [(CountCause, Kind); 4] {
        let words = || "driver's words".to_owned();
        [
            (CountCause::TooManyCounters { counters: 1_001, most: 1_000 }, Kind::BodyTooLarge),
            (CountCause::Overloaded, Kind::Overloaded),
            (CountCause::Database(store::Error::Unavailable(words())), Kind::DatabaseUnavailable),
            (CountCause::Database(store::Error::Internal(words())), Kind::Internal),
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
                (Kind::PartlyStored, json!({ "counted": 20, "notCountedItems": [3, 4] }))
            );
            assert!(problem.detail.starts_with("Only 20 of 25 views are counted. "), "{}", problem.detail);
            assert!(!problem.detail.contains("Nothing") && !problem.detail.contains("driver"));
        }
        for (cause, counted) in
            causes().map(|(cause, _)| (cause, 10)).into_iter().chain([(CountCause::OutcomeUnknown, 0)])
        {
            let (problem, members) = told(cause, counted, 5);
            assert_eq!(
                (problem.kind, members),
                (
                    Kind::OutcomeUnknown,
                    json!({ "counted": counted, "unknown": 5, "notCountedItems": [3, 4] })
                )
            );
            assert!(problem.detail.contains("5 may or may not be"), "{}", problem.detail);
        }
    }
}
