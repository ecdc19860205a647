//! The streamed answer to an upload: one outcome for each line, in order, as it is stored.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use pagebucket_engine::Gone;
use pagebucket_engine::appends::LineRefusal;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{OwnerId, OwnerMember, Seq};
use pagebucket_streams::ingest::{NotTaken, RowOutcome, RowRefusal, Sent, StreamEvent, StreamWatch};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::read::BadLine;
use super::views::OutcomeView;
use crate::problem::{Problem, ProblemKind};

/// A part of the answer, on its way to the connection.
pub(crate) enum AnswerPiece {
    /// Some bytes of its lines.
    Lines(Bytes),
    /// All lines were sent. Without it the answer is cut off, so that no client takes it for complete.
    End,
}

/// While more bytes of outcomes than this are held, no more lines are read.
const MOST: usize = 256 * 1024;

/// Most bytes that are handed to the connection at once.
const MOST_OF_A_PIECE: usize = 32 * 1024;

/// With fewer lines than this, memory is not given back.
const FEW: usize = 64;

/// Outcomes on their way to the client. A line waits for the outcomes of all before it.
pub(crate) struct Outcomes {
    definition: Arc<Definition>,
    /// The lines from the first one without a sent outcome, in order.
    lines: VecDeque<WaitingLine>,
    /// Bytes of the outcomes in `lines`.
    settled: usize,
    /// Outcomes in order, ready to be sent.
    ready: Vec<u8>,
    client: mpsc::Sender<AnswerPiece>,
    /// Since when the client has read nothing, although something is ready.
    stalled: Option<Instant>,
    limit: Duration,
    /// Whether each outcome names its owner.
    many: bool,
}

struct WaitingLine {
    number: u64,
    owner: Option<OwnerId>,
    /// Where the line is stored; or a whole line of the answer, which has a problem.
    outcome: Option<Result<Seq, Box<[u8]>>>,
}

/// Size of an outcome in memory, in bytes.
fn size(outcome: &Result<Seq, Box<[u8]>>) -> usize {
    size_of::<WaitingLine>() + outcome.as_ref().map_or_else(|text| text.len(), |_| 0)
}

impl Outcomes {
    /// For a client that must take something within `limit`.
    pub(crate) fn new(
        definition: &Arc<Definition>,
        client: mpsc::Sender<AnswerPiece>,
        many: bool,
        limit: Duration,
    ) -> Self {
        Self {
            definition: Arc::clone(definition),
            lines: VecDeque::new(),
            settled: 0,
            ready: Vec::new(),
            client,
            stalled: None,
            limit,
            many,
        }
    }

    /// Sends the rest and, if the upload ended early, the reason, for at most `limit`. Returns whether the
    /// client has taken everything.
    pub(crate) async fn finish(&mut self, ended: Option<Problem>, limit: Duration) -> bool {
        if let Some(problem) = ended {
            let left = "The upload ended before this line was stored: the last line of the answer says why.";
            let left = Problem::new(ProblemKind::NotStored, left);
            let unsettled = self.lines.iter().filter(|waiting| waiting.outcome.is_none());
            for line in unsettled.map(|waiting| waiting.number).collect::<Vec<_>>() {
                self.settle(line, Err(&left));
            }
            self.advance();
            self.ready.extend(self.text(None, None, Err(&problem)));
        }
        let rest = std::mem::take(&mut self.ready);
        if rest.is_empty() {
            return true;
        }
        let rest = AnswerPiece::Lines(rest.into());
        matches!(timeout(limit, self.client.send(rest)).await, Ok(Ok(())))
    }

    /// Marks the answer as complete.
    pub(crate) async fn end(self) {
        // It fails only if the client has disconnected.
        let _ = self.client.send(AnswerPiece::End).await;
    }

    /// A line of the answer.
    fn text(&self, line: Option<u64>, owner: Option<&OwnerId>, outcome: Result<Seq, &Problem>) -> Vec<u8> {
        let owner = owner.map(|owner| OwnerMember::new(&self.definition.owner.field, owner));
        let (seq, problem) = (outcome.ok(), outcome.err().map(Problem::in_line));
        let outcome = serde_json::to_vec(&OutcomeView { line, owner, seq, problem });
        let mut text = outcome.expect("an outcome holds only texts and numbers");
        text.push(b'\n');
        text
    }

    fn settle(&mut self, line: u64, outcome: Result<Seq, &Problem>) {
        let found = self.lines.binary_search_by_key(&line, |waiting| waiting.number);
        let Ok(index) = found else { return };
        let owner = self.lines[index].owner.as_ref();
        let text = |problem| self.text(Some(line), owner, Err(problem)).into();
        let outcome = outcome.map_err(text);
        self.settled += size(&outcome);
        self.lines[index].outcome = Some(outcome);
    }

    /// Moves the outcomes that wait for no earlier line to `ready`.
    fn advance(&mut self) {
        while let Some(WaitingLine { number, owner, outcome: Some(outcome) }) =
            self.lines.pop_front_if(|waiting| waiting.outcome.is_some())
        {
            self.settled -= size(&outcome);
            match outcome {
                Ok(seq) => self.ready.extend(self.text(Some(number), owner.as_ref(), Ok(seq))),
                Err(text) => self.ready.extend(text),
            }
        }
        if self.lines.capacity() > FEW.max(4 * self.lines.len()) {
            self.lines.shrink_to(2 * self.lines.len());
        }
        if !self.ready.is_empty() && self.stalled.is_none() {
            self.stalled = Some(Instant::now());
        }
    }

    fn bad(&mut self, line: u64, bad: &BadLine) {
        self.lines.push_back(WaitingLine { number: line, owner: None, outcome: None });
        let problem = if bad.json {
            Problem::invalid_line(&bad.faults)
        } else {
            let fault = bad.faults.kept().first().expect("a line that is not JSON has a fault that says so");
            Problem::new(ProblemKind::MalformedJson, format!("The line {}.", fault.rule))
        };
        self.settle(line, Err(&problem));
        self.advance();
    }

    fn sent(&mut self, sent: &Sent) {
        let unknown = "The database gave no answer in time: the line may or may not be stored.";
        for (row, outcome) in sent.outcomes() {
            match outcome {
                RowOutcome::Stored(seq) => self.settle(row.line, Ok(seq)),
                RowOutcome::Refused(refusal) => self.settle(row.line, Err(&refused(refusal))),
                RowOutcome::Unknown => {
                    self.settle(row.line, Err(&Problem::new(ProblemKind::OutcomeUnknown, unknown)));
                }
                // The end of the answer says why.
                RowOutcome::NotStored => {}
            }
        }
        self.advance();
    }
}

/// Takes the first piece of what is ready.
fn piece(ready: &mut Vec<u8>) -> AnswerPiece {
    if ready.len() <= MOST_OF_A_PIECE {
        return AnswerPiece::Lines(std::mem::take(ready).into());
    }
    let piece: Vec<_> = ready.drain(..MOST_OF_A_PIECE).collect();
    ready.shrink_to(2 * ready.len());
    AnswerPiece::Lines(piece.into())
}

impl StreamWatch<BadLine> for Outcomes {
    fn hear(&mut self, event: StreamEvent<'_, BadLine>) {
        match event {
            StreamEvent::Came(row) => {
                let owner = self.many.then(|| row.owner.clone());
                self.lines.push_back(WaitingLine { number: row.line, owner, outcome: None });
            }
            StreamEvent::Bad(bad) => self.bad(bad.line, &bad.why),
            StreamEvent::Sent(sent) => self.sent(sent),
            StreamEvent::Progress(_) | StreamEvent::Waiting(_) | StreamEvent::Interrupted(_) => {}
        }
    }

    fn full(&self) -> bool {
        self.settled + self.ready.len() > MOST
    }

    fn held(&self) -> usize {
        self.lines.capacity() * size_of::<WaitingLine>() + self.settled + self.ready.capacity()
    }

    async fn hand_on(&mut self) -> Result<(), NotTaken> {
        let Some(stalled) = self.stalled else { return std::future::pending().await };
        let place = timeout_at(stalled + self.limit, self.client.reserve()).await;
        let place = place.map_err(|_elapsed| NotTaken)?.map_err(|_disconnected| NotTaken)?;
        place.send(piece(&mut self.ready));
        self.stalled = (!self.ready.is_empty()).then(Instant::now);
        Ok(())
    }
}

/// The problem of a line that is an item and is not stored.
fn refused(refusal: RowRefusal) -> Problem {
    let kind = match refusal {
        RowRefusal::HistoryExhausted => ProblemKind::HistoryExhausted,
        RowRefusal::KeyReused => ProblemKind::IdempotencyKeyReused,
        RowRefusal::Gone(Gone::Retired { .. }) => ProblemKind::Retired,
        RowRefusal::Gone(Gone::Erased { .. }) => ProblemKind::Erased,
        RowRefusal::Line(LineRefusal::Differs) => ProblemKind::LineDiffers,
        RowRefusal::Line(LineRefusal::OutOfOrder | LineRefusal::BeyondNumbers) => ProblemKind::LineOutOfOrder,
    };
    let problem = Problem::new(kind, format!("Not stored: {refusal}."));
    match refusal {
        RowRefusal::Gone(gone) => problem.gone(gone),
        _ => problem,
    }
}
