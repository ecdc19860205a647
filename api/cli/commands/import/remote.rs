//! Imports through a running server: uploads the rows to `POST /v1/{history}/upload.ndjson`, and reads the
//! outcomes line by line meanwhile.
//!
//! A row has the same line number in the upload as in the file. So the server's messages name lines of the
//! file, a key means the same rows even if another row has become bad, and an upload that continues another
//! leaves out the rows that have an outcome.
//!
//! Why the program has an HTTP client beside its server: nothing else continues an upload whose connection is
//! lost, under the same key and by line numbers. A script has neither, and users of a server often have no
//! address of its database.

mod send_window;
mod server;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use axum::body::Bytes;
use futures_util::future::OptionFuture;
use pagebucket_http::ProblemKind;
use pagebucket_http::http_client::cause;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{IdempotencyKey, OwnerId, Seq};
use pagebucket_model::item::write_members;
use pagebucket_streams::ingest::{
    Bad, End, IncomingRows, Intake, Phase, Report, Row, Splitter, StreamEvent, StreamWatch,
};
use reqwest::header::HeaderValue;
use reqwest::{Client, Response, Url};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::progress::ImportProgress;
use send_window::SendWindow;
use server::{Broken, begin, kind, uploader, uploads, words};
pub(crate) use server::{Token, address, is_local};

/// Bytes that are sent at a time, while there are enough.
const PIECE: usize = 64 * 1024;

/// The longest line of an answer, in bytes: the last one may list a range for every second row that waits.
const LONGEST_OUTCOME: usize = 16 * 1024 * 1024;

/// Maximum number of owners that an import tells apart.
pub(crate) const MOST_OWNERS: usize = 1_000_000;

/// Maximum number of attempts in a row without a single outcome.
const MOST_TRIES: u32 = 8;

/// Pause before the first of these. Each pause is twice as long as the last, up to [`LONGEST_PAUSE`], unless
/// the server asks for a longer one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Everything that is sent, by one upload after the other where connections are lost.
struct RemoteImport<'a> {
    client: Client,
    url: Url,
    definition: &'a Definition,
    /// The key under which the rows may be sent again.
    key: Option<&'a IdempotencyKey>,
    intake: Intake<'a, String, ImportProgress>,
    /// Rows in their order that have no outcome yet.
    waiting: VecDeque<Row>,
    /// Number of them, from the first, that were handed on as lines of this upload: they may be stored.
    handed_on: usize,
    /// How many they may be.
    window: SendWindow,
    /// Rows that this upload did not store, or (true) may have stored: they come before those that wait.
    again: Vec<(Row, bool)>,
    /// The number of the next line.
    next: u64,
    /// Rows without an outcome up to this line may be stored, by an earlier upload.
    in_doubt: u64,
    /// Number of attempts in a row without a final outcome.
    tries: u32,
    /// Whether anything at the server's address has ever answered.
    answered: bool,
}

/// Where rows are sent.
pub(crate) struct RemoteHistory<'a> {
    pub(crate) server: &'a Url,
    pub(crate) token: Option<HeaderValue>,
    pub(crate) definition: &'a Definition,
    pub(crate) key: Option<&'a IdempotencyKey>,
}

/// Sends all the rows, and reports their outcomes. With a key, an upload that was cut off is followed by
/// another with the rows that have no outcome yet, until too many in a row have failed. After the first
/// message from `interrupts` rows are not read or sent any more; after the second their outcomes are not
/// awaited.
pub(crate) async fn run(
    rows: IncomingRows<String>,
    to: RemoteHistory<'_>,
    strict: bool,
    interrupts: &mut mpsc::Receiver<Phase>,
    watch: &mut ImportProgress,
) -> Report {
    let RemoteHistory { server, token, definition, key } = to;
    let client = match uploader(server, token) {
        Ok(client) => client,
        Err(end) => return Report { end: Some(end), ..Report::default() },
    };
    let mut sending = RemoteImport {
        client,
        url: uploads(server, &definition.name),
        definition,
        key,
        intake: Intake::new(rows, interrupts, watch, strict, MOST_OWNERS),
        waiting: VecDeque::new(),
        handed_on: 0,
        window: SendWindow::from(Instant::now()),
        again: Vec::new(),
        next: 1,
        in_doubt: 0,
        tries: 0,
        answered: false,
    };
    loop {
        let Err(broken) = sending.upload().await else {
            return sending.close(true, None);
        };
        let interrupted = sending.intake.phase == Phase::Finishing;
        // Without a key another upload might store rows twice; if nothing has ever answered, the address is
        // wrong.
        let may_continue = key.is_some() && sending.answered && broken.passing && !interrupted;
        if !may_continue || sending.tries == MOST_TRIES {
            let given_up = sending.intake.signals > 1;
            return sending.close(broken.known, (!given_up).then_some(End::Server(broken.words)));
        }
        sending.intake.watch.shown.line(format_args!("{}; trying again", broken.words));
        let pause = (FIRST_PAUSE * 2_u32.pow(sending.tries)).min(LONGEST_PAUSE).max(broken.wait);
        if timeout(pause, sending.intake.interrupts.recv()).await.is_ok() {
            return sending.close(broken.known, Some(End::Interrupted));
        }
        sending.tries += 1;
        sending.begin_again(broken.known);
    }
}

impl RemoteImport<'_> {
    /// Sends what there is in one upload.
    ///
    /// # Errors
    /// There are no more outcomes, and not every row has one.
    async fn upload(&mut self) -> Result<(), Broken> {
        let (send, receive) = mpsc::channel::<Bytes>(1);
        let client = self.client.clone();
        let mut answer = std::pin::pin!(begin(&client, self.url.clone(), self.key, receive));
        let mut outcomes: Option<Response> = None;
        // `None` when every row was sent.
        let mut lines = Some(send);
        let mut splitter = Splitter::keeping(LONGEST_OUTCOME);
        let mut is_stopping = false;
        loop {
            if self.intake.phase == Phase::Finishing {
                if !std::mem::replace(&mut is_stopping, true) {
                    self.leave_unsent();
                }
                if self.intake.signals > 1 {
                    return Err(Broken::off("the server was waited for no longer".to_owned()));
                }
            }
            let reading = self.intake.phase == Phase::Reading;
            let all_sent = self.handed_on == self.waiting.len();
            if !reading && all_sent {
                lines = None;
            }
            // The server may read no more; its answer then says why.
            let refused = lines.as_ref().is_some_and(mpsc::Sender::is_closed);
            let may_send = self.handed_on < self.window.most();
            let room = !refused && all_sent && may_send;
            // A new upload begins when there is something to send: a server has a timeout for the next line.
            let begins = !self.answered || !reading || !self.waiting.is_empty();
            tokio::select! {
                begun = &mut answer, if outcomes.is_none() && begins => {
                    self.answered |= begun.as_ref().err().is_none_or(|broken| broken.answered);
                    outcomes = Some(begun?);
                }
                Some(piece) = OptionFuture::from(outcomes.as_mut().map(Response::chunk)) => {
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
                        line.map_or(Ok(()), |line| self.outcome(&line.bytes))?;
                    }
                }
                Some(Ok(place)) = OptionFuture::from(lines.as_ref().map(mpsc::Sender::reserve)), if !all_sent && may_send => {
                    place.send(self.piece().into());
                }
                rows = self.intake.next(room) => self.waiting.extend(rows),
            }
        }
    }

    /// Gives up the rows that were not handed on, and tells how many others are under way.
    fn leave_unsent(&mut self) {
        let unsent = self.waiting.split_off(self.handed_on);
        self.give_up(unsent.into_iter().map(|row| (row, false)));
        self.intake.watch.shown.stopping(self.handed_on, "; a second Ctrl-C does not wait");
    }

    /// Rows as lines until the piece is full: they are handed on.
    fn piece(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        while text.len() < PIECE
            && self.handed_on < self.window.most()
            && let Some(row) = self.waiting.get(self.handed_on)
        {
            // Blank lines keep the numbers right: the server skips them, and counts them.
            let room = (PIECE - text.len()) as u64;
            let blank = row.line.saturating_sub(self.next).min(room);
            text.resize(text.len() + blank as usize, b'\n');
            self.next += blank;
            if self.next >= row.line {
                write_line(row, self.definition, &mut text);
                self.next = row.line + 1;
                self.handed_on += 1;
            }
        }
        text
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
        let handed_on = self.handed_on > 0;
        let Some(row) = self.waiting.pop_front_if(|row| handed_on && row.line == number) else {
            return Err(Broken::off(format!("the server sends the outcome of line {number} out of order")));
        };
        self.handed_on -= 1;
        self.window.answered(Instant::now());
        let seq = outcome.get("seq").and_then(Value::as_u64).and_then(|seq| Seq::new(seq).ok());
        match (seq, problem) {
            (Some(seq), _) => {
                // With a key it may be the outcome of an earlier import, behind which others have appended.
                if self.key.is_none() {
                    self.intake.tally.report.last = Some((row.owner.clone(), seq));
                }
                self.intake.tally.stored(&row, seq);
                self.tries = 0;
            }
            (None, Some(problem)) => match kind(problem) {
                Some(ProblemKind::OutcomeUnknown) => self.again.push((row, true)),
                Some(ProblemKind::NotStored) => self.again.push((row, false)),
                _ => {
                    self.intake.tally.refused(&row);
                    let bad = Bad { line: row.line, size: row.size, why: words(problem) };
                    self.intake.watch.hear(StreamEvent::Bad(bad));
                    self.tries = 0;
                }
            },
            (None, None) => return Err(Broken::off("an outcome of the server is empty".to_owned())),
        }
        Ok(())
    }

    /// Takes all rows without an outcome, in order; true: this upload may have stored them. `known`: those
    /// that were handed on are certainly not stored.
    fn rest(&mut self, known: bool) -> Vec<(Row, bool)> {
        let (mut rest, handed_on) = (std::mem::take(&mut self.again), self.handed_on);
        let waiting = self.waiting.drain(..).enumerate();
        rest.extend(waiting.map(|(index, row)| (row, !known && index < handed_on)));
        rest
    }

    /// Prepares to send all rows without an outcome again, in order, under their numbers.
    fn begin_again(&mut self, known: bool) {
        let rest = self.rest(known);
        let doubtful = rest.iter().rev().find(|(_, may_be_stored)| *may_be_stored);
        self.in_doubt = self.in_doubt.max(doubtful.map_or(0, |(row, _)| row.line));
        self.waiting = rest.into_iter().map(|(row, _)| row).collect();
        (self.handed_on, self.next) = (0, 1);
    }

    /// Records rows that will have no outcome; true: this upload may have stored them.
    fn give_up(&mut self, rows: impl IntoIterator<Item = (Row, bool)>) {
        let mut unknown: BTreeMap<OwnerId, Vec<u64>> = BTreeMap::new();
        for (row, may_be_stored) in rows {
            if may_be_stored || row.line <= self.in_doubt {
                unknown.entry(row.owner).or_default().push(row.line);
            } else {
                self.intake.tally.left.insert(row.line);
            }
        }
        for (owner, lines) in unknown {
            self.intake.tally.unknown(&owner, lines);
        }
    }

    /// The report. `known`: rows that were handed on and have no outcome are certainly not stored. `end` says
    /// why they have none.
    fn close(mut self, known: bool, end: Option<End>) -> Report {
        let rest = self.rest(known);
        self.give_up(rest);
        if end.is_some() {
            self.intake.tally.report.end = end;
        }
        self.intake.close()
    }
}

/// Appends a row as a line: its owner, then its item.
fn write_line(row: &Row, definition: &Definition, text: &mut Vec<u8>) {
    let (field, owner) = (&definition.owner.field, json!(row.owner));
    text.extend_from_slice(format!("{{\"{field}\":{owner}").as_bytes());
    write_members(row.draft.document(), definition.key_field(), &definition.date.name, text)
        .expect("the schema has accepted the item, and an import has seen its date");
    text.extend_from_slice(b"}\n");
}
