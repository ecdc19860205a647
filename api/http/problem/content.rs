//! The content of a problem.

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};

use super::kind::{Kind, summary};
use crate::domain::{DraftError, Faults};

/// An error for a client. What the client reads contains no driver's message and no secret.
#[derive(derive_more::Debug, Clone)]
pub struct Problem {
    pub(super) kind: Kind,
    pub(super) detail: String,
    /// Seconds to wait before a retry, if they differ from those of the kind.
    pub(super) retry_after: Option<u32>,
    /// Boxed, because most problems have none and every handler returns one.
    pub(super) members: Box<Members>,
    /// Writes to the log what the client must not see. Taken when it is written.
    #[debug(skip)]
    log: Option<Arc<dyn Fn() + Send + Sync>>,
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
    pub(super) ranges: Option<Vec<Range>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unknown_items: Option<Items>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) not_stored_items: Option<Items>,
    /// How many page views are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) counted: Option<u64>,
    /// How many page views may be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unknown: Option<u64>,
    /// Items of the request whose views are not counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) not_counted_items: Vec<usize>,
    /// The outcome of an upload's lines.
    #[serde(flatten)]
    upload: Map<String, Value>,
}

/// One fault of a request.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum Fault {
    Parameter(ParameterFault),
    Body {
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<u64>,
        pointer: String,
        detail: String,
    },
}

/// Sequence numbers, both ends included.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Range {
    pub(super) first_seq: u64,
    pub(super) last_seq: u64,
}

/// Items of the request's array, counted from 0, both ends included.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Items {
    first: usize,
    last: usize,
}

/// A fault of one parameter of a path or a query.
#[derive(Debug, Clone, Serialize)]
pub struct ParameterFault {
    /// The parameter's name: one of ours, or as the client spelled it.
    pub parameter: Cow<'static, str>,
    /// What is wrong with the parameter.
    pub detail: String,
}

impl Problem {
    /// A problem of this kind. `detail` says what went wrong this time.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), retry_after: None, members: Box::default(), log: None }
    }

    /// Attaches what the log gets. `write` is called when the problem is rendered.
    pub fn logging(self, write: impl Fn() + Send + Sync + 'static) -> Self {
        Self { log: Some(Arc::new(write)), ..self }
    }

    /// Logs the problem now, and not again. Problems are logged where they are rendered. One that may not be rendered,
    /// because its client may have disconnected, is logged where it is made.
    pub fn logged(mut self) -> Self {
        if let Some(write) = self.log.take() {
            write();
        }
        self
    }

    /// For requests that arrive after the signal to stop.
    pub fn stopping() -> Self {
        Self::new(Kind::ShuttingDown, "This instance is stopping. Nothing was stored.")
    }

    /// For a path or a query with these faults, at least one.
    pub fn invalid_parameters(faults: Vec<ParameterFault>) -> Self {
        let mut problem = Self::new(Kind::InvalidParameter, summary(faults.len(), "invalid parameter"));
        let omitted = faults.len().saturating_sub(Faults::KEPT);
        problem.members.errors = faults.into_iter().take(Faults::KEPT).map(Fault::Parameter).collect();
        problem.members.errors_omitted = Some(omitted).filter(|&omitted| omitted > 0);
        problem
    }

    /// For a body that is not JSON; or for JSON that is not what the route expects, with this kind.
    pub fn of_draft(kind: Kind, error: DraftError) -> Self {
        match error {
            DraftError::NotJson(error) => Self::new(Kind::MalformedJson, format!("Not JSON: {error}.")),
            DraftError::Invalid(faults) => Self::invalid_body(kind, &faults),
        }
    }

    /// For JSON with these faults.
    pub fn invalid_body(kind: Kind, faults: &Faults) -> Self {
        let mut problem = Self::new(kind, summary(faults.count(), "fault"));
        let fault = |fault: &crate::domain::Fault| Fault::Body {
            line: fault.line,
            pointer: fault.pointer.clone(),
            detail: fault.detail.clone(),
        };
        problem.members.errors = faults.kept().iter().map(fault).collect();
        problem.members.errors_omitted = Some(faults.omitted()).filter(|&omitted| omitted > 0);
        problem
    }

    /// For a line of an upload that is not an item: its first faults, and the number of further ones.
    pub fn invalid_line(faults: &Faults, omitted: usize) -> Self {
        let mut problem = Self::invalid_body(Kind::InvalidItem, faults);
        problem.detail = summary(faults.count() + omitted, "fault");
        problem.members.errors_omitted = Some(omitted).filter(|&omitted| omitted > 0);
        problem
    }

    /// Adds the outcome of an upload's lines.
    pub fn with(mut self, upload: Map<String, Value>) -> Self {
        self.members.upload = upload;
        self
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.kind.spec().status
    }
}

impl IntoResponse for Problem {
    /// The answer has no body yet: [`super::Render`] writes it.
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl Items {
    pub(super) fn between(start: usize, end: usize) -> Option<Self> {
        (start < end).then(|| Self { first: start, last: end - 1 })
    }
}
