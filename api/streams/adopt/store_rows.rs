//! Rows go to the database.

use pagebucket_engine::Engine;
use pagebucket_model::domain::Clock;
use tokio::sync::mpsc;

use super::rejects::Rejects;
use super::watch::{AdoptionCounts, AdoptionWatch, NotStored};
use crate::ingest::{
    self, Budget, Destination, IncomingRows, Phase, Report, StreamEvent, StreamOptions, StreamWatch,
};
use crate::patience::OUTAGE;

/// Bytes of rows that wait.
const BUDGET: usize = 64 * 1024 * 1024;

/// Number of rows that wait: then reading stops. The rows of an owner come together, so more would not fill
/// pages better. And what is known of owners is forgotten when the budget is used up.
const WAITING: usize = 40_000;

/// Owners that a report tells apart.
const OWNERS: usize = 1_000_000;

/// Where items go, and what became of those so far.
#[derive(Debug)]
pub(crate) struct Storing<'a, T> {
    pub(crate) engine: Engine,
    pub(crate) watch: &'a mut T,
    pub(crate) rejects: Option<Rejects>,
    pub(crate) counts: AdoptionCounts,
}

impl<T: AdoptionWatch> Storing<'_, T> {
    /// Stores rows to their end.
    pub(crate) async fn store(
        &mut self,
        rows: IncomingRows<NotStored>,
        interrupts: &mut mpsc::Receiver<Phase>,
    ) -> Report {
        let to = Destination { engine: self.engine.clone(), key: None, began: Clock::system().now() };
        let options =
            StreamOptions { strict: false, many: true, waiting: WAITING, patience: OUTAGE, owners: OWNERS };
        let mut report = ingest::run(rows, &to, options, &Budget::of(BUDGET), interrupts, self).await;
        self.counts.stored += report.stored;
        // Rows that are no items count as refused there.
        report.refused = self.counts.refused;
        report
    }
}

impl<T: AdoptionWatch> StreamWatch<NotStored> for Storing<'_, T> {
    fn hear(&mut self, event: StreamEvent<'_, NotStored>) {
        match &event {
            StreamEvent::Bad(bad) => match &bad.why {
                NotStored::Present => self.counts.present += 1,
                NotStored::Miscounted(_) => self.counts.miscounted += 1,
                NotStored::Refused(refused) => {
                    self.counts.refused += 1;
                    if let Some(rejects) = &mut self.rejects {
                        rejects.write(refused);
                    }
                }
            },
            StreamEvent::Sent(sent) => {
                self.counts.refused += sent.refused().count() as u64;
            }
            _ => {}
        }
        self.watch.hear(event);
    }
}
