//! From rows to the database: batch, store, report.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::budget::{Budget, BudgetAccount};
use super::intake::{Intake, Phase, StreamEvent, StreamWatch};
use super::pending::{Least, PendingRows, RowBatch};
use super::report::{End, Report};
use super::send::{Destination, RowOutcome, Sent, bytes_under_way, send};
use super::stream::{IncomingRows, StreamOptions};

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
/// A message from `interrupts` ends reading, and what was read is stored; or it also ends sending, and only
/// batches under way are finished. So does a failure of the database that is permanent or lasts longer than
/// the patience.
pub async fn run<B>(
    incoming: IncomingRows<B>,
    to: &Destination,
    options: StreamOptions,
    budget: &Budget,
    interrupts: &mut mpsc::Receiver<Phase>,
    watch: &mut impl StreamWatch<B>,
) -> Report {
    let (tell, mut told) = mpsc::unbounded_channel();
    let stop = CancellationToken::new();
    let send = |batch| send(to.clone(), batch, options, stop.clone(), tell.clone());
    let mut scheduler = Scheduler {
        intake: Intake::new(incoming, interrupts, watch, options.strict, options.owners),
        pending: PendingRows::of(to.engine.definition().page_size),
        under_way: FuturesUnordered::new(),
        rows_under_way: 0,
        bytes_under_way: 0,
        account: budget.open(),
        most_waiting: options.waiting,
        keyed: to.key.is_some(),
    };
    loop {
        if scheduler.intake.phase == Phase::Finishing && !stop.is_cancelled() {
            stop.cancel();
            scheduler.tell_if_interrupted();
        }
        scheduler.start(send);
        if scheduler.intake.phase > Phase::Reading && scheduler.under_way.is_empty() {
            break;
        }
        let room = scheduler.has_room();
        tokio::select! {
            Some(sent) = scheduler.under_way.next(), if !scheduler.under_way.is_empty() => {
                scheduler.settle(sent, stop.is_cancelled());
            }
            rows = scheduler.intake.next(room) => {
                rows.into_iter().for_each(|row| scheduler.pending.push(row));
            }
            Some(why) = told.recv() => scheduler.intake.watch.hear(StreamEvent::Waiting(why)),
        }
    }
    scheduler.intake.tally.left.extend(scheduler.pending.lines());
    scheduler.intake.close()
}

/// Decides when rows are read, and when which of them are sent.
struct Scheduler<'a, B, W, F> {
    intake: Intake<'a, B, W>,
    /// Rows that wait.
    pending: PendingRows,
    /// Batches that are being sent.
    under_way: FuturesUnordered<F>,
    rows_under_way: usize,
    bytes_under_way: usize,
    account: BudgetAccount,
    /// Maximum number of waiting rows.
    most_waiting: usize,
    /// Whether the stream has a key.
    keyed: bool,
}

impl<B, W: StreamWatch<B>, F: Future<Output = Sent>> Scheduler<'_, B, W, F> {
    /// Sends what is worth sending now.
    fn start(&mut self, send: impl Fn(RowBatch) -> F) {
        self.hold();
        if !self.account.has_room() {
            self.pending.forget();
            self.hold();
        }
        let of_few_rows = self.most_of_few_rows();
        while self.under_way.len() < MOST_UNDER_WAY
            && self.rows_under_way < MOST_ROWS_UNDER_WAY
            && self.account.may_send(self.bytes_under_way)
            && self.intake.phase < Phase::Finishing
        {
            let least = if self.under_way.len() < of_few_rows {
                Least::Row
            } else if self.pending.len() >= self.most_waiting / 2 || !self.account.has_room() {
                Least::Page
            } else {
                Least::Batch
            };
            let Some(batch) = self.pending.take(least) else { break };
            self.rows_under_way += batch.rows.len();
            self.bytes_under_way += bytes_under_way(&batch.rows, self.keyed);
            self.hold();
            self.under_way.push(send(batch));
        }
    }

    fn tell_if_interrupted(&mut self) {
        if matches!(self.intake.tally.report.end, Some(End::Interrupted)) {
            self.intake.watch.hear(StreamEvent::Interrupted(self.rows_under_way));
        }
    }

    /// Reports what is held.
    fn hold(&mut self) {
        self.account.hold(self.pending.bytes() + self.bytes_under_way + self.intake.watch.held());
    }

    /// While fewer batches than this are under way, rows are sent that fill no page.
    fn most_of_few_rows(&mut self) -> usize {
        let room = self.has_room();
        if !room {
            self.intake.last_read = Instant::now();
        }
        let idle = self.intake.last_read.elapsed();
        if self.intake.phase > Phase::Reading || idle > IDLE {
            MOST_UNDER_WAY
        } else if !room {
            MOST_UNDER_WAY / 2
        } else if !self.under_way.is_empty() {
            0
        } else if idle > PAUSE {
            // When no batch is under way, waiting would gain nothing.
            MOST_UNDER_WAY
        } else {
            FEW_UNDER_WAY
        }
    }

    /// Whether more rows may come.
    fn has_room(&self) -> bool {
        self.pending.len() < self.most_waiting && !self.intake.watch.full() && self.account.has_room()
    }

    /// Takes note of a batch that has ended; `stopped`: no batch is sent again any more.
    fn settle(&mut self, mut sent: Sent, stopped: bool) {
        if let Some(so_far) = sent.so_far.take() {
            self.pending.keep(&sent.owner, so_far);
        }
        self.rows_under_way -= sent.rows.len();
        self.bytes_under_way -= bytes_under_way(&sent.rows, self.keyed);
        self.pending.done(&sent.owner, sent.last);
        self.intake.tally.sent(&sent);
        self.intake.watch.hear(StreamEvent::Sent(&sent));
        if let Some(cause) = sent.failed.take() {
            let end = &mut self.intake.tally.report.end;
            let is_known = sent.outcomes().all(|(_, outcome)| outcome != RowOutcome::Unknown);
            // A batch that was stopped has not failed.
            let was_stopped = stopped && is_known && matches!(end, Some(End::Interrupted));
            if !was_stopped && !matches!(end, Some(End::Database(_))) {
                *end = Some(End::Database(cause));
            }
            self.intake.advance(Phase::Finishing);
        }
    }
}
