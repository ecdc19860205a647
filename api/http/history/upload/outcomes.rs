//! The streamed answer to an upload: one outcome for each line, in order, as it is stored.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::read::BadLine;
use super::views::OutcomeView;
use crate::definition::Definition;
use crate::domain::{OwnerId, Seq};
use crate::http::history::item_view::OwnerMember;
use crate::http::problem::{Kind, Problem};
use crate::ingest::{Bad, Event, Refusal, Row, Sent, Watch};
use crate::store::history::LineRefusal;

/// Sent after the last outcome. Without it the answer is cut off, so that no client takes it for complete.
pub(super) const END: Bytes = Bytes::new();

/// While more bytes of outcomes than this are held, no more lines are read.
const MOST: usize = 256 * 1024;

/// Most bytes that are handed to the connection at once.
const PIECE: usize = 32 * 1024;

/// With fewer lines than this, memory is not given back.
const FEW: usize = 64;

/// Outcomes on their way to the client. A line waits for the outcomes of all before it.
pub(super) struct Outcomes {
    definition: Arc<Definition>,
    /// The lines from the first one without a sent outcome, in order.
    lines: VecDeque<Waiting>,
    /// Bytes of the outcomes in `lines`.
    settled: usize,
    /// Outcomes in order, ready to be sent.
    ready: Vec<u8>,
    client: mpsc::Sender<Bytes>,
    /// Since when the client has read nothing, although something is ready.
    stalled: Option<Instant>,
    limit: Duration,
    /// Whether each outcome names its owner.
    many: bool,
}

struct Waiting {
    number: u64,
    owner: Option<OwnerId>,
    outcome: Option<Outcome>,
}

enum Outcome {
    Stored(Seq),
    /// A whole line of the answer.
    Problem(Box<[u8]>),
}

impl Outcome {
    /// Size in memory, in bytes.
    fn size(&self) -> usize {
        match self {
            Self::Stored(_) => size_of::<Waiting>(),
            Self::Problem(text) => size_of::<Waiting>() + text.len(),
        }
    }
}

impl Outcomes {
    /// For a client that must take something within `limit`.
    pub(super) fn new(
        definition: &Arc<Definition>,
        client: mpsc::Sender<Bytes>,
        many: bool,
        limit: Duration,
    ) -> Self {
        let definition = Arc::clone(definition);
        Self {
            definition,
            lines: VecDeque::new(),
            settled: 0,
            ready: Vec::new(),
            client,
            stalled: None,
            limit,
            many,
        }
    }

    /// Sends the rest and, if the upload ended early, the reason, for at most `limit`. Returns whether the client has
    /// taken everything.
    pub(super) async fn finish(&mut self, ended: Option<Problem>, limit: Duration) -> bool {
        if let Some(problem) = ended {
            let left = "The upload ended before this line was stored: the last line of the answer says why.";
            let left = Problem::new(Kind::NotStored, left);
            for index in 0..self.lines.len() {
                if self.lines[index].outcome.is_none() {
                    self.refuse_at(index, &left);
                }
            }
            self.advance();
            let problem = Some(problem.in_line());
            write(&mut self.ready, &OutcomeView { line: None, owner: None, seq: None, problem });
        }
        let rest = std::mem::take(&mut self.ready);
        rest.is_empty() || matches!(timeout(limit, self.client.send(rest.into())).await, Ok(Ok(())))
    }

    /// Marks the answer as complete.
    pub(super) async fn end(self) {
        // It fails only if the client has disconnected.
        let _ = self.client.send(END).await;
    }

    fn member(&self, owner: Option<&OwnerId>) -> Option<OwnerMember> {
        owner.map(|owner| OwnerMember::new(&self.definition, owner))
    }

    fn index(&self, line: u64) -> Option<usize> {
        self.lines.binary_search_by_key(&line, |waiting| waiting.number).ok()
    }

    fn store(&mut self, line: u64, seq: Seq) {
        if let Some(index) = self.index(line) {
            self.set(index, Outcome::Stored(seq));
        }
    }

    fn refuse(&mut self, line: u64, problem: &Problem) {
        if let Some(index) = self.index(line) {
            self.refuse_at(index, problem);
        }
    }

    fn refuse_at(&mut self, index: usize, problem: &Problem) {
        let Waiting { number, owner, .. } = &self.lines[index];
        let (line, owner, problem) = (Some(*number), self.member(owner.as_ref()), Some(problem.in_line()));
        let mut text = Vec::new();
        write(&mut text, &OutcomeView { line, owner, seq: None, problem });
        self.set(index, Outcome::Problem(text.into()));
    }

    fn set(&mut self, index: usize, outcome: Outcome) {
        self.settled += outcome.size();
        self.lines[index].outcome = Some(outcome);
    }

    /// Moves the outcomes that wait for no earlier line to `ready`.
    fn advance(&mut self) {
        while let Some(Waiting { number, owner, outcome: Some(outcome) }) =
            self.lines.pop_front_if(|waiting| waiting.outcome.is_some())
        {
            self.settled -= outcome.size();
            match outcome {
                Outcome::Stored(seq) => {
                    let (line, owner, seq) = (Some(number), self.member(owner.as_ref()), Some(seq));
                    write(&mut self.ready, &OutcomeView { line, owner, seq, problem: None });
                }
                Outcome::Problem(text) => self.ready.extend(text),
            }
        }
        if self.lines.capacity() > FEW.max(4 * self.lines.len()) {
            self.lines.shrink_to(2 * self.lines.len());
        }
        if !self.ready.is_empty() && self.stalled.is_none() {
            self.stalled = Some(Instant::now());
        }
    }
}

/// Takes the first piece of what is ready.
fn piece(ready: &mut Vec<u8>) -> Bytes {
    if ready.len() <= PIECE {
        return std::mem::take(ready).into();
    }
    let piece: Vec<_> = ready.drain(..PIECE).collect();
    ready.shrink_to(2 * ready.len());
    piece.into()
}

fn write(text: &mut Vec<u8>, outcome: &OutcomeView) {
    serde_json::to_writer(&mut *text, outcome).expect("an outcome holds only texts and numbers");
    text.push(b'\n');
}

impl Outcomes {
    fn came(&mut self, row: &Row) {
        let owner = self.many.then(|| row.owner.clone());
        self.lines.push_back(Waiting { number: row.line, owner, outcome: None });
    }

    fn bad(&mut self, Bad { line, why: bad, .. }: Bad<BadLine>) {
        self.lines.push_back(Waiting { number: line, owner: None, outcome: None });
        let problem = if bad.json {
            Problem::invalid_line(&bad.faults, bad.omitted)
        } else {
            let fault = bad.faults.first().expect("a line that is not JSON has a fault that says so");
            Problem::new(Kind::MalformedJson, format!("The line {}.", fault.detail))
        };
        self.refuse(line, &problem);
        self.advance();
    }

    fn sent(&mut self, sent: &Sent) {
        let mut rows = sent.rows.iter();
        for end in &sent.ends {
            let Some(row) = rows.next() else { break };
            match end {
                Ok(seq) => self.store(row.line, *seq),
                Err(refusal) => {
                    let problem = Problem::new(kind(*refusal), format!("Not stored: {refusal}."));
                    self.refuse(row.line, &problem);
                }
            }
        }
        let unknown = "The database gave no answer in time: the line may or may not be stored.";
        for row in rows.take(sent.unknown) {
            self.refuse(row.line, &Problem::new(Kind::OutcomeUnknown, unknown));
        }
        self.advance();
    }
}

impl Watch<BadLine> for Outcomes {
    fn hear(&mut self, event: Event<'_, BadLine>) {
        match event {
            Event::Came(row) => self.came(row),
            Event::Bad(bad) => self.bad(bad),
            Event::Sent(sent) => self.sent(sent),
            Event::Progress(_) | Event::Waiting(_) => {}
        }
    }

    fn full(&self) -> bool {
        self.settled + self.ready.len() > MOST
    }

    fn held(&self) -> usize {
        self.lines.capacity() * size_of::<Waiting>() + self.settled + self.ready.capacity()
    }

    async fn hand_on(&mut self) -> io::Result<()> {
        let Some(stalled) = self.stalled else { return std::future::pending().await };
        let place = timeout_at(stalled + self.limit, self.client.reserve()).await;
        let place = place.map_err(|_elapsed| ErrorKind::BrokenPipe)?.map_err(|_| ErrorKind::BrokenPipe)?;
        place.send(piece(&mut self.ready));
        self.stalled = (!self.ready.is_empty()).then(Instant::now);
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
