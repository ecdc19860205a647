//! The scenario of the literature: 4 processes, in which together 1,000 users a second each count a view of one of
//! 1,000 pages, in one minute and in a second of it by chance, for 25 s.
//!
//! The published wording, "4 processes; every second 1,000 users", is read as 1,000 users in all. The 25 s of each
//! contender are divided into blocks, one a round, that count in the same minute.

use std::time::Duration;

use crate::contender::{Contender, Kind, Setup};
use crate::harness::Result;
use crate::harness::comparison::Expected::{AtMost, Nothing, Same};
use crate::harness::comparison::Metric::{Mean, P99};
use crate::harness::comparison::{Comparison, compare};
use crate::harness::mongod::Mongod;
use crate::harness::settings::{Settings, Timing};
use crate::harness::stats::{mean, percentile};
use crate::harness::turns::{Outcome, Summary, in_turns};
use crate::open_loop::Arrivals;
use crate::views::{PAGES, Pattern};

/// As `ONLY` names it.
pub const STAGE: &str = "latency";

/// Users in a second, in all.
pub const USERS: f64 = 1_000.0;

/// More than are ever needed at once: an idle connection costs nothing.
const CONNECTIONS: usize = 128;

/// Latencies in milliseconds, as the scenario's authors give them.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    pub mean: f64,
    pub deviation: f64,
    pub p75: f64,
    pub p95: f64,
    pub p99: f64,
    pub min: f64,
    pub max: f64,
}

/// On another machine: a laptop of 2015, MongoDB 3.0 with WiredTiger, `w: 1`, straight by a driver.
pub const PUBLISHED: Figures =
    Figures { mean: 1.108, deviation: 0.401, p75: 1.341, p95: 1.871, p99: 2.477, min: 0.513, max: 5.481 };

impl Figures {
    /// Of latencies in microseconds, in any order.
    fn of(mut latencies: Vec<u32>) -> Self {
        latencies.sort_unstable();
        let at = |share| percentile(&latencies, share) / 1000.0;
        let mean = mean(&latencies);
        let squares = latencies.iter().map(|latency| (f64::from(*latency) - mean).powi(2));
        let variance = squares.sum::<f64>() / latencies.len().max(1) as f64;
        Self {
            mean: mean / 1000.0,
            deviation: variance.sqrt() / 1000.0,
            p75: at(0.75),
            p95: at(0.95),
            p99: at(0.99),
            min: at(0.0),
            max: at(1.0),
        }
    }
}

/// All that a contender did, its blocks as one.
pub struct Row {
    pub label: String,
    pub figures: Figures,
    /// Views acknowledged.
    pub counted: u64,
    /// Views refused, not answered or not sent.
    pub errors: u64,
}

/// What the scenario has shown.
pub struct Scenario {
    pub outcome: Outcome,
    pub rows: Vec<Row>,
    /// How long after they were to be sent views were sent, in milliseconds: median and p99.
    pub lateness: (f64, f64),
}

/// In the order of the table.
fn setups() -> Vec<Setup> {
    let mut setups = Vec::new();
    let kinds = || [Kind::Ours, Kind::Driver, Kind::Plain].map(Setup::of);
    for preallocated in [false, true] {
        let with = |setup: Setup| if preallocated { setup.preallocated() } else { setup };
        setups.extend(kinds().map(with).map(Setup::at_w1));
        setups.extend(kinds().map(with));
    }
    setups.push(Setup::of(Kind::Again));
    setups
}

/// Ours beside the bare driver in all four ways; and what preallocation changes.
fn comparisons() -> Vec<Comparison> {
    let (ours, driver, plain) = (Setup::of(Kind::Ours), Setup::of(Kind::Driver), Setup::of(Kind::Plain));
    let mut comparisons = Vec::new();
    let ways: [fn(Setup) -> Setup; 4] =
        [Setup::at_w1, |setup| setup, |setup| setup.at_w1().preallocated(), Setup::preallocated];
    for with in ways {
        for metric in [Mean, P99] {
            let (ours, driver) = (with(ours), with(driver));
            comparisons.push(compare(ours.to_string(), metric, driver.to_string(), AtMost(1.5)));
        }
    }
    for setup in [ours.at_w1(), driver.at_w1(), ours, driver] {
        for metric in [Mean, P99] {
            let (with, without) = (setup.preallocated().to_string(), setup.to_string());
            comparisons.push(compare(with, metric, without, Nothing));
        }
    }
    comparisons.push(compare(ours.to_string(), Mean, plain.to_string(), Nothing));
    comparisons.push(compare(Setup::of(Kind::Again).to_string(), Mean, ours.to_string(), Same));
    comparisons
}

fn timing(settings: &Settings) -> Timing {
    let all = Duration::from_secs(if settings.quick { 4 } else { 25 });
    Timing { warm_up: Duration::from_millis(300), measured: all / settings.rounds.max(1) as u32 }
}

/// Puts all contenders through it.
pub async fn run(mongod: &Mongod, settings: &Settings) -> Result<Scenario> {
    let mut contenders = Vec::new();
    for setup in setups() {
        let contender = Contender::start(mongod, STAGE, setup).await?;
        // The warm-up's and the window's.
        contender.take_minutes(2).await?;
        contenders.push(contender);
    }
    let labels = contenders.iter().map(|contender| contender.setup.to_string());
    let timing = timing(settings);
    let mut latencies = vec![Vec::new(); contenders.len()];
    let mut errors = vec![0; contenders.len()];
    let mut lateness = Vec::new();
    let block = async |place: usize, round: u64| {
        let arrivals = Arrivals {
            per_second: USERS,
            timing,
            pattern: Pattern::Random { pages: PAGES, warm_up: 0, measured: 1 },
            seed: settings.seed.wrapping_add(round * 1000),
            patience: Duration::from_secs(10),
        };
        let (block, answers, verdict) = contenders[place].block(CONNECTIONS, arrivals).await?;
        latencies[place].extend_from_slice(&block.latencies);
        errors[place] += block.measured_failed;
        lateness.extend(answers.lateness);
        Ok(Summary::new(&block, verdict))
    };
    let series = in_turns("1,000 users/s", labels, settings, block).await?;
    let rows = series.iter().zip(latencies).zip(errors).map(|((series, latencies), errors)| Row {
        label: series.label.clone(),
        counted: latencies.len() as u64,
        figures: Figures::of(latencies),
        errors,
    });
    let rows = rows.collect();
    lateness.sort_unstable();
    let late = |share| percentile(&lateness, share) / 1000.0;
    let lateness = (late(0.5), late(0.99));
    for contender in contenders {
        contender.stop().await?;
    }
    let outcome = Outcome {
        name: "1,000 users/s",
        about: "The scenario as published, but for what the next lines say.",
        unit: "views",
        comparisons: comparisons(),
        series,
    };
    Ok(Scenario { outcome, rows, lateness })
}
