//! Imports through a running server: uploads the rows to `POST /v1/{history}`, and reads the outcomes line by line
//! meanwhile.
//!
//! A row has the same line number in the upload as in the file. So the server's messages name lines of the file, a key
//! means the same rows even if another row has become bad, and an upload that continues another leaves out the rows that
//! have an outcome.

mod server;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use axum::body::Bytes;
use reqwest::{Client, Response};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::progress::Progress;
use crate::definition::Definition;
use crate::domain::{OwnerId, Seq};
use crate::http::ProblemKind;
use crate::import::BadRow;
use crate::ingest::{End, Event, Incoming, Intake, Owners, Phase, Report, Row, Splitter, Watch};
use crate::item::write_members;
use server::{Broken, begin, cause, client, kind, words};
pub(super) use server::{Server, Uploads};

/// Bytes that are sent at a time, while there are enough.
const PIECE: usize = 64 * 1024;

/// Maximum number of waiting rows: then reading stops.
pub(super) const MOST_WAITING: usize = 100_000;

/// Maximum number of attempts in a row without a single outcome.
const MOST_TRIES: u32 = 8;

/// Pause before the first of these. Each pause is twice as long as the last, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Everything that is sent, by one upload after the other where connections are lost.
struct Sending<'a> {
    client: Client,
    to: Uploads<'a>,
    intake: Intake<'a, BadRow, Progress>,
    /// Rows in their order that have no outcome yet.
    waiting: VecDeque<Row>,
    /// Number of them, from the first, that were written as lines of this upload.
    written: usize,
    /// Number of those that were handed on: they may be stored.
    handed_on: usize,
    /// Rows that this upload did not store, or (true) may have stored: they come before those that wait.
    again: Vec<(Row, bool)>,
    /// Lines that are still to be handed on.
    text: Vec<u8>,
    /// The number of the next line.
    next: u64,
    /// Rows without an outcome up to this line may be stored, by an earlier upload.
    in_doubt: u64,
    /// Number of rows with a final outcome.
    dealt_with: u64,
    /// Whether anything at the server's address has ever answered.
    answered: bool,
}

/// The body of an upload.
enum Lines {
    /// Lines are sent.
    Open(mpsc::Sender<Bytes>),
    /// It has ended: every row was sent.
    Ended,
    /// The server reads no more, and its answer says why.
    Refused,
}

/// Sends all the rows, and reports their outcomes. With a key, an upload that was cut off is followed by another
/// with the rows that have no outcome yet, until too many in a row have failed. The first message from
/// `interrupts` ends reading; the second also ends sending.
pub(super) async fn run(
    rows: Incoming<BadRow>,
    to: Uploads<'_>,
    strict: bool,
    interrupts: &mut mpsc::Receiver<()>,
    watch: &mut Progress,
) -> Report {
    let client = match client() {
        Ok(client) => client,
        Err(words) => return Report { end: Some(End::Server(words)), ..Report::default() },
    };
    let mut sending = Sending {
        client,
        to,
        intake: Intake::new(rows, interrupts, watch, strict, Owners::MOST),
        waiting: VecDeque::new(),
        written: 0,
        handed_on: 0,
        again: Vec::new(),
        text: Vec::new(),
        next: 1,
        in_doubt: 0,
        dealt_with: 0,
        answered: false,
    };
    let (mut tries, mut pause) = (0, FIRST_PAUSE);
    loop {
        let before = sending.dealt_with;
        let Err(broken) = sending.upload().await else {
            return sending.close(true, None);
        };
        if sending.dealt_with > before {
            (tries, pause) = (0, FIRST_PAUSE);
        }
        if !sending.may_continue(&broken) || tries == MOST_TRIES {
            return sending.close(broken.known, Some(End::Server(broken.words)));
        }
        tries += 1;
        sending.intake.watch.trying_again(&broken.words);
        if timeout(pause, sending.intake.interrupted()).await.is_ok() {
            return sending.close(broken.known, Some(End::Interrupted));
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
        sending.begin_again(broken.known);
    }
}

impl Sending<'_> {
    /// Sends what there is in one upload.
    ///
    /// # Errors
    /// There are no more outcomes, and not every row has one.
    async fn upload(&mut self) -> Result<(), Broken> {
        let (send, receive) = mpsc::channel::<Bytes>(1);
        let client = self.client.clone();
        let mut answer = std::pin::pin!(begin(&client, self.to, receive));
        let mut outcomes: Option<Response> = None;
        let mut lines = Lines::Open(send);
        let mut splitter = Splitter::default();
        loop {
            if self.intake.phase() == Phase::Finishing {
                self.give_up_unsent();
            }
            if !matches!(lines, Lines::Refused) {
                self.write();
            }
            let reading = self.intake.phase() == Phase::Reading;
            let all_written = self.written == self.waiting.len();
            if !reading && all_written && self.text.is_empty() && matches!(lines, Lines::Open(_)) {
                lines = Lines::Ended;
            }
            let room = !matches!(lines, Lines::Refused) && all_written && self.waiting.len() < MOST_WAITING;
            // A new upload begins when there is something to send: a server has a timeout for the next line.
            let begins = !self.answered || !reading || !self.waiting.is_empty();
            tokio::select! {
                begun = &mut answer, if outcomes.is_none() && begins => {
                    self.answered |= begun.as_ref().err().is_none_or(|broken| broken.answered);
                    outcomes = Some(begun?);
                }
                piece = next_piece(&mut outcomes) => {
                    let piece = piece.map_err(|error| {
                        Broken::off(format!("the connection to the server broke: {}", cause(&error)))
                    })?;
                    let Some(piece) = piece else {
                        let rest = self.waiting.len() + self.again.len();
                        return match rest {
                            0 if !reading => Ok(()),
                            _ => Err(Broken::off(format!("the server's answer ended, with {rest} rows without an outcome"))),
                        };
                    };
                    let mut bytes = &piece[..];
                    while !bytes.is_empty() {
                        let (taken, line) = splitter.take(bytes);
                        bytes = &bytes[taken..];
                        if let Some(line) = line {
                            self.outcome(&line.bytes)?;
                        }
                    }
                }
                taken = hand_on(&lines, &mut self.text), if !self.text.is_empty() => match taken {
                    true => self.handed_on = self.written,
                    false => {
                        lines = Lines::Refused;
                        self.take_back();
                    }
                },
                rows = self.intake.next(room) => self.waiting.extend(rows),
            }
        }
    }

    /// Rows that were not handed on are not sent any more.
    fn give_up_unsent(&mut self) {
        self.take_back();
        let unsent = self.waiting.split_off(self.handed_on);
        self.give_up(unsent.into_iter().map(|row| (row, false)).collect());
    }

    /// Lines that were written and not handed on are not part of this upload.
    fn take_back(&mut self) {
        self.text.clear();
        self.written = self.handed_on;
    }

    /// Writes rows as lines until the piece is full.
    fn write(&mut self) {
        while self.text.len() < PIECE {
            let Some(row) = self.waiting.get(self.written) else { return };
            // Blank lines keep the numbers right: the server skips them, and counts them.
            let room = (PIECE - self.text.len()) as u64;
            let blank = row.line.saturating_sub(self.next).min(room);
            self.text.resize(self.text.len() + blank as usize, b'\n');
            self.next += blank;
            if self.next < row.line {
                return;
            }
            write_line(row, self.to.definition, &mut self.text);
            self.next = row.line + 1;
            self.written += 1;
        }
    }

    /// A line of the answer.
    ///
    /// # Errors
    /// The line ends the answer, or is malformed.
    fn outcome(&mut self, line: &[u8]) -> Result<(), Broken> {
        let outcome: Value = serde_json::from_slice(line)
            .map_err(|error| Broken::off(format!("the server's answer is not JSON: {error}")))?;
        let problem = outcome.get("problem");
        let Some(number) = outcome.get("line").and_then(Value::as_u64) else {
            return Err(Broken::ended(problem.unwrap_or(&outcome)));
        };
        if self.handed_on == 0 || self.waiting.front().is_none_or(|row| row.line != number) {
            return Err(Broken::off(format!("the server sends the outcome of line {number} out of order")));
        }
        let Some(row) = self.waiting.pop_front() else { return Ok(()) };
        self.handed_on -= 1;
        self.written -= 1;
        let seq = outcome.get("seq").and_then(Value::as_u64).and_then(|seq| Seq::new(seq).ok());
        match (seq, problem) {
            (Some(seq), _) => {
                self.intake.tally.report.last = Some((row.owner.clone(), seq));
                self.intake.tally.stored(&row, seq);
                self.dealt_with += 1;
            }
            (None, Some(problem)) => match kind(problem) {
                Some(ProblemKind::OutcomeUnknown) => self.again.push((row, true)),
                Some(ProblemKind::NotStored) => self.again.push((row, false)),
                _ => {
                    self.intake.tally.refused(&row);
                    let bad = BadRow { line: row.line, size: row.size, reason: words(problem) };
                    self.intake.watch.hear(Event::Bad(bad));
                    self.dealt_with += 1;
                }
            },
            (None, None) => return Err(Broken::off("an outcome of the server is empty".to_owned())),
        }
        Ok(())
    }

    /// Whether another upload may continue. Without a key it might store rows twice; if nothing has ever answered, the
    /// address is wrong.
    fn may_continue(&self, broken: &Broken) -> bool {
        let interrupted = self.intake.phase() == Phase::Finishing
            || matches!(self.intake.tally.report.end, Some(End::Interrupted));
        self.to.key.is_some() && self.answered && broken.passing && !interrupted
    }

    /// Prepares to send all rows without an outcome again, in order, under their numbers. `known`: those that were handed
    /// on are certainly not stored.
    fn begin_again(&mut self, known: bool) {
        let handed_on = self.handed_on.checked_sub(1).filter(|_| !known);
        let sent = handed_on.and_then(|last| self.waiting.get(last)).map(|row| row.line);
        let told = self.again.iter().rev().find(|(_, may_be_stored)| *may_be_stored).map(|(row, _)| row.line);
        self.in_doubt = self.in_doubt.max(sent.max(told).unwrap_or(0));
        for (row, _) in self.again.drain(..).rev() {
            self.waiting.push_front(row);
        }
        self.text.clear();
        (self.written, self.handed_on, self.next) = (0, 0, 1);
    }

    /// Records rows that will have no outcome; true: this upload may have stored them.
    fn give_up(&mut self, rows: Vec<(Row, bool)>) {
        let mut unknown: BTreeMap<OwnerId, Vec<u64>> = BTreeMap::new();
        for (row, may_be_stored) in rows {
            if may_be_stored || row.line <= self.in_doubt {
                unknown.entry(row.owner).or_default().push(row.line);
            } else {
                self.intake.tally.left(std::iter::once(row.line));
            }
        }
        for (owner, lines) in unknown {
            self.intake.tally.unknown(&owner, lines.into_iter());
        }
    }

    /// The report. `known`: rows that were handed on and have no outcome are certainly not stored. `end` says why they have
    /// none.
    fn close(mut self, known: bool, end: Option<End>) -> Report {
        let unsent = self.waiting.split_off(self.handed_on);
        let mut rest = std::mem::take(&mut self.again);
        rest.extend(self.waiting.drain(..).map(|row| (row, !known)));
        rest.extend(unsent.into_iter().map(|row| (row, false)));
        self.give_up(rest);
        if end.is_some() {
            self.intake.tally.report.end = end;
        }
        self.intake.close()
    }
}

/// Appends a row as a line: its owner, then its item.
fn write_line(row: &Row, definition: &Definition, text: &mut Vec<u8>) {
    text.extend_from_slice(format!("{{\"{}\":", definition.owner.field).as_bytes());
    serde_json::to_writer(&mut *text, &row.owner)
        .expect("a vector takes all bytes, and an id can be written");
    write_members(row.draft.document(), definition.key_field(), &definition.date.name, text)
        .expect("the schema has accepted the item, and an import has seen its date");
    text.extend_from_slice(b"}\n");
}

async fn next_piece(body: &mut Option<Response>) -> reqwest::Result<Option<Bytes>> {
    match body {
        Some(body) => body.chunk().await,
        None => std::future::pending().await,
    }
}

/// Sends what there is, unless the body has ended; false when the server takes no more.
async fn hand_on(lines: &Lines, text: &mut Vec<u8>) -> bool {
    let Lines::Open(send) = lines else { return false };
    let Ok(place) = send.reserve().await else { return false };
    place.send(std::mem::take(text).into());
    true
}
