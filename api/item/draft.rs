use std::sync::Arc;

use mongodb::bson::raw::{RawDocument, RawDocumentBuf};

use super::element;
use crate::domain::Instant;

/// An accepted item: a BSON document, without the engine's key, and its date.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    document: RawDocumentBuf,
    date: Instant,
}

impl Item {
    /// An item that a schema has accepted, or that has been read from the database. `document` has the date.
    pub fn new(document: RawDocumentBuf, date: Instant) -> Self {
        Self { document, date }
    }

    /// The document, as it is stored.
    pub fn document(&self) -> &RawDocument {
        &self.document
    }

    /// When it happened, as the property says that the definition names.
    pub fn date(&self) -> Instant {
        self.date
    }

    /// Bytes of BSON.
    pub fn size(&self) -> usize {
        self.document.as_bytes().len()
    }
}

/// An item as a client sent it: its date may be missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    document: RawDocumentBuf,
    date: DraftDate,
}

#[derive(Clone, Debug, PartialEq)]
enum DraftDate {
    Given(Instant),
    /// To be written under this name, before the byte at this place.
    Missing {
        name: Arc<str>,
        at: usize,
    },
}

impl Draft {
    /// An item with its date.
    pub(super) fn with_date(document: RawDocumentBuf, date: Instant) -> Self {
        Self { document, date: DraftDate::Given(date) }
    }

    /// An item without its date, which belongs before the byte `at`.
    pub(super) fn without_date(document: RawDocumentBuf, name: Arc<str>, at: usize) -> Self {
        Self { document, date: DraftDate::Missing { name, at } }
    }

    /// The item, with `now` for a missing date.
    pub fn dated(&self, now: Instant) -> Item {
        match &self.date {
            DraftDate::Given(date) => Item::new(self.document.clone(), *date),
            DraftDate::Missing { name, at } => Item::new(insert_date(&self.document, *at, name, now), now),
        }
    }

    /// The date, if the client sent it.
    pub fn date(&self) -> Option<Instant> {
        match self.date {
            DraftDate::Given(date) => Some(date),
            DraftDate::Missing { .. } => None,
        }
    }

    /// Bytes of BSON with the date.
    pub fn size(&self) -> usize {
        let missing = match &self.date {
            DraftDate::Given(_) => 0,
            DraftDate::Missing { name, .. } => element::date_len(name),
        };
        self.document.as_bytes().len() + missing
    }

    /// The document, without a date that the client did not send.
    pub fn document(&self) -> &RawDocument {
        &self.document
    }
}

impl From<Item> for Draft {
    fn from(Item { document, date }: Item) -> Self {
        Self::with_date(document, date)
    }
}

fn insert_date(document: &RawDocument, at: usize, name: &str, date: Instant) -> RawDocumentBuf {
    let bytes = document.as_bytes();
    let mut dated = Vec::with_capacity(bytes.len() + element::date_len(name));
    dated.extend_from_slice(&bytes[..at]);
    element::date(&mut dated, name, date.millis());
    dated.extend_from_slice(&bytes[at..]);
    let len = dated.len() as u32;
    dated[..4].copy_from_slice(&len.to_le_bytes());
    RawDocumentBuf::from_bytes(dated).expect("its length is set, and its last byte is the document's")
}
