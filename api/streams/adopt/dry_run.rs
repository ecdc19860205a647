//! A dry run: what would come of an adoption.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pagebucket_model::domain::OwnerId;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::item::DocumentReader;
use super::rows;
use super::source::{Source, SourceError};
use super::source_item::SourceItem;
use super::watch::{AdoptionWatch, NotStored};
use crate::import::RowFaults;
use crate::ingest::{Bad, Report, StreamEvent};

/// Number of histories that are named.
const LARGEST: usize = 10;

/// What would come of an adoption.
#[derive(Debug, Default)]
pub struct Plan {
    /// Items that would be stored.
    pub items: u64,
    /// Their owners.
    pub owners: u64,
    /// Items that would be refused.
    pub refused: u64,
    /// Buckets whose `count` is not the length of their array.
    pub miscounted: u64,
    /// Reasons of refusals, the most frequent first.
    pub reasons: Vec<(String, u64)>,
    /// The longest histories, the longest first.
    pub largest: Vec<(OwnerId, u64)>,
    /// How long reading took.
    pub took: Duration,
    /// Whether all of it was read.
    pub complete: bool,
}

/// Reads the whole source as an adoption would, and stores nothing.
///
/// # Errors
/// The source does not answer.
pub async fn plan(
    source: &Arc<Source>,
    reader: &Arc<DocumentReader>,
    interrupts: &mut mpsc::Receiver<()>,
    watch: &mut impl AdoptionWatch,
) -> Result<Plan, SourceError> {
    let began = Instant::now();
    // Read again from an owner on, some items would be counted twice.
    let outage = Duration::ZERO;
    let mut parts = rows::read(Arc::clone(source), Arc::clone(reader), source.now().await?, outage);
    let (mut plan, mut reasons, mut present) = (Plan::default(), Reasons::default(), None);
    let mut progress = Report::default();
    loop {
        let batch = tokio::select! {
            batch = parts.recv() => batch,
            Some(()) = interrupts.recv() => break,
        };
        let Some(batch) = batch else {
            plan.complete = true;
            break;
        };
        for (found, size) in batch? {
            progress.bytes += size;
            match found {
                SourceItem::Item(item) => {
                    plan.items += 1;
                    progress.stored += 1;
                    match &mut present {
                        Some((owner, items)) if *owner == item.owner => *items += 1,
                        _ => plan.owner(present.replace((item.owner, 1))),
                    }
                }
                SourceItem::Refused(refused) => {
                    plan.refused += 1;
                    reasons.add(&refused.reason);
                    watch.hear(StreamEvent::Bad(Bad { line: 0, size: 0, why: NotStored::Refused(refused) }));
                }
                SourceItem::Miscounted(line) => {
                    plan.miscounted += 1;
                    watch.hear(StreamEvent::Bad(Bad { line: 0, size: 0, why: NotStored::Miscounted(line) }));
                }
            }
        }
        watch.hear(StreamEvent::Progress(&progress));
    }
    plan.owner(present);
    plan.reasons = reasons.0.into_iter().collect();
    plan.reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    plan.took = began.elapsed();
    Ok(plan)
}

/// Reasons of refusals, without the values of the items, and how often each was given.
#[derive(Debug, Default)]
struct Reasons(BTreeMap<String, u64>);

impl Reasons {
    fn add(&mut self, reason: &RowFaults) {
        /// A source may have any number of wrong members.
        const MOST: usize = 1_000;
        let rules = reason.rules();
        let is_kept = self.0.len() < MOST || self.0.contains_key(&rules);
        let rules = if is_kept { rules } else { "for other reasons".to_owned() };
        *self.0.entry(rules).or_default() += 1;
    }
}

impl Plan {
    /// An owner whose items are all read.
    fn owner(&mut self, owner: Option<(OwnerId, u64)>) {
        let Some((owner, items)) = owner else { return };
        self.owners += 1;
        let at = self.largest.partition_point(|(_, more)| *more >= items);
        if at < LARGEST {
            self.largest.insert(at, (owner, items));
            self.largest.truncate(LARGEST);
        }
    }
}
