//! What a block of load has done, and the trades that it sent.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::settings::Timing;

/// Every trade sent in a run has a quantity of its own, so that stored trades can be told apart.
/// Trades written in preparation have smaller ones, see `history::quantity`.
static NEXT_QUANTITY: AtomicU64 = AtomicU64::new(10_000_000);

/// Quantities for the next `count` trades.
pub fn take_quantities(count: u64) -> Range<u64> {
    let first = NEXT_QUANTITY.fetch_add(count, Ordering::Relaxed);
    first..first + count
}

/// The least quantity that no trade has yet.
pub fn next_quantity() -> u64 {
    NEXT_QUANTITY.load(Ordering::Relaxed)
}

/// How many trades, and the sum of their quantities: two sets that differ in one trade differ here.
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tally {
    pub count: u64,
    pub sum: u64,
}

impl Tally {
    fn add(&mut self, quantities: &Range<u64>) {
        self.count += quantities.end - quantities.start;
        self.sum += quantities.clone().sum::<u64>();
    }
}

/// When answers count.
#[derive(Clone, Copy)]
pub struct Window {
    from: Instant,
    to: Option<Instant>,
}

impl Window {
    /// Begins now, with the warm-up.
    pub fn open(timing: Timing) -> Self {
        let from = Instant::now() + timing.warm_up;
        Self { from, to: Some(from + timing.measured) }
    }

    /// For load that ends by itself.
    pub fn unbounded() -> Self {
        Self { from: Instant::now(), to: None }
    }

    pub fn is_over(self) -> bool {
        self.to.is_some_and(|to| Instant::now() >= to)
    }

    /// From its start to its end, or to the latest answer that counts.
    fn length(self, latest: Option<Instant>) -> Duration {
        let end = self.to.unwrap_or_else(Instant::now);
        latest.map_or(end, |latest| latest.max(end)) - self.from
    }
}

/// What was answered, by one connection or by all.
#[derive(Default)]
pub struct Block {
    /// Trades acknowledged, those of the warm-up included.
    pub acknowledged: Tally,
    /// Trades refused or not answered, those of the warm-up included.
    pub failed: u64,
    /// What was acknowledged within the window: trades, or requests.
    pub measured: u64,
    /// What failed within the window.
    pub measured_failed: u64,
    /// Of acknowledged requests within the window, in microseconds.
    pub latencies: Vec<u32>,
    /// Of the latest answer that counts.
    pub latest: Option<Instant>,
    /// How long the window was.
    pub length: Duration,
}

impl Block {
    /// Notes the answer to a request that was sent at `sent`, for so many trades, or for itself alone.
    ///
    /// A connection's first answer counts also after the window: some take longer than that.
    pub fn answered(&mut self, window: Window, sent: Instant, count: u64, good: bool) {
        let now = Instant::now();
        let none_yet = self.measured + self.measured_failed == 0;
        if now < window.from || (window.is_over() && !none_yet) {
            return;
        }
        self.latest = Some(now);
        if good {
            self.measured += count;
            self.latencies.push(u32::try_from((now - sent).as_micros()).unwrap_or(u32::MAX));
        } else {
            self.measured_failed += count;
        }
    }

    /// Of load that has looked at its own window.
    pub fn of(measured: u64, measured_failed: u64, mut latencies: Vec<u32>, length: Duration) -> Self {
        latencies.sort_unstable();
        Self { measured, measured_failed, latencies, length, ..Self::default() }
    }

    /// Notes what became of trades.
    pub fn appended(&mut self, trades: &Range<u64>, stored: bool) {
        if stored {
            self.acknowledged.add(trades);
        } else {
            self.failed += trades.end - trades.start;
        }
    }

    /// All connections as one.
    pub fn merge(blocks: impl IntoIterator<Item = Self>, window: Window) -> Self {
        let mut all = Self::default();
        for block in blocks {
            all.acknowledged.count += block.acknowledged.count;
            all.acknowledged.sum += block.acknowledged.sum;
            all.failed += block.failed;
            all.measured += block.measured;
            all.measured_failed += block.measured_failed;
            all.latencies.extend(block.latencies);
            all.latest = all.latest.max(block.latest);
        }
        all.length = window.length(all.latest);
        all.latencies.sort_unstable();
        all
    }
}
