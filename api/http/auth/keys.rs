//! API keys of servers: from the key that a client presents to its principal.
//!
//! A key is looked up in the database by its hash, and its record is remembered. A remembered record is used
//! for 30 s without asking again, and for 60 s at most while the database does not answer: a revoked key is
//! refused everywhere within 60 s. After the first 30 s at most one request every 2 s refreshes it; the
//! others use the record, and do not wait. Hashes that the database does not know are remembered for 5 s, so
//! that a key that was presented before it was created works 5 s later. A key's expiry is compared with the
//! clock at each use.
//!
//! A flood of unknown keys cannot take the database's connections: a key is looked up once at a time, and at
//! most 16 keys are looked up at once. Malformed keys are refused without the database.

mod key;
mod owners;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use moka::sync::Cache;
use pagebucket_engine::internal::api_keys::{ApiKeys, KeyHash, KeyRecord};
use pagebucket_engine::{Deadline, Error, Store};
use pagebucket_model::domain::{Clock, Instant, OwnerType, Principal};
use tokio::sync::Mutex;
use tokio::time::timeout;

pub use key::{ApiKey, PREFIX};
pub use owners::{MOST_OWNERS, check as check_owner};

use super::refusal::Refusal;

/// How long a record is used without asking the database.
const FRESH: Duration = Duration::from_secs(30);

/// How long a record is used while the database does not answer.
const USABLE: Duration = Duration::from_secs(60);

/// How long a usable record is used before one request asks for it again.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a hash that the database does not know is refused without asking again.
const UNKNOWN: Duration = Duration::from_secs(5);

/// How long the database may take if a usable record is remembered.
const SOON: Duration = Duration::from_secs(1);

/// How many records are remembered, and how many unknown hashes.
const MOST: u64 = 10_000;

/// How many keys are looked up at once.
const LOOKUPS: usize = 16;

/// Milliseconds of an hour.
const HOUR: i64 = 3_600_000;

/// Finds the principals of keys. A server has one, because it remembers.
#[derive(Debug)]
pub struct Keys {
    api_keys: ApiKeys,
    /// The collections of owners, and the types of their ids.
    collections: BTreeMap<Box<str>, OwnerType>,
    clock: Clock,
    records: Cache<KeyHash, Arc<Remembered>>,
    /// The hashes that the database did not know, and when it was asked.
    unknown: Cache<KeyHash, Instant>,
    /// A look-up holds the one of its hash.
    lookups: [Arc<Mutex<()>>; LOOKUPS],
}

/// A record that the database had.
#[derive(Debug)]
struct Remembered {
    /// When it was asked.
    asked: Instant,
    revoked: bool,
    principal: Arc<Principal>,
    /// The hour of use that the database has, or is being told: hours since 1970.
    noted: AtomicI64,
    /// A request asks for the record. Until this moment no other does: milliseconds since 1970.
    asking_until: AtomicI64,
}

/// What is known of a key.
enum LookedUp {
    /// The database has this record of it.
    Known(Arc<Remembered>),
    /// The database does not know it.
    Unknown,
}

impl Keys {
    /// The keys of a store, for the owners of its definitions.
    pub fn new(store: &Store, clock: Clock) -> Self {
        let owners = store.definitions().owners().into_iter();
        Self {
            api_keys: store.api_keys().clone(),
            collections: owners.map(|owner| (owner.collection.as_str().into(), owner.kind)).collect(),
            clock,
            // Two clocks limit the age: that of the cache runs on when `clock` is set back, and `clock` runs
            // on while the machine sleeps.
            records: Cache::builder().max_capacity(MOST).time_to_live(USABLE).build(),
            unknown: Cache::builder().max_capacity(MOST).time_to_live(UNKNOWN).build(),
            lookups: Default::default(),
        }
    }

    /// The principal of a key that is valid and was looked up in the last 30 s, or in the last 60 s if
    /// another request is asking for it. `None` decides nothing: ask [`Keys::principal`]. Must be called on a
    /// tokio runtime.
    pub fn remembered(&self, key: &str) -> Option<Arc<Principal>> {
        let hash = ApiKey::hash_of(key)?;
        let is_asked_for = |record: &Arc<Remembered>| {
            self.clock.now().millis() < record.asking_until.load(Ordering::Relaxed)
        };
        let record = self.recall(hash, FRESH).or_else(|| self.recall(hash, USABLE).filter(is_asked_for))?;
        self.judge(hash, &record).ok()
    }

    /// Whether the key was valid when it was looked up in the last 60 s, and has not expired since.
    pub fn is_usable(&self, key: &str) -> bool {
        let record = ApiKey::hash_of(key).and_then(|hash| self.recall(hash, USABLE));
        record.is_some_and(|record| self.refused(&record).is_none())
    }

    /// The principal of a key. Asks the database unless it was asked for this key in the last 30 s, or in the
    /// last 60 s and another request is asking.
    ///
    /// # Errors
    /// The key is not valid, or the database does not answer before the deadline.
    pub async fn principal(&self, key: &str, deadline: Deadline) -> Result<Arc<Principal>, Refusal> {
        let hash = ApiKey::hash_of(key).ok_or_else(unknown)?;
        let known = match self.known(hash).or_else(|| self.asked_for(hash).map(LookedUp::Known)) {
            Some(known) => known,
            None => self.ask(hash, deadline).await?,
        };
        match known {
            LookedUp::Known(record) => self.judge(hash, &record),
            LookedUp::Unknown => Err(unknown()),
        }
    }

    /// Whether a key is valid now. Notes that it is used.
    fn judge(&self, hash: KeyHash, known: &Remembered) -> Result<Arc<Principal>, Refusal> {
        if let Some(words) = self.refused(known) {
            return Err(Refusal::Invalid(words.into(), Some(Arc::clone(&known.principal.name))));
        }
        self.note_use(hash, known, self.clock.now());
        Ok(Arc::clone(&known.principal))
    }

    /// Why a key is not valid now.
    fn refused(&self, known: &Remembered) -> Option<&'static str> {
        if known.revoked {
            return Some("The API key was revoked.");
        }
        let expired = known.principal.expires.is_some_and(|expires| expires <= self.clock.now());
        expired.then_some("The API key has expired.")
    }

    /// Tells the database once an hour that a key is used, in the background.
    fn note_use(&self, hash: KeyHash, known: &Remembered, now: Instant) {
        let hour = now.millis().div_euclid(HOUR);
        if known.noted.fetch_max(hour, Ordering::Relaxed) >= hour {
            return;
        }
        let (api_keys, name) = (self.api_keys.clone(), Arc::clone(&known.principal.name));
        let hour = Instant::from_millis(hour * HOUR).expect("the first year begins with a whole hour");
        tokio::spawn(async move {
            // A failed note is repeated after the next look-up, which finds an earlier hour.
            if let Err(error) = api_keys.note_use(hash, hour).await {
                tracing::warn!(%error, key = &*name, "the last use of a key was not noted");
            }
        });
    }

    /// The record of a key, if the database was asked less than `limit` ago.
    fn recall(&self, hash: KeyHash, limit: Duration) -> Option<Arc<Remembered>> {
        self.records.get(&hash).filter(|record| self.is_within(record.asked, limit))
    }

    /// What is known of a key without asking the database.
    fn known(&self, hash: KeyHash) -> Option<LookedUp> {
        if let Some(record) = self.recall(hash, FRESH) {
            return Some(LookedUp::Known(record));
        }
        let asked = self.unknown.get(&hash)?;
        self.is_within(asked, UNKNOWN).then_some(LookedUp::Unknown)
    }

    /// The record of a key if it is usable and another request asks for it. Otherwise the caller is the one
    /// that asks.
    fn asked_for(&self, hash: KeyHash) -> Option<Arc<Remembered>> {
        let (record, now) = (self.recall(hash, USABLE)?, self.clock.now().millis());
        let claim = |until| (until <= now).then_some(now + PATIENCE.as_millis() as i64);
        let claimed = record.asking_until.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim);
        claimed.is_err().then_some(record)
    }

    /// Whether `asked` is at most `limit` ago. A clock that was set back says no.
    fn is_within(&self, asked: Instant, limit: Duration) -> bool {
        let age = self.clock.now().millis() - asked.millis();
        (0..limit.as_millis() as i64).contains(&age)
    }

    /// The record of a key in the database; the remembered one while the database does not answer.
    async fn ask(&self, hash: KeyHash, deadline: Deadline) -> Result<LookedUp, Error> {
        let has_usable = self.recall(hash, USABLE).is_some();
        let soon = if has_usable { deadline.or_within(SOON) } else { deadline };
        let found = self.look_up(hash, soon).await;
        found.or_else(|error| self.recall(hash, USABLE).map(LookedUp::Known).ok_or(error))
    }

    async fn look_up(&self, hash: KeyHash, deadline: Deadline) -> Result<LookedUp, Error> {
        let turn = Arc::clone(&self.lookups[usize::from(hash.0[0]) % LOOKUPS]).lock_owned();
        let turn = timeout(deadline.remaining(), turn).await;
        let turn = turn.map_err(|_| Error::unavailable("other keys are being looked up"))?;
        // Another request may have asked while this one waited.
        if let Some(known) = self.known(hash) {
            return Ok(known);
        }
        let (asked, api_keys) = (self.clock.now(), self.api_keys.clone());
        // The look-up goes on if its client disconnects, and keeps its turn until it ends. Else the turn ends
        // after the record is remembered, so that who waits for it finds the record.
        let found = tokio::spawn(async move { (api_keys.find(hash, deadline).await, turn) });
        let (found, _turn) = found.await.expect("a look-up does not panic");
        let Some(record) = found? else {
            self.records.invalidate(&hash);
            self.unknown.insert(hash, asked);
            return Ok(LookedUp::Unknown);
        };
        let found = Arc::new(self.remember(record, asked));
        self.records.insert(hash, Arc::clone(&found));
        Ok(LookedUp::Known(found))
    }

    fn remember(&self, record: KeyRecord, asked: Instant) -> Remembered {
        let KeyRecord { name, scopes, owners, created: _, last_used, expires, revoked } = record;
        let principal = Principal {
            name: format!("key:{name}").into(),
            scopes,
            owners: owners::reached(owners.as_deref(), &self.collections),
            expires,
        };
        let noted = last_used.map_or(i64::MIN, |at| at.millis().div_euclid(HOUR));
        Remembered {
            asked,
            revoked: revoked.is_some(),
            principal: Arc::new(principal),
            noted: AtomicI64::new(noted),
            asking_until: AtomicI64::new(i64::MIN),
        }
    }
}

/// The refusal of a key that is malformed, or does not exist.
fn unknown() -> Refusal {
    Refusal::invalid("The API key is unknown.")
}
