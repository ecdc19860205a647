//! The search for stored trades, the same for committers whether the trades belong to a request or to an
//! upload.

use mongodb::bson::RawDocumentBuf;
use mongodb::bson::raw::RawDocument;

use super::identity::TradeKey;
use super::lines::LineSearch;
use super::request::{Placed, RequestSearch};
use crate::domain::Trade;
use crate::store::history::document::{self, Item};

/// A search for the trades of one request, or for lines of an upload.
#[derive(Debug, Clone)]
pub(in crate::store::history) enum Search {
    /// The trades of a request: all are valid, and they are stored in order without omissions.
    Request(RequestSearch),
    /// Lines of an upload: they are stored in order, and some may be missing.
    Lines(LineSearch),
}

impl Search {
    /// The key of the trade with this index.
    pub(in crate::store::history) fn key(&self, index: usize) -> TradeKey {
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

    /// Whether all trades are found or refused.
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

    /// Whether the search compares complete trades, not only keys.
    pub(in crate::store::history) fn compares(&self) -> bool {
        matches!(self, Self::Lines(_))
    }

    /// Examines the next stored trade, the one right after [`Search::looked`].
    pub(in crate::store::history) fn look(
        &mut self,
        placed: &mut Placed,
        key: Option<TradeKey>,
        stored: &RawDocument,
    ) {
        match self {
            Self::Request(search) => search.look(placed, key),
            Self::Lines(search) => search.look(placed, key, |trade, key| is_same(stored, trade, key)),
        }
    }
}

/// Whether `stored` is the document of this trade, byte for byte.
fn is_same(stored: &RawDocument, trade: &Trade, key: TradeKey) -> bool {
    let document = document::of_trade(&Item { trade, key: Some(key) });
    RawDocumentBuf::try_from(&document).is_ok_and(|document| document.as_bytes() == stored.as_bytes())
}
