//! The model's database: what a node has, and what it is told to write.

use std::rc::Rc;

/// Trades on a full page. Two are enough for a request to span pages.
const PAGE: usize = 2;

/// How long a record is kept, in the model's units of time.
pub(super) const RETENTION: u8 = 2;

/// A stored trade: which of the request's it is, or none of them.
pub(super) type Stored = Option<u8>;

/// What a node has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Contents {
    /// The trade with `seq` s is at s - 1.
    pub(super) history: Vec<Stored>,
    pub(super) record: Option<Record>,
}

/// The record of the request's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Record {
    pub(super) from: u64,
    /// Since it was touched, at most [`RETENTION`].
    pub(super) age: u8,
    /// The attempt that inserted it, until another one finds it.
    pub(super) unseen_by_others: Option<usize>,
}

/// What a node does, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Write {
    /// An attempt's upsert of the record; `touches` it where it is there. Where it is not, the new one is that old.
    Record { attempt: usize, from: u64, touches: bool, age: u8 },
    /// An attempt raises `from` in the record.
    Raise { attempt: usize, to: u64 },
    /// One statement of an attempt's command.
    Statement { attempt: usize, statement: Rc<Statement> },
    /// A trade of another writer, whose compare succeeded.
    Other,
    /// The record has expired.
    Expiry,
}

/// Trades into one page, if that holds exactly what is before `first`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Statement {
    /// The `seq` of its first trade.
    pub(super) first: u64,
    pub(super) trades: Vec<Stored>,
}

/// A numbered command: each statement runs in its order, and once at most in the history that
/// survives.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Command {
    pub(super) statements: Vec<Rc<Statement>>,
    /// How many are stored at majority.
    pub(super) durable: usize,
}

impl Contents {
    /// The last `seq`, 0 if there is none.
    pub(super) fn last(&self) -> u64 {
        self.history.len() as u64
    }

    /// Whether the statement's compare succeeds.
    pub(super) fn admits(&self, statement: &Statement) -> bool {
        // The compare of one that opens a page says nothing of the page before: that is known to be full.
        let opens = (statement.first as usize - 1).is_multiple_of(PAGE);
        assert!(!opens || self.last() + 1 >= statement.first, "a page opened behind one that is not full");
        self.last() + 1 == statement.first
    }

    pub(super) fn apply(&mut self, write: &Write) {
        match write {
            Write::Record { attempt, from, touches, age } => match &mut self.record {
                None => {
                    let unseen_by_others = Some(*attempt);
                    self.record = Some(Record { from: *from, age: *age, unseen_by_others });
                }
                Some(record) => {
                    record.age = if *touches { 0 } else { record.age };
                    record.unseen_by_others = record.unseen_by_others.filter(|maker| maker == attempt);
                }
            },
            Write::Raise { to, .. } => {
                if let Some(record) = &mut self.record {
                    record.from = record.from.max(*to);
                }
            }
            Write::Statement { statement, .. } => self.history.extend(&statement.trades),
            Write::Other => self.history.push(None),
            Write::Expiry => self.record = None,
        }
    }
}

impl Statement {
    /// The `seq` of its last trade.
    pub(super) fn last(&self) -> u64 {
        self.first + self.trades.len() as u64 - 1
    }
}

impl Command {
    /// Trades right behind `tail`, one statement a page.
    pub(super) fn new(tail: u64, trades: &[Stored]) -> Self {
        let (mut first, mut rest, mut statements) = (tail + 1, trades, Vec::new());
        while !rest.is_empty() {
            let room = PAGE - (first as usize - 1) % PAGE;
            let (page, behind) = rest.split_at(room.min(rest.len()));
            statements.push(Rc::new(Statement { first, trades: page.to_vec() }));
            first += page.len() as u64;
            rest = behind;
        }
        Self { statements, durable: 0 }
    }

    /// Whether no more of it will run: its next place is taken for good, or all is stored.
    pub(super) fn is_over(&self, durable: &Contents) -> bool {
        self.statements.get(self.durable).is_none_or(|next| next.first <= durable.last())
    }
}
