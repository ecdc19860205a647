//! Whether preallocation pays: what it can bring at most, and what it takes on disk.

use mongodb::Database;
use mongodb::bson::{Document, doc};
use pagebucket::domain::{PagePath, PageView};
use pagebucket::store::page_views::COLLECTION;
use pagebucket::store::{COMMAND, Deadline};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::contender::Counting;
use super::open_loop::Arrivals;
use super::scenario::{CONNECTIONS, PATIENCE, USERS};
use super::upsert;
use super::view::{PAGES, Pattern, View, path};
use crate::harness::compare;
use crate::harness::{
    Bench, CLOSED_LOOP, DISK, Disk, MEAN, Outcome, P99, Report, Result, Section, Summary, Timing,
};

/// Views in a minute of a page: as many as the scenario counts there.
const VIEWS: u32 = 25;

/// Users who each are the first in a minute of a page, with and without preallocation: it cannot bring more.
pub async fn first_views(bench: &Bench, report: &mut Report) -> Result<()> {
    let settings = &bench.settings;
    let labels = ["ours", "ours, preallocated", "bare driver", "bare driver, preallocated"];
    let mut contenders = Vec::new();
    for label in labels {
        contenders.push(Counting::start(&bench.mongod, "preallocation", label).await?);
    }
    let timing = Timing::millis(200, if settings.quick { 500 } else { 1000 });
    let minutes = ((timing.warm_up + timing.measured).as_secs_f64() * USERS / f64::from(PAGES)).ceil() as u32;
    let block = async |place: usize, round: u64| {
        let contender: &mut Counting = &mut contenders[place];
        let arrivals = Arrivals {
            per_second: USERS,
            timing,
            pattern: Pattern::First { from: contender.take_minutes(minutes).await? },
            seed: settings.seed.wrapping_add(round),
            patience: PATIENCE,
        };
        let (answers, verdict) = contender.block(CONNECTIONS, arrivals).await?;
        Ok(Summary::new(answers.block, verdict))
    };
    let comparisons = ["ours", "bare driver"].into_iter().flat_map(|setup| {
        [MEAN, P99]
            .into_iter()
            .flat_map(move |metric| compare(metric, &format!("{setup}, preallocated / {setup}")))
    });
    let about = "1,000 users a second, each the first in a minute of a page: an insert, or with \
                 preallocation an update. Preallocation cannot bring more than here: in the scenario one \
                 view in 25 is a first one.";
    let outcome = Outcome::new("first views of a minute", about, "views", comparisons.collect());
    let outcome = outcome.in_turns(labels, settings, block).await?;
    let mut section = Section::of(&outcome, CLOSED_LOOP);
    for contender in contenders {
        if contender.preallocated() {
            let (label, minutes) = (contender.label(), 60 * PAGES);
            let seconds = contender.preallocating.as_secs_f64();
            let line =
                format!("- {label}: an hour of {PAGES} pages, {minutes} minutes, made in {seconds:.1} s");
            section.lines.push(line);
        }
        contender.stop().await?;
    }
    report.workload(&outcome, section);
    Ok(())
}

/// Bytes of a minute of a page: the same views counted in ours with and without preallocation.
pub async fn disk(bench: &Bench, report: &mut Report) -> Result<()> {
    let minutes = if bench.settings.quick { 3 } else { 10 };
    let documents = u64::from(minutes * PAGES);
    let about = format!(
        "Bytes of a minute of a page in ours after {documents} of them ({PAGES} pages) with {VIEWS} views \
         each, and a checkpoint: the files of data and indexes. Of the data some is free to be used again. \
         Document: before compression."
    );
    let mut section = Section::new("preallocation on disk", about, &[&["Document"], &DISK[..]].concat());
    let look = async |database: &Database| -> Result<[String; 5]> {
        let found = database.collection::<Document>(COLLECTION).count_documents(doc! {}).await?;
        if found != documents {
            return Err(format!("{found} minutes of pages where there should be {documents}").into());
        }
        Ok(Disk::of(database, COLLECTION).await?.cells(documents, 0))
    };
    for preallocated in [false, true] {
        let name = format!("bench_preallocation_disk_{preallocated}");
        let label = if preallocated { "preallocated, counted" } else { "counted" };
        eprintln!("bench: preallocation: {} views, {label}", u64::from(VIEWS) * documents);
        let store = bench.mongod.store(&name).await?;
        let database = bench.mongod.database(&name).await?;
        if preallocated {
            upsert::preallocate(&database, 0..minutes).await?;
            section.row("preallocated", look(&database).await?);
        }
        let mut rng = StdRng::seed_from_u64(bench.settings.seed);
        for minute in (0..minutes).flat_map(|minute| [minute; VIEWS as usize]) {
            let mut view = |page| -> Result<PageView> {
                let at = View { page, minute, second: rng.random_range(0..60) }.at()?;
                Ok(PageView { path: PagePath::parse(&path(page))?, at, views: 1 })
            };
            let views: Result<Vec<PageView>> = (1..=PAGES).map(&mut view).collect();
            store.page_views().count(views?, Deadline::within(COMMAND)).await?;
        }
        section.row(label, look(&database).await?);
        database.drop().await?;
    }
    report.sections.push(section);
    Ok(())
}
