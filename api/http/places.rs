//! Limits on the number of requests of one kind that are under way at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::{Kind, Problem};

/// The free places for requests of one kind. Clones share them.
#[derive(Debug, Clone)]
pub struct Places {
    free: Arc<Semaphore>,
    /// What takes the places, in the plural.
    what: &'static str,
}

/// One place, taken until it is dropped.
pub type Place = OwnedSemaphorePermit;

/// The place of a request whose answer outlives its handler.
pub type LongPlace = Arc<Place>;

impl Places {
    /// `free` places for `what`, in the plural.
    pub fn new(free: usize, what: &'static str) -> Self {
        Self { free: Arc::new(Semaphore::new(free)), what }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// All places are taken.
    pub fn take(&self) -> Result<Place, Problem> {
        Arc::clone(&self.free)
            .try_acquire_owned()
            .map_err(|_| Problem::new(Kind::Overloaded, format!("Too many {} are under way.", self.what)))
    }
}
