//! What is made from the items of histories, and can be made again: what they add up to by spans of time, and
//! native time series.

pub(crate) mod series;
pub(crate) mod summaries;
