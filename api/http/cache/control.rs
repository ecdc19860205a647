//! What may be kept of an answer, and for how long (RFC 9111), and by which tag it is known.
//!
//! A full page never changes, nor does a window that lies in full pages and has the totals of a moment that
//! its address names: they are kept for a year and never asked for again. Everything else
//! changes with the history's last page alone, so that its tag is that page's. Tags begin with the
//! database's epoch: another database of the same name, with other trades, has other tags.

use axum::http::{HeaderName, HeaderValue, header};

use super::etag::EntityTag;
use crate::domain::{CustomerId, PageNumber, Seq, Totals};
use crate::store::Epoch;

/// Raised with every change to the JSON of an answer: clients then fetch again what they have of the old one.
const FORMAT: u32 = 2;

/// A year, as long as anything is kept (RFC 2616 said so, and caches still do).
const FINAL_PRIVATE: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");
const FINAL_PUBLIC: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const CHANGING: HeaderValue = HeaderValue::from_static("no-cache");

/// Who may keep what never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptBy {
    /// The client that asked: `private`.
    Client,
    /// Caches between, too, for everybody: `public`.
    Anybody,
}

/// How an answer may be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caching {
    /// Known by which tag.
    pub tag: EntityTag,
    /// Whether it may be another one the next time.
    changing: bool,
}

impl Caching {
    /// Of a full page, or a trade on it.
    pub fn of_full(epoch: Epoch, customer: CustomerId, page: PageNumber) -> Self {
        Self { tag: EntityTag::new(format_args!("{epoch}.{FORMAT}.{customer}.p{page}")), changing: false }
    }

    /// Of a window in full pages, with the totals of when the history ended with `last`.
    pub fn of_snapshot(epoch: Epoch, customer: CustomerId, last: Seq) -> Self {
        Self { tag: EntityTag::new(format_args!("{epoch}.{FORMAT}.{customer}.a{last}")), changing: false }
    }

    /// Of whatever changes when the history grows.
    pub fn of_tail(epoch: Epoch, customer: CustomerId, totals: Totals) -> Self {
        let total = totals.trades();
        Self { tag: EntityTag::new(format_args!("{epoch}.{FORMAT}.{customer}.s{total}")), changing: true }
    }

    /// The headers that say so, with this tag: of an answer, or of a 304 in its place.
    ///
    /// `Vary` does not name `Accept`: there is one media type, and no answer differs by it but a 406,
    /// which is not kept.
    pub fn headers(&self, tag: HeaderValue, kept_by: KeptBy) -> [(HeaderName, HeaderValue); 3] {
        let control = match (self.changing, kept_by) {
            (true, _) => CHANGING,
            (false, KeptBy::Client) => FINAL_PRIVATE,
            (false, KeptBy::Anybody) => FINAL_PUBLIC,
        };
        let vary = HeaderValue::from_static("accept-encoding");
        [(header::CACHE_CONTROL, control), (header::ETAG, tag), (header::VARY, vary)]
    }
}
