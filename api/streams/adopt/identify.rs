//! Which items of a source are stored already: its parts become rows, each with its source key.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use pagebucket_engine::internal::{ItemKey, SourceKey};
use pagebucket_engine::{Engine, Error, Gone};
use pagebucket_model::domain::{OwnerId, Seq};

use super::rows::{Parts, task};
use super::source_item::{SizedItem, SourceItem, size};
use super::watch::NotStored;
use crate::ingest::{BATCH, Bad, Chunk, IncomingRows, Row, Unreadable};
use crate::patience::{OUTAGE, Patience};

/// How many histories are searched at once.
const SEARCHES: usize = 16;

/// Items of a group, and their bytes: each owner's stored items are searched once for all that it has in a
/// group.
const GROUP: usize = 20_000;
const GROUP_BYTES: usize = 16 * 1024 * 1024;

/// Makes rows of parts of a source, in groups: items of one group that are stored already are told apart with
/// one search for each owner.
#[derive(Debug, Clone)]
pub(crate) struct RowIdentifier {
    engine: Engine,
    group: u32,
    line: u64,
    /// Whether nothing of the source was ever adopted. If this is wrong, the append finds out.
    fresh: bool,
}

impl RowIdentifier {
    pub(crate) fn new(engine: &Engine, fresh: bool) -> Self {
        Self { engine: engine.clone(), group: 0, line: 0, fresh }
    }

    /// The same after something was adopted.
    pub(crate) fn later(&self) -> Self {
        Self { fresh: false, ..self.clone() }
    }

    /// The rows of the next group.
    ///
    /// # Errors
    /// The database does not answer.
    pub(crate) async fn rows(&mut self, parts: Vec<SizedItem>) -> Result<Chunk<NotStored>, Error> {
        self.group += 1;
        let mut keys: HashMap<OwnerId, Vec<ItemKey>> = HashMap::new();
        let mut distinct = HashSet::new();
        for (found, _) in &parts {
            if let SourceItem::Item(item) = found
                && distinct.insert(item.key)
                && !self.fresh
            {
                keys.entry(item.owner.clone()).or_default().push(item.key);
            }
        }
        let patience = Patience::of(OUTAGE);
        let searched = loop {
            match self.search(&keys).await {
                Ok(found) => break found,
                Err(error) => patience.after(error).await?,
            }
        };
        let row = |(found, size): SizedItem| {
            self.line += 1;
            let line = self.line;
            let not = |why| Err(Bad { line, size, why });
            match found {
                SourceItem::Refused(refused) => not(NotStored::Refused(refused)),
                SourceItem::Miscounted(line) => not(NotStored::Miscounted(line)),
                // The second of two with one key is no longer among the distinct ones.
                SourceItem::Item(item)
                    if searched.stored.contains(&item.key) || !distinct.remove(&item.key) =>
                {
                    not(NotStored::Present)
                }
                SourceItem::Item(item) => match searched.owners.get(&item.owner).copied().unwrap_or(Ok(0)) {
                    Ok(looked) => {
                        let source_key =
                            Some(Box::new(SourceKey { key: item.key, looked, group: self.group }));
                        Ok(Row { line, size, owner: item.owner, draft: item.draft, source_key })
                    }
                    // It may have been adopted, and deleted since.
                    Err(gone) => not(NotStored::Refused(item.refused(gone.to_string().into()))),
                },
            }
        };
        Ok(parts.into_iter().map(row).collect())
    }

    async fn search(&self, keys: &HashMap<OwnerId, Vec<ItemKey>>) -> Result<Searched, Error> {
        let mut searched = Searched::default();
        if keys.is_empty() {
            return Ok(searched);
        }
        let owners = self.engine.appends().with_items(keys.keys().cloned().collect()).await?;
        let searches = owners.into_iter().map(|owner| {
            let keys = keys[&owner].as_slice().into();
            async move { self.search_of(&owner, keys).await.map(|(found, looked)| (owner, found, looked)) }
        });
        let searches: Vec<_> = searches.collect();
        let found: Vec<_> = stream::iter(searches).buffer_unordered(SEARCHES).try_collect().await?;
        for (owner, found, looked) in found {
            searched.stored.extend(found.into_keys());
            searched.owners.insert(owner, looked);
        }
        Ok(searched)
    }

    /// The stored ones of an owner's keys, as far as its history is there.
    async fn search_of(
        &self,
        owner: &OwnerId,
        keys: Arc<[ItemKey]>,
    ) -> Result<(HashMap<ItemKey, Seq>, Result<u64, Gone>), Error> {
        let (mut after, mut retired) = (0, None);
        loop {
            match self.engine.appends().find_identified(owner, Arc::clone(&keys), after).await {
                Ok((found, looked)) => return Ok((found, retired.map_or(Ok(looked), Err))),
                Err(Error::Gone(gone)) => match gone {
                    Gone::Retired { first_seq, .. } if first_seq.get() > after + 1 => {
                        (after, retired) = (first_seq.get() - 1, Some(gone));
                    }
                    gone => return Ok((HashMap::new(), Err(gone))),
                },
                Err(error) => return Err(error),
            }
        }
    }
}

/// Makes rows of all parts, in a task of its own.
pub(crate) fn rows(mut parts: Parts, mut identifier: RowIdentifier) -> IncomingRows<NotStored> {
    task(async move |send| {
        loop {
            let (mut group, mut bytes, mut ended) = (Vec::with_capacity(GROUP), 0, None);
            while group.len() < GROUP && bytes < GROUP_BYTES {
                match parts.recv().await {
                    Some(Ok(batch)) => {
                        bytes += batch.iter().map(size).sum::<usize>();
                        group.extend(batch);
                    }
                    Some(Err(error)) => {
                        ended = Some(Some(Unreadable::failed(error)));
                        break;
                    }
                    None => {
                        ended = Some(None);
                        break;
                    }
                }
            }
            let mut rows = match identifier.rows(group).await {
                Ok(rows) => rows,
                Err(error) => return drop(send.send(Err(Unreadable::failed(error))).await),
            };
            while !rows.is_empty() {
                let rest = rows.split_off(rows.len().min(BATCH));
                if send.send(Ok(rows)).await.is_err() {
                    return;
                }
                rows = rest;
            }
            match ended {
                None => {}
                Some(None) => return,
                Some(Some(error)) => return drop(send.send(Err(error)).await),
            }
        }
    })
}

/// What a search has found.
#[derive(Debug, Default)]
struct Searched {
    /// Keys of items that are stored.
    stored: HashSet<ItemKey>,
    /// How far each history was searched, or why a part of it cannot be.
    owners: HashMap<OwnerId, Result<u64, Gone>>,
}
