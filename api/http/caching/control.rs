//! How an answer may be cached (RFC 9111): for how long, and under which tag.
//!
//! A full page never changes. Neither does a window of the moment that its address names: stored items
//! neither move nor change. Both may be cached for a year without revalidation. Everything else changes only
//! with the history's last page, so its tag names the total of the history. Tags begin with the database's
//! epoch: another database of the same name, with other items, has other tags. Each tag also names the
//! history, the owner and the number of the JSON's format (`FORMAT`).

use std::fmt::{self, Write};

use axum::http::{HeaderName, HeaderValue, header};
use pagebucket_engine::internal::Epoch;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{OwnerId, PageNumber, Seq, Totals};

/// Incremented with every change to the JSON of an answer, so that clients fetch again what they have in the
/// old form.
const FORMAT: u32 = 4;

// Constants, so that their bytes are checked when this is compiled and not with every answer.
const CHANGING: HeaderValue = HeaderValue::from_static("no-cache");
/// A year: RFC 2616 allows no more, and caches still go by it.
const FINAL_PRIVATE: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");
const FINAL_PUBLIC: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const VARY: HeaderValue = HeaderValue::from_static("accept-encoding");

/// A strong entity tag (RFC 9110, 8.8.3): equal tags of one address mean equal bytes, before compression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityTag(HeaderValue);

impl EntityTag {
    /// From the text between the quotes: visible ASCII without a quote.
    pub fn new(opaque: impl fmt::Display) -> Self {
        let mut tag = String::with_capacity(64);
        write!(tag, "\"{opaque}\"").expect("a text takes all");
        Self(HeaderValue::try_from(tag).expect("visible ASCII"))
    }

    /// The tag of a part of what has this tag.
    #[must_use]
    pub fn of_part(&self, part: impl fmt::Display) -> Self {
        let whole = self.0.to_str().expect("visible ASCII");
        Self::new(format_args!("{}.{part}", whole.trim_matches('"')))
    }

    /// As the value of `ETag`.
    pub fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

/// Which caches may keep what never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptBy {
    /// The client that asked: `private`.
    Client,
    /// Shared caches too: `public`.
    Anybody,
}

/// How an answer may be cached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caching {
    /// The tag of the answer.
    pub tag: EntityTag,
    /// Whether the answer may change.
    changing: bool,
}

impl Caching {
    /// For a full page, or an item on it.
    pub fn of_full(epoch: Epoch, definition: &Definition, owner: &OwnerId, page: PageNumber) -> Self {
        Self::new(epoch, owner, format_args!("{}.p{page}", definition.name), false)
    }

    /// For a window of the history when it ended with `last`.
    pub fn of_snapshot(epoch: Epoch, definition: &Definition, owner: &OwnerId, last: Seq) -> Self {
        Self::new(epoch, owner, format_args!("{}.a{last}", definition.name), false)
    }

    /// For everything that changes when the history grows.
    pub fn of_tail(epoch: Epoch, definition: &Definition, owner: &OwnerId, totals: Totals) -> Self {
        Self::of_tails(epoch, owner, [(definition, totals)])
    }

    /// For everything that changes when one of these histories of an owner grows.
    pub fn of_tails<'a>(
        epoch: Epoch,
        owner: &OwnerId,
        histories: impl IntoIterator<Item = (&'a Definition, Totals)>,
    ) -> Self {
        let state =
            |(definition, totals): (&Definition, Totals)| format!("{}.s{}", definition.name, totals.items());
        let states: Vec<_> = histories.into_iter().map(state).collect();
        Self::new(epoch, owner, format_args!("{}", states.join(".")), true)
    }

    fn new(epoch: Epoch, owner: &OwnerId, state: fmt::Arguments<'_>, changing: bool) -> Self {
        Self { tag: EntityTag::new(format_args!("{epoch}.{FORMAT}.{owner}.{state}")), changing }
    }

    /// Of a history that begins with `first`, because all before it is deleted.
    #[must_use]
    pub fn since(self, first: Seq) -> Self {
        if first == Seq::FIRST { self } else { self.of_part(format_args!("f{first}")) }
    }

    /// With the same tag, for an answer that may change although its history does not.
    #[must_use]
    pub fn revalidated(self) -> Self {
        Self { changing: true, ..self }
    }

    /// For a part of an answer, which has the same address.
    #[must_use]
    pub fn of_part(self, part: impl fmt::Display) -> Self {
        Self { tag: self.tag.of_part(part), ..self }
    }

    /// The headers of an answer, or of a 304 in its place, with this tag.
    ///
    /// `Vary` does not name `Accept`: the only answer that depends on it is a 406, which is not cached.
    pub fn headers(&self, tag: HeaderValue, kept_by: KeptBy) -> [(HeaderName, HeaderValue); 3] {
        let control = match (self.changing, kept_by) {
            (true, _) => CHANGING,
            (false, KeptBy::Client) => FINAL_PRIVATE,
            (false, KeptBy::Anybody) => FINAL_PUBLIC,
        };
        [(header::CACHE_CONTROL, control), (header::ETAG, tag), (header::VARY, VARY)]
    }
}
