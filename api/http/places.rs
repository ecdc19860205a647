//! Limits on the number of requests of one kind that are under way at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::problem::{Kind, Problem};

/// The free places for requests of one kind. Clones share them.
#[derive(Debug, Clone)]
pub struct Places {
    free: Arc<AtomicUsize>,
    /// What takes the places, in the plural.
    what: &'static str,
}

/// One place, taken until it is dropped.
#[derive(Debug)]
pub struct Place(Places);

/// The place of a request whose answer outlives its handler.
#[derive(Debug, Clone)]
pub struct LongPlace(#[expect(dead_code, reason = "it is held")] Arc<Place>);

impl Places {
    /// `free` places for `what`, in the plural.
    pub fn new(free: usize, what: &'static str) -> Self {
        Self { free: Arc::new(AtomicUsize::new(free)), what }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// All places are taken.
    pub fn take(&self) -> Result<Place, Problem> {
        // A place guards no other data: no order is needed.
        let taken = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(1));
        match taken {
            Ok(_) => Ok(Place(self.clone())),
            Err(_) => Err(Problem::new(Kind::Overloaded, format!("Too many {} are under way.", self.what))),
        }
    }
}

impl From<Place> for LongPlace {
    fn from(place: Place) -> Self {
        Self(Arc::new(place))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, Ordering::Relaxed);
    }
}
