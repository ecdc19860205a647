//! Accepted items, with and without their dates.

use bson::raw::{RawDocument, RawDocumentBuf};

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
    /// A missing date has a placeholder.
    pub(crate) document: RawDocumentBuf,
    /// The date, if the client sent it.
    pub(crate) date: Option<Instant>,
    /// Where the 8 bytes of the placeholder are.
    pub(crate) date_at: usize,
}

impl Draft {
    /// The item, with `now` for a missing date.
    pub fn dated(self, now: Instant) -> Item {
        let Some(date) = self.date else {
            let mut bytes = self.document.into_bytes();
            bytes[self.date_at..][..8].copy_from_slice(&now.millis().to_le_bytes());
            return Item::new(RawDocumentBuf::from_bytes(bytes).expect("only the date has changed"), now);
        };
        Item::new(self.document, date)
    }

    /// The date, if the client sent it.
    pub fn date(&self) -> Option<Instant> {
        self.date
    }

    /// Bytes of BSON with the date.
    pub fn size(&self) -> usize {
        self.document.as_bytes().len()
    }

    /// The document, with a placeholder for a date that the client did not send.
    pub fn document(&self) -> &RawDocument {
        &self.document
    }
}

impl From<Item> for Draft {
    fn from(Item { document, date }: Item) -> Self {
        Self { document, date: Some(date), date_at: 0 }
    }
}
