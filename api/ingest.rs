//! Trades by the stream: rows in, an outcome for each out, in bounded memory.
//!
//! [`run()`] is the one engine of all that brings more trades than a request holds: uploads over HTTP
//! (`http` reads the body) and imports of files (`import` reads the file). Whoever
//! reads hands over chunks of rows; whoever shows hears of what happens through [`Watch`].
//!
//! - A customer's rows are stored in the order in which they came, up to [`BATCH`] at a time, and at
//!   most one batch of a customer is under way. Batches of different customers are under way at once,
//!   so that the committers merge them.
//! - Of many customers with few rows each a batch ends where a page does, so that most pages are written once, and
//!   hundreds of customers' share a command.
//! - Nothing is waited for: what is there is sent as soon as nothing is under way, and what comes
//!   meanwhile is the next batch. The slower the database, the larger the batches.
//! - No more is read while [`Options::waiting`] rows wait, while the streams of this process hold as many bytes as
//!   their [`Budget`] allows, or while the [`Watch`] is full.
//! - While the database is away for a passing reason, the same is tried again, for [`Options::patience`].
//! - A bad row is that row's own matter. What ends it all is told by [`Report::end`]; then every row
//!   is stored, refused, unknown or left, and the report says which.

mod budget;
mod intake;
mod pending;
mod report;
mod run;
mod send;
mod splitter;
mod stream;
mod tally;
mod watch;

pub use budget::Budget;
pub use intake::{Intake, Phase};
pub use pending::BATCH;
pub use report::{Customers, End, Lines, Ranges, Report, Unknown};
pub use run::run;
pub use send::{Destination, Refusal, RowEnd, Sent};
pub use splitter::{Line, Splitter};
pub use stream::{Bad, Chunk, Incoming, LONGEST_ROW, Options, Row};
pub use tally::Tally;
pub use watch::{Event, Watch};
