//! Exports of histories of any length, in bounded memory.
//!
//! The body is made as the client reads it: the next batch is read from the database when the last one has been sent.
//! If the client stops reading, the database reads stop too. A client that reads too slowly is disconnected
//! ([`crate::server`]), so that its place becomes free. The request's deadline applies to the head of the answer, not
//! to the body. If the body cannot be completed, the connection ends without the last chunk. Every client can tell that
//! such a body is incomplete, because clients of HTTP/1.0 are refused ([`accept`]).

use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use utoipa::openapi::path::Parameter;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};

use super::item_schemas::ExportedItem;
use crate::domain::{DateRange, Invalid, MAX_SAFE_INTEGER, OwnerId, Position};
use crate::export::{Format, Writer};
use crate::http::api::Api;
use crate::http::body::NDJSON;
use crate::http::middleware::accept;
use crate::http::params::{Address, Params, Reader, dates, in_query};
use crate::http::places::Place;
use crate::http::problem::{ExportProblems, Kind, Problem};
use crate::http::schemas::{date_time, whole};
use crate::metric::{EXPORTED_ITEMS, EXPORTS};
use crate::store::history::{Engine, Export};
use crate::store::{Deadline, Error};

const CSV: &str = "text/csv";

/// What an export has, and how.
pub struct ExportParams {
    /// Takes precedence over `Accept`.
    format: Option<Format>,
    after: Position,
    dates: Option<DateRange>,
}

impl Params for ExportParams {
    fn read(reader: &mut Reader<'_>, engine: &Engine) -> Option<Self> {
        let tabular = Writer::new(engine.definition(), Format::Csv).is_some();
        let format = reader.query("format", |text| match text {
            "ndjson" => Ok(Format::Ndjson),
            "csv" if tabular => Ok(Format::Csv),
            _ if !tabular => Err(Invalid::new("must be \"ndjson\": the items are no rows of a table")),
            _ => Err(Invalid::new("must be \"ndjson\" or \"csv\"")),
        });
        let after = reader.query("after", Position::parse).unwrap_or(Position::BEGINNING);
        Some(Self { format, after, dates: dates(reader) })
    }

    fn documented() -> Vec<Parameter> {
        let format = ObjectBuilder::new()
            .schema_type(SchemaType::new(Type::String))
            .enum_values(Some(["ndjson", "csv"]));
        vec![
            in_query("format", "The format of the answer. It overrides `Accept`.", format),
            in_query(
                "after",
                "Only {manyItems} after this sequence number; 0 is the beginning. To continue an export that failed, give the \
                 `seq` of its last complete row.",
                whole(0, MAX_SAFE_INTEGER),
            ),
            in_query(
                "from",
                "Only {manyItems} dated at this moment or later: RFC 3339 with an offset.",
                date_time(),
            ),
            in_query(
                "to",
                "Only {manyItems} dated before this moment, which must not be before `from`.",
                date_time(),
            ),
        ]
    }
}

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
    params(Address<(OwnerId, ExportParams)>),
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
    Address { engine, params: (owner, params) }: Address<(OwnerId, ExportParams)>,
    Extension(deadline): Extension<Deadline>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let ExportParams { format, after, dates } = params;
    let definition = engine.definition();
    let tabular = Writer::new(definition, Format::Csv).is_some();
    let offered: &[_] = if tabular { &[NDJSON, CSV] } else { &[NDJSON] };
    let by_media_type = |media_type| if media_type == CSV { Format::Csv } else { Format::Ndjson };
    let preferred = || accept::preferred(&headers, offered).map(by_media_type);
    let format = format.or_else(preferred).ok_or_else(|| {
        let types = offered.join("` or `");
        let detail = format!("The answer is `{types}`. `Accept` excludes that, and there is no `format`.");
        Problem::new(Kind::NotAcceptable, detail)
    })?;
    let writer = Writer::new(definition, format).expect("CSV is chosen only where it can be");
    let place = api.exports.take()?;
    let export = engine.export(owner.clone(), after, dates, deadline).await?;
    let csv = "text/csv; charset=utf-8; header=present";
    let media_type = if format == Format::Csv { csv } else { NDJSON };
    let head =
        [(header::CONTENT_TYPE, media_type), (header::CACHE_CONTROL, "no-store"), (header::VARY, "accept")];
    let ready = writer.header().into_bytes();
    let rows = Rows { owner, writer, export, ready, result: "abandoned", _place: place };
    Ok((head, Body::from_stream(stream::try_unfold(rows, Rows::next))).into_response())
}

/// The rows that are not sent yet.
struct Rows {
    owner: OwnerId,
    writer: Writer,
    export: Export,
    /// At first the header.
    ready: Vec<u8>,
    result: &'static str,
    _place: Place,
}

impl Rows {
    /// An error ends the body early. Only the connection sees it.
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, &'static str> {
        match self.batch().await {
            Ok(()) if self.ready.is_empty() => {
                self.result = "finished";
                Ok(None)
            }
            Ok(()) => Ok(Some((std::mem::take(&mut self.ready).into(), self))),
            Err(error) => {
                let (owner, after) = (&self.owner, self.export.position().get());
                tracing::error!(%owner, after, %error, "an export failed");
                self.result = "failed";
                Err("the export failed")
            }
        }
    }

    /// Adds the rows of the next batch; none at the end.
    async fn batch(&mut self) -> Result<(), Error> {
        let Some(batch) = self.export.next().await? else { return Ok(()) };
        let mut count = 0;
        for item in batch.items() {
            self.writer.write(&self.owner, &item, &mut self.ready)?;
            count += 1;
        }
        let collection = Arc::clone(&self.writer.definition().name);
        metrics::counter!(EXPORTED_ITEMS, "collection" => collection).increment(count);
        Ok(())
    }
}

/// An export is counted when it is dropped, because a client may disconnect at any time.
impl Drop for Rows {
    fn drop(&mut self) {
        metrics::counter!(EXPORTS, "result" => self.result).increment(1);
    }
}
