//! The rows of a stream, and its options.

use std::error::Error;
use std::io;
use std::time::Duration;

use pagebucket_engine::internal::SourceKey;
use pagebucket_model::domain::OwnerId;
use pagebucket_model::item::Draft;
use tokio::sync::mpsc;
use tokio::task::JoinError;

/// The longest row, in bytes, its line breaks included.
pub const LONGEST_ROW: usize = 64 * 1024;

/// An item with its owner and its line.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The line on which it began, from 1.
    pub line: u64,
    /// Its size in the file, in bytes, with line breaks.
    pub size: u64,
    /// The owner.
    pub owner: OwnerId,
    /// The item. It may lack a date only if the record of a key gives one.
    pub draft: Draft,
    /// How it is known to be stored already, if it has an identity of its own. All rows of a stream have one,
    /// or none.
    pub source_key: Option<Box<SourceKey>>,
}

impl Row {
    /// Memory on the heap, in bytes.
    pub fn heap(&self) -> usize {
        let owner = match &self.owner {
            OwnerId::Integer(_) => 0,
            OwnerId::Text(id) => 2 * size_of::<usize>() + id.len(),
        };
        self.draft.size() + owner + self.source_key.as_ref().map_or(0, |_| size_of::<SourceKey>())
    }
}

/// Options of a stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamOptions {
    /// Stop at the first bad row. The rows before it are stored.
    pub strict: bool,
    /// Whether it has many owners: a history that takes no more items does not end it.
    pub many: bool,
    /// Maximum number of waiting rows: then reading stops. The more wait, the more rows of a rare owner go in
    /// one append. [`Budget`](super::Budget) bounds their bytes.
    pub waiting: usize,
    /// How long the database may fail without storing anything of a batch.
    pub patience: Duration,
    /// Maximum number of owners that the report tells apart, at about 20 bytes each.
    pub owners: usize,
}

/// A row that is no item.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Bad<B> {
    /// The line on which it began, from 1.
    pub line: u64,
    /// Its size in bytes, with line breaks.
    pub size: u64,
    /// All that is wrong with it.
    pub why: B,
}

/// Rows in their order, at most about [`BATCH`](super::BATCH).
pub type Chunk<B> = Vec<Result<Row, Bad<B>>>;

/// Why the rest of the rows is not read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// What has the rows fails: a file, or a database. The error says why.
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
    /// The client was cut off before its last row.
    #[error("the rows are incomplete")]
    Incomplete,
    /// The client sends too little within this time.
    #[error("the rows came too slowly")]
    TooSlow(Duration),
    /// The client's token or key is no longer valid.
    #[error("the token or key is no longer valid")]
    Expired,
    /// The client does not take the outcomes.
    #[error("the outcomes are not taken")]
    NotTaken,
}

impl Unreadable {
    /// What has the rows fails with this error.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }
}

impl From<JoinError> for Unreadable {
    /// Without the words of the panic: they are in the log.
    fn from(error: JoinError) -> Self {
        Self::failed(io::Error::from(error))
    }
}

/// The source of rows. An error is the last item: the rest cannot be read.
pub type IncomingRows<B> = mpsc::Receiver<Result<Chunk<B>, Unreadable>>;
