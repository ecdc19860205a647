//! The search for stored items, the same for committers whether the items belong to a request or to an
//! upload.

use mongodb::bson::raw::RawDocument;

use super::identity::ItemKey;
use super::lines::LineSearch;
use super::request::{Placed, RequestSearch};
use crate::definition::Definition;
use crate::item::Item;
use crate::store::history::document::Marked;

/// A search for the items of one request, or for lines of an upload.
#[derive(Debug, Clone)]
pub(in crate::store::history) enum Search {
    /// The items of a request: all are valid, and they are stored in order without omissions.
    Request(RequestSearch),
    /// Lines of an upload: they are stored in order, and some may be missing.
    Lines(LineSearch),
}

impl Search {
    /// The key of the item with this index.
    pub(in crate::store::history) fn key(&self, index: usize) -> ItemKey {
        match self {
            Self::Request(search) => search.keys()[index],
            Self::Lines(search) => search.key(index),
        }
    }

    /// The last `seq` that was examined.
    pub(in crate::store::history) fn looked(&self) -> u64 {
        match self {
            Self::Request(search) => search.looked(),
            Self::Lines(search) => search.looked(),
        }
    }

    /// Whether all items are found or refused.
    pub(in crate::store::history) fn is_over(&self, placed: &Placed) -> bool {
        match self {
            Self::Request(search) => search.is_over(placed),
            Self::Lines(search) => search.is_over(placed),
        }
    }

    /// See [`RequestSearch::covers`].
    pub(in crate::store::history) fn covers(&self, last: u64) -> bool {
        match self {
            Self::Request(search) => search.covers(last),
            Self::Lines(search) => search.covers(last),
        }
    }

    /// See [`RequestSearch::known_through`].
    pub(in crate::store::history) fn known_through(&mut self, last: u64) {
        match self {
            Self::Request(search) => search.known_through(last),
            Self::Lines(search) => search.known_through(last),
        }
    }

    /// See [`RequestSearch::none_through`]. `None` for lines: a part of an upload does not know where other
    /// parts are.
    pub(in crate::store::history) fn none_through(&self, placed: &Placed) -> Option<u64> {
        match self {
            Self::Request(search) => Some(search.none_through(placed)),
            Self::Lines(_) => None,
        }
    }

    /// Whether the search compares complete items, not only keys.
    pub(in crate::store::history) fn compares(&self) -> bool {
        matches!(self, Self::Lines(_))
    }

    /// Examines the next stored item, the one right after [`Search::looked`].
    pub(in crate::store::history) fn look(
        &mut self,
        placed: &mut Placed,
        key: Option<ItemKey>,
        stored: &RawDocument,
        definition: &Definition,
    ) {
        match self {
            Self::Request(search) => search.look(placed, key),
            Self::Lines(search) => {
                search.look(placed, key, |item, key| is_same(stored, item, key, definition))
            }
        }
    }
}

/// Whether `stored` is the document of this item, byte for byte.
fn is_same(stored: &RawDocument, item: &Item, key: ItemKey, definition: &Definition) -> bool {
    let document = Marked { item, key: Some(key) }.document(definition);
    document.as_bytes() == stored.as_bytes()
}
