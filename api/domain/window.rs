//! Windows: the trades nearest a cursor, whatever pages they are on.

use std::str::FromStr;

use super::number::{MAX_SAFE_INTEGER, parse_digits};
use super::{Invalid, PAGE_SIZE, Seq, SeqRange, Totals};

/// In which order a history is turned over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Oldest first: sequence numbers and pages upwards.
    Ascending,
    /// Newest first: sequence numbers and pages downwards.
    Descending,
}

/// A place between two trades, named by how many trades lie before it: 0 is the beginning. Nothing
/// that is appended moves it, and it may lie beyond the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(u64);

impl Position {
    /// Before the first trade.
    pub const BEGINNING: Self = Self(0);

    /// Right behind this trade.
    pub fn behind(seq: Seq) -> Self {
        Self(seq.get())
    }

    /// Right before this trade.
    pub fn before(seq: Seq) -> Self {
        Self(seq.get() - 1)
    }

    /// Behind the last trade of a history.
    pub fn end_of(totals: Totals) -> Self {
        Self(totals.trades())
    }

    /// The address of the trade behind it, if there can be one.
    pub fn next_seq(self) -> Option<Seq> {
        Seq::new(self.0 + 1).ok()
    }

    /// The address of the trade before it, if there is one.
    pub fn last_seq(self) -> Option<Seq> {
        Seq::new(self.0).ok()
    }

    /// How many trades lie before it, which is the sequence number of the last of them.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl Seq {
    /// Whether the trade lies between two positions.
    pub fn within(self, start: Position, end: Position) -> bool {
        start.0 < self.get() && self.get() <= end.0
    }
}

impl FromStr for Position {
    type Err = Invalid;

    /// By the sequence number of the trade before it, 0 to 2^53 - 1.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let number = parse_digits(text).filter(|&number| number <= MAX_SAFE_INTEGER);
        number.map(Self).ok_or_else(|| {
            Invalid::new(format!(
                "must be a whole number from 0 to {MAX_SAFE_INTEGER}, in decimal digits without a sign or a leading zero"
            ))
        })
    }
}

/// How many trades a window shows at most: 1 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(u8);

impl Limit {
    /// The most.
    pub const MAX: u8 = 100;

    /// The same as a limit.
    pub const MOST: Self = Self(Self::MAX);

    /// How many customers are listed at once, where the client does not say.
    pub const CUSTOMERS: Self = Self(25);

    /// The number itself.
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

impl Default for Limit {
    /// As many as on a page.
    fn default() -> Self {
        Self(PAGE_SIZE as u8)
    }
}

impl FromStr for Limit {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let number = parse_digits(text).and_then(|number| u8::try_from(number).ok());
        number.filter(|number| (1..=Self::MAX).contains(number)).map(Self).ok_or_else(|| {
            Invalid::new(
                "must be a whole number from 1 to 100, in decimal digits without a sign or a leading zero",
            )
        })
    }
}

/// Which way to look, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cursor {
    /// The trades behind a position, the nearest to it.
    After(Position),
    /// The trades before a position, the nearest to it.
    Before(Position),
    /// The newest trades there are.
    End,
}

/// What a client asks for: up to so many trades nearest a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Where.
    pub cursor: Cursor,
    /// How many at most.
    pub limit: Limit,
}

impl Window {
    /// Which trades of a history of `totals` it shows.
    pub fn span(self, totals: Totals) -> Span {
        let (total, limit) = (totals.trades(), self.limit.get() as u64);
        let up_to = |end: u64| (end.saturating_sub(limit), end);
        let (start, end) = match self.cursor {
            // Beyond the end there is nothing yet: the cursor stays where it is.
            Cursor::After(Position(start)) if start >= total => (start, start),
            Cursor::After(Position(start)) => (start, total.min(start + limit)),
            Cursor::Before(Position(end)) => up_to(end.min(total)),
            Cursor::End => up_to(total),
        };
        Span { start: Position(start), end: Position(end) }
    }

    /// Whether all its trades lie on pages that were full in a history of `totals`: then it shows the same of
    /// every history that this one may become.
    pub fn lies_in_full_pages(self, totals: Totals) -> bool {
        let full = totals.trades() / PAGE_SIZE as u64 * PAGE_SIZE as u64;
        match self.cursor {
            Cursor::After(Position(start)) => start + self.limit.get() as u64 <= full,
            Cursor::Before(Position(end)) => end <= full,
            Cursor::End => false,
        }
    }

    /// What a search through a history of `totals` has looked at that leaves some trades out: as far as
    /// this trade, which filled the window with others left, or to the end.
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

/// The trades between two positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Before the first of them.
    pub start: Position,
    /// Behind the last of them: from here on trades are newer than all that was shown.
    pub end: Position,
}

impl Span {
    /// Their addresses; `None` when there are none.
    pub fn seqs(self) -> Option<SeqRange> {
        let (first, last) = (self.start.next_seq()?, self.end.last_seq()?);
        (first <= last).then_some(SeqRange { first, last })
    }

    /// Where the trades before these end, if there are any.
    pub fn older(self, totals: Totals) -> Option<Position> {
        Some(self.start.min(Position::end_of(totals))).filter(|&start| start > Position::BEGINNING)
    }

    /// Where the trades behind these begin, if there are any.
    pub fn newer(self, totals: Totals) -> Option<Position> {
        Some(self.end).filter(|&end| end < Position::end_of(totals))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(trades: u64) -> Totals {
        Totals::ending_with(Seq::new(trades).ok())
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
    fn in_full_pages_a_window_is_the_same_for_ever() {
        let (after, before) = (|n| Cursor::After(Position(n)), |n| Cursor::Before(Position(n)));
        let mut settled = 0;
        for cursor in (0..=45).flat_map(|n| [after(n), before(n)]).chain([Cursor::End]) {
            for limit in [1, 7, 10, 25] {
                for trades in 0..=45 {
                    let window = Window { cursor, limit: Limit(limit) };
                    let now = window.span(totals(trades));
                    let moved = (trades..=trades + 70).any(|later| window.span(totals(later)) != now);
                    let in_tail = now.end.0 > trades / 10 * 10;
                    assert_eq!(
                        window.lies_in_full_pages(totals(trades)),
                        !moved && !in_tail,
                        "{window:?} of {trades}"
                    );
                    settled += usize::from(!moved && !in_tail);
                }
            }
        }
        assert!(settled > 1000, "{settled}");
        assert!(
            !Window { cursor: after(MAX_SAFE_INTEGER), limit: Limit::MOST }
                .lies_in_full_pages(totals(MAX_SAFE_INTEGER))
        );
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
        assert_eq!(beyond.older(totals(25)), Some(Position(25)), "what there is lies before it");
        assert_eq!(span(Cursor::After(Position(1_000)), 10, 0).older(totals(0)), None);
    }

    #[test]
    fn numbers_are_of_their_form() {
        assert_eq!("0".parse::<Position>(), Ok(Position::BEGINNING));
        assert_eq!("9007199254740991".parse::<Position>(), Ok(Position(MAX_SAFE_INTEGER)));
        assert_eq!(["1", "100"].map(|text| text.parse::<Limit>().unwrap().get()), [1, 100]);
        for text in ["", "-1", "+1", "01", "1.5", "1e3", "9007199254740992", "99999999999999999999", "x"] {
            assert!(text.parse::<Position>().is_err(), "{text:?}");
            assert!(text.parse::<Limit>().is_err(), "{text:?}");
        }
        for text in ["0", "101", "256", "257"] {
            assert!(text.parse::<Limit>().is_err(), "{text:?}");
        }
    }
}
