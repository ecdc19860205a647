//! Counts the rows of a stream.

use std::collections::BTreeSet;

use super::report::{End, Lines, Owners, Report, Unknown};
use super::send::{RowEnd, Sent};
use super::stream::Row;
use crate::domain::{OwnerId, Seq};

/// A report that is being made.
#[derive(Debug, Default)]
pub struct Tally {
    /// The counts so far.
    pub report: Report,
    /// The last line that is stored, or may be.
    last_stored: u64,
    /// Lines that were read, and are not known to be stored.
    left: BTreeSet<u64>,
    /// Those of them that may be stored.
    unknown: BTreeSet<u64>,
    /// The line after the last row.
    next_line: u64,
    owner: Owner,
}

/// The owners of all rows.
#[derive(Debug, Default, PartialEq, Eq)]
enum Owner {
    #[default]
    None,
    One(OwnerId),
    Many,
}

impl Tally {
    /// A tally that tells at most `owners` owners apart.
    pub fn counting(owners: usize) -> Self {
        let report = Report { owners: Owners::up_to(owners), ..Report::default() };
        Self { report, next_line: 1, ..Self::default() }
    }

    /// A row that is an item.
    pub fn came(&mut self, row: &Row) {
        self.report.read += 1;
        self.next_line = row.line + 1;
        match &self.owner {
            Owner::None => self.owner = Owner::One(row.owner.clone()),
            Owner::One(owner) if *owner == row.owner => {}
            Owner::One(_) | Owner::Many => self.owner = Owner::Many,
        }
    }

    /// A row that is none.
    pub fn bad(&mut self, line: u64, size: u64) {
        self.report.refused += 1;
        self.report.bytes += size;
        self.next_line = line + 1;
    }

    /// The outcome of a batch.
    pub fn sent(&mut self, sent: &Sent) {
        let (ended, rest) = sent.rows.split_at(sent.ends.len());
        for (row, end) in ended.iter().zip(&sent.ends) {
            match end {
                RowEnd::Stored(seq) => self.stored(row, *seq),
                RowEnd::Refused(_) => self.refused(row),
            }
        }
        if let Some(last) = sent.last {
            self.report.last = Some((sent.owner.clone(), last));
        }
        self.unknown(&sent.owner, rest[..sent.unknown].iter().map(|row| row.line));
        self.left(rest.iter().map(|row| row.line));
    }

    /// A row is stored.
    pub fn stored(&mut self, row: &Row, seq: Seq) {
        self.report.bytes += row.size;
        self.report.stored += 1;
        self.report.ranges.push(seq);
        self.report.owners.add(&row.owner);
        self.last_stored = self.last_stored.max(row.line);
    }

    /// A row that is an item is not stored, for a reason of its own.
    pub fn refused(&mut self, row: &Row) {
        self.report.bytes += row.size;
        self.report.read -= 1;
        self.report.refused += 1;
    }

    /// Rows of an owner have an unknown outcome, by their lines.
    pub fn unknown(&mut self, owner: &OwnerId, lines: impl Iterator<Item = u64>) {
        let lines: Vec<_> = lines.collect();
        if let (Some(first), Some(last)) = (lines.first(), lines.last()) {
            let (rows, ends) = (lines.len() as u64, (*first, *last));
            self.report.unknown.push(Unknown { owner: owner.clone(), rows, lines: ends });
        }
        self.unknown.extend(&lines);
        self.left(lines.into_iter());
    }

    /// Lines that were read and will not be sent any more.
    pub fn left(&mut self, lines: impl Iterator<Item = u64>) {
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
        let all = self.owner != Owner::Many;
        self.report.left_lines = lines(self.left.difference(&self.unknown).copied(), all);
        self.report.left_lines.push(Lines { first: behind, last: None });
        self.report.unknown_lines = lines(self.unknown.iter().copied(), all);
        self.report
    }
}

/// Lines in order, as ranges; as one range if `all`, because lines between them are no items.
fn lines(lines: impl Iterator<Item = u64>, all: bool) -> Vec<Lines> {
    let mut ranges: Vec<Lines> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some(range) if all || range.last.is_some_and(|last| last + 1 == line) => range.last = Some(line),
            _ => ranges.push(Lines { first: line, last: Some(line) }),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Instant;
    use crate::item::Item;
    use crate::store::history::Cause;

    fn row(line: u64, owner: u64) -> Row {
        Row {
            line,
            size: 10,
            owner: OwnerId::Integer(owner),
            draft: Item::new(Default::default(), Instant::MIN).into(),
        }
    }

    /// A batch of one owner, of which the first are stored and the next are unknown.
    fn sent(owner: u64, lines: &[u64], stored: usize, unknown: usize) -> Sent {
        let rows: Vec<_> = lines.iter().map(|&line| row(line, owner)).collect();
        let failed = (stored < rows.len()).then_some(Cause::Contended);
        let seq = |index: usize| RowEnd::Stored(Seq::new(index as u64 + 1).unwrap());
        let ends = (0..stored).map(seq).collect();
        Sent { owner: OwnerId::Integer(owner), rows, ends, unknown, last: None, failed, so_far: None }
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
        let failed = || Some(End::Database(Cause::Contended));
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
        let failed = || Some(End::Database(Cause::Contended));
        let told = |sent: &[Sent]| {
            let report = closed(sent, failed());
            let pairs = |lines: &[Lines]| lines.iter().map(|l| (l.first, l.last)).collect::<Vec<_>>();
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
}
