//! The keys of the items that a committer has stored last. With them the next commit of a busy history need
//! not search for its items in the database.

use std::collections::{HashMap, VecDeque};

use pagebucket_model::domain::OwnerId;

use super::key_search::KeySearch;
use crate::store::buckets::identity::ItemKey;

/// The most items remembered for one owner: those of some commits.
const MOST_ITEMS: usize = 512;

/// The most owners remembered by each committer: 7 MB at most, at 13 bytes an item. A further owner
/// clears all of them, which only costs reads.
const MOST_OWNERS: usize = 1_000;

/// Items of one history that are stored durably and without a gap: those of one commit, or of the last ones.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// The `seq` of the first item.
    pub first: u64,
    /// The key of each item, if it has one.
    pub keys: VecDeque<Option<ItemKey>>,
}

/// The last items of histories, as far as this committer has stored them.
#[derive(Debug, Default)]
pub(crate) struct Recent(HashMap<OwnerId, Run>);

impl Recent {
    pub(crate) fn knows(&self, owner: &OwnerId) -> bool {
        self.0.contains_key(owner)
    }

    pub(crate) fn put(&mut self, owner: OwnerId, run: Run) {
        if self.0.len() >= MOST_OWNERS && !self.knows(&owner) {
            self.0.clear();
        }
        let end = self.0.entry(owner).or_default();
        if end.first + end.keys.len() as u64 != run.first {
            // Items of another writer are in between.
            *end = Run { first: run.first, keys: VecDeque::new() };
        }
        end.keys.extend(run.keys);
        let surplus = end.keys.len().saturating_sub(MOST_ITEMS);
        end.keys.drain(..surplus);
        end.first += surplus as u64;
    }

    /// Advances a search over the remembered items, at most through `last`. Does nothing if they begin later
    /// than right after the position of the search.
    pub(crate) fn look(&self, owner: &OwnerId, search: &mut KeySearch, last: u64) {
        // Lines of an upload are compared with whole items, and only keys are remembered.
        let Some(end) = self.0.get(owner).filter(|_| !search.compares()) else { return };
        let Some(known) = (search.looked() + 1).checked_sub(end.first) else { return };
        let wanted = last.saturating_sub(search.looked());
        let keys = end.keys.iter().skip(known as usize).take(wanted as usize);
        keys.for_each(|key| search.look(*key, |_, _| false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagebucket_model::definition::Definition;
    use pagebucket_model::domain::{IdempotencyKey, Seq, SeqRange};

    fn owner() -> OwnerId {
        OwnerId::Integer(7)
    }

    fn key(index: usize) -> Option<ItemKey> {
        Some(ItemKey::new(&Definition::trades(), &owner(), &IdempotencyKey::parse(b"k").unwrap(), index))
    }

    /// Searches for item 0 from `looked` on. Returns how far the search comes, and where it finds the item.
    fn look(recent: &Recent, looked: u64, last: u64) -> (u64, Vec<SeqRange>) {
        let mut search = KeySearch::of_items([key(0).unwrap()].into(), looked);
        recent.look(&owner(), &mut search, last);
        (search.looked(), search.placed.ranges)
    }

    #[test]
    fn only_what_follows_without_a_gap_is_looked_at() {
        let mut recent = Recent::default();
        assert_eq!(look(&recent, 0, 5), (0, vec![]));
        recent.put(owner(), Run { first: 11, keys: vec![None, key(0)].into() });
        recent.put(owner(), Run { first: 13, keys: vec![key(1)].into() });
        let at = |seq| Seq::new(seq).unwrap();
        let found = vec![SeqRange { first: at(12), last: at(12) }];
        assert_eq!(look(&recent, 10, 13), (13, found.clone()));
        assert_eq!(look(&recent, 11, 12), (12, found));
        assert_eq!(look(&recent, 12, 13), (13, vec![]));
        assert_eq!(look(&recent, 9, 13), (9, vec![]), "item 10 is not known");
        assert_eq!(look(&recent, 13, 20), (13, vec![]));
        assert_eq!(look(&recent, 20, 20), (20, vec![]));
        // Another writer has appended item 14.
        recent.put(owner(), Run { first: 15, keys: vec![None].into() });
        assert_eq!(look(&recent, 10, 15), (10, vec![]));
        assert_eq!(look(&recent, 14, 15), (15, vec![]));
    }

    #[test]
    fn it_is_bounded() {
        let mut recent = Recent::default();
        for commit in 0..10 {
            recent.put(owner(), Run { first: 1 + commit * 100, keys: vec![None; 100].into() });
        }
        assert_eq!(look(&recent, 1_000 - MOST_ITEMS as u64, 1_000), (1_000, vec![]));
        assert_eq!(look(&recent, 999 - MOST_ITEMS as u64, 1_000).0, 999 - MOST_ITEMS as u64);
        for id in 1..=3 * MOST_OWNERS as u64 {
            recent.put(OwnerId::Integer(id), Run { first: 1, keys: vec![None].into() });
            assert!(recent.0.len() <= MOST_OWNERS);
        }
    }
}
