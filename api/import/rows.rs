//! A file as rows, whatever its format.

use std::io::{self, Read};
use std::sync::Arc;
use std::{str, thread};

use tokio::sync::mpsc;

use super::columns::{Column, ColumnName, Columns, Located, Owner};
use super::csv::{Record, Records};
use super::error::{BadRow, OpenError};
use super::lines::Lines;
use super::row::{Cell, Cells};
use super::value::Value;
use crate::definition::Definition;
use crate::domain::OwnerId;
use crate::format::Format;
use crate::ingest::{BATCH, Chunk, Incoming, LONGEST_ROW, Line, Row};
use crate::item::Draft;

/// The rows of a file, read one by one in constant memory.
pub struct Rows {
    source: Source,
    columns: Columns,
    /// Rows that begin before this line are skipped.
    from_line: u64,
}

enum Source {
    Csv { records: Records, header: Vec<String>, located: Located },
    Ndjson(Lines),
}

impl Rows {
    /// Reads the beginning of a file, and waits for it if it must; for CSV that is the header.
    ///
    /// `names`: the columns that have names of the user's. `owner`: the owner of all rows, unless each names its own.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        input: Box<dyn Read + Send>,
        format: Format,
        definition: &Arc<Definition>,
        names: &[ColumnName],
        owner: Option<OwnerId>,
        from_line: u64,
    ) -> Result<Self, OpenError> {
        let columns = Columns::new(definition, names, owner)?;
        let mut lines = Lines::new(input);
        let beginning = lines.peek()?;
        if beginning.starts_with(b"\xFF\xFE") || beginning.starts_with(b"\xFE\xFF") {
            return Err(OpenError::Utf16);
        }
        let source = match format {
            Format::Csv => {
                let mut records = Records::new(lines);
                let header = match records.read(None)? {
                    Some(Ok(record)) => names_of(&record),
                    Some(Err(bad)) => return Err(OpenError::NoHeader(bad.to_string())),
                    None => return Err(OpenError::NoHeader("it is empty".to_owned())),
                };
                let located = columns.locate(&header)?;
                Source::Csv { records, header, located }
            }
            Format::Ndjson => {
                if beginning.trim_ascii_start().starts_with(b"[") {
                    return Err(OpenError::Array);
                }
                Source::Ndjson(lines)
            }
        };
        Ok(Self { source, columns, from_line })
    }

    /// The next row, or what is wrong with it; `None` at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read any further.
    pub fn read(&mut self) -> io::Result<Option<Result<Row, BadRow>>> {
        let columns = &self.columns;
        loop {
            let read = match &mut self.source {
                Source::Csv { records, header, located } => records.read(Some(header.len()))?.map(|read| {
                    read.and_then(|record| {
                        row(record.line, record.size, columns.of_record(&record, header, located))
                    })
                }),
                Source::Ndjson(lines) => {
                    let line = lines.read()?;
                    if line.as_ref().is_some_and(Line::is_blank) {
                        continue;
                    }
                    line.map(|line| {
                        let item = if line.cut {
                            Err(format!("is longer than {LONGEST_ROW} bytes"))
                        } else {
                            columns.of_line(&line.bytes)
                        };
                        row(line.number, line.size, item)
                    })
                }
            };
            let line = read.as_ref().map(|read| read.as_ref().map_or_else(|bad| bad.line, |row| row.line));
            if line.is_none_or(|line| line >= self.from_line) {
                return Ok(read);
            }
        }
    }

    /// Whether there may be a row that needs no waiting for the file.
    pub fn ready(&self) -> bool {
        match &self.source {
            Source::Csv { records, .. } => records.ready(),
            Source::Ndjson(lines) => lines.ready(),
        }
    }
}

/// Reads rows ahead, up to the first bad one if `strict`. Files and pipes block, so a thread of its own reads them; one that
/// still waits for a pipe when no more rows are wanted ends with the process.
pub fn read_ahead(mut rows: Rows, strict: bool) -> Incoming<BadRow> {
    let (send, receive) = mpsc::channel(4);
    let read = move || {
        let mut chunk = Chunk::new();
        loop {
            // Rows that are here do not wait for rows that are not.
            let send_now = chunk.len() == BATCH || (!chunk.is_empty() && !rows.ready());
            if send_now && send.blocking_send(Ok(std::mem::take(&mut chunk))).is_err() {
                return;
            }
            match rows.read() {
                Ok(Some(row)) => {
                    let last = row.is_err() && strict;
                    chunk.push(row);
                    if last {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    let _ = send.blocking_send(Ok(chunk));
                    let _ = send.blocking_send(Err(error));
                    return;
                }
            }
        }
        let _ = send.blocking_send(Ok(chunk));
    };
    thread::spawn(read);
    receive
}

fn row(line: u64, size: u64, item: Result<(OwnerId, Draft), String>) -> Result<Row, BadRow> {
    match item {
        Ok((owner, draft)) => Ok(Row { line, size, owner, draft }),
        Err(reason) => Err(BadRow { line, size, reason }),
    }
}

/// Names that are not UTF-8 can be shown, but not given.
fn names_of(record: &Record) -> Vec<String> {
    (0..record.width()).map(|index| String::from_utf8_lossy(record.field(index)).into_owned()).collect()
}

impl Columns {
    /// The item of a record, and its owner.
    fn of_record(
        &self,
        record: &Record,
        header: &[String],
        located: &Located,
    ) -> Result<(OwnerId, Draft), String> {
        let cell = |column: &Column, place: Option<usize>| {
            let place = place?;
            let value = match str::from_utf8(record.field(place)) {
                Ok("") if !record.quoted(place) => Value::Empty,
                Ok(text) => Value::Text(text.into()),
                Err(_) => Value::NotText("bytes that are no UTF-8 text"),
            };
            // An empty field says that there is no such property.
            let absent = matches!(value, Value::Empty) && !column.required;
            (!absent).then(|| Cell { name: &header[place], value })
        };
        let owner = match &self.owner {
            Owner::Of(_) => None,
            Owner::In(column) => cell(column, located.owner),
        };
        let places = self.properties.iter().zip(&located.properties);
        let properties = places.map(|(column, place)| cell(column, *place)).collect();
        self.item(&Cells { owner, properties, others: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &[u8], format: Format, customer: Option<u64>, from_line: u64) -> Result<Rows, OpenError> {
        let (input, trades) = (Box::new(io::Cursor::new(text.to_vec())), Arc::new(Definition::trades()));
        Rows::open(input, format, &trades, &[], customer.map(OwnerId::Integer), from_line)
    }

    fn lines(mut rows: Rows) -> Vec<Result<u64, u64>> {
        std::iter::from_fn(|| rows.read().unwrap())
            .map(|read| read.map(|row| row.line).map_err(|bad| bad.line))
            .collect()
    }

    #[test]
    fn rows_are_named_by_their_first_lines() {
        let text = "\u{feff},amount,symbol,note\r\n2004-01-09,5,AMD,\"two\r\nlines\"\r\n\r\n2004-01-09,0,AMD,\r\n2004-01-09,-5,AMD,\n";
        assert_eq!(lines(open(text.as_bytes(), Format::Csv, Some(7), 1).unwrap()), [Ok(2), Err(5), Ok(6)]);
        assert_eq!(lines(open(text.as_bytes(), Format::Csv, Some(7), 3).unwrap()), [Err(5), Ok(6)]);
        assert_eq!(lines(open(text.as_bytes(), Format::Csv, Some(7), 6).unwrap()), [Ok(6)]);
        let text = "{\"customerId\":1,\"ticker\":\"A\",\"qty\":1,\"date\":\"2004-01-09\"}\n \n{}\n";
        assert_eq!(lines(open(text.as_bytes(), Format::Ndjson, None, 1).unwrap()), [Ok(1), Err(3)]);
    }

    #[test]
    fn only_columns_in_use_must_be_text() {
        let text = b"ticker,qty,date,caf\xE9\nAMD,1,2004-01-09,\xE9\nAM\xE9,1,2004-01-09,x\n";
        let mut rows = open(text, Format::Csv, Some(7), 1).unwrap();
        assert!(rows.read().unwrap().unwrap().is_ok());
        let bad = rows.read().unwrap().unwrap().unwrap_err().to_string();
        assert_eq!(bad, "line 3: \"ticker\" must be a string, not bytes that are no UTF-8 text");
    }

    #[test]
    fn what_cannot_be_read_is_refused_at_once() {
        let refusal = |text: &[u8], format| open(text, format, None, 1).err().unwrap().to_string();
        assert!(refusal(b"", Format::Csv).contains("it is empty"));
        assert!(refusal(b"\xFF\xFEa\0", Format::Csv).contains("UTF-16"));
        assert!(refusal(b"\n [{}]", Format::Ndjson).contains("jq"));
        assert!(refusal(b"a;b;c\n", Format::Csv).contains("there is \"a;b;c\""));
        assert!(refusal(b"ticker,qty,date\n", Format::Csv).contains("--owner ID"));
        assert!(open(b"", Format::Ndjson, None, 1).is_ok());
    }

    #[test]
    fn a_row_beyond_the_bound_is_bad_alone() {
        let long = format!("{{\"a\":\"{}\"}}\n", "x".repeat(10 * LONGEST_ROW));
        let good = "{\"customerId\":1,\"ticker\":\"A\",\"qty\":1,\"date\":\"2004-01-09\"}\n";
        let text = format!("{good}{long}{good}");
        assert_eq!(lines(open(text.as_bytes(), Format::Ndjson, None, 1).unwrap()), [Ok(1), Err(2), Ok(3)]);
    }
}
