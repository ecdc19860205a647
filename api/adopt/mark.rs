//! Which items of a source are stored already.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::time::{Instant, sleep};

use super::rows::{Found, Part};
use super::told::NotStored;
use crate::domain::OwnerId;
use crate::ingest::{Bad, Chunk, Row};
use crate::store::Error;
use crate::store::history::{Engine, ItemKey, Mark};

/// How many histories are searched at once.
const SEARCHES: usize = 16;

/// How long the database may fail.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes rows of parts of a source, in groups: items of one group that are stored already are told apart with one search for
/// each owner.
#[derive(Debug, Clone)]
pub(super) struct Marker {
    engine: Engine,
    group: u32,
    line: u64,
    /// Whether nothing of the source was ever adopted. What is wrong about that is found when items are appended.
    fresh: bool,
}

impl Marker {
    pub(super) fn new(engine: &Engine, fresh: bool) -> Self {
        Self { engine: engine.clone(), group: 0, line: 0, fresh }
    }

    /// The same after something was adopted.
    pub(super) fn later(&self) -> Self {
        Self { fresh: false, ..self.clone() }
    }

    /// The rows of the next group.
    ///
    /// # Errors
    /// The database does not answer.
    pub(super) async fn rows(&mut self, parts: Vec<Part>) -> Result<Chunk<NotStored>, Error> {
        self.group += 1;
        let mut keys: HashMap<OwnerId, Vec<ItemKey>> = HashMap::new();
        let mut distinct = HashSet::new();
        for (found, _) in &parts {
            if let Found::Item(item) = found
                && distinct.insert(item.key)
                && !self.fresh
            {
                keys.entry(item.owner.clone()).or_default().push(item.key);
            }
        }
        let patience = Patience::new();
        let (stored, looked) = loop {
            match self.search(&keys).await {
                Ok(found) => break found,
                Err(error) => patience.after(error).await?,
            }
        };
        let row = |(found, size): Part| {
            self.line += 1;
            let line = self.line;
            let not = |why| Err(Bad { line, size, why });
            match found {
                Found::Refused(refused) => not(NotStored::Refused(refused)),
                Found::Miscounted(told) => not(NotStored::Miscounted(told)),
                // The second of two with one key is no longer among the distinct ones.
                Found::Item(item) if stored.contains(&item.key) || !distinct.remove(&item.key) => {
                    not(NotStored::Present)
                }
                Found::Item(item) => {
                    let looked = looked.get(&item.owner).copied().unwrap_or(0);
                    let mark = Some(Box::new(Mark { key: item.key, looked, group: self.group }));
                    Ok(Row { line, size, owner: item.owner, draft: item.draft, mark })
                }
            }
        };
        Ok(parts.into_iter().map(row).collect())
    }

    /// The stored ones of these keys, and how far each history was searched.
    async fn search(
        &self,
        keys: &HashMap<OwnerId, Vec<ItemKey>>,
    ) -> Result<(HashSet<ItemKey>, HashMap<OwnerId, u64>), Error> {
        if keys.is_empty() {
            return Ok(Default::default());
        }
        let owners = self.engine.with_items(keys.keys().cloned().collect()).await?;
        let searches = owners.into_iter().map(|owner| {
            let keys = keys[&owner].as_slice().into();
            async move { self.engine.find_marked(&owner, keys, 0).await.map(|found| (owner, found)) }
        });
        let searches: Vec<_> = searches.collect();
        let found: Vec<_> = stream::iter(searches).buffer_unordered(SEARCHES).try_collect().await?;
        let (mut stored, mut looked) = (HashSet::new(), HashMap::new());
        for (owner, (found, through)) in found {
            stored.extend(found.into_keys());
            looked.insert(owner, through);
        }
        Ok((stored, looked))
    }
}

/// How long a database may fail.
#[derive(Debug)]
pub(super) struct Patience(Instant);

impl Patience {
    pub(super) fn new() -> Self {
        Self(Instant::now())
    }

    /// Waits after `error` until the next attempt may begin.
    ///
    /// # Errors
    /// Returns `error` if another attempt would not help, or the patience is used up.
    pub(super) async fn after(&self, error: Error) -> Result<(), Error> {
        match error {
            Error::Unavailable(why) if self.0.elapsed() < PATIENCE => {
                tracing::warn!(why, "a database does not answer");
                sleep(Duration::from_secs(1)).await;
                Ok(())
            }
            error => Err(error),
        }
    }
}
