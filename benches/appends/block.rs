//! What a block of load has done, and the trades that it sent.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::settings::Timing;

/// Every trade sent in a run has a quantity of its own, so that stored trades can be told apart.
/// Trades written in preparation have smaller ones.
static NEXT_QUANTITY: AtomicU64 = AtomicU64::new(1_000_000);

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

    fn holds(self, at: Instant) -> bool {
        at >= self.from && self.to.is_none_or(|to| at < to)
    }

    fn length(self) -> Duration {
        self.to.unwrap_or_else(Instant::now) - self.from
    }
}

/// What was answered, by one connection or by all.
#[derive(Default)]
pub struct Block {
    /// Trades acknowledged, those of the warm-up included.
    pub acknowledged: Tally,
    /// Trades refused or not answered, those of the warm-up included.
    pub failed: u64,
    /// Trades acknowledged within the window.
    pub measured: u64,
    /// Trades that failed within the window.
    pub measured_failed: u64,
    /// Of acknowledged requests within the window, in microseconds.
    pub latencies: Vec<u32>,
    /// How long the window was.
    pub length: Duration,
}

impl Block {
    /// Notes the answer to a request that was sent at `sent`.
    pub fn answered(&mut self, window: Window, sent: Instant, trades: &Range<u64>, stored: bool) {
        let (now, count) = (Instant::now(), trades.end - trades.start);
        if stored {
            self.acknowledged.add(trades);
        } else {
            self.failed += count;
        }
        if !window.holds(now) {
            return;
        }
        if stored {
            self.measured += count;
            self.latencies.push(u32::try_from((now - sent).as_micros()).unwrap_or(u32::MAX));
        } else {
            self.measured_failed += count;
        }
    }

    /// All connections as one.
    pub fn merge(blocks: impl IntoIterator<Item = Self>, window: Window) -> Self {
        let mut all = Self { length: window.length(), ..Self::default() };
        for block in blocks {
            all.acknowledged.count += block.acknowledged.count;
            all.acknowledged.sum += block.acknowledged.sum;
            all.failed += block.failed;
            all.measured += block.measured;
            all.measured_failed += block.measured_failed;
            all.latencies.extend(block.latencies);
        }
        all.latencies.sort_unstable();
        all
    }
}
