//! The report of a stream.

use std::collections::HashSet;
use std::io;

use crate::domain::{OwnerId, Seq, SeqRange};
use crate::store::history::Cause;

/// The counts of a stream, so far or at its end.
#[derive(Debug, Default)]
pub struct Report {
    /// Rows that were items, and were not refused later.
    pub read: u64,
    /// Rows that are stored.
    pub stored: u64,
    /// Rows that were no items, or were refused as such.
    pub refused: u64,
    /// Sequence numbers of the stored rows. Only meaningful if all are of one owner.
    pub ranges: Ranges,
    /// Rows that may or may not be stored, batch by batch.
    pub unknown: Vec<Unknown>,
    /// Owners that have any of the stored rows.
    pub owners: Owners,
    /// The last owner with a stored row, and the last sequence number of its history.
    pub last: Option<(OwnerId, Seq)>,
    /// Bytes of the file that are stored or refused.
    pub bytes: u64,
    /// Why it ended early; `None` while it runs, and if every row has an outcome.
    pub end: Option<End>,
    /// If it ended early: no row before this line is left, and no row from this line on is stored. `None` if no line
    /// divides them.
    pub resume: Option<u64>,
    /// If it ended early: the lines with an unknown outcome, in order.
    pub unknown_lines: Vec<Lines>,
    /// If it ended early: the lines that are not stored, in order. The last range has no end.
    pub left_lines: Vec<Lines>,
}

/// Lines, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// The first.
    pub first: u64,
    /// The last; `None` for no end.
    pub last: Option<u64>,
}

/// Why a stream ended early.
#[derive(Debug)]
pub enum End {
    /// A bad row, in a strict stream.
    BadRow,
    /// A signal, or the stop of the server.
    Interrupted,
    /// The rest of the file cannot be read.
    Unreadable(io::Error),
    /// The database failed.
    Database(Cause),
    /// The server of an import ended it, or was lost; in its words.
    Server(String),
}

/// Rows of one owner that may or may not be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The owner.
    pub owner: OwnerId,
    /// Number of rows.
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
    /// Maximum number of ranges that are kept. Others are only counted.
    pub const MOST: usize = 1_000;

    /// The first ranges.
    pub fn kept(&self) -> &[SeqRange] {
        &self.kept
    }

    /// Number of other ranges.
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

/// Number of different owners, in bounded memory.
#[derive(Debug)]
pub struct Owners {
    seen: HashSet<OwnerId>,
    most: usize,
    more: bool,
}

impl Default for Owners {
    fn default() -> Self {
        Self::up_to(Self::MOST)
    }
}

impl Owners {
    /// Maximum number of owners that an import tells apart.
    pub const MOST: usize = 1_000_000;

    /// Tells at most `most` owners apart.
    pub fn up_to(most: usize) -> Self {
        Self { seen: HashSet::new(), most, more: false }
    }

    /// Their number, or the least possible number if there are [`Owners::more`].
    pub fn count(&self) -> usize {
        self.seen.len()
    }

    /// Whether there are more than can be told apart.
    pub fn more(&self) -> bool {
        self.more
    }

    pub(super) fn add(&mut self, owner: &OwnerId) {
        if self.seen.len() < self.most {
            self.seen.insert(owner.clone());
        } else {
            self.more |= !self.seen.contains(owner);
        }
    }
}

impl Report {
    /// Rows that were read and are certainly not stored.
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
