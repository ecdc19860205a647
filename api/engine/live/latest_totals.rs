//! What the readers of all owners of a history share: the latest totals of the owners that have changed.
//!
//! The feed notes which owners have changed. Once a second the tails of these owners are read, a thousand
//! with one command, and published. A reader that is slow misses nothing but totals in between.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use pagebucket_model::domain::{OwnerId, Totals};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::sleep;

use super::changed_owners::NotedChanges;
use super::watched::LiveHistory;
use crate::mongo::log_place::LogPlace;
use crate::mongo::{Error, NO_PRIMARY, Result};
use crate::store::buckets::tails::{self, Tails};
use crate::store::collection::HistoryCollection;
use crate::tasks;

/// How often what has changed is published.
const ROUND: Duration = Duration::from_secs(1);

/// The most owners whose totals are remembered. A reader that is further behind has to resume.
pub(crate) const MOST: usize = 10_000;

/// The latest totals of owners, in the order of their changes. Each change has a number.
#[derive(Debug, Default)]
pub(crate) struct LatestTotals {
    by_number: BTreeMap<u64, (OwnerId, Totals)>,
    numbers: HashMap<OwnerId, u64>,
    /// The last number.
    pub(crate) last: u64,
    /// Changes up to this number may have been dropped.
    dropped: u64,
    /// The place in the log up to which all changes are here, once it is known.
    pub(crate) reached: Option<LogPlace>,
    /// How often changes were missed.
    pub(crate) misses: u64,
}

impl LatestTotals {
    fn add(&mut self, owner: OwnerId, totals: Totals) {
        self.last += 1;
        if let Some(before) = self.numbers.insert(owner.clone(), self.last) {
            self.by_number.remove(&before);
        }
        self.by_number.insert(self.last, (owner, totals));
        while self.by_number.len() > MOST
            && let Some((number, (owner, _))) = self.by_number.pop_first()
        {
            self.numbers.remove(&owner);
            self.dropped = number;
        }
    }

    /// The next changes after this number, at most `most`, and the number of the last of them. `None` if some
    /// of them were dropped.
    pub(crate) fn after(&self, number: u64, most: usize) -> Option<(Vec<(OwnerId, Totals)>, u64)> {
        let next = self.by_number.range(number + 1..).take(most);
        let last = next.clone().last().map_or(number, |(number, _)| *number);
        (number >= self.dropped).then(|| (next.map(|(_, change)| change.clone()).collect(), last))
    }

    /// Adds what was read of the changes that were noted. Returns whether that is news.
    fn publish(&mut self, found: Vec<(OwnerId, Totals)>, reached: Option<LogPlace>, misses: u64) -> bool {
        let begins = self.reached.is_none() && reached.is_some();
        let is_news = begins || !found.is_empty() || self.misses != misses;
        for (owner, totals) in found {
            self.add(owner, totals);
        }
        (self.reached, self.misses) = (reached, misses);
        is_news
    }
}

/// The latest totals of the histories of one definition, while there are readers. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedTotals(Arc<Mutex<Option<watch::Sender<LatestTotals>>>>);

impl SharedTotals {
    /// Begins to read them. The first reader starts what publishes them.
    pub(crate) fn subscribe(&self, history: &LiveHistory) -> watch::Receiver<LatestTotals> {
        let mut shared = self.0.lock();
        if let Some(latest) = &*shared {
            return latest.subscribe();
        }
        let latest = watch::Sender::new(LatestTotals::default());
        let reader = latest.subscribe();
        *shared = Some(latest.clone());
        let publisher = Publisher { shared: self.clone(), latest };
        tasks::start("live-owners", publisher.run(history.clone()));
        reader
    }
}

/// What publishes totals. When it is dropped, also by a panic, its readers end with an error, and the next
/// reader begins another one.
struct Publisher {
    shared: SharedTotals,
    latest: watch::Sender<LatestTotals>,
}

impl Publisher {
    /// Publishes what has changed until there are no readers.
    async fn run(self, history: LiveHistory) {
        loop {
            // Soon for the first reader, which waits for a place.
            let begins = self.latest.borrow().reached.is_none();
            tokio::select! {
                () = self.latest.closed() => {
                    let mut shared = self.shared.0.lock();
                    // Another reader may have come meanwhile.
                    if self.latest.receiver_count() == 0 {
                        *shared = None;
                        return;
                    }
                }
                () = sleep(if begins { ROUND / 10 } else { ROUND }) => {
                    publish_round(&history, &self.latest).await;
                }
            }
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        // After its end there may be another publisher.
        self.shared.0.lock().take_if(|latest| latest.same_channel(&self.latest));
    }
}

/// Reads what was noted, and publishes it part by part, so that readers go on meanwhile. The place up to
/// which all changes are published comes with the last part.
async fn publish_round(history: &LiveHistory, latest: &watch::Sender<LatestTotals>) {
    let NotedChanges { owners, reached, misses } = history.watched.changed.take();
    let owners: Vec<_> = owners.into_iter().collect();
    let mut rest = &*owners;
    loop {
        let (part, others) = rest.split_at(rest.len().min(tails::AT_ONCE));
        let found = match totals_of(&history.source, part).await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "the tails of changed owners were not read");
                return history.watched.changed.give_back(rest.iter().cloned());
            }
        };
        latest.send_if_modified(|latest| {
            let (reached, misses) = match others {
                [] => (reached.clone(), misses),
                _ => (latest.reached.clone(), latest.misses),
            };
            latest.publish(found, reached, misses)
        });
        if others.is_empty() {
            return;
        }
        rest = others;
    }
}

/// The totals of these owners, without those that are gone or have no items.
pub(crate) async fn totals_of(
    source: &HistoryCollection,
    owners: &[OwnerId],
) -> Result<Vec<(OwnerId, Totals)>> {
    let mut found = Vec::new();
    Tails::read_each(source, owners, NO_PRIMARY, |owner, tail| {
        match tail {
            Ok(Some(tail)) => found.push((owner.clone(), source.totals(Some(tail.last_seq())))),
            Ok(None) | Err(Error::Gone(_)) => {}
            Err(Error::Corrupt(error)) => tracing::error!(%owner, %error, "a changed owner is left out"),
            Err(error) => return Err(error),
        }
        Ok(())
    })
    .await?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use pagebucket_model::domain::{PageSize, Seq};
    use tokio::time::timeout;

    use super::*;

    fn change(owner: u64, items: u64) -> (OwnerId, Totals) {
        (OwnerId::Integer(owner), Totals::ending_with(PageSize::DEFAULT, Seq::new(items).ok()))
    }

    #[test]
    fn a_slow_reader_gets_the_latest_only() {
        let mut latest = LatestTotals::default();
        assert!(!latest.publish(vec![], None, 0));
        assert!(latest.publish(vec![change(1, 1), change(2, 1)], None, 0));
        assert_eq!(latest.after(0, 1), Some((vec![change(1, 1)], 1)));
        assert!(latest.publish(vec![change(1, 2)], None, 0));
        assert_eq!(latest.after(0, 9), Some((vec![change(2, 1), change(1, 2)], 3)));
        assert_eq!(latest.after(2, 9), Some((vec![change(1, 2)], 3)));
        assert_eq!(latest.after(3, 9), Some((vec![], 3)));
        assert!(latest.publish(vec![], None, 1), "what was missed is news");
    }

    #[test]
    fn a_reader_that_is_too_slow_is_told() {
        let mut latest = LatestTotals::default();
        latest.publish((1..=MOST as u64 + 1).map(|owner| change(owner, 1)).collect(), None, 0);
        assert_eq!(latest.after(0, 1), None);
        assert_eq!(latest.after(1, 1), Some((vec![change(2, 1)], 2)));
        assert_eq!(latest.numbers.len(), MOST);
    }

    #[tokio::test]
    async fn a_task_that_panics_ends_its_readers() {
        let (shared, latest) = (SharedTotals::default(), watch::Sender::new(LatestTotals::default()));
        let mut reader = latest.subscribe();
        *shared.0.lock() = Some(latest.clone());
        let publisher = Publisher { shared: shared.clone(), latest };
        tasks::start("live-owners", async move {
            let _publisher = publisher;
            panic!("as a bug would");
        });
        let ended = timeout(Duration::from_secs(60), reader.changed()).await.expect("an end");
        assert!(ended.is_err(), "they end");
        assert!(shared.0.lock().is_none(), "the next one begins another publisher");
    }
}
