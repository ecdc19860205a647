//! Appends items that have identities of their own, such as those of another collection: each is stored once,
//! however often and by however many processes it is appended, and however much later.
//!
//! Every item is stored with its key, and there is no record of what was appended: what is stored says it.
//!
//! - Before an item is appended at `seq` s, its key has been looked for, at majority, in all of 1 to s - 1.
//!   The caller has looked up to [`SourceKey::looked`]; the commit looks at the rest, and at what is added
//!   whenever an append is refused ([`keys`](crate::append::keys)). An append compares its position, so
//!   nothing comes between the search and the append.
//! - A commit that finds any item of a request stores nothing of it
//!   ([`Contended`](super::request::AppendCause::Contended)). So does one that fails. The next attempt first
//!   searches for all items of the request, in any order: another process may have stored them in another
//!   one.
//! - The keys of a *group* differ from each other. So what this process has stored of a group, directly after
//!   where the search had come, need not be searched for others of the group.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pagebucket_model::domain::{OwnerId, Seq, SeqRange};

use super::appender::Appender;
use super::input::{Append, IdentifiedSoFar, SourceKey};
use super::request::{AppendError, AppendProgress, Appended};
use crate::append::keys::{Goal, KeySearch, scan};
use crate::mongo::{COMMAND, Deadline, Error, Result};
use crate::store::buckets::identity::ItemKey;
use crate::store::buckets::tails::Tails;

#[doc(hidden)]
impl Appender {
    /// Those of these owners that have items, or had some.
    pub async fn with_items(&self, owners: Vec<OwnerId>) -> Result<HashSet<OwnerId>> {
        let tails = Tails::read(&self.parts.source, &owners, None, Deadline::within(COMMAND)).await;
        let mut found = HashSet::new();
        for owner in owners {
            match tails.of(&owner) {
                Ok(None) => {}
                Ok(Some(_)) | Err(Error::Gone(_)) => drop(found.insert(owner)),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The items with these keys that the owner has, at majority, and the last `seq` of the history that was
    /// examined. No more than the keys and a thousand pages are in memory.
    ///
    /// # Errors
    /// The database does not answer in time, the owner is erased, items after `after` are deleted, or a
    /// bucket is corrupt.
    pub async fn find_identified(
        &self,
        owner: &OwnerId,
        keys: Arc<[ItemKey]>,
        after: u64,
    ) -> Result<(HashMap<ItemKey, Seq>, u64)> {
        let mut search = KeySearch::of_identified(keys, after);
        let goal = Goal::End { after };
        let of = || self.parts.source.of(owner, Deadline::within(COMMAND));
        while !scan(of(), &mut [&mut search], goal).await? {}
        let looked = search.looked();
        Ok((search.found.into_iter().collect(), looked))
    }

    /// Stores items with source keys, in their order, except those that are stored.
    pub(super) async fn append_identified(
        &self,
        append: Append<'_>,
        keys: Vec<SourceKey>,
        so_far: &mut IdentifiedSoFar,
    ) -> Appended {
        let Append { owner, items, arrived, terms, mut waiting, .. } = append;
        let (mut found, mut searched) = (HashMap::new(), 0);
        if std::mem::replace(&mut so_far.failed, true) {
            so_far.own = None;
            let looked = keys.iter().map(|source| source.looked).min().unwrap_or(0);
            let keys = keys.iter().map(|source| source.key).collect();
            let search = self.find_identified(&owner, keys, looked).await;
            (found, searched) = search.map_err(AppendError::nothing)?;
        }
        let mut progress = AppendProgress::default();
        let mut items = items.into_iter().zip(keys).peekable();
        while let Some((item, SourceKey { key, looked, group })) = items.next() {
            if let Some(&seq) = found.get(&key) {
                progress.placed.push(SeqRange { first: seq, last: seq });
                continue;
            }
            let (mut batch, mut keys) = (vec![item], vec![key]);
            let follows = |next: &SourceKey| next.group == group && !found.contains_key(&next.key);
            while let Some((item, next)) = items.next_if(|(_, next)| follows(next)) {
                batch.push(item);
                keys.push(next.key);
            }
            let own = so_far.own.filter(|(own, _)| *own == group).map_or(0, |(_, end)| end);
            let from = looked.max(searched).max(own);
            let batch = Append::new(owner.clone(), batch, arrived, terms);
            let batch = Append { waiting: waiting.as_deref_mut(), ..batch };
            let appended = self.enqueue_all(batch, KeySearch::of_identified(keys.into(), from)).await;
            let (placed, failed) = match appended {
                Ok(done) => (done.placed, None),
                Err(AppendError { progress, unknown, cause }) => (progress.placed, Some((unknown, cause))),
            };
            let end = match placed.ranges[..] {
                [range] if range.first.get() == from + 1 => range.last.get(),
                _ => from,
            };
            // Beyond that, the search after a failure has looked for the items of this call only.
            so_far.own = (searched <= looked.max(own)).then_some((group, end));
            progress.stored |= placed.count > 0;
            placed.ranges.into_iter().for_each(|range| progress.placed.push(range));
            if let Some((unknown, cause)) = failed {
                return Err(AppendError { progress, unknown, cause });
            }
        }
        so_far.failed = false;
        Ok(progress)
    }
}
