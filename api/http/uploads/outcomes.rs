//! The answer line by line: an outcome for each line, in order, as it commits.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::time::Duration;

use axum::body::Bytes;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::read::BadLine;
use super::views::OutcomeView;
use crate::domain::{CustomerId, Faults, Seq};
use crate::http::problem::{Kind, Problem};
use crate::ingest::{Bad, Refusal, Row, RowEnd, Sent, Watch};
use crate::store::trades::LineRefusal;

/// Behind the last outcome. An answer that lacks it is cut off, so that its client does not take it for a
/// whole one.
pub(super) const END: Bytes = Bytes::new();

/// With so many bytes of outcomes held, no more lines are read.
const MOST: usize = 256 * 1024;

/// Outcomes on their way to the client. A line waits for the outcomes of all before it.
pub(super) struct Outcomes {
    /// From the first line that is not told, in order.
    lines: VecDeque<Waiting>,
    /// Bytes of outcomes in `lines`.
    held: usize,
    /// Outcomes in order, ready to be sent.
    ready: Vec<u8>,
    client: mpsc::Sender<Bytes>,
    /// Since when the client has taken nothing though there was something.
    stalled: Option<Instant>,
    limit: Duration,
    /// Whether each line says whose it is.
    many: bool,
}

struct Waiting {
    number: u64,
    customer: Option<CustomerId>,
    outcome: Option<Vec<u8>>,
}

impl Outcomes {
    /// For a client that must take something within `limit`.
    pub(super) fn new(client: mpsc::Sender<Bytes>, many: bool, limit: Duration) -> Self {
        Self { lines: VecDeque::new(), held: 0, ready: Vec::new(), client, stalled: None, limit, many }
    }

    /// Tells the rest, and if it ended early why, for at most so long; whether the client has taken all.
    pub(super) async fn finish(&mut self, ended: Option<Problem>, limit: Duration) -> bool {
        if let Some(problem) = ended {
            let left = "The upload ended before this line was stored: the last line of the answer says why.";
            let left = Problem::new(Kind::NotStored, left);
            for index in 0..self.lines.len() {
                if self.lines[index].outcome.is_none() {
                    self.set(index, None, Some(&left));
                }
            }
            self.advance();
            self.write(&OutcomeView {
                line: None,
                customer_id: None,
                seq: None,
                problem: Some(problem.in_line()),
            });
        }
        let rest = std::mem::take(&mut self.ready);
        rest.is_empty() || matches!(timeout(limit, self.client.send(rest.into())).await, Ok(Ok(())))
    }

    /// The answer is whole.
    pub(super) async fn end(self) {
        // It is taken, or nobody is there.
        let _ = self.client.send(END).await;
    }

    fn tell(&mut self, line: u64, seq: Option<Seq>, problem: Option<&Problem>) {
        if let Ok(index) = self.lines.binary_search_by_key(&line, |waiting| waiting.number) {
            self.set(index, seq, problem);
        }
    }

    fn set(&mut self, index: usize, seq: Option<Seq>, problem: Option<&Problem>) {
        let waiting = &mut self.lines[index];
        let (line, customer_id) = (Some(waiting.number), waiting.customer);
        let problem: Option<Value> = problem.map(Problem::in_line);
        let outcome = text(&OutcomeView { line, customer_id, seq, problem });
        self.held += outcome.len();
        waiting.outcome = Some(outcome);
    }

    /// Makes ready what waits for nothing any more.
    fn advance(&mut self) {
        while let Some(outcome) = self.lines.front_mut().and_then(|waiting| waiting.outcome.take()) {
            self.held -= outcome.len();
            self.ready.extend(outcome);
            self.lines.pop_front();
        }
        if !self.ready.is_empty() && self.stalled.is_none() {
            self.stalled = Some(Instant::now());
        }
    }

    fn write(&mut self, outcome: &OutcomeView) {
        self.ready.extend(text(outcome));
    }
}

fn text(outcome: &OutcomeView) -> Vec<u8> {
    // Cannot fail: no map with keys that are not text, no number that is not finite.
    let mut text = serde_json::to_vec(outcome).unwrap_or_default();
    text.push(b'\n');
    text
}

impl Watch<BadLine> for Outcomes {
    fn came(&mut self, row: &Row) {
        let customer = self.many.then_some(row.customer);
        self.lines.push_back(Waiting { number: row.line, customer, outcome: None });
    }

    fn bad(&mut self, bad: BadLine) {
        let line = bad.line();
        self.lines.push_back(Waiting { number: line, customer: None, outcome: None });
        let problem = if bad.json {
            let mut faults = Faults::default();
            bad.faults.into_iter().for_each(|fault| faults.push(|| fault.pointer, fault.detail));
            Problem::invalid_line(&faults, bad.omitted)
        } else {
            let detail = bad.faults.into_iter().next().map(|fault| fault.detail).unwrap_or_default();
            Problem::new(Kind::MalformedJson, format!("The line {detail}."))
        };
        self.tell(line, None, Some(&problem));
        self.advance();
    }

    fn sent(&mut self, sent: &Sent) {
        let mut rows = sent.rows.iter();
        for end in &sent.ends {
            let Some(row) = rows.next() else { break };
            match end {
                RowEnd::Stored(seq) => self.tell(row.line, Some(*seq), None),
                RowEnd::Refused(refusal) => {
                    let problem = Problem::new(kind(*refusal), format!("Not stored: {refusal}."));
                    self.tell(row.line, None, Some(&problem));
                }
            }
        }
        let unknown = "The database gave no answer in time: the line may or may not be stored.";
        for row in rows.take(sent.unknown) {
            self.tell(row.line, None, Some(&Problem::new(Kind::OutcomeUnknown, unknown)));
        }
        self.advance();
    }

    fn full(&self) -> bool {
        self.held + self.ready.len() > MOST
    }

    async fn hand_on(&mut self) -> io::Result<()> {
        let Some(stalled) = self.stalled else { return std::future::pending().await };
        let place = timeout_at(stalled + self.limit, self.client.reserve()).await;
        let place = place.map_err(|_elapsed| ErrorKind::BrokenPipe)?.map_err(|_| ErrorKind::BrokenPipe)?;
        place.send(std::mem::take(&mut self.ready).into());
        self.stalled = None;
        Ok(())
    }
}

fn kind(refusal: Refusal) -> Kind {
    match refusal {
        Refusal::HistoryExhausted => Kind::HistoryExhausted,
        Refusal::KeyReused => Kind::IdempotencyKeyReused,
        Refusal::Line(LineRefusal::Differs) => Kind::LineDiffers,
        Refusal::Line(LineRefusal::OutOfOrder | LineRefusal::BeyondNumbers) => Kind::LineOutOfOrder,
    }
}
