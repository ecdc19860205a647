//! What can be wrong with a file, and with a row of it.

use std::io;

use crate::ingest::Bad;

/// Why a file cannot be imported. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read at all.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// Its first bytes are those of UTF-16.
    #[error("it is UTF-16 text; convert it to UTF-8, for instance with `iconv -f UTF-16 -t UTF-8`")]
    Utf16,
    /// Its first line that is not blank is no CSV record.
    #[error("it has no header row: {0}")]
    NoHeader(String),
    /// CSV, of items that are no rows of a table.
    #[error("it is CSV, and {many} have properties that no field of CSV can hold: give them as NDJSON")]
    NotFlat {
        /// What the items are called.
        many: String,
    },
    /// A name that the user gives for a column makes no sense.
    #[error("--column {property}=… {rule}")]
    Column {
        /// The property.
        property: String,
        /// What is wrong with it.
        rule: String,
    },
    /// The column that the user named, or one that every item needs, is missing.
    #[error(
        "it has no column {}; name one with --column {property}=NAME (there {})",
        quoted(tried, " or "),
        listing(there)
    )]
    NoColumn {
        /// The property that it holds.
        property: String,
        /// The names looked for.
        tried: Vec<String>,
        /// The columns there are.
        there: Vec<String>,
    },
    /// The owner is unknown.
    #[error(
        "it has no column {}, so the {owner} is unknown; give --owner ID for all rows, or name a column with --column {property}=NAME (there {})",
        quoted(tried, " or "),
        listing(there)
    )]
    NoOwner {
        /// What an owner is called.
        owner: String,
        /// The field of the owner.
        property: String,
        /// The names looked for.
        tried: Vec<String>,
        /// The columns there are.
        there: Vec<String>,
    },
    /// Two columns have the name of a column in use.
    #[error("it has the column {name:?} more than once")]
    Twice {
        /// That name.
        name: String,
    },
    /// It begins with `[`, but NDJSON has one object per line.
    #[error(
        "it begins with \"[\", as a JSON array does; NDJSON has one object per line: `jq -c '.[]'` converts an array"
    )]
    Array,
}

/// A row that is no item.
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

/// The columns there are, for the end of a sentence.
fn listing(there: &[String]) -> String {
    /// A wrong file may have any number.
    const MOST: usize = 50;
    let more = there.len().saturating_sub(MOST);
    let shown = quoted(&there[..there.len() - more], ", ");
    let verb = if there.len() == 1 { "is" } else { "are" };
    if more == 0 { format!("{verb} {shown}") } else { format!("{verb} {shown} and {more} more") }
}

fn quoted(names: &[String], separator: &str) -> String {
    let short = |name: &String| format!("{:?}", name.chars().take(64).collect::<String>());
    names.iter().map(short).collect::<Vec<_>>().join(separator)
}
