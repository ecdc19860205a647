//! The result of a block of load, and the trades that it sent.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Timing;

/// Every trade sent in a run has a quantity of its own, so that stored trades can be told apart.
/// Trades written in preparation have smaller ones, see `history::quantity`.
static NEXT_QUANTITY: AtomicU64 = AtomicU64::new(10_000_000);

/// Quantities for the next `count` trades.
pub fn take_quantities(count: u64) -> Range<u64> {
    let first = NEXT_QUANTITY.fetch_add(count, Ordering::Relaxed);
    first..first + count
}

/// When answers count.
#[derive(Clone, Copy)]
pub struct Window {
    from: Instant,
    to: Option<Instant>,
}

impl Window {
    /// Begins now, with the warm-up. Without a timing it counts all answers, of load that ends by itself.
    pub fn open(timing: Option<Timing>) -> Self {
        let from = Instant::now() + timing.map_or(Duration::ZERO, |timing| timing.warm_up);
        Self { from, to: timing.map(|timing| from + timing.measured) }
    }

    pub fn is_over(self) -> bool {
        self.to.is_some_and(|to| Instant::now() >= to)
    }
}

/// The answers to one connection or to all.
#[derive(Default, Clone)]
pub struct Block {
    /// Trades acknowledged, those of the warm-up included, and the sum of their quantities: two sets that
    /// differ in one trade differ here.
    pub acknowledged: u64,
    pub sum: u64,
    /// Trades refused or not answered, those of the warm-up included.
    pub failed: u64,
    /// Acknowledged within the window: trades, or requests.
    pub measured: u64,
    /// Failed within the window.
    pub measured_failed: u64,
    /// Of acknowledged requests within the window, in microseconds.
    pub latencies: Vec<u32>,
    /// Time of the latest answer that counts.
    pub latest: Option<Instant>,
    /// How long the window was.
    pub length: Duration,
    /// Requests answered, those of the warm-up included.
    pub answers: u64,
    /// Processor time of the load.
    pub load: Duration,
}

impl Block {
    /// Notes the answer to a request that was sent at `sent`, for `count` trades or for itself alone.
    ///
    /// The first answer to a connection counts also after the window: some take longer than that.
    pub fn answered(&mut self, window: Window, sent: Instant, count: u64, good: bool) {
        self.answers += 1;
        let now = Instant::now();
        let none_yet = self.measured + self.measured_failed == 0;
        if now < window.from || (window.is_over() && !none_yet) {
            return;
        }
        self.latest = Some(now);
        self.count(count, now - sent, good);
    }

    /// Counts an answer that is known to be within the window.
    pub fn count(&mut self, count: u64, latency: Duration, good: bool) {
        if good {
            self.measured += count;
            self.latencies.push(micros(latency));
        } else {
            self.measured_failed += count;
        }
    }

    /// Notes whether trades were acknowledged.
    pub fn appended(&mut self, trades: &Range<u64>, acknowledged: bool) {
        let count = trades.end - trades.start;
        if acknowledged {
            self.acknowledged += count;
            self.sum += trades.clone().sum::<u64>();
        } else {
            self.failed += count;
        }
    }

    /// Adds the answers to another connection.
    pub fn add(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.sum += other.sum;
        self.failed += other.failed;
        self.measured += other.measured;
        self.measured_failed += other.measured_failed;
        self.latencies.extend(other.latencies);
        self.latest = self.latest.max(other.latest);
        self.answers += other.answers;
    }

    /// All connections as one. The window lasts to its end, or to the latest answer that counts.
    pub fn merge(blocks: impl IntoIterator<Item = Self>, window: Window) -> Self {
        let mut all = Self::default();
        blocks.into_iter().for_each(|block| all.add(block));
        let end = window.to.unwrap_or_else(Instant::now);
        all.length = all.latest.map_or(end, |latest| latest.max(end)) - window.from;
        all
    }
}

pub fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}
