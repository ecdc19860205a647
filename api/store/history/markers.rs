//! What this instance knows of a history's markers, which say that pages were deleted ([`super::marker`]).
//!
//! The number `markers` of a history's document in `histories` grows before and after every marker is written. Each instance
//! reads it every [`Ages::poll`]. At 0 no owner of the history has a marker: then reads look for none, and a known tail has
//! no age.

use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::domain::Clock;
use crate::store::Ages;
use crate::store::moment::Moment;

/// Before the first answer, and after a read has met a marker that is not counted here yet.
const UNKNOWN: i64 = -1;

/// The markers of one history, as far as this instance knows.
#[derive(Debug)]
pub(super) struct Markers {
    count: AtomicI64,
    /// When the last question was asked that was answered with 0, unless another answer came since.
    none_at: Mutex<Option<Moment>>,
    /// Sends when the number has changed.
    changes: watch::Sender<()>,
    pub(super) ages: Ages,
}

impl Markers {
    pub(super) fn new(ages: Ages) -> Self {
        let (count, changes) = (AtomicI64::new(UNKNOWN), watch::Sender::new(()));
        Self { count, none_at: Mutex::default(), changes, ages }
    }

    /// Whether an owner may have a marker.
    pub(super) fn any(&self) -> bool {
        self.count() != 0
    }

    /// The number of markers that were written, or less than 0.
    pub(super) fn count(&self) -> i64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Learns the number; the question was asked at `asked`. Returns whether it has changed.
    pub(super) fn learn(&self, count: i64, asked: Moment) -> bool {
        *self.none_at.lock() = (count == 0).then_some(asked);
        let changed = self.count.swap(count, Ordering::Relaxed) != count;
        if changed {
            self.changes.send_replace(());
        }
        changed
    }

    /// Notes that the number grows.
    pub(super) fn raised(&self) {
        *self.none_at.lock() = None;
        self.count.store(UNKNOWN, Ordering::Relaxed);
        self.changes.send_replace(());
    }

    /// Notes that a read has met a marker.
    pub(super) fn met(&self) {
        // Until the next answer.
        let _ = self.count.compare_exchange(0, UNKNOWN, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Whether a page may be opened after a tail that was read at `read`, or that follows from such a tail by appends that were
    /// acknowledged. Otherwise its page, and its successor, may have been deleted since.
    pub(super) fn may_open(&self, read: Moment, clock: &Clock) -> bool {
        let none_at = *self.none_at.lock();
        let is_recent = |at: Moment| at.is_within(self.ages.tail, clock);
        none_at.is_some_and(is_recent) || is_recent(read)
    }
}
