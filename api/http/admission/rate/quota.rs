//! What one client may still use, and the headers that say so.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::limits::{Class, RateLimits, refusal, seconds};
use crate::admission::client::Client;
use crate::problem::Problem;

/// The limit (draft-ietf-httpapi-ratelimit-headers-11): the units of a full bucket, and the seconds in which
/// an empty one is refilled.
pub(crate) const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// What is left of it (same draft): the units of the client's bucket, and the seconds until it is full; in a
/// refusal, until there is enough.
pub(crate) const LEFT: HeaderName = HeaderName::from_static("ratelimit");

/// Documents that the database only examines for one unit. mongod 6.0.5 reads a page in 0.3 ms, and examines
/// 1,000 pages of trades in 3 to 14 ms.
const EXAMINED: usize = 50;

/// The units of pages that are read, and of documents that are only examined.
pub(crate) fn of_search(read: usize, examined: usize) -> usize {
    read + examined / EXAMINED
}

/// What the client of a request may still use. Without limits it is nothing, and does nothing. Clones share
/// the state.
#[derive(Debug, Clone, Default)]
pub struct ClientQuota(Option<Arc<Quota>>);

#[derive(Debug)]
struct Quota {
    limits: Arc<RateLimits>,
    class: Class,
    client: Client,
    /// Units that the request has taken.
    taken: AtomicU32,
    /// Units that were left then.
    left: AtomicU32,
    /// Seconds after which the request may be sent again; 0 if it is not refused.
    again: AtomicU32,
}

impl ClientQuota {
    /// Of this client, for a request of this class.
    pub fn of(limits: &Arc<RateLimits>, class: Class, client: Client) -> Self {
        let quota = Quota {
            limits: Arc::clone(limits),
            class,
            client,
            taken: AtomicU32::new(0),
            left: AtomicU32::new(0),
            again: AtomicU32::new(0),
        };
        Self(Some(Arc::new(quota)))
    }

    /// Whether there are limits.
    pub fn is_limited(&self) -> bool {
        self.0.is_some()
    }

    /// Takes what a request that costs `units` in all has not taken yet. Called before the work.
    ///
    /// # Errors
    /// Too little is left.
    pub fn charge(&self, units: usize) -> Result<(), Problem> {
        let Some(quota) = &self.0 else { return Ok(()) };
        let Some(rest) = quota.rest(units) else { return Ok(()) };
        let balances = quota.limits.balances(quota.class);
        match balances.take(&quota.client, rest, Instant::now()) {
            Ok(left) => {
                quota.note(rest, left);
                Ok(())
            }
            Err(mut short) => {
                // The request would have to take everything again.
                short.wait += balances.interval * quota.taken.load(Ordering::Relaxed);
                quota.left.store(short.left, Ordering::Relaxed);
                quota.again.store(seconds(short.wait).max(1), Ordering::Relaxed);
                Err(refusal(quota.class, short))
            }
        }
    }

    /// The same for a request that was served: what is not left is owed.
    pub fn owe(&self, units: usize) {
        let Some(quota) = &self.0 else { return };
        if let Some(rest) = quota.rest(units) {
            quota.note(rest, quota.limits.balances(quota.class).owe(&quota.client, rest, Instant::now()));
        }
    }

    /// Takes units of another class for a part of a stream, and waits as long as that takes. One by one:
    /// among many small requests of the same client there is seldom room for several at once.
    pub async fn pace(&self, class: Class, units: usize) {
        let Some(quota) = &self.0 else { return };
        let balances = quota.limits.balances(class);
        for _ in 0..units {
            while let Err(short) = balances.take(&quota.client, NonZeroU32::MIN, Instant::now()) {
                tokio::time::sleep(short.wait).await;
            }
        }
    }

    /// The same at the end of a stream: what is not left is owed.
    pub fn owe_of(&self, class: Class, units: usize) {
        let Some(quota) = &self.0 else { return };
        let balances = quota.limits.balances(class);
        for part in parts(units, balances.burst) {
            balances.owe(&quota.client, part, Instant::now());
        }
    }

    /// Adds the fields that tell the client how it stands.
    pub fn tell(&self, headers: &mut HeaderMap) {
        let Some(quota) = &self.0 else { return };
        headers.insert(POLICY, quota.limits.policy(quota.class).clone());
        let (left, again) = (quota.left.load(Ordering::Relaxed), quota.again.load(Ordering::Relaxed));
        let balances = quota.limits.balances(quota.class);
        let full = seconds(balances.interval * (balances.burst.get() - left));
        let until = if again > 0 { again } else { full };
        let value = format!("\"{}\";r={left};t={until}", quota.class.name());
        headers.insert(LEFT, HeaderValue::try_from(value).expect("words of ours, and numbers"));
    }
}

impl Quota {
    /// What the request has not taken yet.
    fn rest(&self, units: usize) -> Option<NonZeroU32> {
        let most = self.limits.balances(self.class).burst.get();
        let units = u32::try_from(units).unwrap_or(u32::MAX).min(most);
        NonZeroU32::new(units.saturating_sub(self.taken.load(Ordering::Relaxed)))
    }

    fn note(&self, taken: NonZeroU32, left: u32) {
        self.taken.fetch_add(taken.get(), Ordering::Relaxed);
        self.left.store(left, Ordering::Relaxed);
    }
}

/// These units in parts of at most a burst.
fn parts(units: usize, burst: NonZeroU32) -> impl Iterator<Item = NonZeroU32> {
    let mut left = u32::try_from(units).unwrap_or(u32::MAX);
    std::iter::from_fn(move || {
        let part = NonZeroU32::new(left.min(burst.get()))?;
        left -= part.get();
        Some(part)
    })
}
