//! Files of items, row by row: CSV with a header row, or NDJSON.
//!
//! [`RowReader`] reads a file in constant memory. Each row is an item, or a sentence that says why it is
//! none. A row becomes JSON by the definition of the history, and the schema checks that: the API and files
//! have one checker. [`crate::ingest`] stores them. Nothing here writes to a terminal.
//!
//! - Lines end with LF or CRLF. A byte order mark (UTF-8) at the beginning and blank lines are skipped.
//!   UTF-16 is refused, and in CSV a lone CR outside of quotes.
//! - CSV is RFC 4180: commas, double quotes, line breaks in quoted fields. Spaces belong to their field. A
//!   row with more or fewer fields than the header is bad, but one of commas alone is blank. Only the columns
//!   in use must be UTF-8. An empty field is an absent property, and `""` is the empty text.
//! - NDJSON is one JSON object per line. Values may be MongoDB Extended JSON, in its canonical, relaxed and
//!   old forms. `null` is an absent field where the schema has no `null`; a row with a field in use given
//!   twice is bad. Fields that are no properties are ignored, unless the schema takes them.
//! - A number may be a text, and a decimal number a number. Numbers and dates are read as `value.rs` has
//!   them.
//! - Where two columns may be one property, the file is refused; in NDJSON each row after the first is.
//! - A row of more than 64 KiB is bad. A quote that is never closed costs its own row only: reading continues
//!   with the next line.
//! - The number of a row is that of the line on which it begins, counted from 1 with the header.

mod columns;
mod csv;
mod row;
mod row_faults;
#[cfg(test)]
mod row_tests;
mod rows;
mod trades;
mod value;

pub use columns::{ColumnName, Columns, OpenError};
pub use row_faults::RowFaults;
pub use rows::{RowReader, RowRules, read_ahead};
pub use value::uuid_text;

pub use crate::format::Format;
