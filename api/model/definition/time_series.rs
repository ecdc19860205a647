//! Whether a history has a native time series beside it: a projection of its items for questions across
//! owners.

use std::fmt;

use super::names::{OF_LISTINGS, OF_SUMMARIES};
use super::summaries::group_names;
use crate::item::{Schema, SourceValue, unknown_member};

/// The member `timeSeries` of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeSeries {
    /// The properties that the metaField has beside the owner. All are short texts.
    pub meta: Vec<String>,
    /// How much time a native bucket spans.
    pub granularity: Granularity,
    /// After how many days the database deletes a measurement. `None` for never.
    pub expire_after_days: Option<u32>,
}

/// The granularity of a native time-series collection (MongoDB manual, "Set Granularity for Time Series
/// Data").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// A native bucket spans at most an hour.
    Seconds,
    /// At most a day.
    Minutes,
    /// At most 30 days.
    Hours,
}

impl Granularity {
    /// All of them, by what definitions and the database call them.
    pub const NAMED: [(&str, Self); 3] =
        [("seconds", Self::Seconds), ("minutes", Self::Minutes), ("hours", Self::Hours)];
}

impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seconds => "seconds",
            Self::Minutes => "minutes",
            Self::Hours => "hours",
        })
    }
}

/// What the metaField has beside the named properties.
const OUR_META: [&str; 2] = ["generation", "owner"];

impl TimeSeries {
    /// The most properties of the metaField: each combination of their values has native buckets of its own.
    const MOST_META: usize = 4;
    /// The most days of `expireAfterDays`: 50 years. The database allows no more than there have been since
    /// 1970.
    const MOST_DAYS: usize = 18_250;
    /// The name of the metaField, which no property of an item may have.
    pub const META_FIELD: &str = "meta";

    /// Reads the member. `item` is what `schema` was compiled from.
    pub(crate) fn read(source: &SourceValue<'_>, schema: &Schema, item: &SourceValue<'_>) -> Option<Self> {
        let known = ["meta", "granularity", "expireAfterDays"];
        let unknown = |name: &str| (!known.contains(&name)).then(|| unknown_member(name, &known));
        let what = "an object with meta, granularity and expireAfterDays";
        let mut members = source.object(what, unknown)?;
        if schema.properties().any(|property| property.name == Self::META_FIELD) {
            source.refuse(
                "must not be given if an item has the property `meta`, which is the name of the metaField",
            );
        }
        // They are parameters of summaries, too.
        let taken = [&OUR_META[..], &OF_LISTINGS, &OF_SUMMARIES].concat();
        let meta = members.take("meta");
        let meta = meta.map(|source| group_names(&source, schema, item, Self::MOST_META, &taken));
        let meta = meta.unwrap_or_default();
        let granularity = members.read_required("granularity", |source| {
            let text = source.text()?;
            let named = Granularity::NAMED.into_iter().find(|(name, _)| *name == text);
            let rule = "must be \"seconds\", \"minutes\" or \"hours\"";
            named.map(|(_, granularity)| granularity).ok_or_else(|| source.mistake(rule))
        });
        let expire_after_days = members.read("expireAfterDays", |source| {
            let days = source.count().ok().filter(|days| (1..=Self::MOST_DAYS).contains(days));
            let rule = format!("must be a whole number from 1 to {}", Self::MOST_DAYS);
            days.map(|days| days as u32).ok_or_else(|| source.mistake(rule))
        });
        Some(Self { meta, granularity: granularity?, expire_after_days })
    }
}
