//! A file as rows, whatever its format.

use std::io::{self, Read};
use std::sync::Arc;
use std::thread;

use pagebucket_model::definition::Definition;
use pagebucket_model::domain::OwnerId;
use tokio::sync::mpsc;

use super::columns::{ColumnName, Columns, OpenError};
use super::csv::{self, CsvFault, CsvRead, FileLines};
use super::row_faults::RowFaults;
use crate::format::Format;
use crate::ingest::{BATCH, Bad, Chunk, IncomingRows, LONGEST_ROW, Row, Unreadable};

/// The rows of a file, read one by one in constant memory.
pub struct RowReader {
    lines: FileLines,
    /// Of CSV: the header, and the places of the columns in it.
    table: Option<(Vec<String>, Vec<Option<usize>>)>,
    columns: Columns,
    /// Rows that begin before this line are skipped.
    from_line: u64,
}

/// How the rows of a file become items.
#[derive(Debug)]
pub struct RowRules<'a> {
    /// What the file is.
    pub format: Format,
    /// The columns that have names of the user's.
    pub names: &'a [ColumnName],
    /// The owner of all rows, unless each names its own.
    pub owner: Option<OwnerId>,
    /// Rows that begin before this line are skipped.
    pub from_line: u64,
}

impl RowReader {
    /// Reads the beginning of a file, and waits for it if it must; for CSV that is the header.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        input: Box<dyn Read + Send>,
        definition: &Arc<Definition>,
        rules: RowRules<'_>,
    ) -> Result<Self, OpenError> {
        let RowRules { format, names, owner, from_line } = rules;
        let columns = Columns::new(definition, names, owner)?;
        let file = |sentence: &str| OpenError::File(sentence.to_owned());
        let mut lines = FileLines::new(input);
        let beginning = lines.peek()?;
        if beginning.starts_with(b"\xFF\xFE") || beginning.starts_with(b"\xFE\xFF") {
            return Err(file(
                "it is UTF-16 text; convert it to UTF-8, for instance with `iconv -f UTF-16 -t UTF-8`",
            ));
        }
        let table = match format {
            Format::Csv => {
                let header = match csv::read(&mut lines, None)? {
                    // Names that are not UTF-8 can be shown, but not given.
                    CsvRead::Record(record) => (0..record.width())
                        .map(|index| String::from_utf8_lossy(record.field(index).0).into_owned())
                        .collect::<Vec<_>>(),
                    CsvRead::Broken(Bad { why: CsvFault::LoneCr, .. }) => {
                        return Err(file(
                            "its header has a carriage return (CR) outside of quotes, and lines end with LF or CRLF: \
                             `tr '\\r' '\\n'` converts it",
                        ));
                    }
                    CsvRead::Broken(bad) => return Err(file(&format!("it has no header row: {bad}"))),
                    CsvRead::End => return Err(file("it has no header row: it is empty")),
                };
                let places = columns.locate(&header)?;
                Some((header, places))
            }
            Format::Ndjson if beginning.trim_ascii_start().starts_with(b"[") => {
                return Err(file(
                    "it begins with \"[\", as a JSON array does; NDJSON has one object per line: `jq -c '.[]'` converts an array",
                ));
            }
            Format::Ndjson => {
                // What its names mean must be clear before anything is stored.
                while let Some(first) = lines.read()? {
                    if !first.is_blank() {
                        let checked = columns.check_names(&first.bytes);
                        checked.map_err(|names| file(&format!("its first row has {names}")))?;
                        lines.read_again(vec![first]);
                        break;
                    }
                }
                None
            }
        };
        Ok(Self { lines, table, columns, from_line })
    }

    /// The next row, or what is wrong with it; `None` at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read any further.
    pub fn read(&mut self) -> io::Result<Option<Result<Row, Bad<String>>>> {
        let columns = &self.columns;
        let words = |faults: RowFaults| faults.to_string();
        loop {
            let (line, size, item) = match &self.table {
                Some((header, places)) => match csv::read(&mut self.lines, Some(header.len()))? {
                    CsvRead::Record(record) => {
                        (record.line, record.size, columns.of_record(&record, header, places).map_err(words))
                    }
                    CsvRead::Broken(Bad { line, size, why }) => (line, size, Err(why.to_string())),
                    CsvRead::End => return Ok(None),
                },
                None => match self.lines.read()? {
                    Some(line) if line.is_blank() => continue,
                    Some(line) if line.cut => {
                        (line.number, line.size, Err(format!("is longer than {LONGEST_ROW} bytes")))
                    }
                    Some(line) => (line.number, line.size, columns.of_line(&line.bytes).map_err(words)),
                    None => return Ok(None),
                },
            };
            if line >= self.from_line {
                let row = item.map(|(owner, draft)| Row { line, size, owner, draft, source_key: None });
                return Ok(Some(row.map_err(|why| Bad { line, size, why })));
            }
        }
    }
}

/// Reads rows ahead, up to the first bad one if `strict`. Files and pipes block, so a thread of its own reads
/// them; one that still waits for a pipe when no more rows are wanted ends with the process.
pub fn read_ahead(mut rows: RowReader, strict: bool) -> IncomingRows<String> {
    let (send, receive) = mpsc::channel(4);
    thread::spawn(move || {
        let mut ended = false;
        while !ended {
            let (mut chunk, mut failed) = (Chunk::new(), None);
            // Rows that are here do not wait for rows that are not.
            while !ended && chunk.len() < BATCH && (chunk.is_empty() || rows.lines.ready()) {
                match rows.read() {
                    Ok(Some(row)) => {
                        ended = row.is_err() && strict;
                        chunk.push(row);
                    }
                    Ok(None) => ended = true,
                    Err(error) => (ended, failed) = (true, Some(error)),
                }
            }
            ended |= send.blocking_send(Ok(chunk)).is_err();
            failed.into_iter().for_each(|error| drop(send.blocking_send(Err(Unreadable::failed(error)))));
        }
    });
    receive
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(
        text: &[u8],
        format: Format,
        customer: Option<u64>,
        from_line: u64,
    ) -> Result<RowReader, OpenError> {
        let (input, trades) = (Box::new(io::Cursor::new(text.to_vec())), Arc::new(Definition::trades()));
        let owner = customer.map(OwnerId::Integer);
        RowReader::open(input, &trades, RowRules { format, names: &[], owner, from_line })
    }

    fn lines(mut rows: RowReader) -> Vec<Result<u64, u64>> {
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
        assert!(
            refusal(b"a;b;c\n", Format::Csv)
                .contains("(there is \"a;b;c\", with semicolons where CSV has commas)")
        );
        assert!(refusal(b"a\tb\n", Format::Csv).contains("with tabs where CSV has commas"));
        for lone_cr in [&b"a,b\r1,2\r"[..], b"\"a\"\r1\r2", &b"a,b\r".repeat(LONGEST_ROW)] {
            assert!(refusal(lone_cr, Format::Csv).contains("carriage return (CR)"));
        }
        let names = refusal(b" \n{\"ticker\":null,\"quantity\":1,\"amount\":2}\n", Format::Ndjson);
        assert_eq!(
            names,
            "its first row has \"amount\" and \"quantity\", each of which may be \"qty\": say which with --column qty=NAME"
        );
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
