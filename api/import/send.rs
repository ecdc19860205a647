//! One batch to the database, and again while it is away.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::Row;
use super::pending::Batch;
use crate::domain::{CustomerId, Totals};
use crate::store::trades::{Cause, Trades};
use crate::store::{COMMAND, Deadline, Error};

/// How long the database may be away, with nothing of a batch stored all the while.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// What became of a batch: its first `stored` rows are stored, of the next `unknown` nothing is
/// known, and the rest is not stored.
#[derive(Debug)]
pub(super) struct Sent {
    pub customer: CustomerId,
    pub rows: Vec<Row>,
    pub stored: usize,
    pub unknown: usize,
    /// What the customer's history holds, when all is stored.
    pub totals: Option<Totals>,
    /// Why not all is stored.
    pub failed: Option<Cause>,
}

/// Appends a batch. When the database is away for a passing reason and nothing is unknown, tries
/// again what is left, until [`PATIENCE`] ends or `stop` says that others have failed; tells
/// `waiting` why it waits.
pub(super) async fn send(
    trades: Trades,
    Batch { customer, rows }: Batch,
    stop: CancellationToken,
    waiting: UnboundedSender<&'static str>,
) -> Sent {
    let mut sent = Sent { customer, rows, stored: 0, unknown: 0, totals: None, failed: None };
    let mut give_up = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(250);
    loop {
        let rest = sent.rows[sent.stored..].iter().map(|row| row.trade.clone()).collect();
        let error = match trades.append(customer, rest, Deadline::within(COMMAND)).await {
            Ok(appended) => {
                sent.stored = sent.rows.len();
                sent.totals = Some(appended.totals);
                return sent;
            }
            Err(error) => error,
        };
        let stored: u64 = error.ranges.iter().map(|range| range.count()).sum();
        sent.stored += stored as usize;
        if stored > 0 {
            give_up = Instant::now() + PATIENCE;
        }
        let passing =
            passing(&error.cause).filter(|_| error.unknown == 0 && Instant::now() + pause < give_up);
        let Some(why) = passing else {
            sent.unknown = error.unknown;
            sent.failed = Some(error.cause);
            return sent;
        };
        // Nobody listens once the import is over.
        let _ = waiting.send(why);
        if timeout(pause, stop.cancelled()).await.is_ok() {
            sent.failed = Some(error.cause);
            return sent;
        }
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}

/// Why it is worth trying again, if it is: the cause itself, with the driver's words, is told when
/// that was in vain.
fn passing(cause: &Cause) -> Option<&'static str> {
    match cause {
        Cause::Contended => Some("too many others append to the same history"),
        Cause::Overloaded => Some("too many appends are waiting"),
        Cause::Database(Error::Unavailable(_)) => Some("it does not answer"),
        Cause::OutcomeUnknown
        | Cause::SecondsExhausted(_)
        | Cause::KeyReused
        | Cause::Database(Error::Corrupt(_) | Error::Internal(_)) => None,
    }
}
