//! From rows to the database: read ahead, batch, store.

use std::io;
use std::thread;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::pending::{BATCH, MOST_WAITING, Pending};
use super::report::{End, Report};
use super::send::send;
use super::tally::Tally;
use super::{BadRow, Row, Rows};
use crate::store::trades::Trades;

/// How an import goes about it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Stop at the first bad row. What came before it is stored.
    pub strict: bool,
}

/// Hears of an import while it goes on. Its functions must be quick: rows wait for them.
pub trait Watch {
    /// A row is no trade.
    fn bad(&mut self, bad: &BadRow);
    /// So much is done. Called ten times a second, and at the end.
    fn progress(&mut self, report: &Report);
    /// The database is away, and the import waits for it.
    fn waiting(&mut self, why: &str);
}

/// Appends under way at once, each of another customer.
const MOST_UNDER_WAY: usize = 16;

/// How often progress is told.
const TICK: Duration = Duration::from_millis(100);

/// When no row has come for so long, as from a pipe, those that wait are sent.
const IDLE: Duration = Duration::from_millis(200);

/// Stores all the rows, each customer's in their order, and tells what became of them.
///
/// The first message from `interrupts` ends reading, and what was read is stored; the second also
/// ends sending, and only what is under way is finished. The same is done when the database fails for
/// good, or for longer than a minute.
pub async fn run(
    rows: Rows,
    trades: &Trades,
    options: Options,
    interrupts: &mut mpsc::Receiver<()>,
    watch: &mut dyn Watch,
) -> Report {
    let mut tally = Tally::default();
    // Whether the file was read to its end.
    let mut ended = false;
    let mut incoming = Some(read_ahead(rows, options));
    let mut pending = Pending::default();
    let mut under_way = FuturesUnordered::new();
    let (tell, mut told) = mpsc::unbounded_channel();
    let stop = CancellationToken::new();
    let mut came = Instant::now();
    let mut interruptible = true;
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);

    loop {
        let any = incoming.is_none() || pending.len() >= MOST_WAITING || came.elapsed() > IDLE;
        while under_way.len() < MOST_UNDER_WAY && !stop.is_cancelled() {
            let Some(batch) = pending.take(any) else { break };
            under_way.push(send(trades.clone(), batch, stop.clone(), tell.clone()));
        }
        if incoming.is_none() && under_way.is_empty() {
            break;
        }
        tokio::select! {
            Some(sent) = under_way.next(), if !under_way.is_empty() => {
                pending.done(sent.customer);
                tally.sent(&sent);
                if let Some(cause) = sent.failed {
                    stop.cancel();
                    incoming = None;
                    if !matches!(tally.report.end, Some(End::Database(_))) {
                        tally.report.end = Some(End::Database(cause));
                    }
                }
            }
            read = next(&mut incoming), if pending.len() < MOST_WAITING && incoming.is_some() => {
                came = Instant::now();
                match read {
                    None => (incoming, ended) = (None, true),
                    Some(Err(error)) => tally.report.end = Some(End::Unreadable(error)),
                    Some(Ok(chunk)) => for row in chunk {
                        match row {
                            Ok(row) => {
                                tally.came(&row);
                                pending.push(row);
                            }
                            Err(bad) => {
                                tally.refused(&bad);
                                watch.bad(&bad);
                                if options.strict {
                                    tally.report.end = Some(End::BadRow);
                                }
                            }
                        }
                    },
                }
            }
            Some(()) = interrupts.recv(), if interruptible => {
                if tally.report.end.is_some() || incoming.is_none() {
                    interruptible = false;
                    stop.cancel();
                }
                incoming = None;
                tally.report.end.get_or_insert(End::Interrupted);
            }
            Some(why) = told.recv() => watch.waiting(why),
            _ = tick.tick() => watch.progress(&tally.report),
        }
    }
    tally.left_from(pending.first_line());
    if ended && tally.report.left() == 0 && matches!(tally.report.end, Some(End::Interrupted)) {
        // It came too late to stop anything.
        tally.report.end = None;
    }
    let report = tally.close();
    watch.progress(&report);
    report
}

type Chunk = Vec<Result<Row, BadRow>>;
type Incoming = mpsc::Receiver<io::Result<Chunk>>;

async fn next(incoming: &mut Option<Incoming>) -> Option<io::Result<Chunk>> {
    incoming.as_mut()?.recv().await
}

/// Reads in a thread of its own, since files and pipes block; one that still waits for a pipe when
/// the import is over ends with the process.
fn read_ahead(mut rows: Rows, options: Options) -> Incoming {
    let (send, receive) = mpsc::channel(4);
    let read = move || {
        let mut chunk = Chunk::new();
        loop {
            // Rows that are here do not wait for rows that are not.
            let send_now = chunk.len() == BATCH || (!chunk.is_empty() && !rows.ready());
            if send_now && send.blocking_send(Ok(std::mem::take(&mut chunk))).is_err() {
                return;
            }
            match rows.read() {
                Ok(Some(row)) => {
                    let last = row.is_err() && options.strict;
                    chunk.push(row);
                    if last {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    let _ = send.blocking_send(Ok(chunk));
                    let _ = send.blocking_send(Err(error));
                    return;
                }
            }
        }
        let _ = send.blocking_send(Ok(chunk));
    };
    thread::spawn(read);
    receive
}
