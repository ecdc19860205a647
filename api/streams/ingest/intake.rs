//! Input of a stream: its rows, its watcher, and the phase that it has reached: the same for rows that go to
//! the database and for rows that go to a server.

use std::future::pending;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::report::{End, Report, Tally};
use super::send::Sent;
use super::stream::{Bad, IncomingRows, Row, Unreadable};

/// How often progress is told.
const TICK: Duration = Duration::from_millis(100);

/// What happens in a stream.
#[derive(Debug)]
pub enum StreamEvent<'a, B> {
    /// A row is an item; its outcome follows.
    Came(&'a Row),
    /// A row is no item.
    Bad(Bad<B>),
    /// The outcomes of a batch.
    Sent(&'a Sent),
    /// What is done so far: ten times a second, and at the end.
    Progress(&'a Report),
    /// The stream waits for the database, for this reason.
    Waiting(&'a str),
    /// It is interrupted: this number of rows is under way, and the others are not sent any more.
    Interrupted(usize),
}

/// The receiver of what a [`StreamWatch`] holds is gone, or takes nothing in time.
#[derive(Debug)]
pub struct NotTaken;

/// Receives the events of a stream while it runs. Its functions must be quick: rows wait for them.
pub trait StreamWatch<B> {
    /// Something has happened.
    fn hear(&mut self, event: StreamEvent<'_, B>);

    /// Whether it holds so much that no more rows should come.
    fn full(&self) -> bool {
        false
    }

    /// How much it holds that is not handed on yet, in bytes.
    fn held(&self) -> usize {
        0
    }

    /// Hands on what it holds; stays pending while it holds nothing.
    ///
    /// # Errors
    /// The receiver takes nothing.
    fn hand_on(&mut self) -> impl Future<Output = Result<(), NotTaken>> + Send {
        pending()
    }
}

/// How far a stream is. A stream never goes back to an earlier phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Rows are read, and sent.
    Reading,
    /// No more rows are read. Those that were read are sent.
    Sending,
    /// No more rows are sent. Those that were sent get their outcomes.
    Finishing,
}

/// Reads the rows of a stream, counts them, heeds signals, and tells its watch.
#[derive(Debug)]
pub struct Intake<'a, B, W> {
    /// What is known of the rows.
    pub tally: Tally,
    /// Hears of the stream.
    pub watch: &'a mut W,
    incoming: IncomingRows<B>,
    /// A message interrupts the stream, which goes on to this phase.
    pub interrupts: &'a mut mpsc::Receiver<Phase>,
    strict: bool,
    /// How far the stream is.
    pub phase: Phase,
    /// Whether every row has been read.
    pub(crate) exhausted: bool,
    /// Number of interrupts.
    pub signals: u32,
    /// Whether the watch can still hand on what it holds.
    heard: bool,
    /// When rows last came, or were last not wanted.
    pub(crate) last_read: Instant,
    tick: Interval,
}

impl<'a, B, W: StreamWatch<B>> Intake<'a, B, W> {
    /// Of a stream that stops at the first bad row if `strict`, and tells `owners` owners apart.
    pub fn new(
        incoming: IncomingRows<B>,
        interrupts: &'a mut mpsc::Receiver<Phase>,
        watch: &'a mut W,
        strict: bool,
        owners: usize,
    ) -> Self {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            tally: Tally::counting(owners),
            watch,
            incoming,
            interrupts,
            strict,
            phase: Phase::Reading,
            exhausted: false,
            signals: 0,
            heard: true,
            last_read: Instant::now(),
            tick,
        }
    }

    /// Waits for the next rows, where there is `room` for them, or for anything else that happens; returns
    /// the items that came. Nothing is lost when this is dropped early.
    pub async fn next(&mut self, room: bool) -> Vec<Row> {
        tokio::select! {
            read = self.incoming.recv(), if room && self.phase == Phase::Reading => {
                self.last_read = Instant::now();
                match read {
                    Some(Ok(chunk)) => return chunk.into_iter().filter_map(|row| self.count(row)).collect(),
                    Some(Err(error)) => self.tally.report.end = Some(End::Unreadable(error)),
                    None => {
                        self.exhausted = true;
                        self.advance(Phase::Sending);
                    }
                }
            }
            Some(phase) = self.interrupts.recv() => {
                self.signals += 1;
                self.end(phase, End::Interrupted);
            }
            handed_on = self.watch.hand_on(), if self.heard => if let Err(NotTaken) = handed_on {
                // The rest is not heard of: what was read is stored, and no more is read.
                self.heard = false;
                self.end(Phase::Sending, End::Unreadable(Unreadable::NotTaken));
            },
            _ = self.tick.tick() => self.watch.hear(StreamEvent::Progress(&self.tally.report)),
        }
        Vec::new()
    }

    fn count(&mut self, row: Result<Row, Bad<B>>) -> Option<Row> {
        match row {
            Ok(row) => {
                self.tally.came(&row);
                self.watch.hear(StreamEvent::Came(&row));
                Some(row)
            }
            Err(bad) => {
                self.tally.bad(bad.line, bad.size);
                self.watch.hear(StreamEvent::Bad(bad));
                if self.strict {
                    self.tally.report.end = Some(End::BadRow);
                }
                None
            }
        }
    }

    /// Goes on to this phase, unless the stream is further already.
    pub(crate) fn advance(&mut self, phase: Phase) {
        self.phase = self.phase.max(phase);
        if self.phase > Phase::Reading {
            // The reader ends, too.
            self.incoming.close();
        }
    }

    fn end(&mut self, phase: Phase, end: End) {
        self.advance(phase);
        self.tally.report.end.get_or_insert(end);
    }

    /// The report at the end, which the watch hears, too.
    pub fn close(mut self) -> Report {
        let report = &mut self.tally.report;
        let all_stored = self.exhausted && report.left() == 0 && report.unknown.is_empty();
        if all_stored && matches!(report.end, Some(End::Interrupted)) {
            (report.end, report.signalled) = (None, true);
        }
        let report = self.tally.close();
        self.watch.hear(StreamEvent::Progress(&report));
        report
    }
}
