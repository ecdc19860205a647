//! What a stream is made of, and what bounds it.

use std::io;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::domain::{CustomerId, TradeDraft};

/// The longest row, in bytes, its line breaks included.
pub const LONGEST_ROW: usize = 64 * 1024;

/// A trade, whose it is, and where it stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The line on which it began, from 1.
    pub line: u64,
    /// How many bytes of the file it took, line breaks included.
    pub size: u64,
    /// Whose it is.
    pub customer: CustomerId,
    /// The trade itself; without a date only where a key's record gives one.
    pub draft: TradeDraft,
}

/// How it is gone about.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Stop at the first bad row. What came before it is stored.
    pub strict: bool,
    /// Whether it is of many customers, so that one whose history takes no more does not end it.
    pub many: bool,
    /// With this many rows waiting, no more are read. The more wait, the more of a rare customer's rows go in one
    /// append. [`Budget`](super::Budget) bounds their bytes.
    pub waiting: usize,
    /// How long the database may be away, with nothing of a batch stored all the while.
    pub patience: Duration,
    /// How many customers are told apart in the report, at some 20 bytes each.
    pub customers: usize,
}

/// A row that is no trade.
pub trait Bad {
    /// The line on which it began, from 1.
    fn line(&self) -> u64;
    /// How many bytes it took, line breaks included.
    fn size(&self) -> u64;
}

/// Rows in their order, at most about [`BATCH`](super::BATCH).
pub type Chunk<B> = Vec<Result<Row, B>>;

/// Where rows come from. An error is the last thing that comes: nothing more can be read.
pub type Incoming<B> = mpsc::Receiver<io::Result<Chunk<B>>>;
