//! From the body of an upload to lines.

use std::io::{self, ErrorKind};
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::domain::{Clock, CustomerId, DraftError, Fault, parse_line};
use crate::ingest::{BATCH, Bad, Chunk, LONGEST_ROW, Line, Row, Splitter};

/// Faults of a line that are told in full. A line of 64 KiB may have ten thousand.
const MOST_FAULTS: usize = 10;

/// A line that is no trade.
#[derive(Debug)]
pub(super) struct BadLine {
    line: u64,
    size: u64,
    /// The first of all that is wrong with it.
    pub(super) faults: Vec<Fault>,
    /// How many more faults there are.
    pub(super) omitted: usize,
    /// Whether it is JSON.
    pub(super) json: bool,
}

impl Bad for BadLine {
    fn line(&self) -> u64 {
        self.line
    }

    fn size(&self) -> u64 {
        self.size
    }
}

/// Reads a body, piece by piece, and hands on its lines.
pub(super) struct Reader {
    chunks: mpsc::Sender<io::Result<Chunk<BadLine>>>,
    chunk: Chunk<BadLine>,
    splitter: Splitter,
    customer: Option<CustomerId>,
    /// What time it is, for trades without a date; `None` where something else gives them one.
    clock: Option<Clock>,
    /// In which each piece must come.
    limit: Duration,
}

/// Nobody wants more lines.
struct Enough;

impl Reader {
    pub(super) fn new(
        chunks: mpsc::Sender<io::Result<Chunk<BadLine>>>,
        customer: Option<CustomerId>,
        clock: Option<Clock>,
        limit: Duration,
    ) -> Self {
        Self { chunks, chunk: Chunk::new(), splitter: Splitter::default(), customer, clock, limit }
    }

    /// Reads to the end, or as long as somebody wants more; the body then, where there is more of it.
    pub(super) async fn run(mut self, mut body: Body) -> Option<Body> {
        match self.read(&mut body).await {
            Ok(()) => None,
            Err(Enough) => Some(body),
        }
    }

    async fn read(&mut self, body: &mut Body) -> Result<(), Enough> {
        loop {
            let piece = tokio::select! {
                piece = timeout(self.limit, body.frame()) => piece,
                () = self.chunks.closed() => return Err(Enough),
            };
            let error = match piece {
                Ok(Some(Ok(frame))) => {
                    // A piece that is no data is the end of it: trailers.
                    self.piece(frame.data_ref().unwrap_or(&Bytes::new())).await?;
                    continue;
                }
                Ok(None) => {
                    let last = self.splitter.finish();
                    last.into_iter().for_each(|line| self.line(line));
                    return self.hand_on().await;
                }
                Ok(Some(Err(_))) => ErrorKind::UnexpectedEof,
                Err(_elapsed) => ErrorKind::TimedOut,
            };
            return self.chunks.send(Err(error.into())).await.map_err(|_| Enough);
        }
    }

    async fn piece(&mut self, mut bytes: &[u8]) -> Result<(), Enough> {
        while !bytes.is_empty() {
            let (taken, line) = self.splitter.take(bytes);
            bytes = &bytes[taken..];
            line.into_iter().for_each(|line| self.line(line));
            if self.chunk.len() == BATCH {
                self.hand_on().await?;
            }
        }
        self.hand_on().await
    }

    fn line(&mut self, line: Line) {
        if line.is_blank() {
            return;
        }
        let Line { number, bytes, size, cut } = line;
        let bad = |faults, omitted, json| BadLine { line: number, size, faults, omitted, json };
        let whole = |detail: String| vec![Fault { pointer: String::new(), line: None, detail }];
        if cut {
            self.chunk.push(Err(bad(whole(format!("is longer than {LONGEST_ROW} bytes")), 0, true)));
            return;
        }
        self.chunk.push(match parse_line(&bytes, self.customer) {
            Ok((customer, mut draft)) => {
                draft.date = draft.date.or_else(|| Some(self.clock.as_ref()?.now()));
                Ok(Row { line: number, size, customer, draft })
            }
            Err(DraftError::NotJson(error)) => {
                // Of one line, the parser says that it is line 1.
                let detail = error.to_string().replace(" at line 1 column ", ", at byte ");
                Err(bad(whole(format!("is not JSON: {detail}")), 0, false))
            }
            Err(DraftError::Invalid(faults)) => {
                let told: Vec<_> = faults.kept().iter().take(MOST_FAULTS).cloned().collect();
                let omitted = faults.count() - told.len();
                Err(bad(told, omitted, true))
            }
        });
    }

    async fn hand_on(&mut self) -> Result<(), Enough> {
        let chunk = std::mem::take(&mut self.chunk);
        if chunk.is_empty() {
            return Ok(());
        }
        self.chunks.send(Ok(chunk)).await.map_err(|_| Enough)
    }
}
