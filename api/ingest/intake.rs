//! What comes into a stream, and the phase that it has reached: the same for rows that go to the database and for rows
//! that go to a server.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::report::{End, Report};
use super::stream::{Bad, Incoming, Row};
use super::tally::Tally;
use super::watch::{Event, Watch};

/// How often progress is told.
const TICK: Duration = Duration::from_millis(100);

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
    incoming: Incoming<B>,
    interrupts: &'a mut mpsc::Receiver<()>,
    strict: bool,
    phase: Phase,
    /// Whether every row has been read.
    pub(super) exhausted: bool,
    /// Whether the watch can still hand on what it holds.
    heard: bool,
    last_read: Instant,
    tick: Interval,
}

impl<'a, B: Bad, W: Watch<B>> Intake<'a, B, W> {
    /// Of a stream that stops at the first bad row if `strict`, and tells `owners` owners apart.
    ///
    /// The first message from `interrupts` ends reading; the second also ends sending.
    pub fn new(
        incoming: Incoming<B>,
        interrupts: &'a mut mpsc::Receiver<()>,
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
            heard: true,
            last_read: Instant::now(),
            tick,
        }
    }

    /// How far the stream is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// When rows last came, or were last not wanted.
    pub(super) fn last_read(&mut self, wanted: bool) -> Instant {
        if !wanted {
            self.last_read = Instant::now();
        }
        self.last_read
    }

    /// Waits for the next rows, where there is `room` for them, or for anything else that happens; returns the items
    /// that came. Nothing is lost when this is dropped early.
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
            () = interrupted(self.interrupts) => match self.tally.report.end {
                Some(_) => self.advance(Phase::Finishing),
                None => self.end(Phase::Sending, End::Interrupted),
            },
            handed_on = self.watch.hand_on(), if self.heard => if let Err(error) = handed_on {
                // The rest is not heard of: what was read is stored, and no more is read.
                self.heard = false;
                self.end(Phase::Sending, End::Unreadable(error));
            },
            _ = self.tick.tick() => self.watch.hear(Event::Progress(&self.tally.report)),
        }
        Vec::new()
    }

    fn count(&mut self, row: Result<Row, B>) -> Option<Row> {
        match row {
            Ok(row) => {
                self.tally.came(&row);
                self.watch.hear(Event::Came(&row));
                Some(row)
            }
            Err(bad) => {
                self.tally.bad(bad.line(), bad.size());
                self.watch.hear(Event::Bad(bad));
                if self.strict {
                    self.tally.report.end = Some(End::BadRow);
                }
                None
            }
        }
    }

    /// Goes on to this phase, unless the stream is further already.
    pub(super) fn advance(&mut self, phase: Phase) {
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

    /// The next signal to stop.
    pub async fn interrupted(&mut self) {
        interrupted(self.interrupts).await;
    }

    /// The report at the end, which the watch hears, too.
    pub fn close(self) -> Report {
        let report = self.tally.close();
        self.watch.hear(Event::Progress(&report));
        report
    }
}

async fn interrupted(interrupts: &mut mpsc::Receiver<()>) {
    // A sender that is gone interrupts nothing.
    if interrupts.recv().await.is_none() {
        std::future::pending().await
    }
}
