//! CSV records (RFC 4180), in constant memory. A broken record costs no other.
//!
//! The `csv` crate would read a quote that is never closed as one field as long as the rest of the file, keep it in
//! memory, and lose the rows in it without a word.

use std::collections::VecDeque;
use std::io;

use super::error::BadRow;
use super::lines::Lines;
use crate::ingest::{LONGEST_ROW, Line};

/// The fields of one record.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// The line on which it begins.
    pub line: u64,
    /// Bytes of the file that it took.
    pub size: u64,
    /// The fields, one after the other, without their quotes.
    text: Vec<u8>,
    /// Where in `text` each field ends.
    ends: Vec<usize>,
    /// Which fields have quotes.
    quoted: Vec<bool>,
}

impl Record {
    /// How many fields there are.
    pub fn width(&self) -> usize {
        self.ends.len()
    }

    /// A field, counted from 0; empty beyond the last.
    pub fn field(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(index).map_or(&[], |&end| &self.text[start..end])
    }

    /// Whether a field has quotes.
    pub fn quoted(&self, index: usize) -> bool {
        self.quoted.get(index).is_some_and(|quoted| *quoted)
    }
}

/// The records of a file, its header first.
pub(super) struct Records {
    lines: Lines,
    /// Lines of a record that turned out to be broken: they are read again.
    again: VecDeque<Line>,
}

impl Records {
    pub fn new(lines: Lines) -> Self {
        Self { lines, again: VecDeque::new() }
    }

    /// Whether there may be a record that needs no waiting for the file.
    pub fn ready(&self) -> bool {
        !self.again.is_empty() || self.lines.ready()
    }

    /// The next record, which must have `width` fields; `None` at the end of the file. Blank lines
    /// are skipped.
    pub fn read(&mut self, width: Option<usize>) -> io::Result<Option<Result<Record, BadRow>>> {
        let mut first = self.line()?;
        while first.as_ref().is_some_and(|line| line.bytes.is_empty()) {
            first = self.line()?;
        }
        let Some(first) = first else { return Ok(None) };
        let mut further = Vec::new();
        match self.assemble(&first, &mut further, width)? {
            Ok(record) => Ok(Some(Ok(record))),
            Err(reason) => {
                // What looked like the rest of this record is read again, each line as a row.
                further.into_iter().rev().for_each(|line| self.again.push_front(line));
                Ok(Some(Err(BadRow { line: first.number, size: first.size, reason })))
            }
        }
    }

    fn line(&mut self) -> io::Result<Option<Line>> {
        match self.again.pop_front() {
            Some(line) => Ok(Some(line)),
            None => self.lines.read(),
        }
    }

    /// The record that begins with `first`; the lines that it took beyond that one go to `further`.
    fn assemble(
        &mut self,
        first: &Line,
        further: &mut Vec<Line>,
        width: Option<usize>,
    ) -> io::Result<Result<Record, String>> {
        if first.cut {
            return Ok(Err(format!("is longer than {LONGEST_ROW} bytes")));
        }
        let mut record = Record { line: first.number, size: first.size, ..Record::default() };
        let mut state = State::FieldStart;
        loop {
            state = match record.split(state, further.last().unwrap_or(first)) {
                Ok(State::Quoted) => State::Quoted,
                Ok(_) => break,
                Err(reason) => return Ok(Err(reason.to_owned())),
            };
            let Some(next) = self.line()? else {
                return Ok(Err("opens a quote that is not closed before the end of the file".to_owned()));
            };
            record.size += next.size;
            further.push(next);
            if record.size > LONGEST_ROW as u64 {
                return Ok(Err(format!("opens a quote that is not closed within {LONGEST_ROW} bytes")));
            }
        }
        match width {
            Some(width) if record.width() != width => {
                Ok(Err(format!("has {} fields, and the header has {width}", record.width())))
            }
            _ => Ok(Ok(record)),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    FieldStart,
    Bare,
    Quoted,
    /// After a quote that closes a quoted field, or is the first of two that stand for one.
    Closed,
}

impl Record {
    /// Adds one line. The state after it is `Quoted` when the record continues on the next line.
    fn split(&mut self, mut state: State, line: &Line) -> Result<State, &'static str> {
        for &byte in &line.bytes {
            state = match (state, byte) {
                (State::FieldStart, b'"') => State::Quoted,
                (State::Quoted, b'"') => State::Closed,
                (State::FieldStart | State::Bare | State::Closed, b',') => {
                    self.end_field(state);
                    State::FieldStart
                }
                (State::Closed, b'"') | (State::Quoted, _) => {
                    self.text.push(byte);
                    State::Quoted
                }
                (State::FieldStart | State::Bare, _) => {
                    self.text.push(byte);
                    State::Bare
                }
                (State::Closed, _) => return Err("has text after a closing quote"),
            };
        }
        if state == State::Quoted {
            self.text.extend_from_slice(line.line_break());
        } else {
            self.end_field(state);
        }
        Ok(state)
    }

    fn end_field(&mut self, state: State) {
        self.ends.push(self.text.len());
        self.quoted.push(state == State::Closed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the line where it begins: its fields, or why it is none.
    type Record = Result<(u64, Vec<String>), (u64, String)>;

    fn records(text: &str, width: usize) -> Vec<Record> {
        let mut records = Records::new(Lines::new(Box::new(io::Cursor::new(text.to_owned()))));
        std::iter::from_fn(|| records.read(Some(width)).unwrap())
            .map(|read| match read {
                Ok(record) => {
                    let field = |index| String::from_utf8(record.field(index).to_vec()).unwrap();
                    Ok((record.line, (0..record.width()).map(field).collect()))
                }
                Err(bad) => Err((bad.line, bad.reason)),
            })
            .collect()
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
                row(3, &["", ""]),
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
