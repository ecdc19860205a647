//! What is known of an answer besides its head and its body. Handlers and layers note it, the layers around
//! them read it, and none of it is sent.

use std::any::Any;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{Extensions, HeaderValue};
use axum::response::{IntoResponseParts, ResponseParts};
use pagebucket_model::domain::Principal;

use super::memory::{AnswerMemory, WithPermit};
use crate::problem::{Problem, ProblemKind};

/// What is noted of an answer: its only extension of ours. It lives until the client has taken the answer.
///
/// The last layer that reads notes, the line in the log, names them all: a new one does not compile until it
/// is decided who reads it.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnswerNotes {
    /// The problem that the answer is, until it is rendered.
    pub problem: Option<Problem>,
    /// The kind of the problem that was rendered: for the log.
    pub problem_kind: Option<ProblemKind>,
    /// The client, if clients are authenticated: for the log and the metrics.
    pub principal: Option<Arc<Principal>>,
    /// Why the client may not send the request: then its line is one of the audit log.
    pub refused: Option<RefusedFor>,
    /// How many items it has, or its request has stored: for the log.
    pub items: Option<ItemCount>,
    /// Whether it is the answer of a probe, which comes every few seconds: its line has the level `DEBUG`.
    pub of_probe: bool,
    /// Whether its time says nothing, as that of a live stream or a long poll: the histogram of durations
    /// does not have it.
    pub untimed: bool,
    /// Whether it continues to read the body of the request.
    pub still_read: bool,
    /// Whether it must not be compressed.
    pub whole: bool,
    /// Whether it is made without waiting, although its length is not known.
    pub at_once: bool,
    /// Its `Content-Range`, until it is compressed: compression leaves an answer that has this header as it
    /// is, and takes `Accept-Ranges` away. Our unit is not bytes, so both are added afterwards.
    pub content_range: Option<HeaderValue>,
    /// The permit of its request.
    pub permit: Option<WithPermit>,
    /// Counts its request as one that is under way, until it is dropped.
    pub under_way: Option<Arc<dyn Any + Send + Sync>>,
    /// What it holds in memory, if it is longer than its own bytes, or if its length is not known: then it is
    /// made as its client takes it.
    pub memory: Option<Arc<AnswerMemory>>,
}

impl AnswerNotes {
    /// Among the extensions of an answer, if anything is noted.
    pub(crate) fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// The same, to add to it.
    pub(crate) fn of_mut(extensions: &mut Extensions) -> &mut Self {
        extensions.get_or_insert_default()
    }
}

/// How much time of `limit` the client of the answer with these extensions has to take it.
pub fn patience_for(answer: &Extensions, limit: Duration) -> Duration {
    let memory = AnswerNotes::of(answer).and_then(|notes| notes.memory.as_ref());
    memory.map_or(limit, |memory| memory.patience(limit))
}

/// Why a client may not send a request.
#[derive(Debug, Clone)]
pub(crate) struct RefusedFor {
    /// The reason, as metrics have it.
    pub reason: &'static str,
    /// Whose token or key it has, if that is known.
    pub name: Option<Arc<str>>,
}

/// The number of items that an answer has, or that its request has stored. A stream adds to it until it ends.
#[derive(Debug, Clone, Default)]
pub(crate) struct ItemCount(Arc<AtomicU64>);

impl ItemCount {
    /// Of these items.
    pub(crate) fn of(items: usize) -> Self {
        Self(Arc::new(AtomicU64::new(items as u64)))
    }

    /// Adds items.
    pub(crate) fn add(&self, items: u64) {
        // The counter guards no other memory: no order is needed.
        self.0.fetch_add(items, Ordering::Relaxed);
    }

    /// How many there are by now.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// As a part of an answer it is noted there.
impl IntoResponseParts for ItemCount {
    type Error = Infallible;

    fn into_response_parts(self, mut answer: ResponseParts) -> Result<ResponseParts, Infallible> {
        AnswerNotes::of_mut(answer.extensions_mut()).items = Some(self);
        Ok(answer)
    }
}
