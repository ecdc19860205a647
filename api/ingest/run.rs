//! From rows to the database: batch, store, tell.

use std::collections::HashMap;
use std::future::{Future, pending};
use std::io;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::budget::{Account, Budget, OWN};
use super::pending::{Least, Pending, table};
use super::report::{End, Report};
use super::send::{Destination, Sent, bytes_under_way, send};
use super::stream::{Bad, Chunk, Incoming, Options, Row};
use super::tally::Tally;
use crate::domain::CustomerId;
use crate::store::history::UploadedSoFar;

/// Hears of a stream while it goes on. Its functions must be quick: rows wait for them.
pub trait Watch<B> {
    /// A row is a trade; what becomes of it follows.
    fn came(&mut self, _row: &Row) {}
    /// A row is no trade.
    fn bad(&mut self, bad: B);
    /// What became of some rows.
    fn sent(&mut self, _sent: &Sent) {}
    /// So much is done. Called ten times a second, and at the end.
    fn progress(&mut self, _report: &Report) {}
    /// The database is away, and it is waited for.
    fn waiting(&mut self, _why: &str) {}
    /// Whether it holds so much that no more rows should come.
    fn full(&self) -> bool {
        false
    }
    /// How much it holds that is not handed on yet, in bytes.
    fn held(&self) -> usize {
        0
    }
    /// Hands on what it holds; does not end while there is nothing.
    ///
    /// # Errors
    /// Nobody takes it.
    fn hand_on(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        pending()
    }
}

/// Appends under way at once, each of another customer.
const MOST_UNDER_WAY: usize = 512;

/// While rows come and come, so many appends that fill no page: what comes may fill it.
const FEW_UNDER_WAY: usize = 16;

/// Rows under way, but for the last batch: a part of what a process lets wait for its committers.
const MOST_ROWS_UNDER_WAY: usize = 16_000;

/// Customers for which a keyed upload remembers what it has come to: at most, and where the budget has no room.
const MOST_KEYED: usize = 10_000;
const FEW_KEYED: usize = 100;

// What a stream never forgets leaves most of its own share to its rows.
const _: () = assert!(8 * FEW_KEYED * size_of::<(CustomerId, UploadedSoFar)>() / 7 < OWN / 4);

/// How often progress is told.
const TICK: Duration = Duration::from_millis(100);

/// When no row has come for so long, as from a pipe, those that wait are sent.
const IDLE: Duration = Duration::from_millis(200);

/// When none has come for so long, they do not come and come.
const PAUSE: Duration = Duration::from_millis(10);

/// Stores all the rows, each customer's in their order, and tells what became of them.
///
/// The first message from `interrupts` ends reading, and what was read is stored; the second also
/// ends sending, and only what is under way is finished. The same is done when the database fails for
/// good, or for longer than it is waited for.
pub async fn run<B: Bad>(
    incoming: Incoming<B>,
    to: &Destination,
    options: Options,
    budget: &Budget,
    interrupts: &mut mpsc::Receiver<()>,
    watch: &mut impl Watch<B>,
) -> Report {
    let mut account = budget.open();
    let mut tally = Tally::counting(options.customers);
    // Whether it was read to its end.
    let mut ended = false;
    let mut incoming = Some(incoming);
    let mut pending = Pending::default();
    let mut under_way = FuturesUnordered::new();
    let (mut rows_under_way, mut under_way_bytes) = (0, 0);
    let mut keyed: HashMap<CustomerId, UploadedSoFar> = HashMap::new();
    let (tell, mut told) = mpsc::unbounded_channel();
    let stop = CancellationToken::new();
    let mut came = Instant::now();
    let mut interruptible = true;
    let mut handing_on = true;
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);

    loop {
        account.hold(held(&pending, under_way_bytes, &keyed, watch));
        if !account.has_room() {
            pending.forget();
            forget_most(&mut keyed);
            account.hold(held(&pending, under_way_bytes, &keyed, watch));
        }
        // What is there does not wait for more when nothing is under way that it could wait for.
        let of_few_rows = if incoming.is_none() {
            MOST_UNDER_WAY
        } else if !has_room(&pending, &options, &account, watch) {
            // Rows do not come because they are not read.
            came = Instant::now();
            MOST_UNDER_WAY / 2
        } else if came.elapsed() > IDLE {
            MOST_UNDER_WAY
        } else if under_way.is_empty() {
            if came.elapsed() > PAUSE { MOST_UNDER_WAY } else { FEW_UNDER_WAY }
        } else {
            0
        };
        while under_way.len() < MOST_UNDER_WAY
            && rows_under_way < MOST_ROWS_UNDER_WAY
            && account.may_send(under_way_bytes)
            && !stop.is_cancelled()
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
            under_way_bytes += bytes_under_way(batch.rows.capacity(), to.key.is_some());
            account.hold(held(&pending, under_way_bytes, &keyed, watch));
            let so_far = keyed.remove(&batch.customer);
            under_way.push(send(to.clone(), batch, so_far, options, stop.clone(), tell.clone()));
        }
        if incoming.is_none() && under_way.is_empty() {
            break;
        }
        let room = has_room(&pending, &options, &account, watch);
        tokio::select! {
            Some(mut sent) = under_way.next(), if !under_way.is_empty() => {
                if let Some(so_far) = sent.so_far.take() {
                    // Without it the search begins where the upload did: only that takes longer.
                    if keyed.len() >= MOST_KEYED
                        && let Some(other) = keyed.keys().next().copied()
                    {
                        keyed.remove(&other);
                    }
                    keyed.insert(sent.customer, so_far);
                }
                rows_under_way -= sent.rows.len();
                under_way_bytes -= bytes_under_way(sent.rows.capacity(), to.key.is_some());
                pending.done(sent.customer, sent.totals.map(|totals| totals.trades()));
                tally.sent(&sent);
                watch.sent(&sent);
                if let Some(cause) = sent.failed {
                    // What was only told to stop has not failed.
                    let stopped = stop.is_cancelled()
                        && sent.unknown == 0
                        && matches!(tally.report.end, Some(End::Interrupted));
                    stop.cancel();
                    incoming = None;
                    if !stopped && !matches!(tally.report.end, Some(End::Database(_))) {
                        tally.report.end = Some(End::Database(cause));
                    }
                }
            }
            read = next(&mut incoming), if room && incoming.is_some() => {
                came = Instant::now();
                match read {
                    None => (incoming, ended) = (None, true),
                    Some(Err(error)) => tally.report.end = Some(End::Unreadable(error)),
                    Some(Ok(chunk)) => for row in chunk {
                        match row {
                            Ok(row) => {
                                tally.came(&row);
                                watch.came(&row);
                                pending.push(row);
                            }
                            Err(bad) => {
                                tally.bad(bad.line(), bad.size());
                                watch.bad(bad);
                                if options.strict {
                                    tally.report.end = Some(End::BadRow);
                                }
                            }
                        }
                    },
                }
            }
            Some(()) = interrupts.recv(), if interruptible => {
                if tally.report.end.is_some() {
                    interruptible = false;
                    stop.cancel();
                }
                incoming = None;
                tally.report.end.get_or_insert(End::Interrupted);
            }
            handed_on = watch.hand_on(), if handing_on => if let Err(error) = handed_on {
                // Nobody hears of the rest: what was read is stored, and no more is read.
                handing_on = false;
                incoming = None;
                tally.report.end.get_or_insert(End::Unreadable(error));
            },
            Some(why) = told.recv() => watch.waiting(why),
            _ = tick.tick() => watch.progress(&tally.report),
        }
    }
    tally.left(pending.lines());
    if ended
        && tally.report.left() == 0
        && pending.len() == 0
        && matches!(tally.report.end, Some(End::Interrupted))
    {
        // It came too late to stop anything.
        tally.report.end = None;
    }
    let report = tally.close();
    watch.progress(&report);
    report
}

/// What the stream holds, in bytes.
fn held<B>(
    pending: &Pending,
    under_way: usize,
    keyed: &HashMap<CustomerId, UploadedSoFar>,
    watch: &impl Watch<B>,
) -> usize {
    pending.bytes() + under_way + table(keyed) + watch.held()
}

/// Whether more rows may come.
fn has_room<B>(pending: &Pending, options: &Options, account: &Account, watch: &impl Watch<B>) -> bool {
    pending.len() < options.waiting && !watch.full() && account.has_room()
}

/// The searches of the customers that are forgotten begin where the upload did: that takes longer, no more.
fn forget_most(keyed: &mut HashMap<CustomerId, UploadedSoFar>) {
    let mut kept = 0;
    keyed.retain(|_, _| {
        kept += 1;
        kept <= FEW_KEYED
    });
    keyed.shrink_to_fit();
}

async fn next<B>(incoming: &mut Option<Incoming<B>>) -> Option<io::Result<Chunk<B>>> {
    incoming.as_mut()?.recv().await
}
