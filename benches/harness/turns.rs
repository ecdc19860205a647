//! Blocks in turns, in each round one of every contender in shuffled order; and one series beside another.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::{Block, Result, Settings, Spread, Verdict, mean, percentile};

/// A workload, and the blocks that have been run of it.
pub struct Outcome {
    pub name: &'static str,
    /// What is done, in a sentence or two.
    pub about: String,
    /// What a rate counts.
    pub unit: &'static str,
    pub comparisons: Vec<Comparison>,
    pub series: Vec<Series>,
}

/// The blocks of one contender in a workload.
pub struct Series {
    pub label: String,
    pub blocks: Vec<Summary>,
}

/// A block in a few numbers. Latencies are in milliseconds.
#[derive(Clone, Copy, Default)]
pub struct Summary {
    /// What was measured: trades, or requests.
    pub measured: u64,
    pub rate: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub mean: f64,
    /// Share of what was measured.
    pub failed: f64,
    /// Processor time a request in microseconds, where it is measured.
    pub server: f64,
    pub database: f64,
    pub verdict: Verdict,
}

impl Summary {
    pub fn new(mut block: Block, verdict: Verdict) -> Self {
        block.latencies.sort_unstable();
        let latency = |share| percentile(&block.latencies, share) / 1000.0;
        Self {
            measured: block.measured,
            rate: block.measured as f64 / block.length.as_secs_f64(),
            p50: latency(0.5),
            p95: latency(0.95),
            p99: latency(0.99),
            mean: mean(&block.latencies) / 1000.0,
            failed: block.measured_failed as f64 / (block.measured + block.measured_failed).max(1) as f64,
            verdict,
            ..Self::default()
        }
    }
}

impl Series {
    pub fn new(label: impl ToString) -> Self {
        Self { label: label.to_string(), blocks: Vec::new() }
    }

    pub fn spread(&self, of: impl Fn(&Summary) -> f64) -> Option<Spread> {
        Spread::of(self.blocks.iter().map(of))
    }

    /// Of all blocks.
    pub fn total(&self, of: impl Fn(&Verdict) -> u64) -> u64 {
        self.blocks.iter().map(|block| of(&block.verdict)).sum()
    }
}

impl Outcome {
    pub fn new(name: &'static str, about: &str, unit: &'static str, comparisons: Vec<Comparison>) -> Self {
        Self { name, about: about.to_owned(), unit, comparisons, series: Vec::new() }
    }

    pub fn of(&self, label: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.label == label)
    }

    /// Runs every label's block once a round. `block` is given the label's place and the round.
    pub async fn in_turns(
        mut self,
        labels: impl IntoIterator<Item: ToString>,
        settings: &Settings,
        mut block: impl AsyncFnMut(usize, u64) -> Result<Summary>,
    ) -> Result<Self> {
        self.series = labels.into_iter().map(Series::new).collect();
        for round in 0..settings.rounds as u64 {
            let mut order: Vec<usize> = (0..self.series.len()).collect();
            order.shuffle(&mut StdRng::seed_from_u64(settings.seed.wrapping_add(round)));
            for place in order {
                let summary = block(place, round).await;
                let series = &mut self.series[place];
                series.blocks.push(summary.map_err(|error| format!("{}: {error}", series.label))?);
            }
            self.tell(round + 1, settings.rounds);
        }
        Ok(self)
    }

    /// Prints the rates of the last round, unless there are very many.
    pub fn tell(&self, round: u64, rounds: usize) {
        let rate = |series: &Series| series.blocks.last().map_or(0.0, |block| block.rate);
        let rates = self.series.iter().map(|series| format!("{} {:.0}/s", series.label, rate(series)));
        let rates: Vec<String> = rates.collect();
        let rates = if rates.len() > 16 { format!("{} blocks", rates.len()) } else { rates.join(", ") };
        eprintln!("bench: {}, round {round} of {rounds}: {rates}", self.name);
    }
}

/// One series beside another of the same workload.
pub struct Comparison {
    metric: Metric,
    pub subject: String,
    pub against: String,
    /// Such as `≥ 0.9`, or nothing.
    expected: Option<String>,
}

/// A name, in which `UNIT` is what a rate counts, and the value of a block.
pub type Metric = (&'static str, fn(&Summary) -> f64);

/// What is acknowledged in a second.
pub const RATE: Metric = ("UNIT/s", |block| block.rate);
pub const LATENCY: Metric = ("median latency", |block| block.p50);
pub const MEAN: Metric = ("mean latency", |block| block.mean);
pub const P99: Metric = ("p99", |block| block.p99);

/// Comparisons by their labels: `subject / against`, with what is expected of the ratio after it, separated
/// by `; `. One whose subject is "ours again" shows the noise.
pub fn compare(metric: Metric, comparisons: &str) -> Vec<Comparison> {
    let one = |text: &str| {
        let (pair, expected) = match text.find(['≥', '≤']) {
            Some(place) => (text[..place].trim_end(), Some(text[place..].to_owned())),
            None => (text, None),
        };
        let (subject, against) = pair.split_once(" / ").unwrap_or((pair, ""));
        Comparison { metric, subject: subject.to_owned(), against: against.to_owned(), expected }
    };
    comparisons.split("; ").map(one).collect()
}

impl Comparison {
    /// The subject's value divided by the other's, block by block; `None` when one of them did not run.
    pub fn ratio(&self, outcome: &Outcome) -> Option<Spread> {
        let (_, of) = self.metric;
        // Blocks with the same index are of the same round.
        let pairs = outcome.of(&self.subject)?.blocks.iter().zip(&outcome.of(&self.against)?.blocks);
        Spread::of(pairs.map(|(above, below)| of(above) / of(below)))
    }

    pub fn shows_noise(&self) -> bool {
        self.subject.starts_with("ours again")
    }

    /// In words. `unit` is what a rate counts.
    pub fn describe(&self, unit: &str) -> String {
        format!("{}, {} / {}", self.metric.0.replace("UNIT", unit), self.subject, self.against)
    }

    /// What is expected, and whether it is so; `None` where nothing is.
    pub fn judge(&self, ratio: f64) -> Option<(&str, bool)> {
        let expected = self.expected.as_deref()?;
        let (sign, bound) = expected.split_once(' ')?;
        let bound: f64 = bound.parse().ok()?;
        Some((expected, if sign == "≥" { ratio >= bound } else { ratio <= bound }))
    }
}
