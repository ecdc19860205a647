//! Stages: contenders that are started together, and the workloads they go through.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::Result;
use crate::block::Block;
use crate::check::Verdict;
use crate::contender::{Contender, Kind};
use crate::customers::Customers;
use crate::load::Load;
use crate::mongod::Mongod;
use crate::settings::{Settings, Timing};
use crate::stats::percentile;

/// Contenders, and what they are put through, in this order.
pub struct Stage {
    pub name: &'static str,
    pub contenders: Vec<(&'static str, Kind)>,
    /// So many customers get one trade each beforehand: a history that exists, in a server that knows it.
    pub seeded: u64,
    pub workloads: Vec<Workload>,
}

/// A kind of load on some of the stage's contenders.
pub struct Workload {
    pub name: &'static str,
    /// What is done, in a sentence or two.
    pub about: &'static str,
    pub connections: usize,
    pub trades: u64,
    /// For each contender and round.
    pub customers: Box<dyn Fn(Kind, u64) -> Customers + Send>,
    pub timing: Timing,
    /// Labels.
    pub contenders: Vec<&'static str>,
    pub comparisons: Vec<Comparison>,
}

/// One contender beside another.
pub struct Comparison {
    pub metric: Metric,
    pub subject: &'static str,
    pub against: &'static str,
    pub expected: Expected,
}

#[derive(Clone, Copy)]
pub enum Metric {
    /// Trades acknowledged in a second.
    Rate,
    /// Median latency of a request.
    Latency,
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

/// What one contender did in a workload, block by block.
pub struct Series {
    pub label: &'static str,
    pub blocks: Vec<Summary>,
}

/// A block in a few numbers. Latencies are in milliseconds.
#[derive(Clone, Copy)]
pub struct Summary {
    pub rate: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    /// Share of the measured trades.
    pub failed: f64,
    pub verdict: Verdict,
}

/// A workload that has been run.
pub struct Outcome {
    pub workload: Workload,
    pub series: Vec<Series>,
}

impl Summary {
    fn new(block: &Block, verdict: Verdict) -> Self {
        let latency = |share| percentile(&block.latencies, share) / 1000.0;
        Self {
            rate: block.measured as f64 / block.length.as_secs_f64(),
            p50: latency(0.5),
            p95: latency(0.95),
            p99: latency(0.99),
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

/// Starts the contenders, runs the workloads one after the other, and stops the contenders.
pub async fn run(stage: Stage, mongod: &Mongod, settings: &Settings) -> Result<Vec<Outcome>> {
    let mut contenders = Vec::new();
    for (number, (label, kind)) in stage.contenders.iter().enumerate() {
        eprintln!("bench: {}: starting {label}", stage.name);
        let database = format!("bench_{}_{number}", stage.name);
        let contender = Contender::start(mongod, &database, label, *kind).await?;
        if contender.is_server() && stage.seeded > 0 {
            let customers = Customers::each(1..=stage.seeded);
            let load = Load { connections: 64, trades: 1, customers, timing: None, seed: 0 };
            let (block, _) = contender.block(load).await?;
            if block.failed > 0 {
                return Err(format!("{label} refused {} of its first trades", block.failed).into());
            }
        }
        contenders.push(contender);
    }
    let mut outcomes = Vec::new();
    for workload in stage.workloads {
        outcomes.push(run_workload(workload, &contenders, settings).await?);
    }
    for contender in contenders {
        contender.stop().await?;
    }
    Ok(outcomes)
}

async fn run_workload(workload: Workload, all: &[Contender], settings: &Settings) -> Result<Outcome> {
    let find = |label: &&str| all.iter().find(|contender| contender.label == *label);
    let contenders: Vec<&Contender> = workload.contenders.iter().filter_map(find).collect();
    let mut series: Vec<Series> = contenders
        .iter()
        .map(|contender| Series { label: contender.label, blocks: Vec::with_capacity(settings.rounds) })
        .collect();
    for round in 0..settings.rounds as u64 {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        order.shuffle(&mut StdRng::seed_from_u64(settings.seed.wrapping_add(round)));
        for place in order {
            let load = Load {
                connections: workload.connections,
                trades: workload.trades,
                customers: (workload.customers)(contenders[place].kind, round),
                timing: Some(workload.timing),
                seed: settings.seed.wrapping_add(round * 1000),
            };
            let (block, verdict) = contenders[place].block(load).await?;
            series[place].blocks.push(Summary::new(&block, verdict));
        }
        eprintln!(
            "bench: {}, round {} of {}: {}",
            workload.name,
            round + 1,
            settings.rounds,
            latest(&series)
        );
    }
    Ok(Outcome { workload, series })
}

/// How the last round went, for who is waiting.
fn latest(series: &[Series]) -> String {
    let one = |series: &Series| {
        let rate = series.blocks.last().map_or(0.0, |block| block.rate);
        format!("{} {rate:.0}/s", series.label)
    };
    series.iter().map(one).collect::<Vec<_>>().join(", ")
}
