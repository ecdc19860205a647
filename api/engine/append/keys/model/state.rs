//! The model's state: the database, the attempts, and the client's answers.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pagebucket_model::domain::SeqRange;

use super::database::{Contents, ModelCommand, ModelItem, Write};
use crate::append::expectation::Expectation;
use crate::append::keys::KeySearch;
use crate::store::buckets::identity::ItemKey;

pub(crate) const TRADES: u8 = 3;

/// The client's first attempt and its repeats.
pub(crate) const ATTEMPTS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// What is at majority. A read at majority sees this or an earlier state of it.
    pub(crate) durable: Contents,
    /// What the primary has written since. A failover loses the latest of these writes.
    pub(crate) local: Vec<Write>,
    pub(crate) attempts: [Stage; ATTEMPTS],
    /// Items that other writers may still append.
    pub(crate) others: u8,
    /// How long ago an attempt last learned that the record exists, at most the retention.
    pub(crate) registered: Option<u8>,
    /// The answer of the first attempt that succeeded.
    pub(crate) answer: Option<Vec<SeqRange>>,
    /// Whether another attempt got a different answer.
    pub(crate) answers_differ: bool,
    /// The total that the request expects before its first item.
    pub(crate) expectation: Expectation,
    /// Whether an attempt was answered that the total is another one.
    pub(crate) refused: bool,
    /// Whether that was answered though the history had passed the expected total, so that it is final.
    pub(crate) passed: bool,
    /// Whether that was answered though a majority had the expected total.
    pub(crate) refused_wrongly: bool,
}

/// The stage of an attempt. An attempt that crashed or was given up takes no further step, but what it has
/// sent may still run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// Its record has not reached the current primary.
    New,
    /// It awaits its record. If `old`, it has inserted the record as if that had been touched long ago.
    Registering { old: bool },
    /// It searches, then sends a command.
    Placing(KeySearch),
    /// It searches, and awaits that `from` is raised to this known total.
    Confirming(KeySearch, u64),
    /// It awaits the answer to its command.
    Waiting(KeySearch, ModelCommand),
    /// It was answered.
    Over,
}

/// All searches of the model are for the same items.
impl PartialEq for KeySearch {
    fn eq(&self, other: &Self) -> bool {
        (self.looked(), &self.placed) == (other.looked(), &other.placed)
    }
}

impl Eq for KeySearch {}

impl Hash for KeySearch {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.looked(), &self.placed).hash(state);
    }
}

/// The key of each item of the request.
pub(crate) fn keys() -> Arc<[ItemKey]> {
    (0..TRADES).map(key).collect()
}

pub(crate) fn key(index: u8) -> ItemKey {
    ItemKey([index; ItemKey::LEN])
}

impl State {
    /// The first state: a history of `items` items of other writers, who may append `others` more.
    pub(crate) fn new(items: usize, others: u8, expectation: Expectation) -> Self {
        Self {
            expectation,
            refused: false,
            passed: false,
            refused_wrongly: false,
            durable: Contents { history: vec![None; items], record: None },
            local: Vec::new(),
            attempts: [const { Stage::New }; ATTEMPTS],
            others,
            registered: None,
            answer: None,
            answers_differ: false,
        }
    }

    /// What the primary shows at read concern local after its first `writes` writes.
    pub(crate) fn shown(&self, writes: usize) -> Contents {
        let mut contents = self.durable.clone();
        self.local[..writes].iter().for_each(|write| contents.apply(write));
        contents
    }

    /// Says what is wrong with the state.
    pub(crate) fn judge(&self) -> Result<(), &'static str> {
        let shown = self.shown(self.local.len());
        let own = shown.history.iter().flatten();
        if !own.zip(0..).all(|(stored, index): (&u8, u8)| *stored == index) {
            return Err("doubled: an item is stored twice, or out of order");
        }
        let placed = self.attempts.iter().filter_map(|stage| match stage {
            Stage::Placing(search) | Stage::Confirming(search, _) | Stage::Waiting(search, _) => {
                Some(&search.placed.ranges)
            }
            Stage::New | Stage::Registering { .. } | Stage::Over => None,
        });
        if !placed.chain(&self.answer).all(|ranges| self.is_stored(ranges)) {
            return Err("lost: an item that counted as stored is not at majority");
        }
        let first = shown.history.iter().position(|item| *item == Some(0)).map(|index| index as u64);
        if first.is_some_and(|first| self.expectation.0.is_some_and(|expected| expected.get() != first)) {
            return Err("unexpected: the first item is stored after another total");
        }
        if self.refused_wrongly {
            return Err("refused, though the history had the expected total");
        }
        if self.passed && shown.history.iter().any(Option::is_some) {
            return Err("refused, though an item is stored");
        }
        if self.answers_differ {
            return Err("two answers: a repeat got other addresses");
        }
        Ok(())
    }

    /// Whether the request's first items are at these addresses at majority.
    fn is_stored(&self, ranges: &[SeqRange]) -> bool {
        let places = ranges.iter().flat_map(|range| range.first.get()..=range.last.get());
        let stored = |seq: u64| self.durable.history.get(seq as usize - 1).copied();
        places.zip(0..).all(|(seq, index): (u64, u8)| stored(seq) == Some(Some(index) as ModelItem))
    }
}
