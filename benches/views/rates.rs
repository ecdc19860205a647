//! The highest rate that a contender holds: all views counted, and 99 in 100 of them within 50 ms.
//!
//! A block at one rate is a probe. In a round all contenders search, one probe each in turn, so that a slow
//! minute of the machine slows all of them; ratios are of what the searches of one round have found. Each
//! probe begins with the turn of a minute: its views are in a minute that has no documents yet, those of its
//! warm-up in the one before.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::contender::Counting;
use super::open_loop::Arrivals;
use super::view::{PAGES, Pattern};
use crate::harness::{
    Bench, Outcome, RATE, RATES_AND_LATENCIES, Report, Result, Section, Series, Settings, Summary,
};
use crate::harness::{Timing, compare};

/// What 99 views in 100 must not exceed, in milliseconds.
const LIMIT: f64 = 50.0;

/// At 20,000 views a second 50 ms are 1,000 views: half of that on the average.
const CONNECTIONS: usize = 512;

/// Searches of a contender: each takes some ten probes.
const ROUNDS: usize = 3;

/// Views a second of the first probe.
const FROM: f64 = 4_000.0;

/// The least rate that is tried.
const LEAST: f64 = 50.0;

/// How near the highest rate that holds and the lowest that does not are to each other in the end.
const NEAR: f64 = 1.1;

/// Both workloads, by the same contenders.
pub async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    const ALL: [&str; 8] = [
        "ours",
        "ours again",
        "bare driver",
        "plain upsert",
        "plain upsert, our collection",
        "ours, preallocated",
        "bare driver, preallocated",
        "plain upsert, our collection, preallocated",
    ];
    let mut contenders: Vec<Counting> = Vec::new();
    for label in ALL {
        let mut contender = Counting::start(&bench.mongod, "rates", label).await?;
        // Of the first warm-up.
        contender.take_minutes(1).await?;
        contenders.push(contender);
    }
    for (name, what, pages, count, compared) in [
        (
            "highest rate, 1,000 pages",
            "Views of 1,000 pages in one minute, page and second at random.",
            PAGES,
            ALL.len(),
            "ours / plain upsert ≥ 2; ours / bare driver; plain upsert, our collection / plain upsert; \
             ours, preallocated / ours; bare driver, preallocated / bare driver; \
             plain upsert, our collection, preallocated / plain upsert, our collection; ours again / ours",
        ),
        (
            "highest rate, one hot page",
            "All views of one page in one minute, in a random second.",
            1,
            4,
            "ours / plain upsert ≥ 10; ours / bare driver; ours again / ours",
        ),
    ] {
        let about = format!(
            "{what} The highest rate at which p99 is below {LIMIT} ms and no view is refused, not answered \
             or not sent: median [quartiles] of the searches, one a round, and the latencies at that rate."
        );
        let mut outcome = Outcome::new(name, &about, "views", compare(RATE, compared));
        search(&mut outcome, pages, &mut contenders[..count], &bench.settings).await?;
        report.workload(&outcome, Section::of(&outcome, RATES_AND_LATENCIES));
    }
    for contender in contenders {
        contender.stop().await?;
    }
    Ok(())
}

/// A contender that searches: up by a factor while rates hold, or down while they do not, and then halfway
/// between the two.
struct Search<'a> {
    contender: &'a mut Counting,
    next: f64,
    factor: f64,
    /// The highest rate that held, and the lowest that did not.
    holds: Option<f64>,
    fails: Option<f64>,
    failed_once: bool,
    /// At the highest rate that held; the verdict is of all probes.
    best: Summary,
}

/// A block of each contender is a search, its rate the highest that held.
async fn search(
    outcome: &mut Outcome,
    pages: u32,
    contenders: &mut [Counting],
    settings: &Settings,
) -> Result<()> {
    outcome.series = contenders.iter().map(|contender| Series::new(contender.label())).collect();
    let mut rng = StdRng::seed_from_u64(settings.seed);
    let rounds = settings.rounds.min(if settings.quick { 1 } else { ROUNDS });
    for round in 1..=rounds {
        let mut searches: Vec<Search<'_>> = contenders
            .iter_mut()
            .zip(&outcome.series)
            .map(|(contender, series)| {
                // What the round before has found is near.
                let found = series.blocks.last().map(|block| block.rate).filter(|rate| *rate > 0.0);
                let (next, factor) = found.map_or((FROM, 2.0), |rate| (rate, 1.25));
                let best = Summary::default();
                Search { contender, next, factor, holds: None, fails: None, failed_once: false, best }
            })
            .collect();
        loop {
            let mut searching: Vec<_> = searches.iter_mut().filter(|search| search.goes_on()).collect();
            if searching.is_empty() {
                break;
            }
            searching.shuffle(&mut rng);
            for search in searching {
                search.probe(pages, settings).await?;
            }
        }
        for (search, series) in searches.iter().zip(&mut outcome.series) {
            series.blocks.push(Summary { rate: search.holds.unwrap_or(0.0), ..search.best });
        }
        outcome.tell(round as u64, rounds);
    }
    Ok(())
}

impl Search<'_> {
    fn goes_on(&self) -> bool {
        let near = matches!((self.holds, self.fails), (Some(holds), Some(fails)) if fails / holds <= NEAR);
        !near && self.next >= LEAST
    }

    async fn probe(&mut self, pages: u32, settings: &Settings) -> Result<()> {
        let (rate, minute) = (self.next, self.contender.take_minutes(1).await?);
        let arrivals = Arrivals {
            per_second: rate,
            timing: Timing::millis(200, if settings.quick { 700 } else { 1200 }),
            pattern: Pattern { pages, warm_up: minute - 1, measured: minute },
            seed: settings.seed.wrapping_add(u64::from(minute)),
            // By then it has failed anyway.
            patience: Duration::from_millis(500),
        };
        let (answers, mut verdict) = self.contender.block(CONNECTIONS, arrivals).await?;
        let failed = answers.block.measured_failed;
        let summary = Summary::new(answers.block, verdict);
        verdict.add(self.best.verdict);
        let holds = summary.p99 < LIMIT && failed == 0;
        let (who, p99, shown) = (self.contender.label(), summary.p99, if holds { "holds" } else { "fails" });
        eprintln!("bench: {who}, {pages} pages, {rate:.0}/s: p99 {p99:.1} ms, {failed} failed: {shown}");
        if holds && self.holds.is_none_or(|best| rate > best) {
            self.best = summary;
        }
        self.best.verdict = verdict;
        // Unless it fails by far, one slow moment, such as a checkpoint, could have done it: it is tried a
        // second time.
        let by_far = summary.p99 >= 10.0 * LIMIT || failed > 0;
        if !holds && !by_far && !self.failed_once {
            self.failed_once = true;
            return Ok(());
        }
        self.failed_once = false;
        *if holds { &mut self.holds } else { &mut self.fails } = Some(rate);
        self.next = match (self.holds, self.fails) {
            (Some(holds), Some(fails)) => (holds * fails).sqrt(),
            (Some(holds), None) => holds * self.factor,
            (None, _) => rate / self.factor,
        };
        Ok(())
    }
}
