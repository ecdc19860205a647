//! The scenario of the literature: 4 processes, in which together 1,000 users a second each count a view of
//! one of 1,000 pages, in one minute and in a random second of it, for 25 s.
//!
//! The published wording, "4 processes; every second 1,000 users", is read as 1,000 users in all. The 25 s of
//! each contender are divided into blocks, one a round, that count in the same minute.

use std::time::Duration;

use super::contender::Counting;
use super::open_loop::Arrivals;
use super::view::{PAGES, Pattern};
use crate::harness::{Bench, Comparison, MEAN, Outcome, P99, Report, Result, Section, Summary, Timing};
use crate::harness::{compare, mean, percentile};

/// Users in a second, in all.
pub const USERS: f64 = 1_000.0;

/// More than are ever needed at once: an idle connection costs nothing.
pub const CONNECTIONS: usize = 128;

/// What views wait for at most.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// What the scenario's authors give, in milliseconds.
const FIGURES: [&str; 7] = ["Mean", "Std. dev.", "p75", "p95", "p99", "Min", "Max"];

/// On another machine: a laptop of 2015, MongoDB 3.0 with WiredTiger, `w: 1`, straight by a driver.
const PUBLISHED: [f64; 7] = [1.108, 0.401, 1.341, 1.871, 2.477, 0.513, 5.481];

/// Of latencies in microseconds, in any order.
fn figures(mut latencies: Vec<u32>) -> [f64; 7] {
    latencies.sort_unstable();
    let at = |share| percentile(&latencies, share);
    let mean = mean(&latencies);
    let squares = latencies.iter().map(|latency| (f64::from(*latency) - mean).powi(2));
    let variance = squares.sum::<f64>() / latencies.len().max(1) as f64;
    [mean, variance.sqrt(), at(0.75), at(0.95), at(0.99), at(0.0), at(1.0)].map(|micros| micros / 1000.0)
}

const WAYS: [&str; 4] = [", w: 1", "", ", w: 1, preallocated", ", preallocated"];

/// Ours beside the bare driver in all four ways; and what preallocation changes.
fn comparisons() -> Vec<Comparison> {
    let both = |compared: String| [MEAN, P99].into_iter().flat_map(move |metric| compare(metric, &compared));
    let mut comparisons = Vec::new();
    for way in WAYS {
        comparisons.extend(both(format!("ours{way} / bare driver{way} ≤ 1.5")));
    }
    for setup in ["ours, w: 1", "bare driver, w: 1", "ours", "bare driver"] {
        comparisons.extend(both(format!("{setup}, preallocated / {setup}")));
    }
    comparisons.extend(compare(MEAN, "ours / plain upsert; ours again / ours"));
    comparisons
}

/// Puts all contenders through it.
pub async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let settings = &bench.settings;
    let of_all = |way| ["ours", "bare driver", "plain upsert"].map(|who| format!("{who}{way}"));
    let mut labels: Vec<String> = WAYS.into_iter().flat_map(of_all).collect();
    labels.push("ours again".to_owned());
    let mut contenders = Vec::new();
    for label in &labels {
        let mut contender = Counting::start(&bench.mongod, "latency", label).await?;
        // The warm-up's and the window's.
        contender.take_minutes(2).await?;
        contenders.push(contender);
    }
    let all = if settings.quick { 4_000 } else { 25_000 };
    let timing = Timing::millis(300, all / settings.rounds.max(1) as u64);
    let mut latencies = vec![Vec::new(); contenders.len()];
    let mut errors = vec![0; contenders.len()];
    let mut lateness = Vec::new();
    let block = async |place: usize, round: u64| {
        let arrivals = Arrivals {
            per_second: USERS,
            timing,
            pattern: Pattern { pages: PAGES, warm_up: 0, measured: 1 },
            seed: settings.seed.wrapping_add(round * 1000),
            patience: PATIENCE,
        };
        let (answers, verdict) = contenders[place].block(CONNECTIONS, arrivals).await?;
        latencies[place].extend_from_slice(&answers.block.latencies);
        errors[place] += answers.block.measured_failed;
        lateness.extend(answers.lateness);
        Ok(Summary::new(answers.block, verdict))
    };
    let about = "4 processes, together 1,000 users a second, each of whom counts a view of one of 1,000 \
                 pages in one minute and in a random second of it. An open loop: latency in ms, from the \
                 moment at which a view was to be sent. All blocks of a contender as one. Unless a row says \
                 otherwise: majority and journal, and no preallocation. Errors are views that were refused, \
                 not answered or not sent; lost and wrong are by a look into the database after each block.";
    let outcome = Outcome::new("1,000 users/s", about, "views", comparisons());
    let outcome = outcome.in_turns(labels, settings, block).await?;
    for contender in contenders {
        contender.stop().await?;
    }
    let head = [&FIGURES[..], &["Views", "Errors", "Lost", "Wrong"]].concat();
    let mut section = Section::new(outcome.name, about, &head);
    let row = |figures: [f64; 7], counts: [String; 4]| {
        figures.map(|value| format!("{value:.3}")).into_iter().chain(counts)
    };
    let published = "*published, of another machine: a laptop of 2015, MongoDB 3.0, a driver at w: 1*";
    section.row(published, row(PUBLISHED, ["25000", "", "", ""].map(str::to_owned)));
    for ((series, latencies), errors) in outcome.series.iter().zip(latencies).zip(errors) {
        let (lost, wrong) = (series.total(|verdict| verdict.lost), series.total(|verdict| verdict.wrong));
        let counts = [latencies.len() as u64, errors, lost, wrong].map(|count| count.to_string());
        section.row(&series.label, row(figures(latencies), counts));
    }
    lateness.sort_unstable();
    let late = |share| percentile(&lateness, share) / 1000.0;
    section.lines.push(format!(
        "Views were sent {:.3} ms (median) and {:.3} ms (p99) after they were due, because the load woke \
         late or had no connection free: that is in all latencies.\n",
        late(0.5),
        late(0.99)
    ));
    section.compare(&outcome);
    report.workload(&outcome, section);
    Ok(())
}
