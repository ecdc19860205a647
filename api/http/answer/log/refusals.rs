//! How many lines of the log refusals have: any client could fill the disk with them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use pagebucket_engine::internal::tasks;
use parking_lot::Mutex;
use tokio::runtime::Handle;

/// Lines of one address in a [`PERIOD`]. Its further refusals are only counted.
const LINES: u64 = 10;

const PERIOD: Duration = Duration::from_secs(60);

/// Most addresses that are counted one by one. All others are one.
const ADDRESSES: usize = 256;

/// The refusals of each address since the period began. `None` is all other addresses.
#[derive(Default)]
struct Counts(Mutex<HashMap<Option<IpAddr>, u64>>);

/// Counts refusals.
#[derive(Clone, Default)]
pub(crate) struct RefusalCounts(Arc<Counts>);

impl RefusalCounts {
    /// Counts a refusal of this address. Returns whether it has a line of its own.
    pub(crate) fn count(&self, address: IpAddr) -> bool {
        let mut counts = self.0.0.lock();
        let begins = counts.is_empty();
        let is_known = counts.len() < ADDRESSES || counts.contains_key(&Some(address));
        let count = counts.entry(is_known.then_some(address)).or_default();
        *count += 1;
        let has_line = *count <= LINES;
        drop(counts);
        if begins && Handle::try_current().is_ok() {
            tasks::start("refusals", end_period(Arc::downgrade(&self.0)));
        }
        has_line
    }
}

async fn end_period(counts: Weak<Counts>) {
    tokio::time::sleep(PERIOD).await;
    if let Some(counts) = counts.upgrade() {
        counts.tell();
    }
}

impl Counts {
    /// Writes a line for each address that had refusals without a line, and begins again.
    fn tell(&self) {
        for (peer, count) in std::mem::take(&mut *self.0.lock()) {
            if let Some(refusals) = count.checked_sub(LINES).filter(|more| *more > 0) {
                let peer = peer.map(tracing::field::display);
                tracing::warn!(target: "pagebucket::audit", peer, refusals, "more requests were refused");
            }
        }
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        self.tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_some_lines_a_minute() {
        let counts = RefusalCounts::default();
        let lines = |address: [u8; 4]| (0..100).filter(|_| counts.count(address.into())).count();
        assert_eq!((lines([192, 0, 2, 1]), lines([192, 0, 2, 1]), lines([192, 0, 2, 2])), (10, 0, 10));
        let others: usize = (0..=255).map(|last| lines([198, 51, 100, last])).sum();
        assert_eq!(others, 10 * (ADDRESSES - 2) + 10, "beyond the most addresses all are one");
        counts.0.tell();
        assert_eq!(lines([192, 0, 2, 1]), 10);
    }
}
