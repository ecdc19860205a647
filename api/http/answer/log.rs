//! The line of a request in the log. It is written when the request has ended: its answer was taken or given
//! up.
//!
//! What a client may send without being known is cut, and its refusals have few lines ([`refusals`]).

mod refusals;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::body::Frame;
use pagebucket_model::domain::Principal;
use pagebucket_model::trace;
use tracing::field::Empty;
use tracing::{Level, Span, info_span};

use super::logged;
use super::notes::{AnswerNotes, ItemCount, RefusedFor};
use super::request_id::RequestId;
use super::route_name::RouteName;
use crate::problem::ProblemKind;
pub(crate) use refusals::RefusalCounts;

/// Which requests are traced, as the program says, which exports their spans.
#[derive(Debug, Clone, Copy)]
pub struct Traces {
    /// The share of those that do not say it themselves, from 0 to 1.
    pub share: f64,
    /// What a request with these headers says of it, if it says something.
    pub told: fn(&HeaderMap) -> Option<bool>,
    /// Makes this span, of a request with these headers, one of the trace that they name, if they name one.
    pub join: fn(&Span, &HeaderMap),
}

/// Most bytes of a method: those that are standard are shorter.
const MOST_OF_METHOD: usize = 32;

/// Notes that an answer is that of a probe.
pub(crate) async fn of_probe(mut answer: Response<Body>) -> Response<Body> {
    AnswerNotes::of_mut(answer.extensions_mut()).of_probe = true;
    answer
}

/// The line of a request. It is written when this is dropped.
pub(crate) struct AccessLine {
    started: Instant,
    id: RequestId,
    peer: IpAddr,
    method: Method,
    uri: Uri,
    route: Option<RouteName>,
    /// Bytes of the request's body that were read, if it has one.
    received: Option<Arc<AtomicU64>>,
    refusals: RefusalCounts,
    /// `None`: its client has disconnected before there was one.
    answer: Option<LoggedAnswer>,
    /// The span of the request in its trace, which ends with the line.
    trace: Option<Span>,
}

/// What the line says of the answer.
pub(crate) struct LoggedAnswer {
    status: StatusCode,
    principal: Option<Arc<Principal>>,
    refused: Option<RefusedFor>,
    problem: Option<ProblemKind>,
    items: Option<ItemCount>,
    of_probe: bool,
    /// Bytes of the body that were handed to the connection.
    sent: u64,
}

impl AccessLine {
    /// Begins the line of a request from this client, and counts what is read of its body.
    pub(crate) fn begin(
        request: &mut Request,
        id: RequestId,
        peer: IpAddr,
        route: Option<RouteName>,
        refusals: &RefusalCounts,
        traces: Option<Traces>,
    ) -> Self {
        let received = (!request.body().is_end_stream()).then(|| {
            let received = Arc::new(AtomicU64::new(0));
            let counter = Arc::clone(&received);
            let counted = std::mem::take(request.body_mut()).inspect_frame(move |frame| {
                counter.fetch_add(bytes_of(frame), Ordering::Relaxed);
            });
            *request.body_mut() = Body::new(counted);
            received
        });
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let refusals = refusals.clone();
        let is_traced = |traces: &Traces| {
            (traces.told)(request.headers()).unwrap_or_else(|| rand::random::<f64>() < traces.share)
        };
        let traces = traces.filter(is_traced);
        let trace = traces.map(|traces| {
            let span = span(&id, peer, &method, &uri, route.as_ref());
            (traces.join)(&span, request.headers());
            span
        });
        let started = Instant::now();
        Self { started, id, peer, method, uri, route, received, refusals, answer: None, trace }
    }

    /// The span of the request in its trace, if it is traced.
    pub(crate) fn trace(&self) -> Option<Span> {
        self.trace.clone()
    }

    /// Since the request began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The line, with an answer that has no notes.
    pub(crate) fn answered(mut self, answer: LoggedAnswer) -> Self {
        self.answer = Some(answer);
        self
    }

    /// The answer, with whose end the line is written.
    pub(crate) fn end_with(mut self, mut response: Response<Body>) -> Response<Body> {
        let status = response.status();
        let AnswerNotes {
            problem_kind,
            principal,
            refused,
            items,
            of_probe,
            // Rendered by now.
            problem: _,
            // Of the layers inside.
            untimed: _,
            still_read: _,
            whole: _,
            at_once: _,
            content_range: _,
            // Held until the client has taken the answer.
            permit: _,
            under_way: _,
            memory: _,
        } = AnswerNotes::of_mut(response.extensions_mut());
        self.answer = Some(LoggedAnswer {
            status,
            principal: principal.take(),
            refused: refused.take(),
            problem: *problem_kind,
            items: items.take(),
            of_probe: *of_probe,
            sent: 0,
        });
        if response.body().is_end_stream() {
            return response;
        }
        // A long address takes no memory while its answer waits for the client.
        if self.uri.path_and_query().is_some_and(|whole| whole.as_str().len() > logged::MOST_OF_PATH)
            && let Ok(path) = logged::path(self.uri.path()).parse()
        {
            self.uri = path;
        }
        response.map(|body| Body::new(body.inspect_frame(move |frame| self.note_sent(bytes_of(frame)))))
    }

    /// Counts what is handed to the connection.
    pub(crate) fn note_sent(&mut self, bytes: u64) {
        if let Some(answer) = &mut self.answer {
            answer.sent += bytes;
        }
    }
}

impl LoggedAnswer {
    /// Of an answer that is no problem, to this client.
    pub(crate) fn new(
        status: StatusCode,
        principal: Option<Arc<Principal>>,
        items: Option<ItemCount>,
    ) -> Self {
        Self { status, principal, refused: None, problem: None, items, of_probe: false, sent: 0 }
    }

    /// Whether every client can have such an answer, as often as it wants.
    fn is_refusal(&self, route: Option<&RouteName>) -> bool {
        match self.status {
            StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::MISDIRECTED_REQUEST
            | StatusCode::TOO_MANY_REQUESTS => true,
            StatusCode::NOT_FOUND => route.is_none(),
            _ => false,
        }
    }
}

impl Drop for AccessLine {
    fn drop(&mut self) {
        let answer = self.answer.as_ref();
        if let (Some(span), Some(LoggedAnswer { status, .. })) = (&self.trace, answer) {
            span.record("http.response.status_code", i64::from(status.as_u16()));
            if status.is_server_error() {
                span.record(trace::FAILED.0, trace::FAILED.1);
            }
        }
        if answer.is_some_and(|answer| answer.is_refusal(self.route.as_ref()))
            && !self.refusals.count(self.peer)
        {
            return;
        }
        let refused = answer.and_then(|answer| answer.refused.as_ref());
        let sender = answer.and_then(|answer| answer.principal.as_ref()).map(|sender| &sender.name);
        let principal =
            refused.map_or(sender, |refused| refused.name.as_ref()).map(|name| logged::one_word(name));
        // Each level has its own place in the code, because the filter of the log remembers its decision
        // there.
        macro_rules! write_line {
            ($target:literal, $level:expr, $message:literal) => {
                tracing::event!(
                    target: $target,
                    $level,
                    id = self.id.as_str(),
                    peer = %self.peer,
                    principal = principal.as_deref(),
                    reason = refused.map(|refused| refused.reason),
                    method = logged::beginning(self.method.as_str(), MOST_OF_METHOD),
                    route = self.route.as_ref().map_or("none", RouteName::as_str),
                    path = logged::path(self.uri.path()),
                    status = answer.map(|answer| answer.status.as_u16()),
                    problem = answer.and_then(|answer| answer.problem).map(|kind| kind.spec().slug),
                    milliseconds = self.elapsed().as_micros() as f64 / 1000.0,
                    bytes_in = self.received.as_ref().map_or(0, |received| received.load(Ordering::Relaxed)),
                    bytes_out = answer.map_or(0, |answer| answer.sent),
                    items = answer.and_then(|answer| answer.items.as_ref()).map(ItemCount::get),
                    $message
                )
            };
        }
        if refused.is_some() {
            write_line!("pagebucket::audit", Level::WARN, "a request was refused");
        } else if answer.is_some_and(|answer| answer.of_probe) {
            write_line!("pagebucket::access", Level::DEBUG, "a request ended");
        } else {
            write_line!("pagebucket::access", Level::INFO, "a request ended");
        }
    }
}

/// The span of a request, as it arrives.
fn span(id: &RequestId, peer: IpAddr, method: &Method, uri: &Uri, route: Option<&RouteName>) -> Span {
    let method = logged::beginning(method.as_str(), MOST_OF_METHOD);
    let route = route.map(RouteName::as_str);
    info_span!(
        target: trace::TARGET, parent: None, "request", otel.kind = "server", otel.status_code = Empty,
        otel.name = format_args!("{method} {}", route.unwrap_or_default()).to_string().trim_end(),
        http.request.method = method, http.route = route, http.response.status_code = Empty,
        url.path = logged::path(uri.path()), client.address = %peer, pagebucket.request.id = id.as_str(),
    )
}

/// The bytes of a frame of a body; none of trailers.
fn bytes_of(frame: &Frame<Bytes>) -> u64 {
    frame.data_ref().map_or(0, |data| data.len() as u64)
}
