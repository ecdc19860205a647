//! Uploads: a trade a line, any number of lines, committed as they come.
//!
//! The body is read by a task of its own ([`read`]), which hands parsed lines to the engine
//! ([`crate::ingest`]) no faster than it takes them, so that memory is bounded and a slow database slows
//! the client. The engine goes on when the client has hung up, with what was read: a trade that was
//! sent whole is stored or its outcome told to the log.
//!
//! An upload has no deadline as a whole. What bounds it: the body must come at a least pace ([`read`]), each
//! piece of the answer must be taken in time, the database may be away for [`PATIENCE`], and when the
//! service stops no more is read or sent, so that it ends before the drain does.
//!
//! Uploads have places of their own (`--max-uploads`), so that they never keep other requests out
//! ([`super::limits`]), and one budget for the memory that they hold together ([`Uploads`]).
//!
//! It ends with the truth. Every line is stored, refused, unknown or not stored, and the answer says
//! which ([`ending`]): as one summary, or line by line ([`outcomes`]).

mod ending;
mod measured;
mod outcomes;
mod read;
mod summary;
mod views;

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::stream;
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

use super::body::LinesBody;
use super::idempotency::Key;
use super::limits::{LongPlace, Places};
use super::new_trades::NewTradeLine;
use super::problem::{Kind, ManyProblems, Problem};
use super::unread::StillRead;
use super::{Api, accept, site};
use crate::domain::{CustomerId, IdempotencyKey};
use crate::ingest::{self, Budget, Destination, Options, Report, Watch};
use crate::store;

use measured::Measured;
use outcomes::Outcomes;
use read::{BadLine, Reader};
use summary::Summary;
pub use views::{ManyUploadedView, OutcomeView, UploadedView};

/// One JSON text a line. (<https://github.com/ndjson/ndjson-spec>)
pub(super) const MEDIA_TYPE: &str = "application/x-ndjson";

/// How long the database may be away, with nothing of a batch stored all the while: longer than an
/// election takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// When an upload has ended before its body, the rest of the body is read and dropped for so long: many
/// clients read no answer before they have sent all. A client has as long to take the end of its answer.
const LINGER: Duration = Duration::from_secs(3);

/// When the service stops, what was read is sent for so long.
const STOPPING: Duration = Duration::from_secs(1);

// An upload that is stopped ends before the drain does, which is some seconds longer than a request: after its
// last command, and a client that neither takes the answer nor ends its body.
const _: () = assert!(
    STOPPING.as_secs() + store::COMMAND.as_secs() + 2 * LINGER.as_secs() <= super::REQUEST.as_secs() + 2
);

/// Lines that wait: with one history two batches, as only one can be under way; with many, enough that
/// a batch holds more than one line of a customer.
const WAITING_OF_ONE: usize = 2 * ingest::BATCH;
const WAITING_OF_MANY: usize = 50_000;

/// Customers told apart in a summary, at 15 bytes each.
const MOST_CUSTOMERS: usize = 10_000;

/// What all uploads of a process may hold beyond their own shares, in bytes ([`Budget`]): enough for one of many
/// customers to have [`WAITING_OF_MANY`] lines waiting.
///
/// Besides, an upload takes up to about half a MiB that is not counted there: its own share, the buffers of its
/// connection, pieces that are being parsed, the customers of its summary, and the problems in it.
const BUDGET: usize = 24 * 1024 * 1024;

/// How many uploads may be under way, and how much they may hold together. Clones share both.
#[derive(Debug, Clone)]
pub struct Uploads {
    pub(super) places: Places,
    budget: Budget,
}

impl Uploads {
    /// At most this many at once.
    pub fn new(most: usize) -> Self {
        Self { places: Places::new(most, "uploads"), budget: Budget::of(BUDGET) }
    }

    /// Bytes that they hold now.
    pub(super) fn held(&self) -> u64 {
        self.budget.held()
    }
}

/// Where uploads go. Elsewhere a body of lines is read whole, as page views are, or is none.
const ROUTES: [&str; 2] = ["/v1/trades", "/v1/customers/{customerId}/trades"];

/// Whether a request is an upload.
pub(super) fn is_one(request: &Request) -> bool {
    let given = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = given.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    request.method() == Method::POST
        && essence.eq_ignore_ascii_case(MEDIA_TYPE)
        && route.is_some_and(|route| ROUTES.contains(&route))
}

/// An upload that is about to begin.
pub(super) struct Upload {
    pub(super) api: Arc<Api>,
    /// Whose history it is; `None` where each line says.
    pub(super) customer: Option<CustomerId>,
    pub(super) key: Option<IdempotencyKey>,
    pub(super) headers: HeaderMap,
    /// Every upload has one.
    pub(super) place: Option<Extension<LongPlace>>,
    pub(super) body: Body,
}

/// Append trades of many customers
///
/// Takes a trade a line, each with its `customerId`, and stores each customer's at the end of that
/// customer's history, in their order, as they come. As an upload to one history it has any length and no
/// deadline, and is answered by one summary, or with `Accept: application/x-ndjson` by a line of outcome
/// for each line. With an `Idempotency-Key` it may be sent again, whatever came of it, and continues: the
/// key is each customer's own. The summary counts up to 10,000 customers; `moreCustomers` says that there are more.
#[utoipa::path(
    post,
    path = "/v1/trades",
    operation_id = "uploadTrades",
    tag = "Trades",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "A new name for each new upload, 1 to 255 visible ASCII characters, such as a UUID; the same name for the same lines sent again.", min_length = 1, max_length = 255, pattern = "^[!-~]{1,255}$"),
    ),
    request_body(
        content = NewTradeLine, content_type = "application/x-ndjson",
        description = "One JSON object a line, of at most 64 KiB. Blank lines are passed over.",
        example = json!({ "customerId": 7, "type": "buy", "ticker": "MDB", "qty": 419 })
    ),
    responses(
        (
            status = 200,
            description = "As JSON: all lines have come to an end; those that are not in `problems` are stored, durably. As NDJSON: a line of outcome for each line, in order, as it is stored; where the last has no `line`, it ended early, and that line says why.",
            content(
                (ManyUploadedView = "application/json", example = json!({ "stored": 2, "refused": 0, "problems": [], "customers": 2 })),
                (OutcomeView = "application/x-ndjson", example = json!({ "line": 1, "customerId": 7, "seq": 1 }))
            )
        ),
        ManyProblems,
    ),
)]
pub async fn append_many(
    State(api): State<Arc<Api>>,
    Key(key): Key,
    place: Option<Extension<LongPlace>>,
    headers: HeaderMap,
    LinesBody(body): LinesBody,
) -> Response {
    Upload { api, customer: None, key, headers, place, body }.answer().await
}

impl Upload {
    /// Stores what comes, and answers.
    pub(super) async fn answer(self) -> Response {
        if accept::takes_lines(&self.headers) {
            return self.by_lines();
        }
        // A task, because a client that hangs up would cut it off.
        let stored = tokio::spawn(async move {
            let (customer, mut summary) = (self.customer, Summary::default());
            let (report, rest) = self.store(&mut summary).await;
            rest.linger().await;
            ending::of(report, summary, customer)
        });
        match stored.await {
            Ok(Ok(view)) => Json(view).into_response(),
            Ok(Err(problem)) => problem.into_response(),
            Err(_panicked) => Problem::new(Kind::Internal, "The upload failed.").into_response(),
        }
    }

    /// Answers at once, and goes on.
    fn by_lines(self) -> Response {
        let (send, receive) = mpsc::channel::<Bytes>(1);
        tokio::spawn(async move {
            let (customer, limit) = (self.customer, self.api.limits.body_timeout);
            let mut outcomes = Outcomes::new(send, customer.is_none(), limit);
            let (report, rest) = self.store(&mut outcomes).await;
            let ended = ending::of(report, Summary::default(), customer);
            let whole = outcomes.finish(ended.err(), LINGER).await;
            // The answer's end would end the connection.
            rest.linger().await;
            if whole {
                outcomes.end().await;
            }
        });
        let lines = stream::unfold(Some(receive), async |receive| {
            let mut receive = receive?;
            match receive.recv().await {
                Some(lines) if lines == outcomes::END => None,
                Some(lines) => Some((Ok(lines), Some(receive))),
                None => Some((Err(std::io::Error::from(ErrorKind::UnexpectedEof)), None)),
            }
        });
        let mut response = Body::from_stream(lines).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(MEDIA_TYPE));
        response.extensions_mut().insert(StillRead);
        // A compressor keeps lines back until it has enough of them.
        response.extensions_mut().insert(site::Whole);
        response
    }

    async fn store(self, watch: &mut (impl Watch<BadLine> + Send)) -> (Report, Rest) {
        let Self { api, customer, key, headers: _, place, body } = self;
        let began = api.clock.now();
        // The record of a key gives one date to all lines without one, in every attempt.
        let clock = key.is_none().then(|| api.clock.clone());
        let to = Destination { trades: api.store.trades().clone(), key, began };
        let many = customer.is_none();
        let waiting = if many { WAITING_OF_MANY } else { WAITING_OF_ONE };
        let options = Options { strict: false, many, waiting, patience: PATIENCE, customers: MOST_CUSTOMERS };
        let (chunks, incoming) = mpsc::channel(1);
        let reader = Reader::new(chunks, customer, clock, api.limits.body_timeout);
        let reading = tokio::spawn(reader.run(body));
        let (stop, mut stopped) = mpsc::channel(2);
        let ready = api.ready.clone();
        let _stopping = AbortOnDropHandle::new(tokio::spawn(async move {
            ready.ended().await;
            // No more is read; and soon no more is sent.
            let _ = stop.send(()).await;
            tokio::time::sleep(STOPPING).await;
            let _ = stop.send(()).await;
        }));
        let mut measured = Measured::new(watch);
        let report =
            ingest::run(incoming, &to, options, &api.uploads.budget, &mut stopped, &mut measured).await;
        measured.ended(&report);
        (report, Rest { reading, _place: place })
    }
}

/// What is left of a body.
struct Rest {
    reading: JoinHandle<Option<Body>>,
    _place: Option<Extension<LongPlace>>,
}

impl Rest {
    /// Reads and drops it, while there is time.
    async fn linger(self) {
        let rest = async {
            if let Ok(Some(mut body)) = self.reading.await {
                while !body.is_end_stream() && matches!(body.frame().await, Some(Ok(_))) {}
            }
        };
        let _ = tokio::time::timeout(LINGER, rest).await;
    }
}
