//! What preallocation takes on disk.

use mongodb::Database;
use mongodb::bson::{Document, doc};
use pagebucket_engine::Deadline;
use pagebucket_engine::internal::COMMAND;
use pagebucket_page_views::{COLLECTION, PagePath, PageView, PageViews};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::upsert;
use super::view::{PAGES, View, path};
use crate::harness::{Bench, DISK, Disk, Report, Result, Section};

/// Views in a minute of a page: as many as the scenario counts there.
const VIEWS: u32 = 25;

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
        let counting = PageViews::of(&bench.mongod.store(&name).await?);
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
            counting.count(views?, Deadline::within(COMMAND)).await?;
        }
        section.row(label, look(&database).await?);
        database.drop().await?;
    }
    report.sections.push(section);
    Ok(())
}
