//! Blocks in turns: in each round every contender of a workload has one, in shuffled order.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::Result;
use super::block::Block;
use super::check::Verdict;
use super::comparison::Comparison;
use super::settings::Settings;
use super::stats::{mean, percentile};

/// A workload that has been run.
pub struct Outcome {
    pub name: &'static str,
    /// What was done, in a sentence or two.
    pub about: &'static str,
    /// What a rate counts.
    pub unit: &'static str,
    pub comparisons: Vec<Comparison>,
    pub series: Vec<Series>,
}

/// What one contender did in a workload, block by block.
pub struct Series {
    pub label: String,
    pub blocks: Vec<Summary>,
}

/// A block in a few numbers. Latencies are in milliseconds.
#[derive(Clone, Copy)]
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
    pub verdict: Verdict,
}

impl Summary {
    pub fn new(block: &Block, verdict: Verdict) -> Self {
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
        }
    }
}

impl Outcome {
    pub fn of(&self, label: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.label == label)
    }
}

/// Runs every label's block once a round. `block` is given the label's place and the round.
pub async fn in_turns(
    workload: &str,
    labels: impl IntoIterator<Item = String>,
    settings: &Settings,
    mut block: impl AsyncFnMut(usize, u64) -> Result<Summary>,
) -> Result<Vec<Series>> {
    let blocks = || Vec::with_capacity(settings.rounds);
    let mut series: Vec<Series> =
        labels.into_iter().map(|label| Series { label, blocks: blocks() }).collect();
    for round in 0..settings.rounds as u64 {
        let mut order: Vec<usize> = (0..series.len()).collect();
        order.shuffle(&mut StdRng::seed_from_u64(settings.seed.wrapping_add(round)));
        for place in order {
            let summary = block(place, round).await?;
            series[place].blocks.push(summary);
        }
        eprintln!("bench: {workload}, round {} of {}: {}", round + 1, settings.rounds, latest(&series));
    }
    Ok(series)
}

/// How the last round went, for who is waiting; not of very many.
fn latest(series: &[Series]) -> String {
    if series.len() > 16 {
        return format!("{} blocks", series.len());
    }
    let one = |series: &Series| {
        let rate = series.blocks.last().map_or(0.0, |block| block.rate);
        format!("{} {rate:.0}/s", series.label)
    };
    series.iter().map(one).collect::<Vec<_>>().join(", ")
}
