//! The model's state: the database, the attempts, and what a client was told.

use std::sync::Arc;

use super::database::{Command, Contents, Stored, Write};
use crate::domain::SeqRange;
use crate::store::history::dedup::{Placed, RequestSearch, TradeKey};

/// Trades of the request.
pub(super) const TRADES: u8 = 3;

/// The client's first attempt and its repeats.
pub(super) const ATTEMPTS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// What is at majority. A read at majority sees it, or what it was earlier.
    pub(super) durable: Contents,
    /// What the primary has done since: lost from the end by a failover.
    pub(super) local: Vec<Write>,
    pub(super) attempts: [Stage; ATTEMPTS],
    /// Trades that other writers may still append.
    pub(super) others: u8,
    /// How long ago an attempt was last told that there is a record, at most the retention.
    pub(super) registered: Option<u8>,
    /// What the first attempt that succeeded was answered.
    pub(super) answer: Option<Vec<SeqRange>>,
    /// Another one was answered something else.
    pub(super) answers_differ: bool,
}

/// How far an attempt is. One that crashed, or was given up, is one that takes no step any more:
/// what it has sent may still run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// Its record has not reached the primary that is.
    New,
    /// It awaits its record. It has inserted one that is `old`: born as if it had been touched long ago.
    Registering { old: bool },
    /// It looks, and sends a command.
    Placing(RequestSearch, Placed),
    /// It looks, and awaits that `from` is raised to a total that is known.
    Confirming(RequestSearch, Placed, u64),
    /// It awaits its command.
    Waiting(RequestSearch, Placed, Command),
    /// It was answered.
    Over,
}

/// The key of each trade of the request.
pub(super) fn keys() -> Arc<[TradeKey]> {
    (0..TRADES).map(key).collect()
}

pub(super) fn key(index: u8) -> TradeKey {
    TradeKey([index; TradeKey::LEN])
}

impl State {
    /// The beginning: a history of so many trades of other writers, who may append so many more.
    pub(super) fn new(trades: usize, others: u8) -> Self {
        Self {
            durable: Contents { history: vec![None; trades], record: None },
            local: Vec::new(),
            attempts: [const { Stage::New }; ATTEMPTS],
            others,
            registered: None,
            answer: None,
            answers_differ: false,
        }
    }

    /// What the primary shows at `local`, when it has done so many of its writes.
    pub(super) fn shown(&self, writes: usize) -> Contents {
        let mut contents = self.durable.clone();
        self.local[..writes].iter().for_each(|write| contents.apply(write));
        contents
    }

    /// What is wrong, if anything is.
    pub(super) fn judge(&self) -> Result<(), &'static str> {
        let shown = self.shown(self.local.len());
        let own = shown.history.iter().flatten();
        if !own.zip(0..).all(|(stored, index): (&u8, u8)| *stored == index) {
            return Err("doubled: a trade is stored twice, or out of order");
        }
        let placed = self.attempts.iter().filter_map(|stage| match stage {
            Stage::Placing(_, placed) | Stage::Confirming(_, placed, _) | Stage::Waiting(_, placed, _) => {
                Some(&placed.ranges)
            }
            Stage::New | Stage::Registering { .. } | Stage::Over => None,
        });
        if !placed.chain(&self.answer).all(|ranges| self.is_stored(ranges)) {
            return Err("lost: what was taken for stored is not there at majority");
        }
        if self.answers_differ {
            return Err("two answers: a repeat was told of other places");
        }
        Ok(())
    }

    /// Whether the request's first trades are in these places at majority.
    fn is_stored(&self, ranges: &[SeqRange]) -> bool {
        let places = ranges.iter().flat_map(|range| range.first.get()..=range.last.get());
        let stored = |seq: u64| self.durable.history.get(seq as usize - 1).copied();
        places.zip(0..).all(|(seq, index): (u64, u8)| stored(seq) == Some(Some(index) as Stored))
    }
}
