//! Windows: the items nearest to a cursor, on whatever pages they are.

use std::time::Duration;

use serde::Serialize;

use super::number::{MAX_SAFE_INTEGER, parse_digits, whole};
use super::{Invalid, PageSize, Seq, SeqRange, Totals};

/// The order in which a history is paged through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, derive_more::Display)]
pub enum Order {
    /// Oldest first: ascending sequence numbers and pages.
    #[display("asc")]
    #[serde(rename = "asc")]
    Ascending,
    /// Newest first: descending sequence numbers and pages.
    #[display("desc")]
    #[serde(rename = "desc")]
    Descending,
}

/// A place between two items, identified by the number of items before it: 0 is the beginning. Appends do not
/// move a position. It may be beyond the end of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    /// Before the first item.
    pub const BEGINNING: Self = Self(0);

    /// Parses the sequence number of the item before the position, 0 to 2^53 - 1.
    ///
    /// # Errors
    /// The text is not such a number in decimal digits.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        whole(parse_digits(text), 0..=MAX_SAFE_INTEGER).map(Self)
    }

    /// Right after this item.
    pub fn behind(seq: Seq) -> Self {
        Self(seq.get())
    }

    /// Right before this item.
    pub fn before(seq: Seq) -> Self {
        Self(seq.get() - 1)
    }

    /// After the last item of a history.
    pub fn end_of(totals: Totals) -> Self {
        Self(totals.items())
    }

    /// The address of the item after the position, if there can be one.
    pub fn next_seq(self) -> Option<Seq> {
        Seq::new(self.0 + 1).ok()
    }

    /// The address of the item before the position; `None` at the beginning.
    pub fn last_seq(self) -> Option<Seq> {
        Seq::new(self.0).ok()
    }

    /// The number of items before the position, which is the sequence number of the last of them.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl Seq {
    /// Whether the item is between two positions.
    pub fn within(self, start: Position, end: Position) -> bool {
        start.0 < self.get() && self.get() <= end.0
    }
}

/// The most items that a window or a list shows: 1 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(u8);

impl Limit {
    /// The greatest limit, as a number.
    pub const MAX: u8 = 100;

    /// The greatest limit.
    pub const MOST: Self = Self(Self::MAX);

    /// How many owners are listed if the client gives no limit.
    pub const OWNERS: Self = Self(25);

    /// # Errors
    /// The number is outside 1 to 100.
    pub fn new(number: u64) -> Result<Self, Invalid> {
        Self::of(Some(number))
    }

    /// # Errors
    /// The text is not a number from 1 to 100 in decimal digits.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::of(parse_digits(text))
    }

    fn of(number: Option<u64>) -> Result<Self, Invalid> {
        whole(number, 1..=u64::from(Self::MAX)).map(|number| Self(number as u8))
    }

    /// As many items as a full page has, but at most [`Limit::MAX`].
    pub fn of_page(size: PageSize) -> Self {
        Self(size.get().min(Self::MAX.into()) as u8)
    }

    /// How many pages a list of the most viewed has if the client gives no limit.
    pub const TOP: Self = Self(10);

    /// The number itself.
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

/// How long a window waits for its first item: 1 to 60 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait(u8);

impl Wait {
    /// The longest wait, in seconds.
    pub const MAX: u8 = 60;

    /// # Errors
    /// The text is not a number from 1 to 60 in decimal digits.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        whole(parse_digits(text), 1..=u64::from(Self::MAX)).map(|number| Self(number as u8))
    }

    /// The time.
    pub fn time(self) -> Duration {
        Duration::from_secs(self.0.into())
    }
}

/// Where a window is, and in which direction it extends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cursor {
    /// The nearest items after a position.
    After(Position),
    /// The nearest items before a position.
    Before(Position),
    /// The newest items of the history.
    End,
}

impl Cursor {
    /// After the first `offset` items in `order`, of a history with `totals`.
    pub fn at_offset(offset: u64, order: Order, totals: Totals) -> Self {
        match order {
            Order::Ascending => Self::After(Position(offset)),
            Order::Descending => Self::Before(Position(totals.items().saturating_sub(offset))),
        }
    }
}

/// A request for the items nearest to a cursor, at most `limit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Where the window is.
    pub cursor: Cursor,
    /// The most items that it shows.
    pub limit: Limit,
}

impl Window {
    /// The items that the window shows of a history with `totals`.
    pub fn span(self, totals: Totals) -> Span {
        let (total, limit) = (totals.items(), self.limit.get() as u64);
        let up_to = |end: u64| (end.saturating_sub(limit), end);
        let (start, end) = match self.cursor {
            // There is no item beyond the end yet: the cursor stays where it is.
            Cursor::After(Position(start)) if start >= total => (start, start),
            Cursor::After(Position(start)) => (start, total.min(start + limit)),
            Cursor::Before(Position(end)) => up_to(end.min(total)),
            Cursor::End => up_to(total),
        };
        Span { start: Position(start), end: Position(end) }
    }

    /// The span that a filtering search of a history with `totals` has examined. It extends to `filled_by`,
    /// the item that filled the window while others were left. Without `filled_by` it extends as far as the
    /// history does.
    pub fn searched(self, totals: Totals, filled_by: Option<Seq>) -> Span {
        let end = Position::end_of(totals);
        let backwards = |end| Span { start: filled_by.map_or(Position::BEGINNING, Position::before), end };
        match self.cursor {
            Cursor::After(start) => Span { start, end: filled_by.map_or(end.max(start), Position::behind) },
            Cursor::Before(position) => backwards(position.min(end)),
            Cursor::End => backwards(end),
        }
    }
}

/// The items between two positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The position before the first item.
    pub start: Position,
    /// The position after the last item. All items after it are newer than those shown.
    pub end: Position,
}

impl Span {
    /// The addresses of the items; `None` if there are none.
    pub fn seqs(self) -> Option<SeqRange> {
        let (first, last) = (self.start.next_seq()?, self.end.last_seq()?);
        (first <= last).then_some(SeqRange { first, last })
    }

    /// The position where the earlier items end, if there are any.
    pub fn older(self, totals: Totals) -> Option<Position> {
        Some(self.start.min(Position::end_of(totals))).filter(|&start| start > Position::BEGINNING)
    }

    /// The position where the later items begin, if there are any.
    pub fn newer(self, totals: Totals) -> Option<Position> {
        Some(self.end).filter(|&end| end < Position::end_of(totals))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(trades: u64) -> Totals {
        Totals::ending_with(PageSize::new(10).unwrap(), Seq::new(trades).ok())
    }

    fn span(cursor: Cursor, limit: u8, trades: u64) -> Span {
        Window { cursor, limit: Limit(limit) }.span(totals(trades))
    }

    fn seqs(cursor: Cursor, limit: u8, trades: u64) -> Option<(u64, u64)> {
        span(cursor, limit, trades).seqs().map(|range| (range.first.get(), range.last.get()))
    }

    #[test]
    fn shows_the_trades_nearest_the_cursor() {
        let (after, before) = (|n| Cursor::After(Position(n)), |n| Cursor::Before(Position(n)));
        for (cursor, limit, trades, expected) in [
            (after(0), 25, 100, Some((1, 25))),
            (after(8), 5, 100, Some((9, 13))),
            (after(95), 10, 100, Some((96, 100))),
            (after(100), 10, 100, None),
            (after(MAX_SAFE_INTEGER), 100, 100, None),
            (after(0), 1, 0, None),
            (before(50), 25, 100, Some((26, 50))),
            (before(3), 25, 100, Some((1, 3))),
            (before(0), 25, 100, None),
            (before(MAX_SAFE_INTEGER), 10, 100, Some((91, 100))),
            (before(5), 10, 0, None),
            (Cursor::End, 7, 100, Some((94, 100))),
            (Cursor::End, 100, 3, Some((1, 3))),
            (Cursor::End, 100, 0, None),
        ] {
            assert_eq!(seqs(cursor, limit, trades), expected, "{limit} {cursor:?} of {trades}");
        }
    }

    #[test]
    fn windows_one_after_the_other_leave_nothing_out_either_way() {
        for trades in [0, 1, 9, 10, 11, 99, 100, 101] {
            for limit in [1, 7, 10, 100] {
                let mut forwards = Vec::new();
                let mut cursor = Cursor::After(Position::BEGINNING);
                loop {
                    let span = span(cursor, limit, trades);
                    forwards.extend(span.start.0 + 1..=span.end.0);
                    let Some(newer) = span.newer(totals(trades)) else { break };
                    cursor = Cursor::After(newer);
                }
                let mut backwards = Vec::new();
                let mut cursor = Cursor::End;
                loop {
                    let span = span(cursor, limit, trades);
                    backwards.extend((span.start.0 + 1..=span.end.0).rev());
                    let Some(older) = span.older(totals(trades)) else { break };
                    cursor = Cursor::Before(older);
                }
                backwards.reverse();
                assert_eq!(forwards, (1..=trades).collect::<Vec<_>>(), "{limit} of {trades}");
                assert_eq!(backwards, forwards, "{limit} of {trades}");
            }
        }
    }

    #[test]
    fn windows_at_offsets_leave_nothing_out_in_either_order() {
        for trades in [0, 1, 9, 10, 11, 99, 100, 101] {
            for limit in [1, 7, 10, 100] {
                for order in [Order::Ascending, Order::Descending] {
                    let mut shown = Vec::new();
                    for offset in (0..trades + 25).step_by(limit.into()) {
                        let cursor = Cursor::at_offset(offset, order, totals(trades));
                        let span = span(cursor, limit, trades);
                        let mut seqs: Vec<_> = (span.start.0 + 1..=span.end.0).collect();
                        if order == Order::Descending {
                            seqs.reverse();
                        }
                        assert_eq!(seqs.len() as u64, trades.saturating_sub(offset).min(limit.into()));
                        shown.extend(seqs);
                    }
                    if order == Order::Descending {
                        shown.reverse();
                    }
                    assert_eq!(shown, (1..=trades).collect::<Vec<_>>(), "{limit} of {trades}, {order}");
                }
            }
        }
        let beyond = Cursor::at_offset(MAX_SAFE_INTEGER, Order::Descending, totals(5));
        assert_eq!(seqs(beyond, 100, 5), None);
    }

    #[test]
    fn a_search_goes_as_far_as_it_must() {
        let searched = |cursor, filled_by| {
            let span = Window { cursor, limit: Limit(5) }.searched(totals(100), Seq::new(filled_by).ok());
            (span.start.0, span.end.0, span.older(totals(100)).is_some(), span.newer(totals(100)).is_some())
        };
        assert_eq!(searched(Cursor::After(Position(0)), 42), (0, 42, false, true));
        assert_eq!(searched(Cursor::After(Position(7)), 0), (7, 100, true, false));
        assert_eq!(searched(Cursor::After(Position(700)), 0), (700, 700, true, false));
        assert_eq!(searched(Cursor::Before(Position(50)), 42), (41, 50, true, true));
        assert_eq!(searched(Cursor::Before(Position(700)), 0), (0, 100, false, false));
        assert_eq!(searched(Cursor::End, 42), (41, 100, true, false));
    }

    #[test]
    fn beyond_the_end_the_cursor_stays() {
        let beyond = span(Cursor::After(Position(1_000)), 10, 25);
        assert_eq!((beyond.end, beyond.newer(totals(25))), (Position(1_000), None));
        assert_eq!(beyond.older(totals(25)), Some(Position(25)), "the existing trades are before it");
        assert_eq!(span(Cursor::After(Position(1_000)), 10, 0).older(totals(0)), None);
    }

    #[test]
    fn numbers_have_one_form() {
        assert_eq!(Position::parse("0"), Ok(Position::BEGINNING));
        assert_eq!(Position::parse("9007199254740991"), Ok(Position(MAX_SAFE_INTEGER)));
        assert_eq!(["1", "100"].map(|text| Limit::parse(text).unwrap().get()), [1, 100]);
        for text in ["", "-1", "+1", "01", "1.5", "1e3", "9007199254740992", "99999999999999999999", "x"] {
            assert!(Position::parse(text).is_err(), "{text:?}");
            assert!(Limit::parse(text).is_err(), "{text:?}");
        }
        for text in ["0", "101", "256", "257"] {
            assert!(Limit::parse(text).is_err(), "{text:?}");
        }
    }
}
