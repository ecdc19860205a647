//! The report of a stream, and how it is made.

use std::collections::{BTreeSet, HashSet};

use pagebucket_engine::appends::AppendCause;
use pagebucket_model::domain::{OwnerId, Seq, SeqRange};

use super::send::{RowOutcome, Sent};
use super::stream::{Row, Unreadable};

/// The counts of a stream, so far or at its end.
#[derive(Debug, Default)]
pub struct Report {
    /// Rows that were items, and were not refused later.
    pub read: u64,
    /// Rows that are stored.
    pub stored: u64,
    /// Rows that were no items, or were refused as such.
    pub refused: u64,
    /// Sequence numbers of the stored rows. Only meaningful if all are of one owner.
    pub ranges: Ranges,
    /// Rows that may or may not be stored, batch by batch.
    pub unknown: Vec<Unknown>,
    /// Owners that have any of the stored rows, in bounded memory.
    pub owners: HashSet<OwnerId>,
    /// Whether there are more owners than can be told apart.
    pub more_owners: bool,
    /// The last owner with a stored row, and the last sequence number of its history.
    pub last: Option<(OwnerId, Seq)>,
    /// Bytes of the file that are stored or refused.
    pub bytes: u64,
    /// Why it ended early; `None` while it runs, and if every row has an outcome.
    pub end: Option<End>,
    /// Whether a signal came too late to stop anything.
    pub signalled: bool,
    /// If it ended early: no row before this line is left, and no row from this line on is stored. `None` if
    /// no line divides them.
    pub resume: Option<u64>,
    /// If it ended early: the lines with an unknown outcome, in order.
    pub unknown_lines: Vec<LineRange>,
    /// If it ended early: the lines that are not stored, in order. The last range has no end.
    pub left_lines: Vec<LineRange>,
}

/// Lines, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRange {
    /// The first.
    pub first: u64,
    /// The last; `None` for no end.
    pub last: Option<u64>,
}

/// Why a stream ended early.
#[derive(Debug)]
pub enum End {
    /// A bad row, in a strict stream.
    BadRow,
    /// A signal, or the stop of the server.
    Interrupted,
    /// The rest of the rows is not read.
    Unreadable(Unreadable),
    /// The database failed.
    Database(AppendCause),
    /// The server of an import ended it, or was lost; in its words.
    Server(String),
}

/// Rows of one owner that may or may not be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The owner.
    pub owner: OwnerId,
    /// Number of rows.
    pub rows: u64,
    /// The lines of the first and the last.
    pub lines: (u64, u64),
}

/// Sequence numbers in order of the rows, in bounded memory.
#[derive(Debug, Default)]
pub struct Ranges {
    /// The first ranges.
    pub kept: Vec<SeqRange>,
    /// Number of other ranges.
    pub omitted: u64,
    last: Option<Seq>,
}

impl Ranges {
    /// Maximum number of ranges that are kept. Others are only counted.
    pub const MOST: usize = 1_000;

    pub(crate) fn push(&mut self, seq: Seq) {
        let follows = self.last.is_some_and(|last| last.plus(1) == seq);
        self.last = Some(seq);
        if self.omitted > 0 || (!follows && self.kept.len() == Self::MOST) {
            self.omitted += u64::from(!follows);
        } else if let (Some(last), true) = (self.kept.last_mut(), follows) {
            last.last = seq;
        } else {
            self.kept.push(SeqRange { first: seq, last: seq });
        }
    }
}

impl Report {
    /// Rows that were read and are certainly not stored.
    pub fn left(&self) -> u64 {
        self.read - self.stored - self.unknown.iter().map(|unknown| unknown.rows).sum::<u64>()
    }
}

/// A report that is being made.
#[derive(Debug, Default)]
pub struct Tally {
    /// The counts so far.
    pub report: Report,
    /// The last line that is stored, or may be.
    last_stored: u64,
    /// Lines that were read, and are not known to be stored.
    pub left: BTreeSet<u64>,
    /// Those of them that may be stored.
    unknown: BTreeSet<u64>,
    /// The line after the last row.
    next_line: u64,
    /// Maximum number of owners with a stored row that are told apart.
    most_owners: usize,
    /// The owner of the first row.
    owner: Option<OwnerId>,
    /// Whether another row has another owner.
    many: bool,
}

impl Tally {
    /// A tally that tells at most `owners` owners apart.
    pub fn counting(owners: usize) -> Self {
        Self { next_line: 1, most_owners: owners, ..Self::default() }
    }

    /// A row that is an item.
    pub fn came(&mut self, row: &Row) {
        self.report.read += 1;
        self.next_line = row.line + 1;
        self.many |= *self.owner.get_or_insert_with(|| row.owner.clone()) != row.owner;
    }

    /// A row that is none.
    pub fn bad(&mut self, line: u64, size: u64) {
        self.report.refused += 1;
        self.report.bytes += size;
        self.next_line = line + 1;
    }

    /// The outcome of a batch.
    pub fn sent(&mut self, sent: &Sent) {
        let mut unknown = Vec::new();
        for (row, outcome) in sent.outcomes() {
            match outcome {
                RowOutcome::Stored(seq) => self.stored(row, seq),
                RowOutcome::Refused(_) => self.refused(row),
                RowOutcome::Unknown => unknown.push(row.line),
                RowOutcome::NotStored => drop(self.left.insert(row.line)),
            }
        }
        if let Some(last) = sent.last {
            self.report.last = Some((sent.owner.clone(), last));
        }
        self.unknown(&sent.owner, unknown);
    }

    /// A row is stored.
    pub fn stored(&mut self, row: &Row, seq: Seq) {
        self.report.bytes += row.size;
        self.report.stored += 1;
        self.report.ranges.push(seq);
        if self.report.owners.len() < self.most_owners {
            self.report.owners.insert(row.owner.clone());
        } else {
            self.report.more_owners |= !self.report.owners.contains(&row.owner);
        }
        self.last_stored = self.last_stored.max(row.line);
    }

    /// A row that is an item is not stored, for a reason of its own.
    pub fn refused(&mut self, row: &Row) {
        self.report.bytes += row.size;
        self.report.read -= 1;
        self.report.refused += 1;
    }

    /// Rows of an owner have an unknown outcome, by their lines.
    pub fn unknown(&mut self, owner: &OwnerId, lines: Vec<u64>) {
        if let (Some(first), Some(last)) = (lines.first(), lines.last()) {
            let (rows, ends) = (lines.len() as u64, (*first, *last));
            self.report.unknown.push(Unknown { owner: owner.clone(), rows, lines: ends });
        }
        self.unknown.extend(&lines);
        self.left.extend(lines);
    }

    /// The report; of a stream that ended early, with the line at which to continue.
    pub fn close(mut self) -> Report {
        if self.report.end.is_none() {
            return self.report;
        }
        // The user corrects the bad row at which it stopped: it is read again.
        let next = self.next_line - u64::from(matches!(self.report.end, Some(End::BadRow)));
        let line = self.left.first().copied().unwrap_or(next);
        let divides = self.report.unknown.is_empty() && self.last_stored < line;
        self.report.resume = divides.then_some(line);
        // After the last line that is or may be stored, nothing is stored, whether it was read or not.
        let last = self.last_stored.max(self.unknown.last().copied().unwrap_or(0));
        let behind = self.left.split_off(&(last + 1)).first().copied().unwrap_or(next.max(last + 1));
        self.report.left_lines = lines(self.left.difference(&self.unknown).copied(), !self.many);
        self.report.left_lines.push(LineRange { first: behind, last: None });
        self.report.unknown_lines = lines(self.unknown.iter().copied(), !self.many);
        self.report
    }
}

/// Lines in order, as ranges; as one range if `all`, because lines between them are no items.
fn lines(lines: impl Iterator<Item = u64>, all: bool) -> Vec<LineRange> {
    let mut ranges: Vec<LineRange> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some(range) if all || range.last.is_some_and(|last| last + 1 == line) => range.last = Some(line),
            _ => ranges.push(LineRange { first: line, last: Some(line) }),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::super::pending::RowBatch;
    use super::*;
    use pagebucket_engine::appends::AppendCause;
    use pagebucket_model::domain::Instant;
    use pagebucket_model::item::Item;

    fn row(line: u64, owner: u64) -> Row {
        Row {
            line,
            size: 10,
            owner: OwnerId::Integer(owner),
            draft: Item::new(Default::default(), Instant::MIN).into(),
            source_key: None,
        }
    }

    /// A batch of one owner, of which the first are stored and the next are unknown.
    fn sent(owner: u64, lines: &[u64], stored: usize, unknown: usize) -> Sent {
        let rows: Vec<_> = lines.iter().map(|&line| row(line, owner)).collect();
        let mut sent = Sent::nothing_of(RowBatch { owner: OwnerId::Integer(owner), rows, so_far: None });
        sent.failed = (stored < lines.len()).then_some(AppendCause::Contended);
        (1..=stored as u64).for_each(|seq| sent.settle(1, RowOutcome::Stored(Seq::new(seq).unwrap())));
        sent.settle(unknown, RowOutcome::Unknown);
        sent.settle_rest(RowOutcome::NotStored);
        sent
    }

    fn closed(sent: &[Sent], end: Option<End>) -> Report {
        let mut tally = Tally::default();
        let mut lines: Vec<_> = sent.iter().flat_map(|sent| sent.rows.clone()).collect();
        lines.sort_by_key(|row| row.line);
        lines.iter().for_each(|row| tally.came(row));
        sent.iter().for_each(|sent| tally.sent(sent));
        tally.report.end = end;
        tally.close()
    }

    #[test]
    fn a_line_to_go_on_from_divides_stored_from_left() {
        let failed = || Some(End::Database(AppendCause::Contended));
        // One owner: the first row that is not stored.
        let report = closed(&[sent(1, &[2, 3, 4, 5], 2, 0)], failed());
        assert_eq!((report.stored, report.left(), report.bytes, report.resume), (2, 2, 20, Some(4)));
        // Two, by luck.
        assert_eq!(closed(&[sent(1, &[2, 4], 2, 0), sent(2, &[5, 6], 0, 0)], failed()).resume, Some(5));
        // Two, whose rows interleave.
        assert_eq!(closed(&[sent(1, &[2, 4], 2, 0), sent(2, &[3, 5], 0, 0)], failed()).resume, None);
        // Unknown rows are neither.
        let report = closed(&[sent(1, &[2, 3, 4, 5], 1, 2)], failed());
        assert_eq!((report.resume, report.left()), (None, 1));
        assert_eq!((report.unknown[0].rows, report.unknown[0].lines), (2, (3, 4)));
        // All that came is stored, and more would have come.
        assert_eq!(closed(&[sent(1, &[2, 3], 2, 0)], Some(End::Interrupted)).resume, Some(4));
        assert_eq!(closed(&[sent(1, &[2, 3], 2, 0)], None).resume, None);
    }

    #[test]
    fn the_lines_that_are_left_are_told() {
        let failed = || Some(End::Database(AppendCause::Contended));
        let told = |sent: &[Sent]| {
            let report = closed(sent, failed());
            let pairs = |lines: &[LineRange]| lines.iter().map(|l| (l.first, l.last)).collect::<Vec<_>>();
            (pairs(&report.unknown_lines), pairs(&report.left_lines))
        };
        // One owner: lines between are no items.
        assert_eq!(told(&[sent(1, &[2, 3, 5, 7, 9], 1, 3)]), (vec![(3, Some(7))], vec![(9, None)]));
        assert_eq!(told(&[sent(1, &[2, 3, 5], 3, 0)]), (vec![], vec![(6, None)]));
        assert_eq!(told(&[sent(1, &[2, 3, 5], 2, 1)]), (vec![(5, Some(5))], vec![(6, None)]));
        // Many: others' lines are between.
        let many = [sent(1, &[1, 4, 5, 8], 1, 2), sent(2, &[2, 3, 6, 7, 9], 4, 0)];
        assert_eq!(told(&many), (vec![(4, Some(5))], vec![(8, None)]));
        let many = [sent(1, &[1, 2, 4], 0, 0), sent(2, &[3, 5], 2, 0)];
        assert_eq!(told(&many), (vec![], vec![(1, Some(2)), (4, Some(4)), (6, None)]));
    }

    #[test]
    fn after_a_bad_row_it_is_that_row() {
        let mut tally = Tally::default();
        tally.came(&row(2, 1));
        tally.bad(3, 5);
        tally.sent(&sent(1, &[2], 1, 0));
        tally.report.end = Some(End::BadRow);
        let report = tally.close();
        assert_eq!((report.resume, report.refused, report.bytes), (Some(3), 1, 15));
    }

    #[test]
    fn ranges_are_bounded() {
        let mut ranges = Ranges::default();
        let push = |ranges: &mut Ranges, seq| ranges.push(Seq::new(seq).unwrap());
        for number in 0..2 * Ranges::MOST as u64 {
            push(&mut ranges, number * 3 + 1);
            push(&mut ranges, number * 3 + 2);
        }
        assert_eq!((ranges.kept.len(), ranges.omitted), (Ranges::MOST, Ranges::MOST as u64));
        assert!(ranges.kept.iter().all(|range| range.count() == 2));
    }
}
