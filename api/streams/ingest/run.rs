//! From rows to the database: batch, store, report.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::budget::{Account, Budget};
use super::intake::{Event, Intake, Phase, Watch};
use super::pending::{Least, Pending};
use super::report::{End, Report};
use super::send::{Destination, RowOutcome, bytes_under_way, send};
use super::stream::{Incoming, Options};

/// Maximum number of concurrent appends, each of another owner.
const MOST_UNDER_WAY: usize = 512;

/// Maximum number of concurrent appends that fill no page, while rows keep coming: these may fill it.
const FEW_UNDER_WAY: usize = 16;

/// Maximum number of rows under way, not counting the last batch: a part of the queues of the committers.
const MOST_ROWS_UNDER_WAY: usize = 16_000;

/// After this time without a row, as from a pipe, waiting rows are sent.
const IDLE: Duration = Duration::from_millis(200);

/// After this time without a row, rows no longer keep coming.
const PAUSE: Duration = Duration::from_millis(10);

/// Stores all rows, those of each owner in their order, and reports their outcomes.
///
/// The first message from `interrupts` ends reading: what was read is stored. The second also ends sending: only batches
/// under way are finished. So does a failure of the database that is permanent or lasts longer than the patience.
pub async fn run<B>(
    incoming: Incoming<B>,
    to: &Destination,
    options: Options,
    budget: &Budget,
    interrupts: &mut mpsc::Receiver<()>,
    watch: &mut impl Watch<B>,
) -> Report {
    let mut account = budget.open();
    let mut intake = Intake::new(incoming, interrupts, watch, options.strict, options.owners);
    let mut pending = Pending::of(to.engine.definition().page_size);
    let mut under_way = FuturesUnordered::new();
    let (mut rows_under_way, mut under_way_bytes) = (0, 0);
    let (tell, mut told) = mpsc::unbounded_channel();
    let stop = CancellationToken::new();

    loop {
        if intake.phase == Phase::Finishing {
            stop.cancel();
        }
        account.hold(pending.bytes() + under_way_bytes + intake.watch.held());
        if !account.has_room() {
            pending.forget();
            account.hold(pending.bytes() + under_way_bytes + intake.watch.held());
        }
        // Rows that fill no page are sent at once when no batch is under way: waiting would gain nothing.
        let room = has_room(&pending, &options, &account, intake.watch);
        if !room {
            intake.last_read = Instant::now();
        }
        let idle = intake.last_read.elapsed();
        let of_few_rows = if intake.phase > Phase::Reading || idle > IDLE {
            MOST_UNDER_WAY
        } else if !room {
            MOST_UNDER_WAY / 2
        } else if under_way.is_empty() {
            if idle > PAUSE { MOST_UNDER_WAY } else { FEW_UNDER_WAY }
        } else {
            0
        };
        while under_way.len() < MOST_UNDER_WAY
            && rows_under_way < MOST_ROWS_UNDER_WAY
            && account.may_send(under_way_bytes)
            && intake.phase < Phase::Finishing
        {
            let least = if under_way.len() < of_few_rows {
                Least::Row
            } else if pending.len() >= options.waiting / 2 || !account.has_room() {
                Least::Page
            } else {
                Least::Batch
            };
            let Some(batch) = pending.take(least) else { break };
            rows_under_way += batch.rows.len();
            under_way_bytes += bytes_under_way(&batch.rows, to.key.is_some());
            account.hold(pending.bytes() + under_way_bytes + intake.watch.held());
            under_way.push(send(to.clone(), batch, options, stop.clone(), tell.clone()));
        }
        if intake.phase > Phase::Reading && under_way.is_empty() {
            break;
        }
        let room = has_room(&pending, &options, &account, intake.watch);
        tokio::select! {
            Some(mut sent) = under_way.next(), if !under_way.is_empty() => {
                if let Some(so_far) = sent.so_far.take() {
                    pending.keep(&sent.owner, so_far);
                }
                rows_under_way -= sent.rows.len();
                under_way_bytes -= bytes_under_way(&sent.rows, to.key.is_some());
                pending.done(&sent.owner, sent.last);
                intake.tally.sent(&sent);
                intake.watch.hear(Event::Sent(&sent));
                if let Some(cause) = sent.failed.take() {
                    let end = &mut intake.tally.report.end;
                    // A batch that was stopped has not failed.
                    let is_known = sent.outcomes().all(|(_, outcome)| outcome != RowOutcome::Unknown);
                    let stopped = stop.is_cancelled() && is_known && matches!(end, Some(End::Interrupted));
                    if !stopped && !matches!(end, Some(End::Database(_))) {
                        *end = Some(End::Database(cause));
                    }
                    intake.advance(Phase::Finishing);
                }
            }
            rows = intake.next(room) => rows.into_iter().for_each(|row| pending.push(row)),
            Some(why) = told.recv() => intake.watch.hear(Event::Waiting(why)),
        }
    }
    intake.tally.left.extend(pending.lines());
    intake.close()
}

/// Whether more rows may come.
fn has_room<B>(pending: &Pending, options: &Options, account: &Account, watch: &impl Watch<B>) -> bool {
    pending.len() < options.waiting && !watch.full() && account.has_room()
}
