//! The content of a problem.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use pagebucket_model::domain::{DraftError, Fault, Faults};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use super::cause::LoggedCause;
use super::kind::{ProblemKind, Spec};
use super::summary::{place, quoted, summary};

/// The media type of RFC 9457.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// An error for a client. What the client reads contains no driver's message and no secret.
#[derive(Debug, Clone)]
pub struct Problem {
    pub(crate) kind: ProblemKind,
    pub(crate) detail: String,
    /// Seconds to wait before a retry, if they differ from those of the kind.
    pub(crate) retry_after: Option<u32>,
    /// The members that only some problems have. Boxed, because most problems have none and every handler
    /// returns one.
    pub(crate) members: Box<Map<String, Value>>,
    /// What the log gets. Taken when it is written.
    cause: Option<Arc<LoggedCause>>,
}

/// A fault of one parameter of a path or a query.
#[derive(Debug, Clone)]
pub struct ParameterFault {
    /// The parameter's name: one of ours, or as the client spelled it.
    pub parameter: Cow<'static, str>,
    /// What is wrong with the parameter.
    pub detail: String,
}

impl Problem {
    /// A problem of this kind. `detail` says what went wrong this time.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), retry_after: None, members: Box::default(), cause: None }
    }

    /// What kind of problem it is.
    pub fn kind(&self) -> ProblemKind {
        self.kind
    }

    /// Asks the client to retry after these seconds. Only for kinds that store nothing.
    pub fn retried_after(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// Adds a sentence to what the client reads.
    pub fn adding(mut self, sentence: &str) -> Self {
        self.detail = format!("{} {sentence}", self.detail);
        self
    }

    /// Attaches what the log gets when the problem is rendered.
    pub fn caused_by(self, cause: LoggedCause) -> Self {
        Self { cause: Some(Arc::new(cause)), ..self }
    }

    /// Logs the problem now, and not again. Problems are logged where they are rendered. One that may not be
    /// rendered, because its client may have disconnected, is logged where it is made.
    pub fn logged(mut self) -> Self {
        if let Some(cause) = self.cause.take() {
            cause.log();
        }
        self
    }

    /// For requests that arrive after the signal to stop.
    pub fn stopping() -> Self {
        Self::new(ProblemKind::ShuttingDown, "This instance is stopping. Nothing was stored.")
    }

    /// For a path or a query with these faults, at least one.
    pub fn invalid_parameters(faults: Vec<ParameterFault>) -> Self {
        let (count, omitted) = (faults.len(), faults.len().saturating_sub(Faults::KEPT));
        let first = faults.first().expect("a request that is refused has a fault");
        let summary = summary(&quoted(&first.parameter), &first.detail, count, count - omitted);
        let error =
            |ParameterFault { parameter, detail }| json!({ "parameter": parameter, "detail": detail });
        let errors = faults.into_iter().take(Faults::KEPT).map(error).collect();
        Self::new(ProblemKind::InvalidParameter, summary).with_errors(errors, omitted)
    }

    /// For a body that is not JSON; or for JSON that is not what the route expects, with this kind.
    pub fn of_draft(kind: ProblemKind, error: DraftError) -> Self {
        match error {
            DraftError::NotJson(error) => {
                Self::new(ProblemKind::MalformedJson, format!("Not JSON: {error}."))
            }
            DraftError::Invalid(faults) => Self::invalid_body(kind, &faults),
        }
    }

    /// For a body of JSON with these faults, at least one.
    pub fn invalid_body(kind: ProblemKind, faults: &Faults) -> Self {
        Self::of_faults(kind, "The body", faults)
    }

    /// For a line of JSON with these faults, at least one.
    pub fn invalid_line(faults: &Faults) -> Self {
        Self::of_faults(ProblemKind::InvalidItem, "The line", faults)
    }

    fn of_faults(kind: ProblemKind, whole: &str, faults: &Faults) -> Self {
        let error = |Fault { line, pointer, rule }: &Fault| match line {
            Some(line) => json!({ "line": line, "pointer": pointer, "detail": rule.to_string() }),
            None => json!({ "pointer": pointer, "detail": rule.to_string() }),
        };
        let errors = faults.kept().iter().map(error).collect();
        let first = faults.kept().first().expect("an input that is refused has a fault");
        let summary = summary(&place(first, whole), &first.rule, faults.count(), faults.kept().len());
        Self::new(kind, summary).with_errors(errors, faults.omitted())
    }

    fn with_errors(self, errors: Vec<Value>, omitted: usize) -> Self {
        let omitted = (omitted > 0).then(|| ("errorsOmitted", json!(omitted)));
        self.with([("errors", json!(errors))].into_iter().chain(omitted))
    }

    /// Adds members that only some problems have, in this order.
    pub fn with<N: Into<String>>(mut self, members: impl IntoIterator<Item = (N, Value)>) -> Self {
        self.members.extend(members.into_iter().map(|(name, value)| (name.into(), value)));
        self
    }

    /// The problem as a member of an answer, which has the address and the id of the request. It is not
    /// logged.
    pub fn in_line(&self) -> Value {
        self.body(&[])
    }

    /// Makes an answer this problem, whose JSON has these members of the request. Other headers of the answer
    /// stay.
    pub fn render(&self, answer: &mut Response, request: &[(&str, &str)]) {
        let spec = self.kind.spec();
        let body = serde_json::to_vec(&ProblemBody { problem: self, request }).expect(JSON);
        *answer.status_mut() = spec.status;
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        headers.insert(header::CONTENT_LENGTH, body.len().into());
        // The gate says more; an upload whose token ended was let in.
        if spec.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer realm=\"pagebucket\", error=\"invalid_token\"");
            headers.entry(header::WWW_AUTHENTICATE).or_insert(challenge);
        }
        if let Some(seconds) = self.retry_after.or(spec.retry_after) {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        *answer.body_mut() = Body::from(body);
    }

    /// The JSON of the problem, with these members of the request.
    pub(crate) fn body(&self, request: &[(&str, &str)]) -> Value {
        serde_json::to_value(ProblemBody { problem: self, request }).expect(JSON)
    }
}

/// Why a problem is always JSON.
const JSON: &str = "a problem holds only texts, numbers and JSON";

/// The JSON of a problem, which is written straight into the answer.
struct ProblemBody<'a> {
    problem: &'a Problem,
    /// Members that say which request it was.
    request: &'a [(&'a str, &'a str)],
}

impl Serialize for ProblemBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Problem { kind, detail, members, .. } = self.problem;
        let Spec { status, title, .. } = kind.spec();
        let mut body = serializer.serialize_map(None)?;
        body.serialize_entry("type", &kind.r#type())?;
        body.serialize_entry("title", title)?;
        body.serialize_entry("status", &status.as_u16())?;
        body.serialize_entry("detail", detail)?;
        for (name, value) in self.request {
            body.serialize_entry(name, value)?;
        }
        for (name, value) in members.iter() {
            body.serialize_entry(name, value)?;
        }
        body.end()
    }
}
