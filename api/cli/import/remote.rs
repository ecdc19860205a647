//! Importing through a running server: the rows are uploaded to `POST /v1/trades`, and its outcomes are
//! read meanwhile, line by line.
//!
//! A line of the upload has the number of the row's line in the file, so that a server's words about it
//! are about the file, and a key means the same rows when another of them is bad.

mod server;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use axum::body::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming as Answer};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::MOST_WAITING;
use super::progress::Progress;
use crate::domain::{CustomerId, IdempotencyKey, Instant, Price, Quantity, Seq, Side, Ticker, Totals};
use crate::import::BadRow;
use crate::ingest::{Customers, End, Incoming, Report, Row, Splitter, Tally, Watch};
pub(super) use server::Server;
use server::{Broken, begin, words};

/// Bytes that are sent at a time, at least, while there are more.
const PIECE: usize = 64 * 1024;

/// How often progress is told.
const TICK: Duration = Duration::from_millis(100);

/// A line of the upload.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewLine<'a> {
    customer_id: CustomerId,
    r#type: Side,
    ticker: &'a Ticker,
    qty: Quantity,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<Price>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<Instant>,
}

/// An upload under way.
struct Sending {
    tally: Tally,
    /// Rows in their order that have no outcome yet.
    waiting: VecDeque<Row>,
    /// Lines that are still to be sent.
    text: Vec<u8>,
    /// How many rows at the end of `waiting` are in `text`.
    unsent: usize,
    /// The number of the next line.
    next: u64,
}

/// Sends all the rows, and tells what became of them. The first message from `interrupts` ends reading; the
/// second also ends sending.
pub(super) async fn run(
    rows: Incoming<BadRow>,
    server: &Server,
    key: Option<&IdempotencyKey>,
    strict: bool,
    interrupts: &mut mpsc::Receiver<()>,
    watch: &mut Progress,
) -> Report {
    let mut sending = Sending {
        tally: Tally::counting(Customers::MOST),
        waiting: VecDeque::new(),
        text: Vec::new(),
        unsent: 0,
        next: 1,
    };
    let ended = sending.run(rows, server, key, strict, interrupts, watch).await;
    sending.close(ended.err(), watch)
}

impl Sending {
    /// # Errors
    /// There are no more outcomes.
    async fn run(
        &mut self,
        rows: Incoming<BadRow>,
        server: &Server,
        key: Option<&IdempotencyKey>,
        strict: bool,
        interrupts: &mut mpsc::Receiver<()>,
        watch: &mut Progress,
    ) -> Result<(), Broken> {
        let (send, receive) = mpsc::channel::<Bytes>(1);
        let mut answer = std::pin::pin!(begin(server, key, receive));
        let mut body: Option<Answer> = None;
        let (mut rows, mut send) = (Some(rows), Some(send));
        let mut splitter = Splitter::default();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if rows.is_none() && self.text.is_empty() {
                // The end of the body.
                send = None;
            }
            let read = self.waiting.len() < MOST_WAITING && self.text.len() < PIECE;
            tokio::select! {
                begun = &mut answer, if body.is_none() => body = Some(begun?),
                frame = next_frame(&mut body) => {
                    let Some(frame) = frame else {
                        let rest = self.waiting.len();
                        return match rest {
                            0 if rows.is_none() => Ok(()),
                            _ => Err(Broken::off(format!("the server's answer ended, with {rest} rows without an outcome"))),
                        };
                    };
                    let frame = frame
                        .map_err(|error| Broken::off(format!("the connection to the server broke: {error}")))?;
                    let mut bytes = frame.data_ref().map_or(&[][..], |data| data);
                    while !bytes.is_empty() {
                        let (taken, line) = splitter.take(bytes);
                        bytes = &bytes[taken..];
                        if let Some(line) = line {
                            self.outcome(&line.bytes, watch)?;
                        }
                    }
                }
                chunk = next_chunk(&mut rows), if read && rows.is_some() => match chunk {
                    None => rows = None,
                    Some(Err(error)) => self.tally.report.end = Some(End::Unreadable(error)),
                    Some(Ok(chunk)) => for row in chunk {
                        match row {
                            Ok(row) => self.push(row),
                            Err(bad) => {
                                self.tally.bad(bad.line, bad.size);
                                watch.bad(bad);
                                if strict {
                                    self.tally.report.end = Some(End::BadRow);
                                }
                            }
                        }
                    },
                },
                sent = hand_on(&send, &mut self.text), if !self.text.is_empty() => match sent {
                    Some(()) => self.unsent = 0,
                    None => {
                        // The server reads no more, and says why.
                        (rows, send) = (None, None);
                        self.text.clear();
                    }
                },
                Some(()) = interrupts.recv() => {
                    if self.tally.report.end.is_some() {
                        self.tally.left(self.waiting.drain(self.waiting.len() - self.unsent..).map(|row| row.line));
                        self.text.clear();
                    }
                    rows = None;
                    self.tally.report.end.get_or_insert(End::Interrupted);
                }
                _ = tick.tick() => watch.progress(&self.tally.report),
            }
        }
    }

    fn push(&mut self, row: Row) {
        self.tally.came(&row);
        // Blank lines are passed over, and counted.
        self.text.resize(self.text.len() + row.line.saturating_sub(self.next) as usize, b'\n');
        self.next = row.line + 1;
        let draft = &row.draft;
        let (price, date) = (draft.price, draft.date);
        let line = NewLine {
            customer_id: row.customer,
            r#type: draft.side,
            ticker: &draft.ticker,
            qty: draft.qty,
            price,
            date,
        };
        // Cannot fail: no map with keys that are not text, no number that is not finite.
        self.text.extend(serde_json::to_vec(&line).unwrap_or_default());
        self.text.push(b'\n');
        self.waiting.push_back(row);
        self.unsent += 1;
    }

    /// A line of the answer.
    ///
    /// # Errors
    /// It is the last, and says why; or it is not what it must be.
    fn outcome(&mut self, line: &[u8], watch: &mut Progress) -> Result<(), Broken> {
        let outcome: Value = serde_json::from_slice(line)
            .map_err(|error| Broken::off(format!("the server's answer is not JSON: {error}")))?;
        let problem = outcome.get("problem");
        let Some(number) = outcome.get("line").and_then(Value::as_u64) else {
            return Err(Broken::said(format!("the server says: {}", words(problem.unwrap_or(&outcome)))));
        };
        if self.waiting.front().is_none_or(|row| row.line != number) {
            return Err(Broken::off(format!("the server tells of line {number}, out of turn")));
        }
        let Some(row) = self.waiting.pop_front() else { return Ok(()) };
        let seq = outcome.get("seq").and_then(Value::as_u64).and_then(|seq| Seq::new(seq).ok());
        match (seq, problem) {
            (Some(seq), _) => {
                self.tally.report.last = Some((row.customer, Totals::ending_with(Some(seq))));
                self.tally.stored(&row, seq);
            }
            (None, Some(problem)) => match problem["type"].as_str() {
                Some("/problems#outcome-unknown") => {
                    self.tally.unknown(row.customer, std::iter::once(row.line));
                }
                Some("/problems#not-stored") => self.tally.left(std::iter::once(row.line)),
                _ => {
                    self.tally.refused(&row);
                    watch.bad(BadRow { line: row.line, size: row.size, reason: words(problem) });
                }
            },
            (None, None) => return Err(Broken::off("the server tells nothing of a line".to_owned())),
        }
        Ok(())
    }

    /// The report, where `ended` says why there are no more outcomes than there were.
    fn close(mut self, ended: Option<Broken>, watch: &mut Progress) -> Report {
        let known = ended.as_ref().is_some_and(|broken| broken.known);
        let sent = if known { 0 } else { self.waiting.len() - self.unsent.min(self.waiting.len()) };
        let unsent = self.waiting.split_off(sent);
        self.tally.left(unsent.iter().map(|row| row.line));
        let mut unknown: BTreeMap<CustomerId, Vec<u64>> = BTreeMap::new();
        for row in self.waiting.drain(..) {
            unknown.entry(row.customer).or_default().push(row.line);
        }
        for (customer, lines) in unknown {
            self.tally.unknown(customer, lines.into_iter());
        }
        if let Some(Broken { words, .. }) = ended {
            self.tally.report.end = Some(End::Server(words));
        }
        let report = self.tally.close();
        watch.progress(&report);
        report
    }
}

async fn next_frame(body: &mut Option<Answer>) -> Option<Result<Frame<Bytes>, hyper::Error>> {
    match body {
        Some(body) => body.frame().await,
        None => std::future::pending().await,
    }
}

async fn next_chunk<T>(rows: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    rows.as_mut()?.recv().await
}

/// Sends what there is; `None` when nobody takes it.
async fn hand_on(send: &Option<mpsc::Sender<Bytes>>, text: &mut Vec<u8>) -> Option<()> {
    let place = send.as_ref()?.reserve().await.ok()?;
    place.send(std::mem::take(text).into());
    Some(())
}
