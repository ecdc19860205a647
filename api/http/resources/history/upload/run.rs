//! One upload: its lines are stored, and its answer is made.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::stream;
use http_body_util::BodyExt;
use pagebucket_engine as engine;
use pagebucket_engine::Engine;
use pagebucket_model::domain::{IdempotencyKey, Invalid, OwnerId};
use pagebucket_streams::ingest::{self, Destination, Phase, Report, StreamOptions, StreamWatch};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;
use utoipa::openapi::path::Parameter;

use super::ending::Summary;
use super::metrics::MeasuredUpload;
use super::outcomes::{AnswerPiece, Outcomes};
use super::read::{BadLine, LineReader, Unsettled};
use crate::admission::accept::NDJSON;
use crate::admission::context::RequestContext;
use crate::admission::deadline::REQUEST;
use crate::admission::lifetime::Lifetime;
use crate::admission::permits::LongPermit;
use crate::admission::rate::ClientQuota;
use crate::admission::uploads::WAITING_OF_MANY;
use crate::answer::memory::WithPermit;
use crate::answer::notes::{AnswerNotes, ItemCount};
use crate::problem::{Problem, ProblemKind};
use crate::request::body::expect;
use crate::request::params::{Address, KeyHeader, ParameterReader, Params};
use crate::resources::history::append::ExpectedSeq;
use crate::schemas::names::Names;
use crate::state::Api;

/// How long the database may be away, without any progress on a batch: longer than an election takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// When an upload ends before its body, the rest of the body is read and dropped for this long, because many
/// clients read no answer before they have sent everything. A client has as long to read the end of its
/// answer.
const LINGER: Duration = Duration::from_secs(3);

/// When the service stops, lines that were read are still sent for this long.
const STOPPING: Duration = Duration::from_secs(1);

// A stopped upload ends before the drain does, which lasts some seconds longer than a request: even after a
// last command, and with a client that neither reads the answer nor ends its body.
const _: () = assert!(
    STOPPING.as_secs() + engine::internal::COMMAND.as_secs() + 2 * LINGER.as_secs() <= REQUEST.as_secs() + 2
);

/// Lines that may wait in an upload to one history: two batches, because only one can be under way.
const WAITING_OF_ONE: usize = 2 * ingest::BATCH;

/// Most owners that a summary counts, at 15 bytes each.
const MOST_OWNERS: usize = 10_000;

/// An upload that is about to begin.
pub(crate) struct Upload {
    api: Arc<Api>,
    /// The engine of the history, or of the histories.
    engine: Engine,
    /// The owner; `None` if each line names one.
    owner: Option<OwnerId>,
    key: Option<IdempotencyKey>,
    permit: Option<LongPermit>,
    quota: ClientQuota,
    lifetime: Lifetime,
    body: Body,
}

/// The owner that the address of an upload names, if it names one.
struct UploadOwner(Option<OwnerId>);

impl Params for UploadOwner {
    fn read(reader: &mut ParameterReader<'_>, engine: &Engine) -> Option<Self> {
        // Better than that there is no such parameter.
        let refused =
            "is not supported by uploads, whose lines are stored as they arrive: append one item or an array";
        reader.query::<()>(ExpectedSeq::NAME, |_| Err(Invalid::new(refused)));
        Option::read(reader, engine).map(Self)
    }

    fn documented(names: &Names<'_>) -> Vec<Parameter> {
        Option::<OwnerId>::documented(names)
    }
}

impl FromRequest<Arc<Api>> for Upload {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let Address { engine, params: UploadOwner(owner) } =
            Address::from_request_parts(&mut parts, api).await?;
        let KeyHeader(key) = KeyHeader::from_request_parts(&mut parts, api).await?;
        expect(&parts.headers, NDJSON, String::new)?;
        let context = RequestContext::of_mut(&mut parts.extensions);
        let (permit, quota) = (context.permit.take(), context.quota.clone());
        let lifetime = Lifetime::of_request(&parts, &api.gate, &api.clock);
        Ok(Self { api: Arc::clone(api), engine, owner, key, permit, quota, lifetime, body })
    }
}

impl Upload {
    /// Stores the lines, and answers with a summary.
    pub(crate) async fn answer(self) -> Response {
        let items = ItemCount::default();
        let answered = items.clone();
        // A task, because the handler is cancelled when its client disconnects.
        let stored = tokio::spawn(async move {
            let definition = Arc::clone(self.engine.definition());
            let (owner, mut summary) = (self.owner.clone(), Summary::default());
            let (report, rest, permit) = self.store(&mut summary, items).await;
            linger(rest).await;
            // Logged here, because the problem is not rendered if the client has disconnected.
            (summary.end(&definition, report, owner.as_ref()).map_err(Problem::logged), permit)
        });
        match stored.await {
            Ok((summary, permit)) => {
                let mut answer = (answered, summary.map(Json)).into_response();
                AnswerNotes::of_mut(answer.extensions_mut()).permit = Some(WithPermit::new(permit));
                answer
            }
            Err(_panicked) => Problem::new(ProblemKind::Internal, "The upload failed.").into_response(),
        }
    }

    /// Answers at once, and stores the lines meanwhile.
    pub(crate) fn answer_by_line(self) -> Response {
        let (send, receive) = mpsc::channel(1);
        let items = ItemCount::default();
        // A compressor would hold lines back until it has enough of them.
        let notes = AnswerNotes {
            items: Some(items.clone()),
            whole: true,
            still_read: true,
            ..AnswerNotes::default()
        };
        tokio::spawn(async move {
            let definition = Arc::clone(self.engine.definition());
            let (owner, limit, stop) =
                (self.owner.clone(), self.api.limits.body_timeout, self.api.stop.clone());
            let mut outcomes = Outcomes::new(&definition, send, owner.is_none(), limit);
            let (report, rest, _permit) = self.store(&mut outcomes, items).await;
            let ended = Summary::default().end(&definition, report, owner.as_ref());
            let stopping = async {
                stop.cancelled().await;
                tokio::time::sleep(LINGER).await;
            };
            let whole = tokio::select! {
                whole = outcomes.finish(ended.err().map(Problem::logged), limit) => whole,
                () = stopping => false,
            };
            // The end of the answer would end the connection.
            linger(rest).await;
            if whole {
                outcomes.end().await;
            }
        });
        let lines = stream::unfold(Some(receive), async |receive| {
            let mut receive = receive?;
            match receive.recv().await {
                Some(AnswerPiece::Lines(lines)) => Some((Ok(lines), Some(receive))),
                Some(AnswerPiece::End) => None,
                None => Some((Err("the answer is not complete"), None)),
            }
        });
        ([(header::CONTENT_TYPE, NDJSON)], Extension(notes), Body::from_stream(lines)).into_response()
    }

    /// Stores the lines, and counts the items that are stored. Returns also the rest of the body, and the
    /// upload's permit, which every upload has.
    async fn store(
        self,
        watch: &mut (impl StreamWatch<BadLine> + Send),
        items: ItemCount,
    ) -> (Report, JoinHandle<Option<Body>>, Option<LongPermit>) {
        let Self { api, engine, owner, key, permit, quota, lifetime, body } = self;
        let began = api.clock.now();
        // With a key, its record dates all undated lines, the same way in every attempt.
        let clock = key.is_none().then(|| api.clock.clone());
        let to = Destination { engine, key, began };
        let many = owner.is_none();
        let waiting = if many { WAITING_OF_MANY } else { WAITING_OF_ONE };
        let options = StreamOptions { strict: false, many, waiting, patience: PATIENCE, owners: MOST_OWNERS };
        let (chunks, incoming) = mpsc::channel(1);
        let definition = Arc::clone(to.engine.definition());
        let unsettled = Unsettled::default();
        let sink = (chunks, Arc::clone(&unsettled));
        let reader =
            LineReader::new(sink, definition, owner, clock, (quota, lifetime), api.limits.body_timeout);
        let reading = tokio::spawn(reader.run(body));
        let (stop, mut stopped) = mpsc::channel(2);
        let stopping = api.stop.clone();
        let _stopping = AbortOnDropHandle::new(tokio::spawn(async move {
            stopping.cancelled().await;
            // Reading stops now, and sending soon after.
            let _ = stop.send(Phase::Sending).await;
            tokio::time::sleep(STOPPING).await;
            let _ = stop.send(Phase::Finishing).await;
        }));
        let mut measured = MeasuredUpload::new(watch, items, unsettled);
        let report =
            ingest::run(incoming, &to, options, &api.uploads.budget, &mut stopped, &mut measured).await;
        measured.ended(&report);
        (report, reading, permit)
    }
}

/// Reads and drops the rest of a body, for [`LINGER`] at most.
async fn linger(rest: JoinHandle<Option<Body>>) {
    let dropped = async {
        if let Ok(Some(mut body)) = rest.await {
            while !body.is_end_stream() && matches!(body.frame().await, Some(Ok(_))) {}
        }
    };
    let _ = tokio::time::timeout(LINGER, dropped).await;
}
