//! Problems of appends.

use std::sync::Arc;

use super::content::{Items, Problem, Range};
use super::database;
use super::kind::Kind;
use crate::definition::Definition;
use crate::domain::{OwnerId, SeqRange};
use crate::store::history::{AppendError, Cause};

impl Problem {
    /// For an append of `count` items to `owner`'s history that was not stored completely. `repeat` says how the
    /// client may repeat it.
    pub fn of_append(
        definition: &Definition,
        owner: &OwnerId,
        error: AppendError,
        count: usize,
        repeat: Repeat,
    ) -> Self {
        let many = definition.item.noun().many();
        let AppendError { progress, unknown, cause } = error;
        let ranges = progress.ranges();
        let stored = ranges.iter().map(SeqRange::count).sum::<u64>() as usize;
        let may_succeed = !matches!(cause, Cause::KeyReused | Cause::SecondsExhausted(_));
        let (kind, why) = why(&cause);
        let mut problem = if unknown > 0 || kind == Kind::OutcomeUnknown {
            let rest = format!("Those {many} that are not in `ranges` may or may not be stored");
            Self::new(Kind::OutcomeUnknown, format!("{why} {rest}{}", repeat.where_unknown()))
        } else if stored > 0 {
            let first = format!("Only the first {stored} of {count} {many} are stored.");
            Self::new(Kind::PartlyStored, format!("{first} {why}"))
        } else {
            Self::new(kind, format!("{why} {}", repeat.where_nothing()))
        };
        if repeat == Repeat::WithItsKey && may_succeed {
            problem.detail.push_str(" Send the request again with the same `Idempotency-Key`.");
            problem.retry_after = Some(1);
        }
        if stored > 0 || unknown > 0 {
            let range = |range: &SeqRange| Range { first_seq: range.first.get(), last_seq: range.last.get() };
            problem.members.ranges = Some(ranges.iter().map(range).collect());
            problem.members.unknown_items = Items::between(stored, stored + unknown);
            problem.members.not_stored_items = Items::between(stored + unknown, count);
        }
        let (history, owner) = (Arc::clone(&definition.name), owner.clone());
        problem.logging(move || {
            tracing::warn!(%history, %owner, items = count, stored, unknown, %cause, "an append was not stored completely");
            log_cause(&cause);
        })
    }
}

/// Whether an append may be sent again without storing it twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// The whole request: it has a key.
    WithItsKey,
    /// Only items that are known not to be stored.
    WithCare,
}

impl Repeat {
    fn where_unknown(self) -> &'static str {
        match self {
            Self::WithItsKey => ".",
            Self::WithCare => ": read the end of the history before you send them again.",
        }
    }

    /// An earlier request with the same key may have stored something.
    fn where_nothing(self) -> &'static str {
        match self {
            Self::WithItsKey => "This request stored nothing.",
            Self::WithCare => "Nothing was stored.",
        }
    }
}

/// The kind and the text that a client may see for `cause`.
pub fn why(cause: &Cause) -> (Kind, &'static str) {
    match cause {
        Cause::OutcomeUnknown => (Kind::OutcomeUnknown, "The database gave no answer in time."),
        Cause::Overloaded => (Kind::Overloaded, "Too many appends are waiting."),
        Cause::Late => (Kind::Overloaded, "The append could not be committed in time."),
        Cause::Contended => (Kind::Overloaded, "Too many appends to this history at once."),
        Cause::SecondsExhausted(_) => (
            Kind::HistoryExhausted,
            "The next bucket of this history would begin after the last possible second.",
        ),
        Cause::KeyReused => (Kind::IdempotencyKeyReused, "The `Idempotency-Key` was used for other items."),
        Cause::Database(error) => database::why(error),
    }
}

/// Logs the details of `cause` that its name does not have.
pub fn log_cause(cause: &Cause) {
    if let Cause::Database(error) = cause {
        database::log(error);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::{Value, json};

    use super::*;
    use crate::domain::Seq;
    use crate::store;
    use crate::store::history::Progress;

    fn told(cause: Cause, stored: u64, unknown: usize) -> (Problem, Value) {
        let seq = |number| Seq::new(number).unwrap();
        let ranges = if stored > 0 { vec![SeqRange { first: seq(1), last: seq(stored) }] } else { vec![] };
        let error = AppendError { progress: Progress::replayed(ranges), unknown, cause };
        let problem =
            Problem::of_append(&Definition::trades(), &OwnerId::Integer(7), error, 25, Repeat::WithCare);
        let members = serde_json::to_value(&*problem.members).unwrap();
        (problem, members)
    }

    fn causes() -> Vec<(Cause, Kind)> {
        let driver = || "driver's words".to_owned();
        vec![
            (Cause::Overloaded, Kind::Overloaded),
            (Cause::Late, Kind::Overloaded),
            (Cause::Contended, Kind::Overloaded),
            (Cause::KeyReused, Kind::IdempotencyKeyReused),
            (Cause::SecondsExhausted(crate::store::history::SecondsExhausted), Kind::HistoryExhausted),
            (Cause::Database(store::Error::Unavailable(driver())), Kind::DatabaseUnavailable),
            (Cause::Database(store::Error::Internal(driver())), Kind::Internal),
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
        for (cause, _) in causes().into_iter().chain([(Cause::OutcomeUnknown, Kind::OutcomeUnknown)]) {
            let words = cause.to_string();
            let mut problem = None;
            let unasked = logged_by(|| problem = Some(told(cause, 10, 5).0));
            assert_eq!(unasked, "");
            let log = logged_by(|| problem = problem.take().map(Problem::logged));
            assert_eq!(logged_by(|| problem = problem.take().map(Problem::logged)), "");
            let line = log.lines().next().unwrap_or_default();
            for part in [" WARN ", "history=trades", "owner=7", "items=25", "stored=10", "unknown=5", &words]
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
        for (cause, _) in causes() {
            let (problem, members) = told(cause, 20, 0);
            assert_eq!(problem.kind, Kind::PartlyStored);
            let detail = &problem.detail;
            assert!(detail.starts_with("Only the first 20 of 25 trades are stored. "), "{detail}");
            assert!(!detail.contains("Nothing") && !detail.contains("driver"), "{detail}");
            let range = json!({ "firstSeq": 1, "lastSeq": 20 });
            assert_eq!(members, json!({ "ranges": [range], "notStoredItems": { "first": 20, "last": 24 } }));
        }
        for (cause, _) in causes().into_iter().chain([(Cause::OutcomeUnknown, Kind::OutcomeUnknown)]) {
            let (problem, members) = told(cause, 10, 5);
            assert_eq!(problem.kind, Kind::OutcomeUnknown);
            assert!(problem.detail.contains("may or may not be stored"), "{}", problem.detail);
            assert!(!problem.detail.contains("Nothing was"), "{}", problem.detail);
            assert_eq!(members["unknownItems"], json!({ "first": 10, "last": 14 }));
            assert_eq!(members["notStoredItems"], json!({ "first": 15, "last": 24 }));
        }
    }
}
