//! Owners whose histories have live readers, and what is learned of the ends of these histories.
//!
//! News wakes the readers of an owner: it says that there may be more items. A room then takes the items of a
//! change that follows its position, or reads the history itself ([`live`](mod@crate::live)).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mongodb::bson::RawDocumentBuf;
use pagebucket_model::domain::{OwnerId, Seq};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::changed_owners::ChangedOwners;
use crate::mongo::{Deadline, Error, Result};
use crate::store::buckets::bucket_id::Tail;
use crate::store::collection::HistoryCollection;

/// The histories of one definition, and their owners that have live readers. Clones share both.
#[derive(Debug, Clone)]
pub(crate) struct LiveHistory {
    pub(crate) source: Arc<HistoryCollection>,
    pub(crate) watched: Arc<WatchedOwners>,
}

/// A bucket by its second, and how many items it has. Later states of a history have greater ones, unless its
/// last bucket is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Growth {
    pub(crate) second: u64,
    pub(crate) count: u16,
}

impl From<Tail> for Growth {
    fn from(Tail { second, count, .. }: Tail) -> Self {
        Self { second, count }
    }
}

/// What was learned of the end of a history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// The last item that this process has appended.
    pub(crate) last: Option<Seq>,
    /// The last bucket, as a change or a read of tails has shown it.
    pub(crate) bucket: Option<Growth>,
    /// What else there was.
    pub(crate) reasons: WakeReasons,
    /// When the last of it was committed. For an append of this process this is when it was acknowledged;
    /// without a known time it is when the news was learned.
    pub(crate) at: Option<Instant>,
}

/// How often there were other reasons than appends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WakeReasons {
    /// To look.
    pub(crate) looks: u64,
    /// To forget what is known of pages: something was written or deleted that is no append, or changes may
    /// have been missed.
    pub(crate) forgets: u64,
    /// To end: the database has another epoch.
    pub(crate) ends: u64,
}

/// An append that a change of the database has shown.
#[derive(Debug)]
pub(crate) struct AppendChange {
    /// The bucket after it.
    pub(crate) bucket: Growth,
    /// The bucket if it is new, otherwise the fields that were set.
    pub(crate) written: RawDocumentBuf,
    /// The reasons to forget that were there before.
    forgets: u64,
}

/// The watched owners of the histories of one definition.
#[derive(Debug, Default)]
pub(crate) struct WatchedOwners {
    /// How many there are. A commit looks at this, and at nothing else while it is 0.
    count: AtomicUsize,
    owners: Mutex<HashMap<OwnerId, Watched>>,
    /// How many readers of all owners there are.
    readers_of_all: AtomicUsize,
    /// The owners that have changed, for these readers.
    pub(crate) changed: ChangedOwners,
    /// Whether there are any.
    wanted: watch::Sender<bool>,
    /// Whether the appends of other processes are learned of.
    notified: watch::Sender<bool>,
}

/// The news of an owner, and the number of its watchers.
#[derive(Debug, Default)]
struct Watched {
    news: watch::Sender<News>,
    /// The change that has shown the last bucket, until a room takes it.
    change: Arc<Mutex<Option<AppendChange>>>,
    watchers: usize,
}

/// An owner that is watched until this is dropped.
#[derive(Debug)]
pub(crate) struct WatchedOwner {
    all: Arc<WatchedOwners>,
    pub(crate) owner: OwnerId,
    /// What is learned after this was made.
    pub(crate) news: watch::Receiver<News>,
    /// Reasons that were there before.
    pub(crate) reasons: WakeReasons,
    change: Arc<Mutex<Option<AppendChange>>>,
}

/// All owners, which are watched until this is dropped.
#[derive(Debug)]
pub(crate) struct WatchedAll(Arc<WatchedOwners>);

impl WatchedOwners {
    /// Watches all owners: changed owners are noted.
    pub(crate) fn watch_all(self: &Arc<Self>) -> WatchedAll {
        let owners = self.owners.lock();
        if self.readers_of_all.fetch_add(1, Ordering::Relaxed) == 0 {
            self.changed.set_wanted(true);
        }
        self.counted(owners.len());
        WatchedAll(Arc::clone(self))
    }

    pub(crate) fn watch(self: &Arc<Self>, owner: OwnerId) -> WatchedOwner {
        let mut owners = self.owners.lock();
        let watched = owners.entry(owner.clone()).or_default();
        watched.watchers += 1;
        let news = watched.news.subscribe();
        let (reasons, change) = (news.borrow().reasons, Arc::clone(&watched.change));
        self.counted(owners.len());
        WatchedOwner { all: Arc::clone(self), owner, news, reasons, change }
    }

    /// Notes how many owners are watched. Called with the lock.
    fn counted(&self, owners: usize) {
        self.count.store(owners, Ordering::Relaxed);
        let wanted = owners > 0 || self.readers_of_all.load(Ordering::Relaxed) > 0;
        self.wanted.send_if_modified(|known| std::mem::replace(known, wanted) != wanted);
    }

    /// Waits until this process learns of the appends of others. A read after that, with the news after that,
    /// misses nothing.
    pub(crate) async fn until_notified(&self, deadline: Deadline) -> Result<()> {
        let mut notified = self.notified.subscribe();
        let waited = deadline.wait_for(notified.wait_for(|notified| *notified)).await;
        waited.and_then(Result::ok).map(drop).ok_or_else(Error::no_answer)
    }

    /// Notes whether the appends of other processes are learned of.
    pub(crate) fn set_notified(&self, notified: bool) {
        self.notified.send_replace(notified);
    }

    /// Sends when there are watched owners, and when there are none.
    pub(crate) fn wanted(&self) -> watch::Receiver<bool> {
        self.wanted.subscribe()
    }

    /// Whether there are watched owners, or readers of all.
    pub(crate) fn is_wanted(&self) -> bool {
        *self.wanted.borrow()
    }

    pub(crate) fn owners(&self) -> Vec<OwnerId> {
        self.owners.lock().keys().cloned().collect()
    }

    /// Learns that a commit of this process has appended to a history, which ends with `last`. A commit of
    /// unknown outcome is learned of by its change, as those of other processes are.
    pub(crate) fn appended(&self, owner: &OwnerId, last: Seq) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        self.tell(owner, None, |news, _| {
            let is_later = Some(last) > news.last;
            news.last = news.last.max(Some(last));
            is_later
        });
    }

    /// Learns that a bucket of this owner was seen.
    pub(crate) fn seen(&self, owner: &OwnerId, bucket: Growth) {
        self.grown(owner, bucket, None, || None);
    }

    /// Learns of a change to a bucket of this owner, which was committed at this time, if that is known.
    /// `written` says what it has appended, if the change does.
    pub(crate) fn grown(
        &self,
        owner: &OwnerId,
        bucket: Growth,
        committed: Option<Instant>,
        written: impl FnOnce() -> Option<RawDocumentBuf>,
    ) {
        self.tell(owner, committed, |news, change| {
            let is_later = news.bucket.is_none_or(|known| bucket > known);
            if is_later {
                news.bucket = Some(bucket);
                let forgets = news.reasons.forgets;
                *change.lock() = written().map(|written| AppendChange { bucket, written, forgets });
            }
            is_later
        });
    }

    /// Learns that the bucket with this second was deleted. Readers look if it was the last, as far as is
    /// known.
    pub(crate) fn deleted(&self, owner: &OwnerId, second: u64) {
        self.tell(owner, None, |news, _| {
            news.reasons.forgets += 1;
            if news.bucket.is_none_or(|last| second >= last.second) {
                news.bucket = None;
                news.reasons.looks += 1;
            }
            true
        });
    }

    /// Makes the readers of an owner look.
    pub(crate) fn look(&self, owner: &OwnerId) {
        self.tell(owner, None, |news, _| look(news));
    }

    /// Makes all readers look.
    pub(crate) fn look_at_all(&self) {
        self.tell_all(look);
    }

    /// Makes all readers forget what they know of pages: changes may have been missed.
    pub(crate) fn forget_pages(&self) {
        self.tell_all(|news| {
            news.reasons.forgets += 1;
            true
        });
    }

    /// Ends all readers: the database has another epoch.
    pub(crate) fn end_all(&self) {
        self.tell_all(|news| {
            news.reasons.ends += 1;
            true
        });
    }

    fn tell_all(&self, learn: impl Fn(&mut News) -> bool) {
        self.owners.lock().values().for_each(|watched| send(&watched.news, None, &learn));
    }

    fn tell(
        &self,
        owner: &OwnerId,
        committed: Option<Instant>,
        learn: impl FnOnce(&mut News, &Mutex<Option<AppendChange>>) -> bool,
    ) {
        if let Some(Watched { news, change, .. }) = self.owners.lock().get(owner) {
            send(news, committed, |news| learn(news, change));
        }
    }
}

impl WatchedOwner {
    /// Takes the change that has shown the last bucket, if it follows the pages that the room has: both have
    /// forgotten as often.
    pub(crate) fn take_change(&self, forgets: u64) -> Option<AppendChange> {
        self.change.lock().take().filter(|change| change.forgets == forgets)
    }
}

fn look(news: &mut News) -> bool {
    news.reasons.looks += 1;
    news.reasons.forgets += 1;
    true
}

fn send(news: &watch::Sender<News>, committed: Option<Instant>, learn: impl FnOnce(&mut News) -> bool) {
    news.send_if_modified(|news| {
        let is_news = learn(news);
        if is_news {
            news.at = Some(committed.unwrap_or_else(Instant::now));
        }
        is_news
    });
}

impl Drop for WatchedAll {
    fn drop(&mut self) {
        let owners = self.0.owners.lock();
        if self.0.readers_of_all.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.changed.set_wanted(false);
        }
        self.0.counted(owners.len());
    }
}

impl Drop for WatchedOwner {
    fn drop(&mut self) {
        let mut owners = self.all.owners.lock();
        if let Entry::Occupied(mut watched) = owners.entry(self.owner.clone()) {
            // Not by the receivers: this one's is dropped after the lock.
            watched.get_mut().watchers -= 1;
            if watched.get().watchers == 0 {
                watched.remove();
            }
        }
        self.all.counted(owners.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEVEN: OwnerId = OwnerId::Integer(7);

    fn growth(second: u64, count: u16) -> Growth {
        Growth { second, count }
    }

    fn seq(seq: u64) -> Seq {
        Seq::new(seq).unwrap()
    }

    #[test]
    fn only_what_is_watched_is_remembered() {
        let all = Arc::new(WatchedOwners::default());
        all.appended(&SEVEN, seq(1));
        let watched = all.watch(SEVEN);
        let again = all.watch(SEVEN);
        assert!(all.is_wanted() && all.owners() == [SEVEN]);
        all.appended(&OwnerId::Integer(8), seq(1));
        assert!(!watched.news.has_changed().unwrap());
        drop(again);
        assert!(all.is_wanted(), "one is left");
        all.appended(&SEVEN, seq(2));
        assert!(watched.news.has_changed().unwrap());
        // As that of another watcher that leaves at once: it is dropped after the lock.
        let _late = watched.news.clone();
        drop(watched);
        assert!(!all.is_wanted() && all.owners.lock().is_empty());
        assert_eq!(all.count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn who_has_changed_is_noted_for_readers_of_all() {
        let all = Arc::new(WatchedOwners::default());
        all.changed.note(&SEVEN);
        let readers = [all.watch_all(), all.watch_all()];
        assert!(all.is_wanted() && all.changed.take().owners.is_empty());
        all.changed.note(&SEVEN);
        all.changed.note(&SEVEN);
        assert_eq!(all.changed.take().owners, [SEVEN].into());
        all.changed.give_back([SEVEN]);
        let before = all.changed.misses();
        all.changed.miss();
        let noted = all.changed.take();
        assert!(noted.owners.is_empty() && noted.misses == before + 1, "{noted:?}");
        drop(readers);
        assert!(
            all.changed.misses() > noted.misses,
            "what was published does not lead to what is noted later"
        );
        assert!(!all.is_wanted());
    }

    #[test]
    fn what_is_known_wakes_no_one() {
        let all = Arc::new(WatchedOwners::default());
        let mut watched = all.watch(SEVEN);
        let mut is_news = |tell: &dyn Fn()| {
            tell();
            let changed = watched.news.has_changed().unwrap();
            watched.news.mark_unchanged();
            changed
        };
        assert!(is_news(&|| all.appended(&SEVEN, seq(3))));
        assert!(!is_news(&|| all.appended(&SEVEN, seq(3))) && !is_news(&|| all.appended(&SEVEN, seq(2))));
        assert!(is_news(&|| all.seen(&SEVEN, growth(1_000, 3))));
        assert!(
            !is_news(&|| all.seen(&SEVEN, growth(1_000, 3)))
                && !is_news(&|| all.seen(&SEVEN, growth(999, 10)))
        );
        assert!(is_news(&|| all.seen(&SEVEN, growth(1_001, 1))));
        assert!(is_news(&|| all.look(&SEVEN)) && is_news(&|| all.look_at_all()));
    }

    #[test]
    fn a_change_counts_until_there_is_a_reason_to_forget() {
        let all = Arc::new(WatchedOwners::default());
        let watched = all.watch(SEVEN);
        let mut second = 1_000;
        let mut grow = || {
            second += 1;
            all.grown(&SEVEN, growth(second, 1), None, || Some(RawDocumentBuf::new()));
        };
        let forgets = || watched.news.borrow().reasons.forgets;
        grow();
        assert!(watched.take_change(forgets()).is_some() && watched.take_change(forgets()).is_none());
        let reasons: [fn(&WatchedOwners); 3] =
            [WatchedOwners::forget_pages, WatchedOwners::look_at_all, |all| all.deleted(&SEVEN, 1)];
        for forget in reasons {
            let before = forgets();
            grow();
            forget(&all);
            assert!(watched.take_change(forgets()).is_none(), "of before");
            grow();
            assert!(watched.take_change(before).is_none(), "pages of before are not followed");
        }
    }

    #[tokio::test]
    async fn readers_wait_until_appends_are_learned_of() {
        let all = Arc::new(WatchedOwners::default());
        let at_once = || Deadline::within(std::time::Duration::ZERO);
        assert!(matches!(all.until_notified(at_once()).await, Err(Error::Unavailable(_))));
        all.set_notified(true);
        assert!(all.until_notified(crate::mongo::Deadline::within(crate::mongo::COMMAND)).await.is_ok());
        all.set_notified(false);
        assert!(all.until_notified(at_once()).await.is_err());
    }
}
