//! What this instance knows of a history's markers, which say that pages were deleted
//! ([`crate::store::buckets::marker`]).
//!
//! The number `markers` of a history's document in `histories` grows before and after every marker is
//! written, and never falls. Each instance reads the numbers of all histories every [`Ages::poll`]. A damaged
//! number counts as unknown. At 0 no owner of the history has a marker: then reads look for none, and a known
//! tail has no age. An answer of 0 is relied on until it is older than [`Ages::tail`]. If the number has
//! grown, the instance forgets the tails, totals and cached pages of the history. While it is not 0, or not
//! known:
//!
//! - Reads of a history read its markers with its tail, and reads of one page with the page. So a retired or
//!   erased page is 410 at once, even while it is still stored. At its end a search checks that the first
//!   page that it needs still exists.
//! - A tag alone is not answered by 304, and pages stay in the page cache for at most [`Ages::tail`], also if
//!   the database does not answer; then they are 503. So no instance answers with a page that was deleted
//!   earlier than that.
//! - Reads from other members than the primary ask for a state that is not older than the last answer about
//!   markers.

use std::sync::atomic::{AtomicI64, Ordering};

use pagebucket_model::domain::Clock;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::fence::ReadTime;
use crate::capacity::Ages;
use crate::mongo::values::in_millis;

/// Before the first answer, while the number is damaged, and after a read has met a marker that is not
/// counted here yet.
const UNKNOWN: i64 = -1;

/// The markers of one history, as far as this instance knows.
#[derive(Debug)]
pub(crate) struct Markers {
    count: AtomicI64,
    /// The time of the last answer of 0, unless another answer came since.
    none: Mutex<Option<ReadTime>>,
    /// Sends when the number has changed.
    changes: watch::Sender<()>,
    pub(crate) ages: Ages,
}

impl Markers {
    pub(crate) fn new(ages: Ages) -> Self {
        let (count, changes) = (AtomicI64::new(UNKNOWN), watch::Sender::new(()));
        Self { count, none: Mutex::default(), changes, ages }
    }

    /// Whether an owner may have a marker: one was written, or the last answer that there are none is too
    /// old.
    pub(crate) fn any(&self, clock: &Clock) -> bool {
        let is_recent = |read: ReadTime| read.moment.is_within(self.ages.tail, clock);
        self.count() != 0 || !self.none.lock().is_some_and(is_recent)
    }

    /// The number of markers that were written, or less than 0.
    pub(crate) fn count(&self) -> i64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Learns the number, which was read at `read` if that is known; `None` if it is damaged. Returns whether
    /// it has changed.
    pub(crate) fn learn(&self, count: Option<i64>, read: Option<ReadTime>) -> bool {
        let count = count.unwrap_or(UNKNOWN);
        *self.none.lock() = read.filter(|_| count == 0);
        let changed = self.count.swap(count, Ordering::Relaxed) != count;
        if changed {
            self.changes.send_replace(());
        }
        changed
    }

    /// Notes that the number grows.
    pub(crate) fn raised(&self) {
        *self.none.lock() = None;
        self.count.store(UNKNOWN, Ordering::Relaxed);
        self.changes.send_replace(());
    }

    /// Notes that a read has met a marker.
    pub(crate) fn met(&self) {
        // Until the next answer.
        let _ = self.count.compare_exchange(0, UNKNOWN, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Until when a page may be opened after a tail that was read at `read`, or that follows from such a tail
    /// by appends that were acknowledged: in milliseconds since 1970, by the database's clock. `None` if that
    /// is past by the clocks of this machine. Then the page, and its successor, may have been deleted since.
    pub(crate) fn open_until(&self, read: ReadTime, clock: &Clock) -> Option<i64> {
        let age = in_millis(self.ages.tail);
        let until = |read: ReadTime| {
            read.moment.is_within(self.ages.tail, clock).then(|| read.server.saturating_add(age))
        };
        let none = *self.none.lock();
        none.and_then(until).max(until(read))
    }

    /// Whether nothing can come any more that relies on what was before a marker of this age, in milliseconds
    /// since 1970 by the database's clock. `settled` is that clock's settled time.
    pub(crate) fn is_aged(&self, since: i64, settled: Option<i64>) -> bool {
        let Ages { marker, command, .. } = self.ages;
        let age = in_millis(marker.saturating_sub(command));
        settled.is_some_and(|settled| settled - since >= age)
    }
}
