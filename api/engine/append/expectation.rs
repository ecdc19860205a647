//! Appends on a condition: the total that a client has seen, and what a commit makes of a request that
//! expects it.
//!
//! With `expectedSeq=N` the first item is stored only if it gets the sequence number `N + 1`. A statement
//! already names the bucket and the count, so an item gets the number that was planned, or none. So a request
//! is judged by its plan, and is sent only if the plan gives its first item `N + 1`. If the database refuses
//! the plan, the next plan is judged.
//!
//! - **Each request of a commit is judged in its turn**, by the total of the tail and the items placed before
//!   it. So three requests that expect 10, 11 and 12 may share a command.
//! - **A remembered tail decides nothing.** It is used only if every request of the owner finds in it what it
//!   expects. Otherwise the commit reads the tail at majority, one read for all owners, and judges every
//!   request by that. If a remembered tail that matched was old, the database refuses the statements, and a
//!   tail that is not older than the refusal judges the requests.
//! - **412 is answered from a tail that was read for this commit**, and has its total. The total never falls,
//!   so a request that expects less than a majority has can never be stored.
//! - **A request that expects more than was read** may be right: its client may have seen, through another
//!   instance, a write of which a new primary does not know yet that a majority has it. Before it is refused,
//!   the tail is read once more at read concern `linearizable`.
//! - **A request that expects the total of the tail, with items of other requests placed before it,** is
//!   neither sent nor refused, because it is not known yet whether the others are stored. The next commit
//!   judges it.
//! - **The first item alone is judged.** When it is stored, the other items are placed after whatever comes
//!   between.
//! - **An unknown outcome is no conflict.** The command is replayed under its number, so an attempt never
//!   meets its own items as those of another request. If the deadline passes first, the answer is
//!   `outcome-unknown`.
//! - **With a key** an attempt first searches through the tail that judges it. Items that it finds are
//!   answered with 201, or completed. A late command of an earlier attempt has the place `N + 1`. If the
//!   total is greater, another item has that place, so a request that was refused for a total above N is
//!   never stored.
//!
//! The model of keys ([`keys`](mod@super::keys)) runs the same judgement.

use pagebucket_model::domain::Position;

use super::placed::Placed;

/// The total that a history must have right before the first item of a request; none for most requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Expectation(pub Option<Position>);

/// Where a commit would place the next item of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlannedPlace {
    /// The total right before it: items that are stored, and those that the commit places before it.
    pub after: u64,
    /// The total of the tail from which the commit plans.
    pub total: u64,
    /// Whether this commit has read the tail. A tail that it only remembers may be old.
    pub is_read: bool,
}

/// What a commit makes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It sends the request's items.
    Sent,
    /// The history has another total than the request expects.
    Unexpected,
    /// It does not send them, and cannot decide: a later commit does.
    Later,
}

impl Expectation {
    /// The total that is expected of the next item. The first item alone is judged: `None` as soon as one is
    /// stored.
    pub(crate) fn of_next(self, placed: &Placed) -> Option<u64> {
        self.0.filter(|_| placed.count == 0).map(Position::get)
    }

    /// Judges a request of which the items in `placed` are stored, after its search through the tail.
    pub(crate) fn judge(self, placed: &Placed, place: PlannedPlace) -> Judgement {
        match self.of_next(placed) {
            None => Judgement::Sent,
            Some(expected) if expected == place.after => Judgement::Sent,
            // The history has the expected total, and other items are about to be stored after it.
            Some(expected) if expected == place.total || !place.is_read => Judgement::Later,
            Some(_) => Judgement::Unexpected,
        }
    }
}
