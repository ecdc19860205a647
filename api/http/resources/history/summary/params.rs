//! Parameters of a summary: spans of time, groups, and which items.

use std::sync::Arc;

use pagebucket_engine::Engine;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Instant, Invalid, Order, Seq};
use pagebucket_model::item::list;
use pagebucket_model::summary::{Fill, SpanLength, Spans, SummaryShape, Zone};
use serde_json::json;
use utoipa::openapi::path::Parameter;

use crate::request::params::{ParameterReader, Params, dates, in_list, in_query, required_in_query};
use crate::resources::history::list::filters::{Filter, filters, filters_documented};
use crate::resources::history::list::params::order;
use crate::resources::links::MOST_FILTER_BYTES;
use crate::schemas::names::Names;
use crate::schemas::{self, date_time, ordinal, schema, whole};

/// The most points of an answer.
pub(crate) const MOST_POINTS: usize = 1_000;

/// The most points of an answer if the client does not say.
pub(crate) const USUAL_POINTS: usize = 100;

/// What a client wants to be summarised.
pub(crate) struct SummaryParams {
    /// By what.
    pub shape: Arc<SummaryShape>,
    /// `from` and `to`, in milliseconds since 1970: rounded outward to whole spans.
    pub ends: [Option<i64>; 2],
    /// Whether spans without items have points.
    pub fill: Fill,
    /// Which spans come first.
    pub order: Order,
    /// The last item of the moment that is asked for.
    pub as_of: Option<Seq>,
    /// The most points.
    pub limit: usize,
    /// What items must have.
    pub filters: Vec<Filter>,
}

impl Params for SummaryParams {
    fn read(reader: &mut ParameterReader<'_>, engine: &Engine) -> Option<Self> {
        let definition = engine.definition();
        let length = reader.required("by", SpanLength::parse);
        let zone = reader.query("tz", Zone::parse).unwrap_or(Zone::UTC);
        let groups = reader.list("group", |text| groups(text, definition)).unwrap_or_default();
        let fill = reader.query("fill", |text| match text {
            "none" => Ok(Fill::None),
            "zero" => Ok(Fill::Zero),
            "previous" => Ok(Fill::Previous),
            _ => Err(Invalid::new("must be \"none\", \"zero\" or \"previous\"")),
        });
        if fill.is_some_and(|fill| fill != Fill::None) && !(reader.gives("from") && reader.gives("to")) {
            reader.refuse("fill", "must be \"none\" without `from` and `to`");
        } else if fill == Some(Fill::Previous) && !groups.is_empty() {
            reader.refuse("fill", "must not be \"previous\" with `group`: a span without items has no group");
        }
        let order = reader.query("order", order).unwrap_or(Order::Ascending);
        let dates = dates(reader);
        let as_of = reader.query("asOf", Seq::parse);
        let limit = reader.query("limit", limit);
        let filters = filters(reader, definition);
        let spans = Spans { length: length?, zone };
        let [from, to] = dates.map_or([None, None], |dates| [dates.from(), dates.to()]);
        let ends = covering(&spans, from, to);
        let values = definition.summaries.as_ref().map(|summaries| summaries.values.clone());
        let shape = Arc::new(SummaryShape { spans, groups, values: values.unwrap_or_default() });
        let (fill, limit) = (fill.unwrap_or(Fill::None), limit.unwrap_or(USUAL_POINTS));
        Some(Self { shape, ends, fill, order, as_of, limit, filters })
    }

    fn documented(names: &Names<'_>) -> Vec<Parameter> {
        let Names { definition, item, many_items, .. } = names;
        let lengths = SpanLength::NAMED.map(|(name, _)| name);
        let by = json!({ "type": "string", "enum": lengths, "examples": ["1d"] });
        let fill = json!({ "type": "string", "enum": ["none", "zero", "previous"] });
        let by = required_in_query(
            "by",
            "The length of the spans: `m` are minutes, `M` is a month. Days, weeks from Monday, and months begin in `tz`; shorter spans are those of UTC. Those of 1 and 5 minutes are always read from pages.",
            schema(by),
            "1d",
        );
        let groups = definition.summaries.as_ref().map(|summaries| &*summaries.groups).unwrap_or_default();
        let group = in_list(
            "group",
            format!(
                "A point for each value of these properties, and for {many_items} without a value: names with commas between them."
            ),
            groups,
            groups.get(..1).unwrap_or_default(),
        );
        let mut all = vec![by, in_zone()];
        all.extend((!groups.is_empty()).then_some(group));
        all.extend([
            in_query(
                "from",
                "Only spans that end after this moment: RFC 3339 with an offset. The first span is whole, also if it begins earlier.",
                date_time(),
            ),
            in_query(
                "to",
                "Only spans that begin before this moment, which must not be before `from`. The last span is whole, also if it ends later.",
                date_time(),
            ),
            in_query(
                "fill",
                format!("`none`: spans without {many_items} are left out. `zero`: between `from` and `to`, which must be given, each has a point \
                 with the `count` 0 and without a group. `previous`: the same, and `open`, `high`, `low` and `close` are the last `close` before it; \
                 not with `group`. Default: `none`."),
                schema(fill),
            ),
            in_order(),
            in_query(
                "asOf",
                format!("Summarises the history as it was when this was its last sequence number. Such an answer does not say which points are \
                 complete. If the history has no such {item} yet, `asOf` is ignored."),
                ordinal(),
            ),
            in_query(
                "limit",
                "Maximum number of points in the answer. A span is never divided: the next answer begins with a span.",
                whole(1, MOST_POINTS as u64).default(Some(USUAL_POINTS.into())),
            ),
        ]);
        all.extend(filters_documented(names, &definition.filters, &of_filters()));
        all
    }
}

/// What a filter does to a summary.
pub(crate) fn of_filters() -> String {
    format!(
        "Others are in no point. All filters of a request together have at most {MOST_FILTER_BYTES} bytes."
    )
}

/// The parameter `order`.
pub(crate) fn in_order() -> Parameter {
    in_query(
        "order",
        "`asc`: the earliest spans first. `desc`: the latest first, so that `limit` chooses the newest points. Default: `asc`.",
        schemas::order(),
    )
}

/// The parameter `tz`.
pub(crate) fn in_zone() -> Parameter {
    let zone = json!({
        "type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9_+/-]+$",
        "examples": ["Europe/Berlin"],
    });
    in_query(
        "tz",
        "The IANA time zone in which days, weeks and months begin, in upper or lower case. A day may have 23 or 25 hours. Default: UTC.",
        schema(zone),
    )
}

/// The most points of an answer.
pub(crate) fn limit(text: &str) -> Result<usize, Invalid> {
    let limit = text.parse().ok().filter(|limit| (1..=MOST_POINTS).contains(limit));
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    limit.filter(|_| is_plain).ok_or_else(|| Invalid::new("must be a whole number from 1 to 1000"))
}

/// From the beginning of the span with `from` to the end of that with the last moment before `to`. An empty
/// span of time stays empty.
fn covering(spans: &Spans, from: Option<Instant>, to: Option<Instant>) -> [Option<i64>; 2] {
    let [start, end] = spans.covering(from, to);
    match (from, to) {
        (Some(from), Some(to)) if from == to => [start, start],
        _ => [start, end],
    }
}

/// Properties that the definition declares as groups, each once.
fn groups(text: &str, definition: &Definition) -> Result<Vec<String>, Invalid> {
    groups_of(text, definition.summaries.as_ref().map(|summaries| &*summaries.groups).unwrap_or_default())
}

/// Those of these properties that a request names, each once.
pub(crate) fn groups_of(text: &str, declared: &[String]) -> Result<Vec<String>, Invalid> {
    let mut names: Vec<String> = Vec::new();
    for name in text.split(',') {
        if !declared.iter().any(|declared| declared == name) {
            return Err(Invalid(match declared {
                [] => "must not be given: the definition of the history declares no groups".to_owned(),
                declared => {
                    let declared: Vec<_> = declared.iter().map(|name| format!("`{name}`")).collect();
                    format!(
                        "must name properties that the definition declares as groups: {}",
                        list(&declared, "and")
                    )
                }
            }));
        }
        if names.iter().any(|other| other == name) {
            return Err(Invalid::new("must not name a property twice"));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}
