//! The `_id` of a tile: `trades/<hash>/123/000000000000004`.
//!
//! The hash is of all that the bytes of a tile depend on beside its pages: the definition's `summaries`, and
//! the format. So another definition begins other tiles. No name of a history, no hash and no id of an owner
//! has a `/`, so what begins with one of these parts is a range.
//!
//! The rules of [`make`](super::make) for when a tile has no groups or is a stub are not in the hash: a
//! change of these rules needs a migration that empties `summary_tiles`.

use std::fmt::Write;

use mongodb::bson::{Document, doc};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{OwnerId, PageNumber, PageSize, Seq};
use pagebucket_model::summary::TILE_FORMAT;
use sha2::{Digest, Sha256};

/// The pages of a tile. With fewer there are more documents and more quarters that stand in two tiles; with
/// more, more pages at the end of a history are in no tile.
pub(crate) const PAGES: u64 = 64;

/// The number of a tile in its history, from 0: the pages of the first one are 1 to 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
pub(crate) struct TileNumber(u64);

impl TileNumber {
    pub(crate) fn of(page: PageNumber) -> Self {
        Self((page.get() - 1) / PAGES)
    }

    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The tile that is `count` places after this one.
    pub(crate) fn plus(self, count: usize) -> Self {
        Self(self.0.saturating_add(count as u64))
    }

    /// Whether so few tiles are between `other`, an earlier one, and this that it is cheaper to examine them
    /// than to ask once more.
    pub(crate) fn is_near(self, other: Self) -> bool {
        const FEW: u64 = 4;
        self.0 - other.0 <= FEW
    }

    /// Its first page. It saturates at the greatest page number.
    pub(crate) fn first_page(self) -> PageNumber {
        PageNumber::new(self.0.saturating_mul(PAGES) + 1).unwrap_or(PageNumber::FIRST)
    }

    pub(crate) fn last_page(self) -> PageNumber {
        PageNumber::new(self.first_page().get() + PAGES - 1).unwrap_or(PageNumber::FIRST)
    }

    pub(crate) fn pages(self) -> Vec<PageNumber> {
        self.first_page().up_to(self.last_page()).collect()
    }

    pub(crate) fn first_seq(self, size: PageSize) -> Seq {
        size.first_seq(self.first_page())
    }

    /// This tile and the following ones, up to and including `last`.
    pub(crate) fn up_to(self, last: Self) -> impl Iterator<Item = Self> {
        (self.0..=last.0).map(Self)
    }

    /// This tile and the following ones, up to and without `end`.
    pub(crate) fn before(self, end: Self) -> impl Iterator<Item = Self> {
        (self.0..end.0).map(Self)
    }

    /// The last one of this many tiles, of which this is the first.
    pub(crate) fn last_of(self, count: u64) -> Self {
        Self(self.0.saturating_add(count.saturating_sub(1)))
    }

    /// The first one of this many tiles, of which this is the last.
    pub(crate) fn first_of(self, count: u64) -> Self {
        Self((self.0 + 1).saturating_sub(count))
    }

    /// The tiles whose pages are all among these.
    pub(crate) fn within(first: PageNumber, last: PageNumber) -> Option<(Self, Self)> {
        let begin = Self::of(first);
        let begin = if begin.first_page() == first { begin } else { begin.next() };
        let end = (last.get() / PAGES).checked_sub(1).map(Self)?;
        (begin <= end).then_some((begin, end))
    }
}

/// The hash of the tiles of a definition; `None` if it has no summaries.
pub(crate) fn hash(definition: &Definition) -> Option<String> {
    let summaries = definition.summaries.as_ref()?;
    let digest = Sha256::digest(format!("{TILE_FORMAT} {PAGES}\n{}", summaries.canonical()));
    let mut hash = String::new();
    for byte in &digest[..8] {
        write!(hash, "{byte:02x}").expect("memory");
    }
    Some(hash)
}

/// What the `_id`s of the tiles of a history begin with, of one hash and one owner if they are given.
pub(crate) fn prefix(history: &str, of: Option<(&str, Option<&OwnerId>)>) -> String {
    match of {
        None => format!("{history}/"),
        Some((hash, None)) => format!("{history}/{hash}/"),
        Some((hash, Some(owner))) => format!("{history}/{hash}/{owner}/"),
    }
}

/// The first text after all that begin with this prefix, which ends with `/`: `0` follows it in ASCII.
pub(crate) fn after(prefix: &str) -> String {
    format!("{}0", prefix.trim_end_matches('/'))
}

/// The condition that an `_id` begins with this prefix and is not before `from`. Its bounds are inclusive:
/// some servers get exclusive ones wrong on a clustered collection.
pub(crate) fn range(prefix: &str, from: &str) -> Document {
    doc! { "_id": { "$gte": from, "$lte": after(prefix) } }
}

/// The `_id` of a tile. `prefix` is that of its hash and owner.
pub(crate) fn id(prefix: &str, tile: TileNumber) -> String {
    format!("{prefix}{:015}", tile.0)
}

/// The hash, the owner and the number in the `_id` of a tile. `None` if it is none.
pub(crate) fn parse<'a>(id: &'a str, definition: &Definition) -> Option<(&'a str, OwnerId, TileNumber)> {
    let mut parts = id.split('/');
    parts.next().filter(|history| *history == &*definition.name)?;
    let (hash, owner, tile) = (parts.next()?, parts.next()?, parts.next()?);
    let is_number = tile.len() == 15 && tile.bytes().all(|byte| byte.is_ascii_digit());
    let tile = is_number.then(|| tile.parse().ok().map(TileNumber))??;
    let owner = definition.owner.kind.parse_stored(owner)?;
    parts.next().is_none().then_some((hash, owner, tile))
}

#[cfg(test)]
mod tests {
    use pagebucket_model::definition::Definitions;

    use super::*;

    fn page(number: u64) -> PageNumber {
        PageNumber::new(number).unwrap()
    }

    #[test]
    fn a_tile_has_64_pages() {
        assert_eq!([1, 64, 65].map(|number| TileNumber::of(page(number)).0), [0, 0, 1]);
        let (first, last) = (TileNumber(1).first_page(), TileNumber(1).last_page());
        assert_eq!((first, last, TileNumber(1).pages().len()), (page(65), page(128), 64));
        for (first, last, tiles) in [
            (1, 63, None),
            (1, 64, Some((0, 0))),
            (1, 200, Some((0, 2))),
            (2, 127, None),
            (2, 128, Some((1, 1))),
            (65, 128, Some((1, 1))),
            (66, 191, None),
        ] {
            let within = TileNumber::within(page(first), page(last));
            assert_eq!(within.map(|(first, last)| (first.0, last.0)), tiles, "{first} to {last}");
        }
    }

    #[test]
    fn what_begins_with_a_part_is_a_range() {
        let definitions = Definitions::built_in();
        let definition = definitions.iter().next().unwrap();
        let (hash, owner) = (hash(definition).unwrap(), OwnerId::Integer(12));
        let of_owner = prefix("trades", Some((&hash, Some(&owner))));
        let id = id(&of_owner, TileNumber(7));
        assert_eq!(parse(&id, definition), Some((&*hash, owner, TileNumber(7))));
        for (prefix, inside) in [
            (prefix("trades", None), true),
            (prefix("trades", Some((&hash, None))), true),
            (of_owner, true),
            (prefix("trades", Some((&hash, Some(&OwnerId::Integer(1))))), false),
            (prefix("trades-2", None), false),
            (prefix("trade", None), false),
        ] {
            assert_eq!(prefix <= id && id < after(&prefix), inside, "{prefix}");
        }
        for other in
            ["", "trades/x/12", "trades/x/12/7", "notes/x/12/000000000000007", "trades/x/x/000000000000007"]
        {
            assert_eq!(parse(other, definition), None, "{other}");
        }
    }
}
