//! Streams of items: rows in, an outcome for each row out, in bounded memory.
//!
//! [`run()`] stores the rows of uploads over HTTP (`http` reads the body) and of imports of files (`import`
//! reads the file). The reader sends chunks of rows; a [`StreamWatch`] hears of every [`StreamEvent`].
//! [`Intake`] is the part that an import to a server shares: it reads rows, counts them and heeds signals,
//! and its [`Phase`] is the state of the stream.
//!
//! - The rows of an owner are stored in their order, up to [`BATCH`] at a time, one batch after the other.
//!   Batches of different owners are sent at once, so that the committers merge them.
//! - With many owners of few rows each, a batch ends at the end of a page: most pages are then written once,
//!   and the batches of hundreds of owners share a command.
//! - There is no timer. Waiting rows are sent as soon as no batch is under way, and rows that come meanwhile
//!   are the next batch: the slower the database, the larger the batches.
//! - Reading stops while [`StreamOptions::waiting`] rows wait, while the streams of this process hold as many
//!   bytes as their [`Budget`] allows, or while the [`StreamWatch`] is full.
//! - When the database fails for a passing reason, the batch is sent again, for [`StreamOptions::patience`].
//! - A bad row affects no other row. [`Report::end`] says why a stream ended early. Every row is then stored,
//!   refused, unknown or left, and the report says which.

mod budget;
mod intake;
mod pending;
mod report;
mod run;
mod send;
mod splitter;
mod stream;

pub use budget::Budget;
pub use intake::{Intake, NotTaken, Phase, StreamEvent, StreamWatch};
pub use pending::BATCH;
pub use report::{End, LineRange, Ranges, Report, Tally, Unknown};
pub use run::run;
pub use send::{Destination, RowOutcome, RowRefusal, Sent};
pub use splitter::{BYTE_ORDER_MARK, Line, Splitter};
pub use stream::{Bad, Chunk, IncomingRows, LONGEST_ROW, Row, StreamOptions, Unreadable};
