//! Summaries over all owners, from the native time series of a history.
//!
//! The answer changes with every append of any owner, so it has no tag.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use pagebucket_engine::Engine;
use pagebucket_engine::series::{SeriesError, SeriesPage, SeriesQuery};
use pagebucket_model::definition::capitalised;
use pagebucket_model::domain::{Instant, Invalid, Order};
use pagebucket_model::summary::{Fill, SpanLength, Spans, SummaryShape, Zone, within_years};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::path::Parameter;

use super::params::{MOST_POINTS, USUAL_POINTS, groups_of, in_order, in_zone, limit, of_filters};
use super::view::{SummaryPointView, not_declared};
use super::{next_query, too_many_points};
use crate::admission::accept::JSON;
use crate::admission::client::Client;
use crate::admission::rate::of_search;
use crate::answer::notes::ItemCount;
use crate::caching::reading::Reading;
use crate::problem::ProblemKind::{self, SummaryTooLarge};
use crate::problem::{COMMON, Problem, problems};
use crate::request::params::{
    Address, ParameterReader, Params, in_list, in_query, instant, required_in_query,
};
use crate::resources::history::list::filters::{filters_by, filters_documented};
use crate::resources::history::list::params::order;
use crate::resources::links::Links;
use crate::schemas::document::{Documented, RouteDocument};
use crate::schemas::headers::{self, LINKS};
use crate::schemas::names::Names;
use crate::schemas::{date_time, instant as instant_schema, schema, whole};
use crate::state::Api;

/// The most spans of a request.
const MOST_SPANS: i64 = 10_000;

/// So many measurements count as a page under rate limits.
const OF_A_PAGE: usize = 100;

/// What a client wants to be summarised.
pub(crate) struct AllSummaryParams {
    query: SeriesQuery,
}

impl Params for AllSummaryParams {
    fn read(reader: &mut ParameterReader<'_>, engine: &Engine) -> Option<Self> {
        let definition = engine.definition();
        let meta = definition.time_series.as_ref().map(|series| &*series.meta).unwrap_or_default();
        let length = reader.required("by", SpanLength::parse);
        let zone = reader.query("tz", Zone::parse).unwrap_or(Zone::UTC);
        let fill = reader.query("fill", |text| match text {
            "none" => Ok(Fill::None),
            "zero" => Ok(Fill::Zero),
            // The last value of all owners may be any number of measurements before `from`.
            _ => Err(Invalid::new("must be \"none\" or \"zero\"")),
        });
        let (fill, order) =
            (fill.unwrap_or(Fill::None), reader.query("order", order).unwrap_or(Order::Ascending));
        let groups = reader.list("group", |text| groups_of(text, meta)).unwrap_or_default();
        let from = reader.required("from", instant);
        let to = reader.required("to", instant);
        let limit = reader.query("limit", limit).unwrap_or(USUAL_POINTS);
        let filters = filters_by(reader, definition, meta);
        let (from, to) = (from?, to?);
        let spans = Spans { length: length?, zone };
        if to < from {
            reader.refuse("to", "must not be before `from`");
            return None;
        }
        let [Some(start), Some(end)] = spans.covering(Some(from), Some(to)) else { return None };
        let span = spans.at(start);
        if (end - start) / (span.end - span.start) > MOST_SPANS {
            reader.refuse("to", format!("must be at most {MOST_SPANS} spans after `from`"));
        }
        // An empty span of time stays empty.
        let ends = if from == to { [start, start] } else { [start, end] };
        let values = definition.summaries.as_ref().map(|summaries| summaries.values.clone());
        let shape = Arc::new(SummaryShape { spans, groups, values: values.unwrap_or_default() });
        Some(Self { query: SeriesQuery { shape, ends, fill, order, filters, limit } })
    }

    fn documented(names: &Names<'_>) -> Vec<Parameter> {
        let Names { definition, many_items, .. } = names;
        let lengths = SpanLength::NAMED.map(|(name, _)| name);
        let by = required_in_query(
            "by",
            "The length of the spans: `m` are minutes, `M` is a month. Days, weeks from Monday, and months begin in `tz`; shorter spans are those of UTC.",
            schema(json!({ "type": "string", "enum": lengths, "examples": ["1h"] })),
            "1h",
        );
        let meta = definition.time_series.as_ref().map(|series| &*series.meta).unwrap_or_default();
        let group = in_list(
            "group",
            format!(
                "A point for each value of these properties of the metaField, and for {many_items} without a value: names with commas between them."
            ),
            meta,
            meta.get(..1).unwrap_or_default(),
        );
        let mut all = vec![by, in_zone()];
        all.extend((!meta.is_empty()).then_some(group));
        all.extend([
            required_in_query(
                "from",
                "Only spans that end after this moment: RFC 3339 with an offset. The first span is whole, also if it begins earlier.",
                date_time(),
                "2004-01-09T00:00:00Z",
            ),
            required_in_query(
                "to",
                "Only spans that begin before this moment, which must not be before `from`, and at most 10,000 spans later. The last span is whole, also if it ends later.",
                date_time(),
                "2004-01-10T00:00:00Z",
            ),
            in_query(
                "fill",
                format!("`none`: spans without {many_items} are left out. `zero`: each has a point with the `count` 0 and without a group. Default: `none`."),
                schema(json!({ "type": "string", "enum": ["none", "zero"] })),
            ),
            in_order(),
            in_query(
                "limit",
                "Maximum number of points in the answer. A span is never divided: the next answer begins with a span.",
                whole(1, MOST_POINTS as u64).default(Some(USUAL_POINTS.into())),
            ),
        ]);
        all.extend(filters_documented(names, meta, &of_filters()));
        all
    }
}

/// What the {manyItems} of all {manyOwners} add up to, by spans of time.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ItemSeriesOfAll)]
struct AllSummaryView {
    /// The length of the spans.
    #[schema(max_length = 3, pattern = "^(1m|5m|15m|30m|1h|4h|1d|1w|1M)$")]
    pub by: String,
    /// The time zone in which days, weeks and months begin.
    #[schema(max_length = 64)]
    pub tz: String,
    /// All {manyItems} that were acknowledged before this moment are counted, and perhaps some later ones.
    /// Absent while the time series is made: then some are missing.
    #[schema(schema_with = instant_schema, required = false)]
    pub up_to: Option<Instant>,
    /// In order of `start`, with `order=desc` the latest first, and in a span in order of the values of the
    /// group. All points of a span are in one answer.
    #[schema(max_items = 1000)]
    pub points: Vec<SummaryPointView>,
    pub links: Links,
}

pub(crate) fn document(names: &Names<'_>) -> Documented {
    let Names { items, items_type, owner, many_owners, many_items, examples, .. } = names;
    let capital_items = capitalised(many_items);
    let example = examples.series_values.as_ref().map(|values| {
        json!({
            "by": "1h", "tz": "UTC", "upTo": "2004-01-10T00:00:00.000Z",
            "points": [{
                "start": "2004-01-09T00:00:00.000Z", "end": "2004-01-09T01:00:00.000Z", "date": "2004-01-09T00:00:00", "count": 1,
                "values": values, "complete": true
            }],
            "links": { "self": format!("/v1/{items}/summary?by=1h&from=2004-01-09T00:00:00Z&to=2004-01-10T00:00:00Z") }
        })
    });
    RouteDocument::of(
        names,
        format!("summariseAll{items_type}"),
        format!("Summarise the {many_items} of all {many_owners} by spans of time"),
        format!("Returns what the {many_items} of all {many_owners} add up to in each span of time, as the summary \
        of one {owner} does: their number, exact sums, and the first, greatest, least and last values by \
        date. It is read from a native time series, which follows the histories: `upTo` says how far. \
        {capital_items} that have expired there are not counted; retired ones are, until they expire."),
    )
    .parameters(AllSummaryParams::documented(names))
    .reads("The points.")
    .header(headers::link(LINKS))
    .shows::<AllSummaryView>(JSON, example)
    .problems(problems(names, &[COMMON, &[SummaryTooLarge]]))
}

pub(crate) async fn of_all(
    State(api): State<Arc<Api>>,
    uri: Uri,
    Address { engine, params: AllSummaryParams { query } }: Address<AllSummaryParams>,
    client: Client,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let definition = engine.definition();
    if definition.time_series.is_none() {
        let detail = format!("The definition of {} has no `timeSeries`.", definition.name);
        return Err(Problem::new(ProblemKind::NotFound, detail));
    }
    if definition.summaries.is_none() {
        return Err(Problem::new(ProblemKind::NotFound, not_declared(definition)));
    }
    let _permit = api.scans.take_soon(client).await?;
    let now = api.clock.now();
    let deadline = reading.deadline;
    let summary = reading.database(engine.series().summarise(&query, deadline)).await;
    let SeriesPage { page, up_to, read } = summary.map_err(|error| match error {
        SeriesError::Store(error) => error.into(),
        SeriesError::TooManyItems => Problem::new(
            ProblemKind::SummaryTooLarge,
            "A request cannot read all items of the first sixty-fourth of its time. Ask for a shorter time (`from`, `to`), fewer groups, or filter.",
        ),
        SeriesError::TooManyGroups => {
            Problem::new(ProblemKind::SummaryTooLarge, too_many_points(query.limit))
        }
    })?;
    reading.quota.owe(of_search(read / OF_A_PAGE, read / OF_A_PAGE));
    let points: Vec<_> =
        page.points.iter().map(|point| SummaryPointView::of_all(point, &query.shape, now)).collect();
    let next = page.next.map(|next| next_query(&uri, query.order, within_years(next)));
    let (links, count) = (Links::to_points(&uri, next), ItemCount::of(points.len()));
    let Spans { length, zone } = &query.shape.spans;
    let (by, tz) = (length.to_string(), zone.name().to_owned());
    let (header, view) = (links.header(), AllSummaryView { by, tz, up_to, points, links });
    Ok(reading.untagged((header, count, Json(view))))
}
