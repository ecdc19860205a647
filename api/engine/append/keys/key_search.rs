//! Which items of a keyed request, or which lines of an upload, are already stored, and whether the next may
//! be appended. This file does not use the database.

use std::collections::HashSet;
use std::sync::Arc;

use pagebucket_model::domain::{Seq, SeqRange};
use pagebucket_model::item::Item;

use super::line_keys::Tag;
use crate::append::placed::{LineRefusal, Placed};
use crate::store::buckets::identity::ItemKey;

/// The search for stored items. All that it searches for are after the position where it began, and every
/// stored item from there to `looked` has been examined.
#[derive(Debug, Clone)]
pub(crate) struct KeySearch {
    wanted: SearchGoal,
    /// The items that are found, appended or refused.
    pub placed: Placed,
    /// The items with source keys that are stored, by their keys.
    pub found: Vec<(ItemKey, Seq)>,
    looked: u64,
}

#[derive(Debug, Clone)]
enum SearchGoal {
    /// Nothing: the items are certainly not stored, and have no keys.
    Nothing,
    /// The items of a request: all are valid, and they are stored in order without omissions.
    Items(Arc<[ItemKey]>),
    /// Lines of an upload, their numbers and items, in order of these: they are stored in this order, and
    /// some may be missing.
    Lines(Tag, Arc<[u32]>, Arc<[Item]>),
    /// Items with identities of their own, in the order in which they are to be stored. Other attempts may
    /// have stored any of them, in any order.
    Identified(Arc<[ItemKey]>, Arc<HashSet<ItemKey>>),
}

impl KeySearch {
    /// No search: the items are new.
    pub(crate) fn of_nothing() -> Self {
        Self::new(SearchGoal::Nothing, 0)
    }

    /// A search for the items with these keys, all of which are after `from`.
    pub(crate) fn of_items(keys: Arc<[ItemKey]>, from: u64) -> Self {
        Self::new(SearchGoal::Items(keys), from)
    }

    /// A search for lines with these numbers, all of which are after `from`.
    pub(crate) fn of_lines(tag: Tag, numbers: Arc<[u32]>, items: Arc<[Item]>, from: u64) -> Self {
        Self::new(SearchGoal::Lines(tag, numbers, items), from)
    }

    /// A search for items with source keys, all of which are after `from`. It finds them in any order, and
    /// never ends before the history does.
    pub(crate) fn of_identified(keys: Arc<[ItemKey]>, from: u64) -> Self {
        let all = Arc::new(keys.iter().copied().collect());
        Self::new(SearchGoal::Identified(keys, all), from)
    }

    fn new(wanted: SearchGoal, looked: u64) -> Self {
        Self { wanted, placed: Placed::default(), found: Vec::new(), looked }
    }

    /// The key of the item with this index, if there is one.
    pub(crate) fn key(&self, index: usize) -> Option<ItemKey> {
        match &self.wanted {
            SearchGoal::Nothing => None,
            SearchGoal::Items(keys) | SearchGoal::Identified(keys, _) => keys.get(index).copied(),
            SearchGoal::Lines(tag, numbers, _) => Some(tag.key(numbers[index])),
        }
    }

    /// The last `seq` that was examined. When a search for lines is over, all later lines of the upload are
    /// after it.
    pub(crate) fn looked(&self) -> u64 {
        self.looked
    }

    /// Whether all items are found or refused.
    pub(crate) fn is_over(&self) -> bool {
        self.placed.count
            >= match &self.wanted {
                SearchGoal::Nothing => 0,
                SearchGoal::Items(keys) | SearchGoal::Identified(keys, _) => keys.len(),
                SearchGoal::Lines(_, numbers, _) => numbers.len(),
            }
    }

    pub(crate) fn is_of_nothing(&self) -> bool {
        matches!(self.wanted, SearchGoal::Nothing)
    }

    /// Whether the search compares complete items, not only keys.
    pub(crate) fn compares(&self) -> bool {
        matches!(self.wanted, SearchGoal::Lines(..))
    }

    /// Examines the next stored item, the one right after `looked`. `same` returns whether it equals the
    /// given line with the given key. Does nothing when a search for lines is over.
    pub(crate) fn look(&mut self, key: Option<ItemKey>, same: impl FnOnce(&Item, ItemKey) -> bool) {
        // Always `Ok`: a stored item has an address.
        let found = Seq::new(self.looked + 1).map(|seq| SeqRange { first: seq, last: seq });
        let placed = &mut self.placed;
        match &self.wanted {
            SearchGoal::Nothing => {}
            // The items of a request are stored in order, so an item that is found is always the request's
            // next one.
            SearchGoal::Items(keys) => {
                if key.is_some() && keys.get(placed.count).copied() == key {
                    found.into_iter().for_each(|range| placed.push(range));
                }
            }
            SearchGoal::Identified(_, all) => {
                if let (Some(key), Ok(range)) = (key.filter(|key| all.contains(key)), found) {
                    self.found.push((key, range.first));
                }
            }
            SearchGoal::Lines(_, numbers, _) if placed.count == numbers.len() => return,
            SearchGoal::Lines(tag, numbers, items) => {
                if let Some((key, number)) = key.and_then(|key| Some((key, tag.number(key)?))) {
                    while numbers.get(placed.count).is_some_and(|line| *line < number) {
                        placed.refuse(LineRefusal::OutOfOrder);
                    }
                    let Some(line) = numbers.get(placed.count) else {
                        // A later line of the upload: the search for the later lines begins with it.
                        return;
                    };
                    if *line == number {
                        match found {
                            Ok(range) if same(&items[placed.count], key) => placed.push(range),
                            _ => placed.refuse(LineRefusal::Differs),
                        }
                    }
                }
            }
        }
        self.looked += 1;
    }

    /// Whether the next item may be appended right after `last`: every stored item up to there has been
    /// examined, if there is something to look for.
    pub(crate) fn covers(&self, last: u64) -> bool {
        self.looked >= last || self.is_of_nothing()
    }

    /// Notes that the items up to `last` are known without examining them: those of this request are placed,
    /// and the others belong to other requests.
    pub(crate) fn known_through(&mut self, last: u64) {
        self.looked = self.looked.max(last);
    }

    /// The greatest `seq` up to which the search knows that no item of the request is stored. The items are
    /// stored in order, so none precedes the first. `None` for lines: a part of an upload does not know where
    /// other parts are.
    pub(crate) fn none_through(&self) -> Option<u64> {
        let first = self.placed.ranges.first();
        (!self.compares()).then(|| first.map_or(self.looked, |first| first.first.get() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: u8) -> Arc<[ItemKey]> {
        (0..count).map(|index| ItemKey([index; ItemKey::LEN])).collect()
    }

    #[test]
    fn items_are_found_in_order_and_others_are_skipped() {
        let keys = keys(3);
        let mut search = KeySearch::of_items(Arc::clone(&keys), 7);
        let look = |search: &mut KeySearch, key| search.look(key, |_, _| false);
        assert!(search.covers(7) && !search.covers(8));
        look(&mut search, None);
        assert_eq!(search.none_through(), Some(8));
        for key in [Some(keys[0]), Some(keys[1]), Some(ItemKey([9; ItemKey::LEN])), Some(keys[2])] {
            assert!(!search.is_over());
            look(&mut search, key);
        }
        let seq = |seq| Seq::new(seq).unwrap();
        let range = |first, last| SeqRange { first: seq(first), last: seq(last) };
        assert_eq!(search.placed.ranges, [range(9, 10), range(12, 12)]);
        assert!(search.is_over() && search.covers(12) && !search.covers(13));
        assert_eq!(search.none_through(), Some(8));
    }

    #[test]
    fn identified_items_are_found_in_any_order() {
        let keys = keys(3);
        let mut search = KeySearch::of_identified(Arc::clone(&keys), 7);
        for key in [Some(keys[2]), None, Some(ItemKey([9; ItemKey::LEN])), Some(keys[0])] {
            search.look(key, |_, _| false);
        }
        let seq = |seq| Seq::new(seq).unwrap();
        assert_eq!(search.found, [(keys[2], seq(8)), (keys[0], seq(11))]);
        assert!(search.covers(11) && search.placed.count == 0 && search.key(1) == Some(keys[1]));
    }
}
