//! Which items of a keyed request are already stored, and whether the next may be appended. This file does not
//! use the database.

use std::sync::Arc;

use super::identity::ItemKey;
use crate::domain::{Seq, SeqRange};

/// Why a line of an upload is not stored and will never be stored under this key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineRefusal {
    /// An earlier attempt has stored another item under the line's number.
    Differs,
    /// An earlier attempt has not stored this line but has stored later lines.
    OutOfOrder,
    /// The line's number is greater than 2^32 - 1.
    BeyondNumbers,
}

/// The addresses of the first items of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(in crate::store::history) struct Placed {
    /// In the order of the items. Adjacent items are in one range.
    pub(in crate::store::history) ranges: Vec<SeqRange>,
    /// The number of items in `ranges` and `refused`.
    pub(in crate::store::history) count: usize,
    /// The refused lines of an upload, by their index.
    pub(in crate::store::history) refused: Vec<(usize, LineRefusal)>,
}

impl Placed {
    /// Notes that the next items are stored at `range`.
    pub(in crate::store::history) fn push(&mut self, range: SeqRange) {
        self.count += range.count() as usize;
        match self.ranges.last_mut() {
            Some(last) if last.last.plus(1) == range.first => last.last = range.last,
            _ => self.ranges.push(range),
        }
    }

    /// Notes that the next item is not stored and will never be.
    pub(in crate::store::history) fn refuse(&mut self, why: LineRefusal) {
        self.refused.push((self.count, why));
        self.count += 1;
    }

    /// The outcome of each item. `seqs` are the addresses of the stored ones, in order.
    pub(in crate::store::history) fn ends(
        &self,
        mut seqs: impl Iterator<Item = Seq>,
    ) -> impl Iterator<Item = Result<Seq, LineRefusal>> {
        let mut refused = self.refused.iter().peekable();
        (0..self.count).filter_map(move |index| match refused.next_if(|(refused, _)| *refused == index) {
            Some((_, why)) => Some(Err(*why)),
            None => seqs.next().map(Ok),
        })
    }
}

/// The search for a request's items. All of them are after the record's `from`, and every stored item from
/// there to `looked` has been examined.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::store::history) struct RequestSearch {
    keys: Arc<[ItemKey]>,
    looked: u64,
}

impl RequestSearch {
    /// A search for the items with these keys, all of which are after `from`.
    pub(in crate::store::history) fn new(keys: Arc<[ItemKey]>, from: u64) -> Self {
        Self { keys, looked: from }
    }

    /// The keys of all items of the request.
    pub(in crate::store::history) fn keys(&self) -> &[ItemKey] {
        &self.keys
    }

    /// The last `seq` that was examined.
    pub(in crate::store::history) fn looked(&self) -> u64 {
        self.looked
    }

    /// Whether all items are found.
    pub(in crate::store::history) fn is_over(&self, placed: &Placed) -> bool {
        placed.count == self.keys.len()
    }

    /// Examines the next stored item, the one right after `looked`.
    ///
    /// The items of a request are stored in order, so an item that is found is always the request's next one.
    pub(in crate::store::history) fn look(&mut self, placed: &mut Placed, key: Option<ItemKey>) {
        self.looked += 1;
        if key.is_some() && self.keys.get(placed.count).copied() == key {
            // Always `Ok`: a stored item has an address.
            if let Ok(seq) = Seq::new(self.looked) {
                placed.push(SeqRange { first: seq, last: seq });
            }
        }
    }

    /// Whether the request's next item may be appended right after `last`: every stored item up to there has
    /// been examined.
    pub(in crate::store::history) fn covers(&self, last: u64) -> bool {
        self.looked >= last
    }

    /// Notes that the items up to `last` are known without examining them: those of this request are placed,
    /// and the others belong to other requests.
    pub(in crate::store::history) fn known_through(&mut self, last: u64) {
        self.looked = self.looked.max(last);
    }

    /// The greatest `seq` up to which the search knows that no item of the request is stored. The items are
    /// stored in order, so none precedes the first.
    pub(in crate::store::history) fn none_through(&self, placed: &Placed) -> u64 {
        placed.ranges.first().map_or(self.looked, |first| first.first.get() - 1)
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
        let (mut search, mut placed) = (RequestSearch::new(Arc::clone(&keys), 7), Placed::default());
        assert!(search.covers(7) && !search.covers(8));
        search.look(&mut placed, None);
        assert_eq!(search.none_through(&placed), 8);
        for key in [Some(keys[0]), Some(keys[1]), Some(ItemKey([9; ItemKey::LEN])), Some(keys[2])] {
            assert!(!search.is_over(&placed));
            search.look(&mut placed, key);
        }
        let seq = |seq| Seq::new(seq).unwrap();
        let range = |first, last| SeqRange { first: seq(first), last: seq(last) };
        assert_eq!(placed.ranges, [range(9, 10), range(12, 12)]);
        assert!(search.is_over(&placed) && search.covers(12) && !search.covers(13));
        assert_eq!(search.none_through(&placed), 8);
    }
}
