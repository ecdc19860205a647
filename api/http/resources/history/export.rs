//! Exports of histories of any length, in bounded memory.
//!
//! The body is made as the client reads it: the next batch is read from the database when the last one has
//! been sent. If the client stops reading, the database reads stop too. If the client's quota of reads is
//! used up, the next batch waits. When its token expires, the body ends there. A client that reads too slowly
//! is disconnected by the server, so that its permit becomes free. The request's deadline applies to the head
//! of the answer, not to the body. If the body cannot be completed, the connection ends without the last
//! chunk. Every client can tell that such a body is incomplete, because clients of HTTP/1.0 are refused
//! ([`crate::admission::accept`]).

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use pagebucket_engine::reads::Export;
use pagebucket_engine::{Deadline, Engine, Error};
use pagebucket_model::definition::capitalised;
use pagebucket_model::domain::{DateRange, Invalid, MAX_SAFE_INTEGER, OwnerId, Position};
use pagebucket_model::metric::{EXPORTED_ITEMS, EXPORTS};
use pagebucket_streams::export::{Fields, Format, Writer};
use tokio_util::sync::CancellationToken;
use utoipa::openapi::path::Parameter;

use crate::admission::accept::{CSV, NDJSON};
use crate::admission::client::Client;
use crate::admission::context::RequestContext;
use crate::admission::lifetime::Lifetime;
use crate::admission::permits::Permit;
use crate::admission::rate::{Class, ClientQuota};
use crate::answer::memory::{Account, AnswerMemory, OWN};
use crate::answer::notes::ItemCount;
use crate::pages::item_schemas::ExportedItem;
use crate::problem::ProblemKind::{self, Erased, HttpVersionNotSupported, Retired};
use crate::problem::{COMMON, Problem, problems};
use crate::request::params::{Address, ParameterReader, Params, dates, in_list, in_query};
use crate::schemas::document::{Documented, RouteDocument};
use crate::schemas::names::Names;
use crate::schemas::{date_time, whole};
use crate::state::Api;

/// What an export has.
pub(crate) struct ExportParams {
    after: Position,
    dates: Option<DateRange>,
    /// `None` for all.
    fields: Option<Fields>,
}

impl Params for ExportParams {
    fn read(reader: &mut ParameterReader<'_>, engine: &Engine) -> Option<Self> {
        let after = reader.query("after", Position::parse).unwrap_or(Position::BEGINNING);
        let fields = reader.list("fields", |text| Fields::parse(engine.definition(), text));
        Some(Self { after, dates: dates(reader), fields })
    }

    fn documented(names: &Names<'_>) -> Vec<Parameter> {
        let Names { definition, item, many_items, .. } = names;
        let fields = Fields::names(definition);
        vec![
            in_query(
                "after",
                format!(
                    "Only {many_items} after this sequence number; 0 is the beginning: the first {item} that is there. To continue an export that failed, give the \
                 `seq` of its last complete row."
                ),
                whole(0, MAX_SAFE_INTEGER),
            ),
            in_query(
                "from",
                format!("Only {many_items} dated at this moment or later: RFC 3339 with an offset."),
                date_time(),
            ),
            in_query(
                "to",
                format!("Only {many_items} dated before this moment, which must not be before `from`."),
                date_time(),
            ),
            in_list(
                "fields",
                "Only these fields of each row, with commas between their names; the rows keep the order of fields that they have \
                 without it. To be able to continue an export that failed, ask for `seq` too. Default: all that there are.",
                &fields,
                &fields,
            ),
        ]
    }
}

/// Bytes of the first batch, unless a page may have more: how large the items are is not known yet.
const FIRST: usize = 1024 * 1024;

/// What an export has of its client.
pub(crate) struct ExportClient {
    client: Client,
    deadline: Deadline,
    quota: ClientQuota,
    lifetime: Lifetime,
    account: Account,
}

impl FromRequestParts<Arc<Api>> for ExportClient {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Infallible> {
        let RequestContext { deadline, quota, connection, .. } = RequestContext::of(&parts.extensions);
        Ok(Self {
            client: api.clients.of(&parts.extensions, &parts.headers),
            deadline: *deadline,
            quota: quota.clone(),
            lifetime: Lifetime::of_request(parts, &api.gate, &api.clock),
            account: connection.account.clone(),
        })
    }
}

pub(crate) fn document_of_ndjson(names: &Names<'_>) -> Documented {
    let Names { items_type, owner, many_items, examples, .. } = names;
    let capital_items = capitalised(many_items);
    RouteDocument::of(
        names,
        format!("export{items_type}AsNdjson"),
        format!("Export {many_items} as NDJSON"),
        format!("Returns the {many_items} of a history in order of `seq`, one JSON object a line, as `pagebucket \
        import` reads them: all of them, those after a sequence number, or those of a span of time; with \
        `fields` only a part of each. {capital_items} that are appended after the export began are not in it. \
        An unknown {owner} has no rows. If the export fails, the connection is closed before the end of \
        the body: continue with `after`, the `seq` of the last complete row. Needs HTTP/1.1 or later."),
    )
    .parameters(<(OwnerId, ExportParams)>::documented(names))
    .answers(200, "The rows. With `fields` they have only these members.")
    .shows::<ExportedItem>(NDJSON, examples.exported_item.clone())
    .problems(problems(names, &[COMMON, &[Retired, Erased, HttpVersionNotSupported]]))
}

pub(crate) async fn ndjson(
    State(api): State<Arc<Api>>,
    address: Address<(OwnerId, ExportParams)>,
    client: ExportClient,
) -> Result<Response, Problem> {
    export(&api, address, client, Format::Ndjson, NDJSON).await
}

pub(crate) fn document_of_csv(names: &Names<'_>) -> Documented {
    let Names { items_type, many_items, examples, .. } = names;
    RouteDocument::of(
        names,
        format!("export{items_type}AsCsv"),
        format!("Export {many_items} as CSV"),
        format!("Returns the {many_items} of a history as a table with a header (RFC 4180), as `pagebucket import` \
        reads it. Cells are the stored values, also those that begin with `=`, `+`, `-` or `@`, which a \
        spreadsheet may take for formulas: import the columns as text there. In all else it is like \
        `export{items_type}AsNdjson`."),
    )
    .parameters(<(OwnerId, ExportParams)>::documented(names))
    .answers(200, "The rows, after the header.")
    .text(CSV, examples.csv_rows.clone())
    .problems(problems(names, &[COMMON, &[Retired, Erased, HttpVersionNotSupported]]))
}

pub(crate) async fn csv(
    State(api): State<Arc<Api>>,
    address: Address<(OwnerId, ExportParams)>,
    client: ExportClient,
) -> Result<Response, Problem> {
    export(&api, address, client, Format::Csv, "text/csv; charset=utf-8; header=present").await
}

async fn export(
    api: &Api,
    address: Address<(OwnerId, ExportParams)>,
    client: ExportClient,
    format: Format,
    content_type: &'static str,
) -> Result<Response, Problem> {
    let Address { engine, params: (owner, ExportParams { after, dates, fields }) } = address;
    let ExportClient { client, deadline, quota, lifetime, account } = client;
    let writer = Writer::new(engine.definition(), format).ok_or_else(|| {
        let item = &engine.definition().item;
        let (items, why) =
            (item.noun().many(), item.columns().err().map(|Invalid(why)| why).unwrap_or_default());
        let detail = format!("CSV of {items} is not available, because {why}. Use `export.ndjson`.");
        Problem::new(ProblemKind::NotFound, detail)
    })?;
    let writer = match fields {
        Some(fields) => writer.with(fields),
        None => writer,
    };
    let permit = api.exports.take(client)?;
    let export = engine.reads().export(owner.clone(), after, dates, deadline).await?;
    let head = [(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "no-store")];
    let ready = writer.header().into_bytes();
    let stop = api.stop.clone();
    let room = account.overdraw(OWN, None);
    let page_bytes = engine.definition().page_size.get() * engine.definition().max_item_bytes;
    let most = (FIRST / page_bytes).max(1);
    let items = ItemCount::default();
    let answered = items.clone();
    let rows = UnsentRows {
        owner,
        writer,
        export,
        ready,
        room,
        page_bytes,
        most,
        result: "abandoned",
        items,
        quota,
        lifetime,
        pages: 0,
        paid: 0,
        stop,
        _permit: permit,
    };
    Ok((head, answered, Body::from_stream(stream::try_unfold(rows, UnsentRows::next))).into_response())
}

/// Why an export ends early.
#[derive(Debug, thiserror::Error)]
enum BrokenOff {
    #[error("the token is no longer valid")]
    Expired,
    #[error("the export failed")]
    Failed,
}

/// The rows that are not sent yet.
struct UnsentRows {
    owner: OwnerId,
    writer: Writer,
    export: Export,
    /// At first the header.
    ready: Vec<u8>,
    /// The memory that it holds.
    room: AnswerMemory,
    /// Bytes of a page: before the first the most that there may be, then those of the last batch.
    page_bytes: usize,
    /// The most pages in the next batch.
    most: usize,
    result: &'static str,
    items: ItemCount,
    quota: ClientQuota,
    lifetime: Lifetime,
    /// Pages that were read and not taken from the quota yet.
    pages: usize,
    /// Pages that were taken from the quota before they are read.
    paid: usize,
    /// Cancelled when the service stops: then nothing waits for the quota.
    stop: CancellationToken,
    _permit: Permit,
}

impl UnsentRows {
    /// An error ends the body early. Only the connection sees it.
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, BrokenOff> {
        loop {
            let batch = self.batch().await;
            if self.lifetime.is_over() {
                self.result = "expired";
                return Err(BrokenOff::Expired);
            }
            match batch {
                Ok(_) if !self.ready.is_empty() => {
                    return Ok(Some((std::mem::take(&mut self.ready).into(), self)));
                }
                Ok(true) => {}
                Ok(false) => {
                    self.result = "finished";
                    return Ok(None);
                }
                Err(error) => {
                    let (owner, after) = (&self.owner, self.export.position().get());
                    tracing::error!(%owner, after, %error, "an export failed");
                    self.result = "failed";
                    return Err(BrokenOff::Failed);
                }
            }
        }
    }

    /// Adds the rows of the next batch, if any of its items is of the dates; false at the end.
    async fn batch(&mut self) -> Result<bool, Error> {
        if !self.export.is_at_end() {
            // One page of the first batch is paid before it is read: a client in debt waits.
            let due = self.pages.max(1);
            tokio::select! {
                () = self.quota.pace(Class::Reads, due) => (self.paid, self.pages) = (due - self.pages, 0),
                () = self.stop.cancelled() => {}
                () = self.lifetime.over() => {}
            }
        }
        // The last batch is with the connection by now. Without room for a whole batch, a page is read.
        self.room.keep(0);
        let most = self.export.most_pages().min(self.most);
        let most = if self.room.hold(most * self.page_bytes) { most } else { 1 };
        let Some(batch) = self.export.next_of(most).await? else { return Ok(false) };
        self.pages += batch.pages().saturating_sub(std::mem::take(&mut self.paid));
        let mut count = 0;
        for item in batch.items() {
            self.writer.write(&self.owner, &item, &mut self.ready)?;
            count += 1;
        }
        self.room.keep(self.ready.len());
        if batch.pages() > 0 {
            (self.page_bytes, self.most) = (self.ready.len() / batch.pages(), usize::MAX);
        }
        self.items.add(count);
        let collection = Arc::clone(&self.writer.definition().name);
        metrics::counter!(EXPORTED_ITEMS, "collection" => collection).increment(count);
        Ok(true)
    }
}

/// An export is counted, and its last pages are paid, when it is dropped, because a client may disconnect at
/// any time.
impl Drop for UnsentRows {
    fn drop(&mut self) {
        self.quota.owe_of(Class::Reads, self.pages);
        metrics::counter!(EXPORTS, "result" => self.result).increment(1);
    }
}
