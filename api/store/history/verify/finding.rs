use std::fmt;

use mongodb::bson::Document;

use crate::domain::{OwnerId, PageNumber};

/// What a finding is against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// An invariant, by its number in `docs/architecture.md`.
    Invariant(u8),
    /// The data model: the type or value of a field.
    Model,
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invariant(number) => write!(out, "invariant {number}"),
            Self::Model => out.write_str("data model"),
        }
    }
}

/// Something that is wrong in the database.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The `_id` of the bucket, or of the one after a gap.
    pub id: String,
    /// Whose history it is.
    pub owner: Option<OwnerId>,
    /// The page whose readers are concerned.
    pub page: Option<PageNumber>,
    /// What it is against.
    pub rule: Rule,
    /// What is wrong, as a sentence without its subject, the bucket.
    pub what: String,
    /// How it can be repaired.
    pub change: Change,
    /// Whether it is about an item that stands twice.
    pub(super) is_repeat: bool,
}

impl Finding {
    /// What is the same if another reading finds it too.
    pub(super) fn identity(&self) -> (&str, Rule, &str) {
        (&self.id, self.rule, &self.what)
    }
}

/// How a bucket can be repaired without loss.
#[derive(Debug, Clone, PartialEq)]
pub enum Mend {
    /// These fields are set.
    Set(Document),
    /// Not at all: a sentence says why.
    No(&'static str),
}

impl Mend {
    pub(super) const WHOSE: &'static str = "nothing else says whose bucket it is";
    pub(super) const ITEMS: &'static str = "no item is changed, moved or removed";
    pub(super) const ORDER: &'static str = "the order of its pages is not certain";
    pub(super) const ERASED: &'static str = "lift the tombstone and erase the owner again";
    pub(super) const LOST: &'static str = "what is missing is not in this database";
    pub(super) const TWICE: &'static str = "readers may have kept both places for a year";
}

/// A repair of one bucket, as it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Finds the bucket while it is as it was.
    pub(super) filter: Document,
    /// What becomes of it.
    pub(super) mend: Mend,
}
