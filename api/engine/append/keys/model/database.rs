//! The model's database: what a node stores, and which writes it executes.

use std::rc::Rc;

/// The items on a full page. With two, a request of three items spans pages.
const PAGE: usize = 2;

/// How long a record is kept, in the model's units of time.
pub(crate) const RETENTION: u8 = 2;

/// A stored item: its index in the request, or `None` if it belongs to another writer.
pub(crate) type ModelItem = Option<u8>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Contents {
    /// The item with `seq` s has index s - 1.
    pub(crate) history: Vec<ModelItem>,
    pub(crate) record: Option<Record>,
}

/// The record of the request's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Record {
    pub(crate) from: u64,
    /// Time since it was last touched, at most [`RETENTION`].
    pub(crate) age: u8,
    /// The attempt that inserted it, until another one finds it.
    pub(crate) unseen_by_others: Option<usize>,
}

/// A write that a node executes, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Write {
    /// An attempt's upsert of the record. If `touches`, it touches an existing record. A new record has this
    /// `age`.
    Record { attempt: usize, from: u64, touches: bool, age: u8 },
    /// An attempt raises `from` in the record.
    Raise { attempt: usize, to: u64 },
    /// One statement of an attempt's command.
    Statement { attempt: usize, statement: Rc<Statement> },
    /// An item of another writer, whose compare succeeded.
    Other,
    /// The record has expired.
    Expiry,
}

/// Appends items to one page, if the page holds exactly the items before `first`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Statement {
    /// The `seq` of its first item.
    pub(crate) first: u64,
    pub(crate) items: Vec<ModelItem>,
}

/// A numbered command: its statements run in order, and each at most once in the history that survives.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ModelCommand {
    pub(crate) statements: Vec<Rc<Statement>>,
    /// How many statements are stored at majority.
    pub(crate) durable: usize,
}

impl Contents {
    /// The last `seq`, 0 if there is none.
    pub(crate) fn last(&self) -> u64 {
        self.history.len() as u64
    }

    /// Whether the statement's compare succeeds.
    pub(crate) fn admits(&self, statement: &Statement) -> bool {
        // A statement that opens a page does not compare the page before, which must be known to be full.
        let opens = (statement.first as usize - 1).is_multiple_of(PAGE);
        assert!(!opens || self.last() + 1 >= statement.first, "a page opened after one that is not full");
        self.last() + 1 == statement.first
    }

    pub(crate) fn apply(&mut self, write: &Write) {
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
            Write::Statement { statement, .. } => self.history.extend(&statement.items),
            Write::Other => self.history.push(None),
            Write::Expiry => self.record = None,
        }
    }
}

impl Statement {
    /// The `seq` of its last item.
    pub(crate) fn last(&self) -> u64 {
        self.first + self.items.len() as u64 - 1
    }
}

impl ModelCommand {
    /// A command that appends items right after `tail`, with one statement for each page.
    pub(crate) fn new(tail: u64, items: &[ModelItem]) -> Self {
        let (mut first, mut rest, mut statements) = (tail + 1, items, Vec::new());
        while !rest.is_empty() {
            let room = PAGE - (first as usize - 1) % PAGE;
            let (page, later) = rest.split_at(room.min(rest.len()));
            statements.push(Rc::new(Statement { first, items: page.to_vec() }));
            first += page.len() as u64;
            rest = later;
        }
        Self { statements, durable: 0 }
    }

    /// Whether no further statement will run: all are stored, or the next one's place is permanently taken.
    pub(crate) fn is_over(&self, durable: &Contents) -> bool {
        self.statements.get(self.durable).is_none_or(|next| next.first <= durable.last())
    }
}
