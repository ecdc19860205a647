//! The spans of traced requests: what a request waited for. The program says which requests are traced, and
//! exports the spans.
//!
//! A span is made only within a traced request, or for one. Elsewhere it is none, which costs a load. Names
//! are those of OpenTelemetry's semantic conventions for HTTP and for databases
//! (<https://opentelemetry.io/docs/specs/semconv/>).

use tracing::field::Empty;
use tracing::{Instrument, Level, Span, info_span, span_enabled};

/// The target of all these spans. The log leaves them out.
pub const TARGET: &str = "pagebucket_trace";

/// The field of a span that says that it failed, and what it says then.
pub const FAILED: (&str, &str) = ("otel.status_code", "ERROR");

/// The innermost span of the trace that is followed here, if there is one.
fn current() -> Option<Span> {
    if !span_enabled!(target: TARGET, Level::INFO) {
        return None;
    }
    let span = Span::current();
    span.metadata().is_some_and(|metadata| metadata.target() == TARGET).then_some(span)
}

/// The span of a command, which `named` gives the name and the collection of. None if no request is traced.
pub fn command<'a>(named: impl FnOnce() -> (&'a str, &'a str)) -> Span {
    let Some(parent) = current() else { return Span::none() };
    let (operation, collection) = named();
    info_span!(
        target: TARGET, parent: &parent, "command", otel.kind = "client", otel.status_code = Empty,
        otel.name = format_args!("{operation} {collection}"), db.system.name = "mongodb",
        db.operation.name = operation, db.collection.name = collection,
    )
}

/// Works within this span. If the work fails, the span says so.
pub async fn within<T, E>(span: Span, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let outcome = work.instrument(span.clone()).await;
    if outcome.is_err() {
        span.record(FAILED.0, FAILED.1);
    }
    outcome
}

/// A traced request that waits to be served together with others.
#[derive(Debug)]
pub struct TracedWait {
    request: Span,
    queue: Span,
}

impl TracedWait {
    /// The request that is followed here, if it is traced, begins to wait.
    pub fn begin(collection: &str) -> Option<Box<Self>> {
        let request = current()?;
        let queue = info_span!(target: TARGET, parent: &request, "queue", db.collection.name = collection);
        Some(Box::new(Self { request, queue }))
    }
}

/// The span of work for these requests, whose wait ends: part of the trace of the first one, and linked to
/// all. None if no request is traced.
pub fn together<'a>(
    work: &str,
    collection: &str,
    requests: impl Iterator<Item = &'a mut Option<Box<TracedWait>>>,
) -> Span {
    let mut requests = requests.filter_map(Option::as_deref_mut).peekable();
    let Some(first) = requests.peek() else { return Span::none() };
    let span = info_span!(
        target: TARGET, parent: &first.request, "together", otel.name = work, db.collection.name = collection
    );
    for TracedWait { request, queue } in requests {
        span.follows_from(&*request);
        *queue = Span::none();
    }
    span
}
