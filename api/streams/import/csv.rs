//! Lines, and CSV records (RFC 4180) of lines, in constant memory. A broken record costs no other.
//!
//! The `csv` crate would read a quote that is never closed as one field as long as the rest of the file, keep
//! it in memory, and lose the rows in it without a word.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use crate::ingest::{Bad, LONGEST_ROW, Line, Splitter};

/// The lines of a file.
pub(crate) struct FileLines {
    input: BufReader<Box<dyn Read + Send>>,
    splitter: Splitter,
    /// Lines that were read, and are read again.
    again: VecDeque<Line>,
}

impl FileLines {
    pub(crate) fn new(input: Box<dyn Read + Send>) -> Self {
        let input = BufReader::with_capacity(LONGEST_ROW, input);
        Self { input, splitter: Splitter::default(), again: VecDeque::new() }
    }

    /// The next bytes, without taking them; none at the end of the file.
    pub(crate) fn peek(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    /// Whether there may be a whole line that needs no waiting for the file.
    pub(crate) fn ready(&self) -> bool {
        !self.again.is_empty() || self.input.buffer().contains(&b'\n')
    }

    /// The next line; `None` at the end of the file. The last one need not end with a line break.
    pub(crate) fn read(&mut self) -> io::Result<Option<Line>> {
        if let Some(line) = self.again.pop_front() {
            return Ok(Some(line));
        }
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                return Ok(self.splitter.finish());
            }
            let (taken, line) = self.splitter.take(chunk);
            self.input.consume(taken);
            if line.is_some() {
                return Ok(line);
            }
        }
    }

    /// The next lines are these.
    pub(crate) fn read_again(&mut self, lines: Vec<Line>) {
        lines.into_iter().rev().for_each(|line| self.again.push_front(line));
    }
}

/// The fields of one record.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CsvRecord {
    /// The line on which it begins.
    pub line: u64,
    /// Bytes of the file that it took.
    pub size: u64,
    /// The fields, one after the other, without their quotes.
    text: Vec<u8>,
    /// Where in `text` each field ends, and whether it has quotes.
    ends: Vec<(usize, bool)>,
}

impl CsvRecord {
    /// How many fields there are.
    pub(crate) fn width(&self) -> usize {
        self.ends.len()
    }

    /// A field, counted from 0, and whether it has quotes; empty beyond the last.
    pub(crate) fn field(&self, index: usize) -> (&[u8], bool) {
        let start =
            index.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |before| before.0);
        self.ends.get(index).map_or((&[], false), |&(end, quoted)| (&self.text[start..end], quoted))
    }
}

/// Why lines are no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CsvFault {
    #[error("is longer than {LONGEST_ROW} bytes")]
    TooLong,
    #[error("opens a quote that is not closed before the end of the file")]
    OpenAtEnd,
    #[error("opens a quote that is not closed within {LONGEST_ROW} bytes")]
    OpenTooLong,
    #[error("has a carriage return (CR) outside of quotes, and lines end with LF or CRLF")]
    LoneCr,
    #[error("has text after a closing quote")]
    TextAfterQuote,
    #[error("has {fields} fields, and the header has {header}")]
    Width { fields: usize, header: usize },
}

/// What comes next in a file.
#[derive(Debug)]
pub(crate) enum CsvRead {
    Record(CsvRecord),
    Broken(Bad<CsvFault>),
    End,
}

/// Why no record was read.
#[derive(Debug, derive_more::From)]
enum CsvError {
    Broken(CsvFault),
    Unreadable(io::Error),
}

/// The next record, which must have `width` fields. Blank lines are skipped, and lines of commas alone, which
/// spreadsheets write for blank rows.
///
/// # Errors
/// The file cannot be read any further.
pub(crate) fn read(lines: &mut FileLines, width: Option<usize>) -> io::Result<CsvRead> {
    let first = loop {
        match lines.read()? {
            None => return Ok(CsvRead::End),
            Some(line) if !line.cut && line.bytes.iter().all(|byte| *byte == b',') => {}
            Some(line) => break line,
        }
    };
    let mut further = Vec::new();
    match assemble(&first, &mut further, lines, width) {
        Ok(record) => Ok(CsvRead::Record(record)),
        Err(CsvError::Broken(why)) => {
            // What looked like the rest of this record is read again, each line as a row.
            lines.read_again(further);
            Ok(CsvRead::Broken(Bad { line: first.number, size: first.size, why }))
        }
        Err(CsvError::Unreadable(error)) => Err(error),
    }
}

/// The record that begins with `first`; the lines that it took beyond that one go to `further`.
fn assemble(
    first: &Line,
    further: &mut Vec<Line>,
    lines: &mut FileLines,
    width: Option<usize>,
) -> Result<CsvRecord, CsvError> {
    if first.cut {
        let split = CsvRecord::default().split(CsvState::FieldStart, first);
        return Err(split.err().filter(|why| *why == CsvFault::LoneCr).unwrap_or(CsvFault::TooLong).into());
    }
    let mut record = CsvRecord { line: first.number, size: first.size, ..CsvRecord::default() };
    let mut state = CsvState::FieldStart;
    loop {
        state = record.split(state, further.last().unwrap_or(first))?;
        if state != CsvState::Quoted {
            break;
        }
        let next = lines.read()?.ok_or(CsvFault::OpenAtEnd)?;
        record.size += next.size;
        further.push(next);
        if record.size > LONGEST_ROW as u64 {
            return Err(CsvFault::OpenTooLong.into());
        }
    }
    match width {
        Some(header) if header != record.width() => {
            Err(CsvFault::Width { fields: record.width(), header }.into())
        }
        _ => Ok(record),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CsvState {
    FieldStart,
    Bare,
    Quoted,
    /// After a quote that closes a quoted field, or is the first of two that stand for one.
    Closed,
}

impl CsvRecord {
    /// Adds one line. The state after it is `Quoted` when the record continues on the next line.
    fn split(&mut self, mut state: CsvState, line: &Line) -> Result<CsvState, CsvFault> {
        for &byte in &line.bytes {
            state = match (state, byte) {
                (CsvState::FieldStart, b'"') => CsvState::Quoted,
                (CsvState::Quoted, b'"') => CsvState::Closed,
                (CsvState::FieldStart | CsvState::Bare | CsvState::Closed, b',') => {
                    self.ends.push((self.text.len(), state == CsvState::Closed));
                    CsvState::FieldStart
                }
                (CsvState::Closed, b'"') | (CsvState::Quoted, _) => {
                    self.text.push(byte);
                    CsvState::Quoted
                }
                (_, b'\r') => return Err(CsvFault::LoneCr),
                (CsvState::FieldStart | CsvState::Bare, _) => {
                    self.text.push(byte);
                    CsvState::Bare
                }
                (CsvState::Closed, _) => return Err(CsvFault::TextAfterQuote),
            };
        }
        if state == CsvState::Quoted {
            self.text.extend_from_slice(line.line_break);
        } else {
            self.ends.push((self.text.len(), state == CsvState::Closed));
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the line where it begins: its fields, or why it is none.
    type FieldsOrMistake = Result<(u64, Vec<String>), (u64, String)>;

    fn records(text: &str, width: usize) -> Vec<FieldsOrMistake> {
        let mut lines = FileLines::new(Box::new(io::Cursor::new(text.to_owned())));
        let next = || match read(&mut lines, Some(width)).unwrap() {
            CsvRead::Record(record) => {
                let field = |index| String::from_utf8(record.field(index).0.to_vec()).unwrap();
                Some(Ok((record.line, (0..record.width()).map(field).collect())))
            }
            CsvRead::Broken(bad) => Some(Err((bad.line, bad.why.to_string()))),
            CsvRead::End => None,
        };
        std::iter::from_fn(next).collect()
    }

    fn row(line: u64, fields: &[&str]) -> Result<(u64, Vec<String>), (u64, String)> {
        Ok((line, fields.iter().map(|&field| field.to_owned()).collect()))
    }

    #[test]
    fn fields_are_as_rfc_4180_has_them() {
        assert_eq!(
            records("a,b\r\n\"a,1\",\"say \"\"so\"\"\"\n,\n\n a ,5\" x\n\"\",\"two\nlines\"\nz,z", 2),
            [
                row(1, &["a", "b"]),
                row(2, &["a,1", "say \"so\""]),
                row(5, &[" a ", "5\" x"]),
                row(6, &["", "two\nlines"]),
                row(8, &["z", "z"]),
            ]
        );
    }

    #[test]
    fn a_broken_record_costs_no_other() {
        let found = records("a,b\n\"x,y\na,c\n\"q\",d\n\"q\"w,e\na,f\n1,2,3\na,g\n\"never\na,h", 2);
        assert_eq!(found[0], row(1, &["a", "b"]));
        assert!(matches!(&found[1], Err((2, reason)) if reason.contains("closing quote")), "{found:?}");
        assert_eq!(found[2..4], [row(3, &["a", "c"]), row(4, &["q", "d"])]);
        assert!(matches!(&found[4], Err((5, _))));
        assert_eq!(found[5], row(6, &["a", "f"]));
        assert_eq!(found[6], Err((7, "has 3 fields, and the header has 2".to_owned())));
        assert_eq!(found[7], row(8, &["a", "g"]));
        assert!(matches!(&found[8], Err((9, reason)) if reason.contains("end of the file")));
        assert_eq!(found[9..], [row(10, &["a", "h"])]);
        let found = records("a,b\n,,,\nc,d\re,f\r\n\"g\rh\",i\r\n", 2);
        assert_eq!(found[0], row(1, &["a", "b"]));
        assert!(matches!(&found[1], Err((3, reason)) if reason.contains("carriage return")), "{found:?}");
        assert_eq!(found[2..], [row(4, &["g\rh", "i"])]);
    }

    #[test]
    fn no_record_is_longer_than_the_bound() {
        let line = format!("a,{}\n", "b".repeat(1000));
        let text = format!("\"open,1\n{}a,last\n{},x\na,b", line.repeat(100), "y".repeat(LONGEST_ROW));
        let found = records(&text, 2);
        assert_eq!(found.len(), 104);
        assert!(matches!(&found[0], Err((1, reason)) if reason.contains("within 65536")), "{:?}", found[0]);
        assert!(found[1..102].iter().all(Result::is_ok));
        assert!(matches!(&found[102], Err((103, reason)) if reason.contains("longer than 65536")));
        assert_eq!(found[103], row(104, &["a", "b"]));
    }
}
