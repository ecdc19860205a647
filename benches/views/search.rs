//! The search for the highest rate that holds.

/// How near the highest rate that holds and the lowest that does not are to each other in the end.
const NEAR: f64 = 1.1;

/// Nobody is asked for less.
const LEAST: f64 = 50.0;

/// What a probe of a rate has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Holds,
    /// Not by so much that one slow moment, such as a checkpoint, could not have done it: it is tried a second time.
    Fails,
    /// By far.
    Breaks,
}

/// Up by a factor while rates hold, or down while they do not, and then halfway between the two.
#[derive(Debug, Clone)]
pub struct Search {
    holds: Option<f64>,
    fails: Option<f64>,
    next: f64,
    factor: f64,
    failed_once: bool,
}

impl Search {
    /// From a rate on, in such steps.
    pub fn new(from: f64, factor: f64) -> Self {
        Self { holds: None, fails: None, next: from, factor, failed_once: false }
    }

    /// The rate to be tried next; `None` when the search is over.
    pub fn next(&self) -> Option<f64> {
        match (self.holds, self.fails) {
            (Some(holds), Some(fails)) if fails / holds <= NEAR => None,
            _ if self.next < LEAST => None,
            _ => Some(self.next),
        }
    }

    /// The highest rate that held.
    pub fn found(&self) -> Option<f64> {
        self.holds
    }

    /// Notes what became of the rate that was to be tried.
    pub fn note(&mut self, shown: Shown) {
        if shown == Shown::Fails && !self.failed_once {
            self.failed_once = true;
            return;
        }
        self.failed_once = false;
        if shown == Shown::Holds {
            self.holds = Some(self.next);
        } else {
            self.fails = Some(self.next);
        }
        self.next = match (self.holds, self.fails) {
            (Some(holds), Some(fails)) => (holds * fails).sqrt(),
            (Some(holds), None) => holds * self.factor,
            (None, _) => self.next / self.factor,
        };
    }
}
