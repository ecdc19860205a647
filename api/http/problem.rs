//! Every error that a client sees: `application/problem+json` (RFC 9457), from one table.
//!
//! A handler returns a [`Problem`]; [`Render`] turns it into a body at the edge, where the request's
//! address and id are known, and gives the framework's own empty errors a body too. What a client
//! reads is written here; what the log says is logged where it happened. The store's errors are
//! mapped without a wildcard arm, so that a new one does not compile until someone decides.

mod counts;
mod documented;
mod kind;
mod render;

use std::borrow::Cow;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};

pub use documented::{
    AppendProblems, BucketProblems, CountProblems, ExportProblems, ManyProblems, PageProblems,
    PreallocationProblems, ProbeProblems, ProblemSchema, ReadProblems, ReadyProblems, TradeProblems,
};
pub use kind::Kind;
pub use render::{MEDIA_TYPE, Render};

use crate::domain::{CustomerId, Faults, SeqRange};
use crate::store;
use crate::store::history::{AppendError, Cause};

/// An error for a client. Holds no driver's words and no secret.
#[derive(Debug, Clone)]
pub struct Problem {
    kind: Kind,
    detail: String,
    /// Seconds after which asking again makes sense, where that is not what the kind says.
    retry_after: Option<u32>,
    /// Apart, because most problems have none and every handler returns one.
    members: Box<Members>,
}

/// The members that only some problems have.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Members {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Fault>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors_omitted: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranges: Option<Vec<Range>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_items: Option<Items>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_stored_items: Option<Items>,
    /// How many page views are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<u64>,
    /// How many may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<u64>,
    /// Which items are not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_counted_items: Vec<usize>,
    /// What became of an upload's lines.
    #[serde(flatten)]
    upload: Map<String, Value>,
}

/// One thing that is wrong with a request.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Fault {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(flatten)]
    at: Place,
    detail: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    Parameter(Cow<'static, str>),
    Pointer(String),
}

/// Sequence numbers, both included.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Range {
    first_seq: u64,
    last_seq: u64,
}

/// Items of the request's array, counted from 0, both included.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Items {
    first: usize,
    last: usize,
}

/// What is wrong with one parameter of a path or a query.
#[derive(Debug, Clone)]
pub struct ParameterFault {
    /// Its name: one of ours, or as the client spelled it.
    pub parameter: Cow<'static, str>,
    /// What is wrong with it.
    pub detail: String,
}

impl Problem {
    /// With the kind's own words, or others.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), retry_after: None, members: Box::default() }
    }

    /// For whoever comes after the signal to stop.
    pub fn stopping() -> Self {
        Self::new(Kind::ShuttingDown, "This instance is stopping. Nothing was stored.")
    }

    /// A path or a query with these faults, at least one.
    pub fn invalid_parameters(faults: Vec<ParameterFault>) -> Self {
        let mut problem = Self::new(Kind::InvalidParameter, kind::summary(faults.len(), "wrong parameter"));
        let omitted = faults.len().saturating_sub(Faults::KEPT);
        let fault = |fault: ParameterFault| Fault {
            line: None,
            at: Place::Parameter(fault.parameter),
            detail: fault.detail,
        };
        problem.members.errors = faults.into_iter().take(Faults::KEPT).map(fault).collect();
        problem.members.errors_omitted = Some(omitted).filter(|&omitted| omitted > 0);
        problem
    }

    /// JSON that is not a trade, or not trades.
    pub fn invalid_trades(faults: &Faults) -> Self {
        Self::invalid_body(Kind::InvalidTrade, faults)
    }

    fn invalid_body(kind: Kind, faults: &Faults) -> Self {
        let mut problem = Self::new(kind, kind::summary(faults.count(), "fault"));
        let fault = |fault: &crate::domain::Fault| Fault {
            line: fault.line,
            at: Place::Pointer(fault.pointer.clone()),
            detail: fault.detail.clone(),
        };
        problem.members.errors = faults.kept().iter().map(fault).collect();
        problem.members.errors_omitted = Some(faults.omitted()).filter(|&omitted| omitted > 0);
        problem
    }

    /// An append of `count` trades to `customer`'s history that was not stored whole. Logged here, in
    /// other words than the client's.
    /// `repeat` is what the client can do about it.
    pub fn of_append(customer: CustomerId, error: AppendError, count: usize, repeat: Repeat) -> Self {
        let AppendError { ranges, unknown, cause } = error;
        let stored = ranges.iter().map(SeqRange::count).sum::<u64>() as usize;
        tracing::warn!(%customer, trades = count, stored, unknown, %cause, "an append was not stored whole");
        let may_succeed = !matches!(cause, Cause::KeyReused | Cause::SecondsExhausted(_));
        let (kind, why) = why(cause);
        let mut problem = if unknown > 0 || kind == Kind::OutcomeUnknown {
            let rest = "Trades that are not in `ranges` may or may not be stored";
            Self::new(Kind::OutcomeUnknown, format!("{why} {rest}{}", repeat.where_unknown()))
        } else if stored > 0 {
            let first = format!("Only the first {stored} of {count} trades are stored.");
            Self::new(Kind::PartlyStored, format!("{first} {why}"))
        } else {
            Self::new(kind, format!("{why} {}", repeat.where_nothing()))
        };
        if repeat == Repeat::WithItsKey && may_succeed {
            problem.detail.push_str(" Send it again with the same `Idempotency-Key`.");
            problem.retry_after = Some(1);
        }
        if stored > 0 || unknown > 0 {
            let range = |range: &SeqRange| Range { first_seq: range.first.get(), last_seq: range.last.get() };
            problem.members.ranges = Some(ranges.iter().map(range).collect());
            problem.members.unknown_items = Items::between(stored, stored + unknown);
            problem.members.not_stored_items = Items::between(stored + unknown, count);
        }
        problem
    }

    /// A line of an upload that is not a trade: the first faults, and how many more there are.
    pub fn invalid_line(faults: &Faults, omitted: usize) -> Self {
        let mut problem = Self::invalid_trades(faults);
        problem.detail = kind::summary(faults.count() + omitted, "fault");
        problem.members.errors_omitted = Some(omitted).filter(|&omitted| omitted > 0);
        problem
    }

    /// With what became of an upload's lines.
    pub fn with(mut self, upload: Map<String, Value>) -> Self {
        self.members.upload = upload;
        self
    }

    /// Its HTTP status.
    pub fn status(&self) -> StatusCode {
        self.kind.spec().status
    }
}

/// Whether an append may be sent again without storing it twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Whatever came of it: it has a key.
    WithItsKey,
    /// Only what is known not to be stored.
    WithCare,
}

impl Repeat {
    fn where_unknown(self) -> &'static str {
        match self {
            Self::WithItsKey => ".",
            Self::WithCare => ": look at the end of the history before you send them again.",
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

impl Items {
    fn between(start: usize, end: usize) -> Option<Self> {
        (start < end).then(|| Self { first: start, last: end - 1 })
    }
}

impl From<store::Error> for Problem {
    /// Of a request that stores nothing.
    fn from(error: store::Error) -> Self {
        let (kind, why) = logged(error);
        Self::new(kind, why)
    }
}

/// What a client may know of what was in an append's way.
pub fn why(cause: Cause) -> (Kind, &'static str) {
    match cause {
        Cause::OutcomeUnknown => (Kind::OutcomeUnknown, "The database gave no answer in time."),
        Cause::Overloaded => (Kind::Overloaded, "Too many appends are waiting."),
        Cause::Late => (Kind::Overloaded, "It could not be committed in time."),
        Cause::Contended => (Kind::Overloaded, "Too many appends to this history at once."),
        Cause::SecondsExhausted(_) => {
            (Kind::HistoryExhausted, "The next bucket of this history would begin later than a bucket can.")
        }
        Cause::KeyReused => (Kind::IdempotencyKeyReused, "The `Idempotency-Key` was used for other trades."),
        Cause::Database(error) => logged(error),
    }
}

/// Logs what the client must not see, and says what it may.
fn logged(error: store::Error) -> (Kind, &'static str) {
    match error {
        store::Error::Unavailable(why) => {
            tracing::warn!(why, "the database is unavailable");
            (Kind::DatabaseUnavailable, "The database does not answer.")
        }
        store::Error::Corrupt(corruption) => {
            tracing::error!(id = corruption.id, field = corruption.field, "{}", corruption.detail);
            (Kind::Internal, "A stored document is damaged. The server's log says which.")
        }
        store::Error::Internal(why) => {
            tracing::error!(why, "internal error");
            (Kind::Internal, "The server's log, under this request id, says more.")
        }
    }
}

impl IntoResponse for Problem {
    /// Without a body yet: [`Render`] writes it.
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;

    use super::*;
    use crate::domain::Seq;

    fn told(cause: Cause, stored: u64, unknown: usize) -> (Problem, Value) {
        let seq = |number| Seq::new(number).unwrap();
        let ranges = if stored > 0 { vec![SeqRange { first: seq(1), last: seq(stored) }] } else { vec![] };
        let error = AppendError { ranges, unknown, cause };
        let problem = Problem::of_append(CustomerId::new(7).unwrap(), error, 25, Repeat::WithCare);
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
        // Another test's thread, which has no subscriber, would else decide that nobody listens here.
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
            let log = logged_by(|| drop(told(cause, 10, 5)));
            let line = log.lines().next().unwrap_or_default();
            for part in [" WARN ", "customer=7", "trades=25", "stored=10", "unknown=5", &words] {
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
