//! One series beside another, and what is expected of the ratio.

use super::stats::Spread;
use super::turns::{Outcome, Summary};

/// One series beside another of the same workload.
pub struct Comparison {
    pub metric: Metric,
    pub subject: String,
    pub against: String,
    pub expected: Expected,
}

#[derive(Clone, Copy)]
pub enum Metric {
    /// What is acknowledged in a second.
    Rate,
    /// Median latency of a request.
    Latency,
    /// Mean latency.
    Mean,
    /// The latency that one request in a hundred exceeds.
    P99,
}

/// What a ratio should be.
#[derive(Clone, Copy)]
pub enum Expected {
    AtLeast(f64),
    AtMost(f64),
    /// 1, since both are the same: what differs is noise.
    Same,
    /// It is of interest, no more.
    Nothing,
}

pub fn compare(
    subject: impl Into<String>,
    metric: Metric,
    against: impl Into<String>,
    expected: Expected,
) -> Comparison {
    Comparison { metric, subject: subject.into(), against: against.into(), expected }
}

impl Comparison {
    /// The subject's value divided by the other's, block by block; `None` when one of them did not run.
    pub fn ratio(&self, outcome: &Outcome) -> Option<Spread> {
        let of = |block: &Summary| match self.metric {
            Metric::Rate => block.rate,
            Metric::Latency => block.p50,
            Metric::Mean => block.mean,
            Metric::P99 => block.p99,
        };
        let values =
            |label: &str| outcome.of(label).map(|series| series.blocks.iter().map(of).collect::<Vec<f64>>());
        Spread::of_ratios(&values(&self.subject)?, &values(&self.against)?)
    }

    /// In words. `unit` is what a rate counts.
    pub fn describe(&self, unit: &str) -> String {
        let metric = match self.metric {
            Metric::Rate => format!("{unit}/s"),
            Metric::Latency => "median latency".to_owned(),
            Metric::Mean => "mean latency".to_owned(),
            Metric::P99 => "p99".to_owned(),
        };
        format!("{metric}, {} / {}", self.subject, self.against)
    }
}

impl Expected {
    /// What is expected, and whether it is so; `None` where nothing is.
    pub fn judge(self, ratio: f64) -> Option<(String, bool)> {
        match self {
            Self::AtLeast(least) => Some((format!("≥ {least}"), ratio >= least)),
            Self::AtMost(most) => Some((format!("≤ {most}"), ratio <= most)),
            Self::Same | Self::Nothing => None,
        }
    }
}
