//! Files of trades, row by row: CSV with a header row, or NDJSON.
//!
//! [`Rows`] reads a file in constant memory and gives each row as a trade or as a sentence on why it
//! is none; [`crate::ingest`] stores them. Nothing here writes to a terminal.
//!
//! What the reader decides:
//!
//! - Lines end with LF or CRLF; a byte order mark (UTF-8) before the first is skipped; blank lines
//!   are. UTF-16 is refused.
//! - CSV is RFC 4180: commas, double quotes, a quoted field may hold line breaks. Spaces belong to
//!   their field. A row with more or fewer fields than the header is bad. Only the columns in use must
//!   be UTF-8.
//! - NDJSON is one JSON object a line; MongoDB Extended JSON is understood, in its canonical, relaxed
//!   and old forms. Fields that are not in use are ignored; `null` is an absent field; one that is
//!   in use and given twice makes the row bad.
//! - A row of more than 64 KiB is bad. A quote that is never closed costs its own row only: reading
//!   goes on with the next line.
//! - A row is named by the line on which it begins, from 1, the header's included.

mod columns;
mod csv;
mod date;
mod error;
mod extended_json;
mod lines;
mod ndjson;
mod rows;
mod trade;

pub use columns::Columns;
pub use error::{BadRow, OpenError};
pub use rows::{Rows, read_ahead};

pub use crate::format::Format;
