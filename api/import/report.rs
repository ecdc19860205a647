//! What an import has done.

use std::collections::HashSet;
use std::io;

use crate::domain::{CustomerId, Totals};
use crate::store::trades::Cause;

/// What an import has done, so far or in all.
#[derive(Debug, Default)]
pub struct Report {
    /// Rows that were trades.
    pub read: u64,
    /// Rows that are stored.
    pub stored: u64,
    /// Rows that were no trades.
    pub refused: u64,
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
}

/// Why an import ended early.
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

/// How many different customers there are, in bounded memory.
#[derive(Debug, Default)]
pub struct Customers {
    seen: HashSet<CustomerId>,
    more: bool,
}

impl Customers {
    /// More customers than this are not told apart.
    pub const MOST: usize = 1_000_000;

    /// How many there are; at least so many when [`Customers::more`].
    pub fn count(&self) -> usize {
        self.seen.len()
    }

    /// Whether there are more than [`Customers::MOST`].
    pub fn more(&self) -> bool {
        self.more
    }

    pub(super) fn add(&mut self, customer: CustomerId) {
        if self.seen.len() < Self::MOST {
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
