//! Keeping count of an import.

use super::report::{End, Report, Unknown};
use super::send::Sent;
use super::{BadRow, Row};

/// A report in the making.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub report: Report,
    /// The last line that is stored.
    last_stored: u64,
    /// The first that is read, and not known to be stored.
    first_left: Option<u64>,
    /// The one behind the last row that came.
    next_line: u64,
}

impl Tally {
    /// A row that is a trade.
    pub fn came(&mut self, row: &Row) {
        self.report.read += 1;
        self.next_line = row.line + 1;
    }

    /// A row that is none.
    pub fn refused(&mut self, bad: &BadRow) {
        self.report.refused += 1;
        self.report.bytes += bad.size;
        self.next_line = bad.line + 1;
    }

    /// What became of a batch.
    pub fn sent(&mut self, sent: &Sent) {
        let (stored, rest) = sent.rows.split_at(sent.stored);
        if let Some(last) = stored.last() {
            self.report.stored += stored.len() as u64;
            self.report.bytes += stored.iter().map(|row| row.size).sum::<u64>();
            self.report.customers.add(sent.customer);
            self.last_stored = self.last_stored.max(last.line);
        }
        if let Some(totals) = sent.totals {
            self.report.last = Some((sent.customer, totals));
        }
        let unknown = &rest[..sent.unknown];
        if let (Some(first), Some(last)) = (unknown.first(), unknown.last()) {
            let lines = (first.line, last.line);
            self.report.unknown.push(Unknown { customer: sent.customer, rows: sent.unknown as u64, lines });
        }
        self.left_from(rest.first().map(|row| row.line));
    }

    /// The first line of some rows that are left.
    pub fn left_from(&mut self, line: Option<u64>) {
        self.first_left = self.first_left.into_iter().chain(line).min();
    }

    /// Says from which line to go on, when the import has ended early.
    pub fn close(mut self) -> Report {
        // A bad row at which it stopped is to be mended and read again.
        let next = self.next_line - u64::from(matches!(self.report.end, Some(End::BadRow)));
        let line = self.first_left.unwrap_or(next);
        let divides = self.report.unknown.is_empty() && self.last_stored < line;
        self.report.resume = (self.report.end.is_some() && divides).then_some(line);
        self.report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{CustomerId, Instant, Quantity, Side, Ticker, Trade};
    use crate::store::trades::Cause;

    fn row(line: u64, customer: u64) -> Row {
        let trade = Trade {
            side: Side::Buy,
            ticker: Ticker::parse("MDB").unwrap(),
            qty: Quantity::new(1).unwrap(),
            price: None,
            date: Instant::from_millis(0).unwrap(),
        };
        Row { line, size: 10, customer: CustomerId::new(customer).unwrap(), trade }
    }

    /// A batch of one customer, of which the first are stored and the next are unknown.
    fn sent(customer: u64, lines: &[u64], stored: usize, unknown: usize) -> Sent {
        let rows: Vec<_> = lines.iter().map(|&line| row(line, customer)).collect();
        let failed = (stored < rows.len()).then_some(Cause::Contended);
        Sent { customer: CustomerId::new(customer).unwrap(), rows, stored, unknown, totals: None, failed }
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
        // One customer: the first row that is not stored.
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
    fn after_a_bad_row_it_is_that_row() {
        let mut tally = Tally::default();
        tally.came(&row(2, 1));
        tally.refused(&BadRow { line: 3, size: 5, reason: String::new() });
        tally.sent(&sent(1, &[2], 1, 0));
        tally.report.end = Some(End::BadRow);
        let report = tally.close();
        assert_eq!((report.resume, report.refused, report.bytes), (Some(3), 1, 15));
    }
}
