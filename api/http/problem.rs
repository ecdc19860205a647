//! Every error that a client sees: `application/problem+json` (RFC 9457), from one table.
//!
//! A handler returns a [`Problem`]; [`render()`] turns it into a body at the edge, where the request's
//! address and id are known, and gives the framework's own empty errors a body too. What a client
//! reads is written here; what the log says is logged where it happened. The store's errors are
//! mapped without a wildcard arm, so that a new one does not compile until someone decides.

mod documented;
mod kind;
mod render;

use std::borrow::Cow;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

pub use documented::{
    AppendProblems, PageProblems, Problem as ProblemSchema, ReadProblems, ReadyProblems, TradeProblems,
};
pub use kind::Kind;
pub use render::{catch_panic, render};

use crate::domain::{Faults, SeqRange};
use crate::store;
use crate::store::trades::{AppendError, Cause};

/// An error for a client. Holds no driver's words and no secret.
#[derive(Debug, Clone)]
pub struct Problem {
    kind: Kind,
    detail: String,
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
}

/// One thing that is wrong with a request.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Fault {
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
        Self { kind, detail: detail.into(), members: Box::default() }
    }

    /// A path or a query with these faults, at least one.
    pub fn invalid_parameters(faults: Vec<ParameterFault>) -> Self {
        let mut problem = Self::new(Kind::InvalidParameter, kind::summary(faults.len(), "wrong parameter"));
        let omitted = faults.len().saturating_sub(Faults::KEPT);
        let fault =
            |fault: ParameterFault| Fault { at: Place::Parameter(fault.parameter), detail: fault.detail };
        problem.members.errors = faults.into_iter().take(Faults::KEPT).map(fault).collect();
        problem.members.errors_omitted = Some(omitted).filter(|&omitted| omitted > 0);
        problem
    }

    /// JSON that is not a trade, or not trades.
    pub fn invalid_trades(faults: &Faults) -> Self {
        let mut problem = Self::new(Kind::InvalidTrade, kind::summary(faults.count(), "fault"));
        let fault = |fault: &crate::domain::Fault| Fault {
            at: Place::Pointer(fault.pointer.clone()),
            detail: fault.detail.clone(),
        };
        problem.members.errors = faults.kept().iter().map(fault).collect();
        problem.members.errors_omitted = Some(faults.omitted()).filter(|&omitted| omitted > 0);
        problem
    }

    /// An append of `count` trades that was not stored whole.
    pub fn of_append(error: AppendError, count: usize) -> Self {
        let AppendError { ranges, unknown, cause } = error;
        let stored = ranges.iter().map(SeqRange::count).sum::<u64>() as usize;
        let mut problem = match cause {
            Cause::OutcomeUnknown => Self::new(
                Kind::OutcomeUnknown,
                "The database gave no answer in time. Trades that are not in `ranges` may or may not be stored: \
                 look at the end of the history before you send them again.",
            ),
            Cause::Overloaded => Self::new(Kind::Overloaded, "Too many appends are waiting."),
            Cause::Contended => Self::new(Kind::Overloaded, "Too many appends to this history at once."),
            Cause::SecondsExhausted(_) => Self::new(
                Kind::HistoryExhausted,
                "This history has reached the last bucket that there can be.",
            ),
            Cause::Database(error) => Self::from(error),
        };
        if unknown > 0 && problem.kind != Kind::OutcomeUnknown {
            problem =
                Self::new(Kind::OutcomeUnknown, "An internal error came between the commit and its answer.");
        } else if unknown == 0 && stored > 0 {
            let why = problem.detail;
            problem = Self::new(
                Kind::PartlyStored,
                format!("Only the first {stored} of {count} trades are stored. {why}"),
            );
        }
        if stored > 0 || unknown > 0 {
            let range = |range: &SeqRange| Range { first_seq: range.first.get(), last_seq: range.last.get() };
            problem.members.ranges = Some(ranges.iter().map(range).collect());
            problem.members.unknown_items = Items::between(stored, stored + unknown);
            problem.members.not_stored_items = Items::between(stored + unknown, count);
        }
        problem
    }

    /// Its HTTP status.
    pub fn status(&self) -> StatusCode {
        self.kind.spec().status
    }
}

impl Items {
    fn between(start: usize, end: usize) -> Option<Self> {
        (start < end).then(|| Self { first: start, last: end - 1 })
    }
}

impl From<store::Error> for Problem {
    /// Logs what the client must not see.
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Unavailable(why) => {
                tracing::warn!(why, "the database is unavailable");
                Self::new(Kind::DatabaseUnavailable, "The database does not answer. Nothing was stored.")
            }
            store::Error::Corrupt(corruption) => {
                tracing::error!(id = corruption.id, field = corruption.field, "{}", corruption.detail);
                Self::new(Kind::Internal, "A stored page is damaged. The server's log says which.")
            }
            store::Error::Internal(why) => {
                tracing::error!(why, "internal error");
                Self::new(Kind::Internal, "The server's log, under this request id, says more.")
            }
        }
    }
}

impl IntoResponse for Problem {
    /// Without a body yet: [`render()`] writes it.
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}
