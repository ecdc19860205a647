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
mod extended_json;
mod lines;
mod ndjson;
mod read_ahead;
mod rows;
mod trade;

pub use columns::Columns;
pub use read_ahead::read_ahead;
pub use rows::{OpenError, Rows};

pub use crate::format::Format;
use crate::ingest::Bad;

/// A row that is no trade.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct BadRow {
    /// The line on which it began, from 1.
    pub line: u64,
    /// How many bytes of the file it took, line breaks included.
    pub size: u64,
    /// All that is wrong with it, as a sentence without a full stop. Repeats at most a few
    /// characters of the file, with control characters escaped.
    pub reason: String,
}

impl Bad for BadRow {
    fn line(&self) -> u64 {
        self.line
    }

    fn size(&self) -> u64 {
        self.size
    }
}
