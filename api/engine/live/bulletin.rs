//! What the readers of all owners of a history share: which owners have something new, and how much they
//! have.
//!
//! The feed notes which owners have changed. Once a second the tails of these owners are read, a thousand
//! with one command, and published. A bulletin has only the latest of each owner, so a reader that is slow
//! misses nothing but states in between.

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

/// The most owners that a bulletin has. A reader that is further behind has to resume.
pub(crate) const MOST: usize = 10_000;

/// Which owners have something new. Each change of one has a number.
#[derive(Debug, Default)]
pub(crate) struct Bulletin {
    latest: BTreeMap<u64, (OwnerId, Totals)>,
    numbers: HashMap<OwnerId, u64>,
    /// The last number.
    pub(crate) last: u64,
    /// Changes up to this number may have been dropped.
    dropped: u64,
    /// The place in the log up to which it has all changes, once it is known.
    pub(crate) reached: Option<LogPlace>,
    /// How often changes were missed.
    pub(crate) misses: u64,
}

impl Bulletin {
    fn add(&mut self, owner: OwnerId, totals: Totals) {
        self.last += 1;
        if let Some(before) = self.numbers.insert(owner.clone(), self.last) {
            self.latest.remove(&before);
        }
        self.latest.insert(self.last, (owner, totals));
        while self.latest.len() > MOST
            && let Some((number, (owner, _))) = self.latest.pop_first()
        {
            self.numbers.remove(&owner);
            self.dropped = number;
        }
    }

    /// The next changes after this number, at most `most`, and the number of the last of them. `None` if some
    /// of them were dropped.
    pub(crate) fn after(&self, number: u64, most: usize) -> Option<(Vec<(OwnerId, Totals)>, u64)> {
        let next = self.latest.range(number + 1..).take(most);
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

/// The bulletin of the histories of one definition, while it has readers. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedBulletin(Arc<Mutex<Option<watch::Sender<Bulletin>>>>);

impl SharedBulletin {
    /// Begins to read the bulletin, and begins it for the first reader.
    pub(crate) fn subscribe(&self, history: &LiveHistory) -> watch::Receiver<Bulletin> {
        let mut shared = self.0.lock();
        if let Some(bulletin) = &*shared {
            return bulletin.subscribe();
        }
        let bulletin = watch::Sender::new(Bulletin::default());
        let reader = bulletin.subscribe();
        *shared = Some(bulletin.clone());
        let publisher = Publisher { shared: self.clone(), bulletin };
        tasks::start("live-owners", publisher.run(history.clone()));
        reader
    }
}

/// What publishes a bulletin. When it is dropped, also by a panic, its readers end with an error, and the
/// next reader begins another bulletin.
struct Publisher {
    shared: SharedBulletin,
    bulletin: watch::Sender<Bulletin>,
}

impl Publisher {
    /// Publishes what has changed until there are no readers.
    async fn run(self, history: LiveHistory) {
        loop {
            // Soon for the first reader, which waits for a place.
            let begins = self.bulletin.borrow().reached.is_none();
            tokio::select! {
                () = self.bulletin.closed() => {
                    let mut shared = self.shared.0.lock();
                    // Another reader may have come meanwhile.
                    if self.bulletin.receiver_count() == 0 {
                        *shared = None;
                        return;
                    }
                }
                () = sleep(if begins { ROUND / 10 } else { ROUND }) => {
                    publish_round(&history, &self.bulletin).await;
                }
            }
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        // After its end there may be another bulletin.
        self.shared.0.lock().take_if(|bulletin| bulletin.same_channel(&self.bulletin));
    }
}

/// Reads what was noted, and publishes it part by part, so that readers go on meanwhile. The place up to
/// which the bulletin has all changes comes with the last part.
async fn publish_round(history: &LiveHistory, bulletin: &watch::Sender<Bulletin>) {
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
        bulletin.send_if_modified(|bulletin| {
            let (reached, misses) = match others {
                [] => (reached.clone(), misses),
                _ => (bulletin.reached.clone(), bulletin.misses),
            };
            bulletin.publish(found, reached, misses)
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
        let mut bulletin = Bulletin::default();
        assert!(!bulletin.publish(vec![], None, 0));
        assert!(bulletin.publish(vec![change(1, 1), change(2, 1)], None, 0));
        assert_eq!(bulletin.after(0, 1), Some((vec![change(1, 1)], 1)));
        assert!(bulletin.publish(vec![change(1, 2)], None, 0));
        assert_eq!(bulletin.after(0, 9), Some((vec![change(2, 1), change(1, 2)], 3)));
        assert_eq!(bulletin.after(2, 9), Some((vec![change(1, 2)], 3)));
        assert_eq!(bulletin.after(3, 9), Some((vec![], 3)));
        assert!(bulletin.publish(vec![], None, 1), "what was missed is news");
    }

    #[test]
    fn a_reader_that_is_too_slow_is_told() {
        let mut bulletin = Bulletin::default();
        bulletin.publish((1..=MOST as u64 + 1).map(|owner| change(owner, 1)).collect(), None, 0);
        assert_eq!(bulletin.after(0, 1), None);
        assert_eq!(bulletin.after(1, 1), Some((vec![change(2, 1)], 2)));
        assert_eq!(bulletin.numbers.len(), MOST);
    }

    #[tokio::test]
    async fn a_task_that_panics_ends_its_readers() {
        let (shared, bulletin) = (SharedBulletin::default(), watch::Sender::new(Bulletin::default()));
        let mut reader = bulletin.subscribe();
        *shared.0.lock() = Some(bulletin.clone());
        let publisher = Publisher { shared: shared.clone(), bulletin };
        tasks::start("live-owners", async move {
            let _publisher = publisher;
            panic!("as a bug would");
        });
        let told = timeout(Duration::from_secs(60), reader.changed()).await.expect("an end");
        assert!(told.is_err(), "they are told");
        assert!(shared.0.lock().is_none(), "the next one begins another bulletin");
    }
}
