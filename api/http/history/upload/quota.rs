//! How many uploads may be under way, and how much memory they hold together.

use crate::http::places::Places;
use crate::ingest::Budget;

/// Lines that wait, of an upload to many histories: enough that a batch holds more than one line of a customer.
pub const WAITING_OF_MANY: usize = 50_000;

/// What all uploads of a process may hold beyond their own shares, in bytes ([`Budget`]): enough for one of many
/// customers to have [`WAITING_OF_MANY`] lines waiting.
///
/// Besides, an upload takes up to about half a MiB that is not counted there: its own share, the buffers of its
/// connection, pieces that are being parsed, the customers of its summary, and the problems in it.
const BUDGET: usize = 24 * 1024 * 1024;

/// How many uploads may be under way, and how much they may hold together. Clones share both.
#[derive(Debug, Clone)]
pub struct Uploads {
    places: Places,
    budget: Budget,
}

impl Uploads {
    /// At most this many at once.
    pub fn new(most: usize) -> Self {
        Self { places: Places::new(most, "uploads"), budget: Budget::of(BUDGET) }
    }

    /// Their places.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// What they may hold together.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Bytes that they hold now.
    pub fn held(&self) -> u64 {
        self.budget.held()
    }
}
