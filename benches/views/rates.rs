//! The highest rate that a contender holds: all views counted, and 99 in 100 of them within 50 ms.
//!
//! A block at one rate is a probe. In a round all contenders search, one probe each in turn, so that a slow minute of
//! the machine slows all of them; ratios are of what the searches of one round have found. Each probe begins with the
//! turn of a minute: its views are in a minute that has no documents yet, those of its warm-up in the one before.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::contender::{Contender, Kind, Setup};
use crate::harness::Result;
use crate::harness::block::Block;
use crate::harness::check::Verdict;
use crate::harness::comparison::Expected::{AtLeast, Nothing, Same};
use crate::harness::comparison::Metric::Rate;
use crate::harness::comparison::{Comparison, compare};
use crate::harness::mongod::Mongod;
use crate::harness::settings::{Settings, Timing};
use crate::harness::turns::{Outcome, Series, Summary};
use crate::open_loop::Arrivals;
use crate::search::{Search, Shown};
use crate::views::{PAGES, Pattern};

/// As `ONLY` names it.
pub const STAGE: &str = "rates";

/// What 99 views in 100 must not exceed, in milliseconds.
pub const LIMIT: f64 = 50.0;

/// At 20,000 views a second 50 ms are 1,000 views: half of that on the average.
const CONNECTIONS: usize = 512;

/// Searches of a contender: each takes some ten probes.
const ROUNDS: usize = 3;

/// Views a second of the first probe.
const FROM: f64 = 4_000.0;

struct Work {
    name: &'static str,
    about: &'static str,
    pages: u32,
    setups: Vec<Setup>,
    comparisons: Vec<Comparison>,
}

fn works() -> [Work; 2] {
    let [ours, again, driver, plain, guarded] =
        [Kind::Ours, Kind::Again, Kind::Driver, Kind::Plain, Kind::Guarded].map(Setup::of);
    let rate = |subject: Setup, against: Setup, expected| {
        compare(subject.to_string(), Rate, against.to_string(), expected)
    };
    [
        Work {
            name: "highest rate, 1,000 pages",
            about: "Views of 1,000 pages in one minute, page and second by chance.",
            pages: PAGES,
            setups: vec![
                ours,
                again,
                driver,
                plain,
                guarded,
                ours.preallocated(),
                driver.preallocated(),
                guarded.preallocated(),
            ],
            comparisons: vec![
                rate(ours, plain, AtLeast(2.0)),
                rate(ours, driver, Nothing),
                rate(guarded, plain, Nothing),
                rate(ours.preallocated(), ours, Nothing),
                rate(driver.preallocated(), driver, Nothing),
                rate(guarded.preallocated(), guarded, Nothing),
                rate(again, ours, Same),
            ],
        },
        Work {
            name: "highest rate, one hot page",
            about: "All views of one page in one minute, the second by chance.",
            pages: 1,
            setups: vec![ours, again, driver, plain],
            comparisons: vec![
                rate(ours, plain, AtLeast(10.0)),
                rate(ours, driver, Nothing),
                rate(again, ours, Same),
            ],
        },
    ]
}

fn timing(settings: &Settings) -> Timing {
    let measured = Duration::from_millis(if settings.quick { 700 } else { 1200 });
    Timing { warm_up: Duration::from_millis(200), measured }
}

/// Both workloads, by the same contenders.
pub async fn run(mongod: &Mongod, settings: &Settings) -> Result<Vec<Outcome>> {
    let works = works();
    let mut contenders: Vec<Contender> = Vec::new();
    for setup in works.iter().flat_map(|work| &work.setups) {
        if contenders.iter().all(|contender| contender.setup != *setup) {
            let contender = Contender::start(mongod, STAGE, *setup).await?;
            // Of the first warm-up.
            contender.take_minutes(1).await?;
            contenders.push(contender);
        }
    }
    let mut outcomes = Vec::new();
    for work in works {
        let taking_part: Vec<&Contender> =
            contenders.iter().filter(|contender| work.setups.contains(&contender.setup)).collect();
        let series = search(&work, &taking_part, settings).await?;
        let Work { name, about, comparisons, .. } = work;
        outcomes.push(Outcome { name, about, unit: "views", comparisons, series });
    }
    for contender in contenders {
        contender.stop().await?;
    }
    Ok(outcomes)
}

/// A contender that searches, and its best probe.
struct Seeker<'a> {
    contender: &'a Contender,
    search: Search,
    best: Summary,
    verdict: Verdict,
}

/// A block of each contender is a search, its rate the highest that held.
async fn search(work: &Work, contenders: &[&Contender], settings: &Settings) -> Result<Vec<Series>> {
    let mut series: Vec<Series> = contenders
        .iter()
        .map(|contender| Series { label: contender.setup.to_string(), blocks: Vec::new() })
        .collect();
    let mut rng = StdRng::seed_from_u64(settings.seed);
    let rounds = settings.rounds.min(if settings.quick { 1 } else { ROUNDS });
    for round in 1..=rounds {
        let mut seekers: Vec<Seeker<'_>> = contenders
            .iter()
            .zip(&series)
            .map(|(contender, series)| {
                // What the round before has found is near.
                let found = series.blocks.last().map(|block| block.rate).filter(|rate| *rate > 0.0);
                let search = found.map_or_else(|| Search::new(FROM, 2.0), |rate| Search::new(rate, 1.25));
                let nothing = Summary::new(&Block::default(), Verdict::default());
                Seeker { contender, search, best: nothing, verdict: Verdict::default() }
            })
            .collect();
        loop {
            let mut searching: Vec<(&mut Seeker<'_>, f64)> = seekers
                .iter_mut()
                .filter_map(|seeker| seeker.search.next().map(|rate| (seeker, rate)))
                .collect();
            if searching.is_empty() {
                break;
            }
            searching.shuffle(&mut rng);
            for (seeker, rate) in searching {
                seeker.probe(work.pages, rate, settings).await?;
            }
        }
        let mut found = Vec::new();
        for (seeker, series) in seekers.into_iter().zip(&mut series) {
            let rate = seeker.search.found().unwrap_or(0.0);
            found.push(format!("{} {rate:.0}/s", series.label));
            series.blocks.push(Summary { rate, verdict: seeker.verdict, ..seeker.best });
        }
        eprintln!("bench: {}, round {round} of {rounds}: {}", work.name, found.join(", "));
    }
    Ok(series)
}

impl Seeker<'_> {
    async fn probe(&mut self, pages: u32, rate: f64, settings: &Settings) -> Result<()> {
        let minute = self.contender.take_minutes(1).await?;
        let arrivals = Arrivals {
            per_second: rate,
            timing: timing(settings),
            pattern: Pattern::Random { pages, warm_up: minute - 1, measured: minute },
            seed: settings.seed.wrapping_add(u64::from(minute)),
            // By then it has failed anyway.
            patience: Duration::from_millis(500),
        };
        let (block, _, verdict) = self.contender.block(CONNECTIONS, arrivals).await?;
        let summary = Summary::new(&block, verdict);
        self.verdict.lost += verdict.lost;
        self.verdict.wrong += verdict.wrong;
        let shown = match summary.p99 {
            p99 if p99 < LIMIT && block.measured_failed == 0 => Shown::Holds,
            p99 if p99 < 10.0 * LIMIT && block.measured_failed == 0 => Shown::Fails,
            _ => Shown::Breaks,
        };
        let (who, p99, failed) = (self.contender.setup, summary.p99, block.measured_failed);
        eprintln!("bench: {who}, {pages} pages, {rate:.0}/s: p99 {p99:.1} ms, {failed} failed: {shown:?}");
        if shown == Shown::Holds && rate > self.search.found().unwrap_or(0.0) {
            self.best = summary;
        }
        self.search.note(shown);
        Ok(())
    }
}
