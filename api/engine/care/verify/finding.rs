//! What verification finds, and how it can be repaired.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Bson, Document};
use pagebucket_model::domain::{OwnerId, PageNumber};

/// What a finding is against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, derive_more::Display)]
pub enum Rule {
    /// An invariant, by its number in `docs/architecture.md`.
    #[display("invariant {_0}")]
    Invariant(u8),
    /// The data model: the type or value of a field.
    #[display("data model")]
    Model,
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
    /// Finds the bucket while it is as it was found.
    pub(crate) filter: Document,
    pub(crate) mend: Mend,
    /// Whether it is about an item that stands twice.
    pub(crate) is_repeat: bool,
}

impl Finding {
    /// What is the same if another reading finds it too.
    pub(crate) fn identity(&self) -> (&str, Rule, &str) {
        (&self.id, self.rule, &self.what)
    }
}

/// What became of a repair.
#[derive(Debug, Clone, PartialEq)]
pub enum Mended {
    /// These fields were set.
    Set(Document),
    /// Nothing was set: a sentence says why.
    Left(&'static str),
}

/// How a bucket can be repaired without loss.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Mend {
    /// These fields are set.
    Set(Document),
    /// Not at all: a sentence says why.
    No(&'static str),
}

impl Mend {
    pub(crate) const WHOSE: Self = Self::No("nothing else says whose bucket it is");
    pub(crate) const ITEMS: Self = Self::No("no item is changed, moved or removed");
    pub(crate) const ORDER: Self = Self::No("the order of its pages is not certain");
    pub(crate) const ERASED: Self = Self::No("erase the owner again");
    pub(crate) const LOST: Self = Self::No("what is missing is not in this database");
    pub(crate) const TWICE: Self = Self::No("readers may have kept both places for a year");
    pub(crate) const DATES: Self =
        Self::No("its items may be those of another page, and its dates are the only trace of the loss");
    pub(crate) const COUNT: Self = Self::No("its count may be the only trace of items that are lost");
    pub(crate) const NUMBER: Self = Self::No("its page may be the only trace of where it belongs");
    pub(crate) const FIELDS: Self = Self::No("no field is removed");
    pub(crate) const DELETED: Self = Self::No("nothing else says what was deleted");
    pub(crate) const RETIRED: Self = Self::No("the next retirement of pages of its owner deletes it");
}

pub(crate) fn value(document: &RawDocument, field: &str) -> Option<Bson> {
    document.get(field).ok().flatten().and_then(|value| Bson::try_from(value).ok())
}

/// The value of a field as a sentence shows it.
pub(crate) fn shown(document: &RawDocument, field: &str) -> String {
    value(document, field)
        .map_or_else(|| "missing".to_owned(), |value| value.to_string().chars().take(64).collect())
}
