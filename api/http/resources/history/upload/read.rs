//! Reads the lines of an upload's body.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body_util::BodyExt;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Clock, DraftError, Fault, Faults, OwnerId};
use pagebucket_streams::ingest::{Bad, Chunk, LONGEST_ROW, Line, Row, Splitter, Unreadable};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use crate::admission::lifetime::Lifetime;
use crate::admission::rate::{Class, ClientQuota};

/// Most faults that are listed for one line. A line of 64 KiB may have ten thousand.
const MOST_FAULTS: usize = 10;

/// Bytes of lines that are handed on at once; the last line may exceed it. One such chunk is being parsed
/// while another waits to be taken.
const CHUNK: usize = 16 * 1024;

/// Bytes, without white space, that a client must send in each span in which no item ends.
pub(crate) const LEAST: usize = 1024;

/// A line that is no item.
#[derive(Debug)]
pub(crate) struct BadLine {
    pub(crate) faults: Faults,
    /// Whether it is JSON.
    pub(crate) json: bool,
}

impl BadLine {
    /// Size of the faults on the heap, in bytes.
    fn bytes(&self) -> usize {
        let fault = |fault: &Fault| size_of::<Fault>() + fault.pointer.capacity() + fault.rule.heap();
        self.faults.kept().iter().map(fault).sum()
    }
}

/// The minimum pace of a client: in each span, one item, or [`LEAST`] bytes of blank lines and of the line
/// that has not ended. (A client that continues at a line far into a file sends as many line breaks.) A line
/// that is no item counts for nothing: it would cost the client next to nothing to keep its permit. Only time
/// spent waiting for the client counts. While the server does not read, because earlier lines must be stored
/// first or the client's quota is used up, the span stands still. So it does until the lines that were read
/// have their outcomes: the client may wait for those before it sends more.
struct UploadPace {
    span: Duration,
    /// Time that is left of this span.
    left: Duration,
    /// Bytes that count and were received in this span, without blanks.
    bytes: usize,
}

impl UploadPace {
    fn new(span: Duration) -> Self {
        Self { span, left: span, bytes: 0 }
    }

    /// These are of a blank line, or of one that has not ended.
    fn came(&mut self, bytes: &[u8]) {
        self.bytes += bytes.iter().filter(|byte| **byte == b'\n' || !byte.is_ascii_whitespace()).count();
        if self.bytes >= LEAST {
            self.kept();
        }
    }

    /// The client kept the pace: the next span begins.
    fn kept(&mut self) {
        *self = Self::new(self.span);
    }

    /// A line has ended that is no item.
    fn refused(&mut self) {
        self.bytes = 0;
    }
}

/// The most owners whose lines are counted, at about 20 bytes each. If there are more, counting begins again.
const MOST_OWNERS: usize = 3_500;

/// The lines since each owner's last page was begun. A page has lines of one owner, so that each owner costs
/// a page at least.
#[derive(Default)]
struct Filling(HashMap<Option<u64>, usize>);

impl Filling {
    /// Whether a line of this owner, or one that is no item, begins a page of so many.
    fn begins(&mut self, owner: Option<&OwnerId>, size: usize) -> bool {
        let owner = owner.map(OwnerId::spread);
        if self.0.len() >= MOST_OWNERS && !self.0.contains_key(&owner) {
            self.0.clear();
        }
        let lines = self.0.entry(owner).or_default();
        *lines = *lines % size + 1;
        *lines == 1
    }
}

/// Reads a body, piece by piece, and hands on its lines.
pub(crate) struct LineReader {
    chunks: mpsc::Sender<Result<Chunk<BadLine>, Unreadable>>,
    /// The items that were handed on and have no outcome yet.
    unsettled: Unsettled,
    chunk: Chunk<BadLine>,
    /// Bytes of the lines in `chunk`.
    bytes: usize,
    splitter: Splitter,
    definition: Arc<Definition>,
    owner: Option<OwnerId>,
    /// Dates the items that have no date; `None` if something else dates them.
    clock: Option<Clock>,
    quota: ClientQuota,
    lifetime: Lifetime,
    /// The pages that the lines in `chunk` begin.
    begun: usize,
    /// Pages of lines that were handed on and not taken from the quota yet.
    pages: usize,
    filling: Filling,
    /// Whether no line was handed on yet.
    is_first: bool,
    pace: UploadPace,
}

/// Number of items of an upload that were read and have no outcome yet.
pub(crate) type Unsettled = Arc<watch::Sender<usize>>;

/// No more lines are wanted, although the body may continue.
struct Enough;

impl LineReader {
    pub(crate) fn new(
        (chunks, unsettled): (mpsc::Sender<Result<Chunk<BadLine>, Unreadable>>, Unsettled),
        definition: Arc<Definition>,
        owner: Option<OwnerId>,
        clock: Option<Clock>,
        (quota, lifetime): (ClientQuota, Lifetime),
        span: Duration,
    ) -> Self {
        Self {
            chunks,
            unsettled,
            chunk: Chunk::new(),
            bytes: 0,
            splitter: Splitter::default(),
            definition,
            owner,
            clock,
            quota,
            lifetime,
            begun: 0,
            pages: 0,
            filling: Filling::default(),
            is_first: true,
            pace: UploadPace::new(span),
        }
    }

    /// Reads to the end, or as long as lines are wanted. Returns the body if it may continue.
    pub(crate) async fn run(mut self, mut body: Body) -> Option<Body> {
        let rest = self.read(&mut body).await.err().map(|Enough| body);
        self.quota.owe_of(Class::Appends, self.pages);
        rest
    }

    async fn read(&mut self, body: &mut Body) -> Result<(), Enough> {
        loop {
            // Looked at first: a client that never pauses would win each race.
            if self.lifetime.is_over() {
                return self.expire().await;
            }
            let (mut unsettled, mut waited_since) = (self.unsettled.subscribe(), None);
            let too_slow = async {
                let _ = unsettled.wait_for(|items| *items == 0).await;
                waited_since = Some(Instant::now());
                sleep(self.pace.left).await;
            };
            let piece = tokio::select! {
                piece = body.frame() => Some(piece),
                () = too_slow => None,
                () = self.chunks.closed() => return Err(Enough),
                () = self.lifetime.over() => return self.expire().await,
            };
            let waited = waited_since.map_or(Duration::ZERO, |since| since.elapsed());
            self.pace.left = self.pace.left.saturating_sub(waited);
            match piece {
                Some(Some(Ok(frame))) => {
                    // A frame without data holds trailers: the end of the body.
                    self.piece(frame.data_ref().unwrap_or(&Bytes::new())).await?;
                }
                Some(None) => {
                    let last = self.splitter.finish();
                    last.into_iter().filter(|line| !line.is_blank()).for_each(|line| self.line(line));
                    return self.hand_on().await;
                }
                Some(Some(Err(_))) => {
                    let _ = self.chunks.send(Err(Unreadable::Incomplete)).await;
                    return Ok(());
                }
                None => {
                    let _ = self.chunks.send(Err(Unreadable::TooSlow(self.pace.span))).await;
                    // The client may continue to send, and should be able to read why the upload ended.
                    return Err(Enough);
                }
            }
        }
    }

    async fn piece(&mut self, mut bytes: &[u8]) -> Result<(), Enough> {
        while !bytes.is_empty() {
            let (taken, line) = self.splitter.take(bytes);
            match line.filter(|line| !line.is_blank()) {
                Some(line) => self.line(line),
                None => self.pace.came(&bytes[..taken]),
            }
            bytes = &bytes[taken..];
            if self.bytes >= CHUNK {
                self.hand_on().await?;
            }
        }
        self.hand_on().await
    }

    fn line(&mut self, line: Line) {
        let parsed = self.parse(line);
        match &parsed {
            Ok(_) => self.pace.kept(),
            Err(_) => self.pace.refused(),
        }
        self.bytes += size_of_val(&parsed) + parsed.as_ref().map_or_else(|bad| bad.why.bytes(), Row::heap);
        if self.quota.is_limited() {
            let owner = parsed.as_ref().ok().map(|row| &row.owner);
            self.begun += usize::from(self.filling.begins(owner, self.definition.page_size.get()));
        }
        self.chunk.push(parsed);
    }

    fn parse(&self, line: Line) -> Result<Row, Bad<BadLine>> {
        let Line { number, bytes, size, cut, .. } = line;
        let bad = |faults, json| Bad { line: number, size, why: BadLine { faults, json } };
        if cut {
            return Err(bad(Faults::of_whole(format!("is longer than {LONGEST_ROW} bytes")), true));
        }
        let Definition { item, owner, .. } = &*self.definition;
        let named = self.owner.is_none().then_some((&*owner.field, owner.kind));
        match item.parse_line(&bytes, named) {
            Ok((named, draft)) => {
                let owner = self.owner.clone().or(named).expect("a line without its owner is refused");
                let draft = match &self.clock {
                    Some(clock) if draft.date().is_none() => draft.dated(clock.now()).into(),
                    _ => draft,
                };
                Ok(Row { line: number, size, owner, draft, source_key: None })
            }
            Err(DraftError::NotJson(error)) => {
                Err(bad(Faults::of_whole(format!("is not JSON: {}", error.in_one_line())), false))
            }
            Err(DraftError::Invalid(mut faults)) => {
                faults.truncate(MOST_FAULTS);
                Err(bad(faults, true))
            }
        }
    }

    /// Ends the upload before the lines that were not handed on.
    async fn expire(&mut self) -> Result<(), Enough> {
        let _ = self.chunks.send(Err(Unreadable::Expired)).await;
        Err(Enough)
    }

    /// Hands on the lines, as soon as the client's quota of appends suffices for those before them.
    async fn hand_on(&mut self) -> Result<(), Enough> {
        self.bytes = 0;
        let chunk = std::mem::take(&mut self.chunk);
        if chunk.is_empty() {
            return Ok(());
        }
        if self.quota.is_limited() {
            // The first page is paid before it is stored: a client in debt waits.
            let first = usize::from(std::mem::take(&mut self.is_first));
            tokio::select! {
                () = self.quota.pace(Class::Appends, self.pages + first) => self.pages = 0,
                () = self.chunks.closed() => return Err(Enough),
                () = self.lifetime.over() => return self.expire().await,
            }
            self.pages = std::mem::take(&mut self.begun) - first;
        }
        let items = chunk.iter().filter(|line| line.is_ok()).count();
        self.unsettled.send_modify(|unsettled| *unsettled += items);
        self.chunks.send(Ok(chunk)).await.map_err(|_| Enough)
    }
}
