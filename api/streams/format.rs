//! The formats of files of items.

/// Format of a file of items: [`import`](crate::import) reads both, [`export`](mod@crate::export) writes
/// both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values with a header row (RFC 4180).
    Csv,
    /// One JSON object per line.
    Ndjson,
}

impl Format {
    /// By the ending of a file's name: `csv`; `ndjson`, `jsonl`, `json`; in any letter case.
    pub fn of_extension(extension: &str) -> Option<Self> {
        match extension.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "ndjson" | "jsonl" | "json" => Some(Self::Ndjson),
            _ => None,
        }
    }
}
