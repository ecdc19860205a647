//! The keys of the trades that a committer has stored last. With them the next commit of a busy history need
//! not search for its trades in the database.

use std::collections::{HashMap, VecDeque};

use super::identity::TradeKey;
use super::request::{Placed, RequestSearch};
use crate::domain::CustomerId;

/// The most trades remembered for one customer: those of some commits.
const MOST_TRADES: usize = 512;

/// The most customers remembered by each committer: 7 MB at most, at 13 bytes a trade. A further customer
/// clears all of them, which only costs reads.
const MOST_CUSTOMERS: usize = 1_000;

/// Adjacent trades of one history.
#[derive(Debug, Default)]
pub(in crate::store::history) struct Run {
    /// The `seq` of the first trade.
    pub(in crate::store::history) first: u64,
    /// The key of each trade, if it has one.
    pub(in crate::store::history) keys: VecDeque<Option<TradeKey>>,
}

/// The last trades of histories, as far as this committer has stored them durably.
#[derive(Debug, Default)]
pub(in crate::store::history) struct Recent(HashMap<CustomerId, Run>);

impl Recent {
    pub(in crate::store::history) fn knows(&self, customer: CustomerId) -> bool {
        self.0.contains_key(&customer)
    }

    /// Remembers the trades of a commit.
    pub(in crate::store::history) fn put(&mut self, customer: CustomerId, run: Run) {
        if self.0.len() >= MOST_CUSTOMERS && !self.knows(customer) {
            self.0.clear();
        }
        let end = self.0.entry(customer).or_default();
        if end.first + end.keys.len() as u64 != run.first {
            // Trades of another writer are in between.
            *end = Run { first: run.first, keys: VecDeque::new() };
        }
        end.keys.extend(run.keys);
        let surplus = end.keys.len().saturating_sub(MOST_TRADES);
        end.keys.drain(..surplus);
        end.first += surplus as u64;
    }

    /// Advances a search over the remembered trades, at most through `last`. Does nothing if they begin later
    /// than right after the position of the search.
    pub(in crate::store::history) fn look(
        &self,
        customer: CustomerId,
        search: &mut RequestSearch,
        placed: &mut Placed,
        last: u64,
    ) {
        let Some(end) = self.0.get(&customer) else { return };
        let Some(known) = (search.looked() + 1).checked_sub(end.first) else { return };
        let wanted = last.saturating_sub(search.looked());
        let keys = end.keys.iter().skip(known as usize).take(wanted as usize);
        keys.for_each(|key| search.look(placed, *key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{IdempotencyKey, Seq, SeqRange};

    fn customer() -> CustomerId {
        CustomerId::new(7).unwrap()
    }

    fn key(index: usize) -> Option<TradeKey> {
        Some(TradeKey::new(customer(), &IdempotencyKey::parse(b"k").unwrap(), index))
    }

    /// Searches for trade 0 from `looked` on. Returns how far the search comes, and where it finds the trade.
    fn look(recent: &Recent, looked: u64, last: u64) -> (u64, Vec<SeqRange>) {
        let (mut search, mut placed) =
            (RequestSearch::new([key(0).unwrap()].into(), looked), Placed::default());
        recent.look(customer(), &mut search, &mut placed, last);
        (search.looked(), placed.ranges)
    }

    #[test]
    fn only_what_follows_without_a_gap_is_looked_at() {
        let mut recent = Recent::default();
        assert_eq!(look(&recent, 0, 5), (0, vec![]));
        recent.put(customer(), Run { first: 11, keys: vec![None, key(0)].into() });
        recent.put(customer(), Run { first: 13, keys: vec![key(1)].into() });
        let at = |seq| Seq::new(seq).unwrap();
        let found = vec![SeqRange { first: at(12), last: at(12) }];
        assert_eq!(look(&recent, 10, 13), (13, found.clone()));
        assert_eq!(look(&recent, 11, 12), (12, found));
        assert_eq!(look(&recent, 12, 13), (13, vec![]));
        assert_eq!(look(&recent, 9, 13), (9, vec![]), "trade 10 is not known");
        assert_eq!(look(&recent, 13, 20), (13, vec![]));
        assert_eq!(look(&recent, 20, 20), (20, vec![]));
        // Another writer has appended trade 14.
        recent.put(customer(), Run { first: 15, keys: vec![None].into() });
        assert_eq!(look(&recent, 10, 15), (10, vec![]));
        assert_eq!(look(&recent, 14, 15), (15, vec![]));
    }

    #[test]
    fn it_is_bounded() {
        let mut recent = Recent::default();
        for commit in 0..10 {
            recent.put(customer(), Run { first: 1 + commit * 100, keys: vec![None; 100].into() });
        }
        assert_eq!(look(&recent, 1_000 - MOST_TRADES as u64, 1_000), (1_000, vec![]));
        assert_eq!(look(&recent, 999 - MOST_TRADES as u64, 1_000).0, 999 - MOST_TRADES as u64);
        for id in 1..=3 * MOST_CUSTOMERS as u64 {
            recent.put(CustomerId::new(id).unwrap(), Run { first: 1, keys: vec![None].into() });
            assert!(recent.0.len() <= MOST_CUSTOMERS);
        }
    }
}
