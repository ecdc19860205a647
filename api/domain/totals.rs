use super::{PAGE_SIZE, PageNumber, Seq, SeqRange};

/// How much there is in a history. Read from its last page, never counted.
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
        self.trades().div_ceil(PAGE_SIZE as u64)
    }

    /// The last page, if there is one.
    pub fn last_page(self) -> Option<PageNumber> {
        self.last.map(Seq::page)
    }

    /// The last page that is full, if there is one.
    pub fn last_full_page(self) -> Option<PageNumber> {
        PageNumber::new(self.trades() / PAGE_SIZE as u64).ok()
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
