//! Exports of histories of any length, in bounded memory.
//!
//! The body is made as the client reads it: the next batch is read from the database when the last one has been sent.
//! If the client stops reading, the database reads stop too. A client that reads too slowly is disconnected
//! ([`crate::server`]), so that its place becomes free. The request's deadline applies to the head of the answer, not
//! to the body. If the body cannot be completed, the connection ends without the last chunk. Every client can tell that
//! such a body is incomplete, because clients of HTTP/1.0 are refused ([`accept`]).

mod params;

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use super::item_schemas::ExportedItem;
use crate::domain::OwnerId;
use crate::export::{Format, Writer};
use crate::http::api::Api;
use crate::http::body::NDJSON;
use crate::http::deadline::RequestDeadline;
use crate::http::middleware::accept;
use crate::http::params::InHistory;
use crate::http::places::Place;
use crate::http::problem::{ExportProblems, Kind, Problem};
use crate::metric::{EXPORTED_ITEMS, EXPORTS};
use crate::store::Error;
use crate::store::history::Export;
use params::ExportParams;

const CSV: &str = "text/csv";

/// Export a history
///
/// Returns the {manyItems} of a history in order of `seq`: all of them, those after a sequence number, or those of a span of
/// time. {formats} {ManyItems} that are appended after
/// the export began are not in it. An unknown {owner} has no rows. If the export fails, the connection is closed
/// before the end of the body: continue with `after`, the `seq` of the last complete row. Needs HTTP/1.1 or later.
#[utoipa::path(
    get,
    path = "/v1/{owners}/{ownerId}/{items}/export",
    operation_id = "export{Items}",
    tag = "{Items}",
    params(InHistory<ExportParams>),
    responses(
        (
            status = 200, description = "The rows.",
            content(
                (ExportedItem = "application/x-ndjson", example = json!("{exportedItem}")),
                (String = "text/csv", example = json!("{csvRows}")),
            ),
        ),
        ExportProblems,
    ),
)]
pub async fn export(
    State(api): State<Arc<Api>>,
    InHistory { engine, owner, params }: InHistory<ExportParams>,
    RequestDeadline(deadline): RequestDeadline,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let ExportParams { format, after, dates } = params;
    let definition = engine.definition();
    let tabular = Writer::new(definition, Format::Csv).is_some();
    let format = format.or_else(|| preferred(&headers, tabular)).ok_or_else(|| {
        let types = if tabular { "`application/x-ndjson` or `text/csv`" } else { "`application/x-ndjson`" };
        let detail = format!("The answer is {types}. `Accept` excludes that, and there is no `format`.");
        Problem::new(Kind::NotAcceptable, detail)
    })?;
    let writer = Writer::new(definition, format).expect("CSV is chosen only where it can be");
    let place = api.exports.take()?;
    let export = engine.export(owner.clone(), after, dates, deadline).await?;
    let head = [
        (
            header::CONTENT_TYPE,
            if format == Format::Csv { "text/csv; charset=utf-8; header=present" } else { NDJSON },
        ),
        (header::CACHE_CONTROL, "no-store"),
        (header::VARY, "accept"),
    ];
    let rows = Rows { owner, writer, export, begun: false, outcome: Outcome("abandoned"), _place: place };
    Ok((head, Body::from_stream(stream::try_unfold(rows, Rows::next))).into_response())
}

fn preferred(headers: &HeaderMap, tabular: bool) -> Option<Format> {
    accept::preferred(headers, if tabular { &[NDJSON, CSV] } else { &[NDJSON] })
        .map(|media| if media == CSV { Format::Csv } else { Format::Ndjson })
}

/// The rows that are not sent yet.
struct Rows {
    owner: OwnerId,
    writer: Writer,
    export: Export,
    /// Whether the header has been sent.
    begun: bool,
    outcome: Outcome,
    _place: Place,
}

/// Ends a body early. Only the connection sees it.
#[derive(Debug, thiserror::Error)]
#[error("the export failed")]
struct BrokenOff;

impl Rows {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, BrokenOff> {
        let mut rows = Vec::new();
        if !self.begun {
            self.begun = true;
            rows.extend_from_slice(self.writer.header().as_bytes());
        }
        match self.batch(&mut rows).await {
            Ok(()) if rows.is_empty() => {
                self.outcome.0 = "finished";
                Ok(None)
            }
            Ok(()) => Ok(Some((rows.into(), self))),
            Err(error) => {
                let (owner, after) = (&self.owner, self.export.position().get());
                tracing::error!(%owner, after, %error, "an export failed");
                self.outcome.0 = "failed";
                Err(BrokenOff)
            }
        }
    }

    /// Adds the rows of the next batch; none at the end.
    async fn batch(&mut self, rows: &mut Vec<u8>) -> Result<(), Error> {
        let Some(batch) = self.export.next().await? else { return Ok(()) };
        let mut count = 0;
        for item in batch.items() {
            self.writer.write(&self.owner, &item, rows)?;
            count += 1;
        }
        let collection = Arc::clone(&self.writer.definition().name);
        metrics::counter!(EXPORTED_ITEMS, "collection" => collection).increment(count);
        Ok(())
    }
}

/// Counts an export when it is dropped, because a client may disconnect at any time.
struct Outcome(&'static str);

impl Drop for Outcome {
    fn drop(&mut self) {
        metrics::counter!(EXPORTS, "result" => self.0).increment(1);
    }
}
