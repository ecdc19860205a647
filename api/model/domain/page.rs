//! Pages, sequence numbers, and how they follow from each other.

use bson::Bson;
use serde::Serialize;

use super::Invalid;
use super::number::{MAX_SAFE_INTEGER, parse_digits, whole};

/// The number of items on a full page: 2 to 200. A page is a bucket.
///
/// It relates the two permanent addresses (invariant 5): `seq = (page - 1) * size + position`, position 1 to
/// `size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, derive_more::Display)]
pub struct PageSize(u16);

impl PageSize {
    /// The page size of a history whose definition gives none.
    pub const DEFAULT: Self = Self(10);
    /// The least page size.
    pub const MIN: u64 = 2;
    /// The greatest page size. An append costs the server what its bucket is long.
    pub const MAX: u64 = 200;

    /// # Errors
    /// The number is outside 2 to 200.
    pub fn new(size: u64) -> Result<Self, Invalid> {
        match size {
            Self::MIN..=Self::MAX => Ok(Self(size as u16)),
            _ => Err(Invalid::new("must be a whole number from 2 to 200")),
        }
    }

    /// The number itself.
    pub fn get(self) -> usize {
        usize::from(self.0)
    }

    /// The page of an item.
    pub fn page_of(self, seq: Seq) -> PageNumber {
        PageNumber(self.full_pages(seq.get() - 1) + 1)
    }

    /// Number of pages that have these items.
    pub fn pages_of(self, range: SeqRange) -> usize {
        (self.page_of(range.last).get() - self.page_of(range.first).get()) as usize + 1
    }

    /// The index of an item on its page, from 0.
    pub fn index_of(self, seq: Seq) -> usize {
        ((seq.get() - 1) % u64::from(self.0)) as usize
    }

    /// The sequence number of a page's first item. It saturates at the greatest sequence number; no page
    /// exists there.
    pub fn first_seq(self, page: PageNumber) -> Seq {
        let before = (page.get() - 1).saturating_mul(self.0.into());
        Seq(before.min(MAX_SAFE_INTEGER - 1) + 1)
    }

    /// The sequence number of the last item of a page that is full.
    pub fn last_seq(self, page: PageNumber) -> Seq {
        self.first_seq(page).plus(self.get() - 1)
    }

    /// How many pages `items` items fill.
    pub fn full_pages(self, items: u64) -> u64 {
        items / u64::from(self.0)
    }
}

/// The permanent number of a page in its history, from 1, without gaps (invariant 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, derive_more::Display)]
#[serde(transparent)]
pub struct PageNumber(u64);

/// As a `count` is stored.
impl From<PageSize> for Bson {
    fn from(size: PageSize) -> Self {
        Self::Int32(size.0.into())
    }
}

impl From<PageNumber> for Bson {
    fn from(page: PageNumber) -> Self {
        Self::Int64(page.0 as i64)
    }
}

impl From<Seq> for Bson {
    fn from(seq: Seq) -> Self {
        Self::Int64(seq.0 as i64)
    }
}

impl PageNumber {
    /// The first page of every history.
    pub const FIRST: Self = Self(1);

    /// # Errors
    /// The number is outside 1 to 2^53 - 1.
    pub fn new(number: u64) -> Result<Self, Invalid> {
        whole(Some(number), 1..=MAX_SAFE_INTEGER).map(Self)
    }

    /// # Errors
    /// The text is not such a number in decimal digits.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        whole(parse_digits(text), 1..=MAX_SAFE_INTEGER).map(Self)
    }

    /// The number itself.
    pub fn get(self) -> u64 {
        self.0
    }

    /// The page after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// This page and the following pages, up to and including `last`.
    pub fn up_to(self, last: Self) -> impl Iterator<Item = Self> {
        (self.0..=last.0).map(Self)
    }

    /// The page before this one, if there is one.
    pub fn previous(self) -> Option<Self> {
        (self.0 > 1).then(|| Self(self.0 - 1))
    }
}

/// The permanent address of an item in its history, from 1, without gaps (invariant 5). [`PageSize`] relates
/// it to pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, derive_more::Display)]
#[serde(transparent)]
pub struct Seq(u64);

impl Seq {
    /// The first item of every history.
    pub const FIRST: Self = Self(1);

    /// # Errors
    /// The number is outside 1 to 2^53 - 1.
    pub fn new(seq: u64) -> Result<Self, Invalid> {
        whole(Some(seq), 1..=MAX_SAFE_INTEGER).map(Self)
    }

    /// # Errors
    /// The text is not such a number in decimal digits.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        whole(parse_digits(text), 1..=MAX_SAFE_INTEGER).map(Self)
    }

    /// The number itself.
    pub fn get(self) -> u64 {
        self.0
    }

    /// The address of the item that is `count` places later.
    #[must_use]
    pub fn plus(self, count: usize) -> Self {
        Self(self.0 + count as u64)
    }
}

/// Adjacent items, from `first` to `last`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeqRange {
    /// The first item.
    pub first: Seq,
    /// The last item; equal to `first` if there is only one.
    pub last: Seq,
}

impl SeqRange {
    /// Whether this item is in the range.
    pub fn contains(&self, seq: Seq) -> bool {
        (self.first..=self.last).contains(&seq)
    }

    /// The number of items in the range.
    pub fn count(&self) -> usize {
        (self.last.0 - self.first.0) as usize + 1
    }

    /// Each of them.
    pub fn seqs(&self) -> impl Iterator<Item = Seq> + use<> {
        (self.first.0..=self.last.0).map(Seq)
    }
}

/// The size of a history. It follows from the last page; nothing is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    page_size: PageSize,
    last: Option<Seq>,
}

impl Totals {
    /// The totals of a history that ends with `last`, or of an empty one.
    pub fn ending_with(page_size: PageSize, last: Option<Seq>) -> Self {
        Self { page_size, last }
    }

    /// The number of items on a full page.
    pub fn page_size(self) -> PageSize {
        self.page_size
    }

    /// The total of items, which is the last sequence number.
    pub fn items(self) -> u64 {
        self.last.map_or(0, Seq::get)
    }

    /// The total of pages, full or not.
    pub fn pages(self) -> u64 {
        self.last_page().map_or(0, PageNumber::get)
    }

    /// The last page, if there is one.
    pub fn last_page(self) -> Option<PageNumber> {
        self.last.map(|last| self.page_size.page_of(last))
    }

    /// The last page that is full, if there is one.
    pub fn last_full_page(self) -> Option<PageNumber> {
        PageNumber::new(self.page_size.full_pages(self.items())).ok()
    }

    /// The items on a page, if there are any.
    pub fn on_page(self, page: PageNumber) -> Option<SeqRange> {
        let first = self.page_size.first_seq(page);
        let last = self.last.filter(|last| first <= *last)?;
        Some(SeqRange { first, last: last.min(self.page_size.last_seq(page)) })
    }

    /// The last item's address, if there is one.
    pub fn last_seq(self) -> Option<Seq> {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_number_is_an_address() {
        let size = PageSize::new(10).unwrap();
        for (n, page, place) in [(1, 1, 0), (10, 1, 9), (11, 2, 0), (9367, 937, 6)] {
            let seq = Seq::new(n).unwrap();
            assert_eq!((size.page_of(seq).get(), size.index_of(seq)), (page, place), "{n}");
            assert_eq!(size.first_seq(size.page_of(seq)).plus(place), seq);
        }
    }

    #[test]
    fn totals_follow_from_the_last_item() {
        for (size, items, pages, full) in
            [(10, 0, 0, 0), (10, 10, 1, 1), (10, 11, 2, 1), (2, 3, 2, 1), (137, 136, 1, 0)]
        {
            let totals = Totals::ending_with(PageSize::new(size).unwrap(), Seq::new(items).ok());
            assert_eq!((totals.items(), totals.pages()), (items, pages));
            assert_eq!(totals.last_full_page().map_or(0, PageNumber::get), full);
        }
    }

    #[test]
    fn the_greatest_page_number_does_not_overflow() {
        let last = PageNumber::new(MAX_SAFE_INTEGER).unwrap();
        assert_eq!(PageSize::new(200).unwrap().first_seq(last).get(), MAX_SAFE_INTEGER);
        assert!(PageNumber::parse("9007199254740992").is_err());
    }
}
