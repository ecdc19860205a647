//! Appends on a condition: the total that a client has seen, and what a commit makes of a request that expects it.
//!
//! A commit plans where the items of each request go before it sends them, and the database stores them there or refuses them.
//! So a request is judged by its plan: it is sent if its first item would get the next sequence number after the total that it
//! expects. Whatever refuses the plan has it judged again, by the tail of the next plan.

use pagebucket_model::domain::Position;

use super::placed::Placed;

/// The total that a history must have right before the first item of a request; none for most requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Expectation(pub Option<Position>);

/// Where a commit would place the next item of a request.
#[derive(Debug, Clone, Copy)]
pub struct PlannedPlace {
    /// The total right before it: items that are stored, and those that the commit places before it.
    pub after: u64,
    /// The total of the tail from which the commit plans.
    pub total: u64,
    /// Whether this commit has read the tail. A tail that it only remembers may be old.
    pub is_read: bool,
}

/// What a commit makes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// It sends the request's items.
    Sent,
    /// The history has another total than the request expects.
    Unexpected,
    /// It does not send them, and cannot decide: a later commit does.
    Later,
}

impl Expectation {
    /// The total that is expected of the next item. The first item alone is judged: `None` as soon as one is stored.
    pub fn of_next(self, placed: &Placed) -> Option<u64> {
        self.0.filter(|_| placed.count == 0).map(Position::get)
    }

    /// Judges a request of which the items in `placed` are stored, after its search through the tail.
    pub fn judge(self, placed: &Placed, place: PlannedPlace) -> Judgement {
        match self.of_next(placed) {
            None => Judgement::Sent,
            Some(expected) if expected == place.after => Judgement::Sent,
            // The history has the expected total, and other items are about to be stored after it.
            Some(expected) if expected == place.total || !place.is_read => Judgement::Later,
            Some(_) => Judgement::Unexpected,
        }
    }
}
