//! The JSON of a summary.

use pagebucket_model::definition::{Definition, SummaryValue};
use pagebucket_model::domain::{Instant, OwnerMember, Seq};
use pagebucket_model::summary::{Aggregate, Measurements, SummaryPoint, SummaryShape};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::params::MOST_POINTS;
use crate::pages::item_schemas::{ItemSeriesGroup, ItemSeriesValues};
use crate::resources::links::Links;
use crate::schemas::{instant, owner_member};

/// What the {manyItems} of a history add up to, by spans of time.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ItemSeries)]
pub(crate) struct SummaryPageView {
    #[serde(flatten)]
    #[schema(schema_with = owner_member)]
    pub owner: OwnerMember,
    /// The length of the spans.
    #[schema(max_length = 3, pattern = "^(1m|5m|15m|30m|1h|4h|1d|1w|1M)$")]
    pub by: String,
    /// The time zone in which days, weeks and months begin.
    #[schema(max_length = 64)]
    pub tz: String,
    /// Number of {manyItems} in the history; with `asOf`, at that moment.
    #[schema(minimum = 0)]
    pub total_items: u64,
    /// Only if earlier {manyItems} are retired: all {manyItems} from this sequence number on are summarised.
    /// Earlier ones are in no point, unless their summaries were kept.
    #[schema(value_type = Option<u64>, minimum = 2)]
    pub first_seq: Option<Seq>,
    /// In order of `start`, with `order=desc` the latest first, and in a span in order of the values of the
    /// group. All points of a span are in one answer.
    #[schema(max_items = 1000)]
    pub points: Vec<SummaryPointView>,
    pub links: Links,
}

const _: () = assert!(MOST_POINTS == 1_000, "the schema states it");

/// What the {manyItems} of a span of time, or of a group of them, add up to.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ItemSeriesPoint)]
pub(crate) struct SummaryPointView {
    /// When the span begins.
    #[schema(schema_with = instant)]
    start: Instant,
    /// When it ends: {manyItems} of this moment are of the next span.
    #[schema(schema_with = instant)]
    end: Instant,
    /// When it begins, by the clock in `tz`: the day, and of spans shorter than a day also the time. When
    /// clocks are set back, two spans may have the same.
    #[schema(
        max_length = 19,
        pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2})?$",
        examples("2004-01-09")
    )]
    date: String,
    /// The values that all {manyItems} of the point have, of those properties that `group` names. A property
    /// is absent if they have no value there, or one of more than 64 bytes.
    #[schema(value_type = Option<ItemSeriesGroup>)]
    group: Option<Map<String, Value>>,
    /// Number of {manyItems}.
    #[schema(minimum = 0)]
    count: u64,
    /// The lowest sequence number of these {manyItems}.
    #[schema(value_type = Option<u64>, minimum = 1)]
    first_seq: Option<Seq>,
    /// The highest one. {ManyItems} between the two need not be of this point.
    #[schema(value_type = Option<u64>, minimum = 1)]
    last_seq: Option<Seq>,
    /// What the definition summarises. {ManyItems} without a value are only counted.
    #[schema(value_type = ItemSeriesValues)]
    values: Map<String, Value>,
    /// Values that are missing, and why.
    #[schema(max_items = 32)]
    errors: Option<Vec<SummaryFault>>,
    /// Whether the span has ended, by the server's clock. {ManyItems} with earlier dates may still arrive.
    /// Absent with `asOf`.
    complete: Option<bool>,
}

/// A value that a point does not have.
#[derive(Debug, Serialize, ToSchema)]
#[schema(
    as = SeriesFault,
    examples(json!({ "value": "price", "measure": "vwap", "detail": "has more than 34 significant digits" }))
)]
pub(crate) struct SummaryFault {
    /// The property.
    #[schema(max_length = 64)]
    value: String,
    /// What would have been made of its numbers.
    #[schema(max_length = 4)]
    measure: &'static str,
    /// Why it is missing.
    #[schema(max_length = 200)]
    detail: &'static str,
}

impl SummaryPointView {
    /// A point. `now`: the time by which it is complete or not; `None` with `asOf`.
    pub(crate) fn new(point: &SummaryPoint, shape: &SummaryShape, now: Option<Instant>) -> Self {
        let SummaryPoint { span, group, aggregate, previous } = point;
        let [start, end] = span.ends();
        let measured = aggregate.as_ref().map(|aggregate| aggregate.measured(&shape.values));
        let measured = measured.unwrap_or_else(|| Measurements::of_none(&shape.values, previous));
        let texts = || {
            let named = shape.groups.iter().zip(group.iter());
            named.filter_map(|(name, text)| Some((name.clone(), json!(text.as_ref()?)))).collect()
        };
        Self {
            start,
            end,
            date: shape.spans.local_start(*span),
            group: (!group.is_empty()).then(texts),
            count: aggregate.as_ref().map_or(0, Aggregate::count),
            first_seq: aggregate.as_ref().map(|aggregate| aggregate.seqs().first),
            last_seq: aggregate.as_ref().map(|aggregate| aggregate.seqs().last),
            errors: Some(faults(&shape.values, &measured)).filter(|faults| !faults.is_empty()),
            values: shape
                .values
                .iter()
                .zip(&measured)
                .map(|(value, measured)| (value.name.clone(), json!(measured)))
                .collect(),
            complete: now.map(|now| span.end <= now.millis()),
        }
    }
}

impl SummaryPointView {
    /// A point of all owners, by what is complete at this time: sequence numbers are those of one owner.
    pub(crate) fn of_all(point: &SummaryPoint, shape: &SummaryShape, now: Instant) -> Self {
        Self { first_seq: None, last_seq: None, ..Self::new(point, shape, Some(now)) }
    }
}

fn faults(values: &[SummaryValue], measured: &[Measurements]) -> Vec<SummaryFault> {
    let of_value = |(value, measured): (&SummaryValue, &Measurements)| {
        let name = value.name.clone();
        let fault = move |measure: &&'static str| SummaryFault {
            value: name.clone(),
            measure,
            detail: "has more than 34 significant digits",
        };
        measured.too_long.iter().map(fault).collect::<Vec<_>>()
    };
    values.iter().zip(measured).flat_map(of_value).collect()
}

/// Why a history has no summaries.
pub(crate) fn not_declared(definition: &Definition) -> String {
    format!("The definition of {} has no `summaries`.", definition.name)
}
