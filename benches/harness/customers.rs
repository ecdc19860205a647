//! Which customer a request is for.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::Rng;
use rand::rngs::StdRng;

/// A way to pick. Clones share their state.
#[derive(Clone)]
pub enum Customers {
    /// All equally often.
    Uniform(RangeInclusive<u64>),
    /// Customer `k` in proportion to `1 / k^s`: the shares of customers 1 to `k`, summed.
    Zipf(Arc<[f64]>),
    /// Each once, in order, and then none.
    Each(Arc<AtomicU64>, u64),
    /// Others in each round.
    InRound(fn(u64) -> Self),
}

impl Customers {
    pub fn one(customer: u64) -> Self {
        Self::Uniform(customer..=customer)
    }

    pub fn each(range: RangeInclusive<u64>) -> Self {
        Self::Each(Arc::new(AtomicU64::new(*range.start())), *range.end())
    }

    /// Zipf's law with exponent `s` over `count` customers, customer 1 the busiest.
    pub fn zipf(count: u32, s: f64) -> Self {
        let shares = || (1..=count).map(|k| f64::from(k).powf(-s));
        let total: f64 = shares().sum();
        let summed = shares().scan(0.0, |sum, share| {
            *sum += share / total;
            Some(*sum)
        });
        Self::Zipf(summed.collect())
    }

    /// Those of a round.
    pub fn in_round(&self, round: u64) -> Self {
        if let Self::InRound(of) = self { of(round) } else { self.clone() }
    }

    /// `None` when all have had their turn.
    pub fn pick(&self, rng: &mut StdRng) -> Option<u64> {
        match self {
            Self::Uniform(range) => Some(rng.random_range(range.clone())),
            Self::Zipf(summed) => {
                let at = rng.random::<f64>();
                // Rounding may leave the last sum a little below 1.
                Some(summed.partition_point(|sum| *sum < at).min(summed.len() - 1) as u64 + 1)
            }
            Self::Each(next, last) => {
                Some(next.fetch_add(1, Ordering::Relaxed)).filter(|customer| customer <= last)
            }
            Self::InRound(_) => None,
        }
    }
}
