//! What a stream has done.

use std::collections::HashSet;
use std::io;

use crate::domain::{CustomerId, Seq, SeqRange, Totals};
use crate::store::history::Cause;

/// What a stream has done, so far or in all.
#[derive(Debug, Default)]
pub struct Report {
    /// Rows that were trades, and were not refused later.
    pub read: u64,
    /// Rows that are stored.
    pub stored: u64,
    /// Rows that were no trades, or could not be stored where they stand.
    pub refused: u64,
    /// Where the rows are that are stored. It says something where all are of one customer.
    pub ranges: Ranges,
    /// Rows that may or may not be stored, batch by batch.
    pub unknown: Vec<Unknown>,
    /// Customers that have any of the stored rows.
    pub customers: Customers,
    /// What the last customer stored to holds now.
    pub last: Option<(CustomerId, Totals)>,
    /// Bytes of the file that are stored or refused.
    pub bytes: u64,
    /// Why it ended; `None` while it goes on, and when all rows have been dealt with.
    pub end: Option<End>,
    /// When it ended early: no row of an earlier line is left to be stored, and none of this line or a
    /// later one is stored. `None` where no line divides them.
    pub resume: Option<u64>,
    /// When it ended early: the lines of which nothing is known, in their order.
    pub unknown_lines: Vec<Lines>,
    /// When it ended early: the lines of which no trade is stored, in their order. The last has no end.
    pub left_lines: Vec<Lines>,
}

/// Lines, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// The first.
    pub first: u64,
    /// The last; `None` where it is the last of all.
    pub last: Option<u64>,
}

/// Why a stream ended early.
#[derive(Debug)]
pub enum End {
    /// A bad row, and it was to stop at the first.
    BadRow,
    /// Somebody stopped it.
    Interrupted,
    /// The file cannot be read any further.
    Unreadable(io::Error),
    /// The database failed.
    Database(Cause),
    /// The server to which it was sent has ended it, or has gone; in its words.
    Server(String),
}

/// Rows of one customer that may or may not be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Whose they are.
    pub customer: CustomerId,
    /// How many.
    pub rows: u64,
    /// The lines of the first and the last.
    pub lines: (u64, u64),
}

/// Sequence numbers in order of the rows, in bounded memory.
#[derive(Debug, Default)]
pub struct Ranges {
    kept: Vec<SeqRange>,
    omitted: u64,
    last: Option<Seq>,
}

impl Ranges {
    /// More ranges than this are only counted.
    pub const MOST: usize = 1_000;

    /// The first ranges.
    pub fn kept(&self) -> &[SeqRange] {
        &self.kept
    }

    /// How many more there are.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    pub(super) fn push(&mut self, seq: Seq) {
        let follows = self.last.is_some_and(|last| last.plus(1) == seq);
        self.last = Some(seq);
        if self.omitted > 0 || (!follows && self.kept.len() == Self::MOST) {
            self.omitted += u64::from(!follows);
        } else if let (Some(last), true) = (self.kept.last_mut(), follows) {
            last.last = seq;
        } else {
            self.kept.push(SeqRange { first: seq, last: seq });
        }
    }
}

/// How many different customers there are, in bounded memory.
#[derive(Debug)]
pub struct Customers {
    seen: HashSet<CustomerId>,
    most: usize,
    more: bool,
}

impl Default for Customers {
    fn default() -> Self {
        Self::up_to(Self::MOST)
    }
}

impl Customers {
    /// More customers than this are not told apart by an import.
    pub const MOST: usize = 1_000_000;

    /// More customers than `most` are not told apart.
    pub fn up_to(most: usize) -> Self {
        Self { seen: HashSet::new(), most, more: false }
    }

    /// How many there are; at least so many where there are [`Customers::more`].
    pub fn count(&self) -> usize {
        self.seen.len()
    }

    /// Whether there are more than are told apart.
    pub fn more(&self) -> bool {
        self.more
    }

    pub(super) fn add(&mut self, customer: CustomerId) {
        if self.seen.len() < self.most {
            self.seen.insert(customer);
        } else {
            self.more |= !self.seen.contains(&customer);
        }
    }
}

impl Report {
    /// Rows that were read and not sent, or sent and surely not stored.
    pub fn left(&self) -> u64 {
        self.read - self.stored - self.unknown.iter().map(|unknown| unknown.rows).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_bounded() {
        let mut ranges = Ranges::default();
        let push = |ranges: &mut Ranges, seq| ranges.push(Seq::new(seq).unwrap());
        for number in 0..2 * Ranges::MOST as u64 {
            push(&mut ranges, number * 3 + 1);
            push(&mut ranges, number * 3 + 2);
        }
        assert_eq!((ranges.kept().len(), ranges.omitted()), (Ranges::MOST, Ranges::MOST as u64));
        assert!(ranges.kept().iter().all(|range| range.count() == 2));
    }
}
