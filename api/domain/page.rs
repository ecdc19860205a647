use std::str::FromStr;

use serde::Serialize;

use super::Invalid;
use super::number::{MAX_SAFE_INTEGER, parse_digits, whole};

/// The number of trades on a full page. A page is a bucket.
pub const PAGE_SIZE: usize = 10;

const SIZE: u64 = PAGE_SIZE as u64;

/// The permanent number of a page in its history, from 1, without gaps (invariant 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, derive_more::Display)]
#[serde(transparent)]
pub struct PageNumber(u64);

impl PageNumber {
    /// The first page of every history.
    pub const FIRST: Self = Self(1);

    /// # Errors
    /// The number is outside 1 to 2^53 - 1.
    pub fn new(number: u64) -> Result<Self, Invalid> {
        whole(Some(number), 1..=MAX_SAFE_INTEGER).map(Self)
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

    /// The sequence number of this page's first trade: `(page - 1) * 10 + 1`. It saturates at the greatest
    /// sequence number; no page exists there.
    pub fn first_seq(self) -> Seq {
        Seq(((self.0 - 1).saturating_mul(SIZE) + 1).min(MAX_SAFE_INTEGER))
    }
}

/// The permanent address of a trade in its history, from 1, without gaps (invariant 5):
/// `seq = (page - 1) * 10 + place`, place 1 to 10.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, derive_more::Display)]
#[serde(transparent)]
pub struct Seq(u64);

impl Seq {
    /// The first trade of every history.
    pub const FIRST: Self = Self(1);

    /// # Errors
    /// The number is outside 1 to 2^53 - 1.
    pub fn new(seq: u64) -> Result<Self, Invalid> {
        whole(Some(seq), 1..=MAX_SAFE_INTEGER).map(Self)
    }

    /// The number itself.
    pub fn get(self) -> u64 {
        self.0
    }

    /// The trade's page.
    pub fn page(self) -> PageNumber {
        PageNumber((self.0 - 1) / SIZE + 1)
    }

    /// The trade's place on its page, counted from 0.
    pub fn offset(self) -> usize {
        ((self.0 - 1) % SIZE) as usize
    }

    /// The address of the trade that is `count` places later.
    #[must_use]
    pub fn plus(self, count: usize) -> Self {
        Self(self.0 + count as u64)
    }
}

/// Adjacent trades, from `first` to `last`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeqRange {
    /// The first trade.
    pub first: Seq,
    /// The last trade; equal to `first` if there is only one.
    pub last: Seq,
}

impl SeqRange {
    /// Whether this trade is in the range.
    pub fn contains(&self, seq: Seq) -> bool {
        (self.first..=self.last).contains(&seq)
    }

    /// The number of trades in the range.
    pub fn count(&self) -> u64 {
        self.last.0 - self.first.0 + 1
    }

    /// Each of them.
    pub fn seqs(&self) -> impl Iterator<Item = Seq> + use<> {
        (self.first.0..=self.last.0).map(Seq)
    }
}

/// The size of a history. It follows from the last page; nothing is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    last: Option<Seq>,
}

impl Totals {
    /// The totals of a history that ends with `last`, or of an empty one.
    pub fn ending_with(last: Option<Seq>) -> Self {
        Self { last }
    }

    /// The total of trades, which is the last sequence number.
    pub fn trades(self) -> u64 {
        self.last.map_or(0, Seq::get)
    }

    /// The total of pages, full or not.
    pub fn pages(self) -> u64 {
        self.trades().div_ceil(SIZE)
    }

    /// The last page, if there is one.
    pub fn last_page(self) -> Option<PageNumber> {
        self.last.map(Seq::page)
    }

    /// The last page that is full, if there is one.
    pub fn last_full_page(self) -> Option<PageNumber> {
        PageNumber::new(self.trades() / SIZE).ok()
    }

    /// The trades on a page, if there are any.
    pub fn on_page(self, page: PageNumber) -> Option<SeqRange> {
        let first = page.first_seq();
        let last = self.last.filter(|last| first <= *last)?;
        Some(SeqRange { first, last: last.min(first.plus(PAGE_SIZE - 1)) })
    }

    /// The last trade's address, if there is one.
    pub fn last_seq(self) -> Option<Seq> {
        self.last
    }
}

impl FromStr for PageNumber {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        whole(parse_digits(text), 1..=MAX_SAFE_INTEGER).map(Self)
    }
}

impl FromStr for Seq {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        whole(parse_digits(text), 1..=MAX_SAFE_INTEGER).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(n: u64) -> Seq {
        Seq::new(n).unwrap()
    }

    #[test]
    fn a_sequence_number_is_an_address() {
        for (n, page, offset) in [(1, 1, 0), (10, 1, 9), (11, 2, 0), (9367, 937, 6)] {
            assert_eq!((seq(n).page().get(), seq(n).offset()), (page, offset), "{n}");
            assert_eq!(seq(n).page().first_seq().plus(offset), seq(n));
        }
    }

    #[test]
    fn the_greatest_page_number_does_not_overflow() {
        let last = PageNumber::new(MAX_SAFE_INTEGER).unwrap();
        assert_eq!(last.first_seq().get(), MAX_SAFE_INTEGER);
        assert!("9007199254740992".parse::<PageNumber>().is_err());
    }
}
