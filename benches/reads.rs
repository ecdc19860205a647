//! How fast pages are read: ours beside other ways to have the same pages from MongoDB.

mod depth;
mod disk;
pub mod npm;
mod plot;
mod workloads;

use crate::harness::{Bench, CLOSED_LOOP, Report, Result, Section};

pub const PARTS: [&str; 7] = ["depth", "walk", "pages", "traces", "zipf", "mix", "disk"];

pub async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    if npm::installed().is_some() {
        report.versions += &npm::versions()?;
    } else {
        report.leave_out(
            "Without mongoose-paginate-v2 and mongo-cursor-pagination: there was no Node.js to run them.",
        );
    }
    for stage in workloads::stages(&bench.settings) {
        for outcome in stage.run(bench).await? {
            match depth::medians(&outcome) {
                Some(rows) => depth::add(report, &outcome, &rows)?,
                None => report.workload(&outcome, Section::of(&outcome, CLOSED_LOOP)),
            }
        }
    }
    if bench.settings.includes("disk") {
        disk::measure(bench, report).await?;
    }
    Ok(())
}
