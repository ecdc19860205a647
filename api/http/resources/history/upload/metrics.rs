//! Metrics of uploads.

use pagebucket_model::metric::{LINES_READ, UPLOADED_LINES, UPLOADS, UPLOADS_UNDER_WAY};
use pagebucket_streams::ingest::{End, NotTaken, Report, RowOutcome, StreamEvent, StreamWatch};

use ::metrics::Counter;

use super::read::{BadLine, Unsettled};
use crate::answer::notes::ItemCount;

/// Counts an upload and its lines, and passes every event on. The upload is under way until this is dropped.
pub(crate) struct MeasuredUpload<'a, W> {
    inner: &'a mut W,
    items: ItemCount,
    unsettled: Unsettled,
    read: Counter,
    stored: Counter,
    refused: Counter,
}

impl<'a, W> MeasuredUpload<'a, W> {
    /// `items` are those that are stored.
    pub(crate) fn new(inner: &'a mut W, items: ItemCount, unsettled: Unsettled) -> Self {
        metrics::gauge!(UPLOADS_UNDER_WAY).increment(1);
        let lines = |result| metrics::counter!(UPLOADED_LINES, "result" => result);
        let read = metrics::counter!(LINES_READ);
        Self { inner, items, unsettled, read, stored: lines("stored"), refused: lines("refused") }
    }

    /// Counts the result of the upload.
    pub(crate) fn ended(self, report: &Report) {
        let unknown: u64 = report.unknown.iter().map(|unknown| unknown.rows).sum();
        for (result, lines) in [("unknown", unknown), ("not_stored", report.left())] {
            metrics::counter!(UPLOADED_LINES, "result" => result).increment(lines);
        }
        let result = match &report.end {
            None => "finished",
            Some(End::Database(_)) => "failed",
            Some(End::Interrupted) => "stopped",
            Some(End::Unreadable(_) | End::BadRow | End::Server(_)) => "abandoned",
        };
        metrics::counter!(UPLOADS, "result" => result).increment(1);
    }
}

impl<W> Drop for MeasuredUpload<'_, W> {
    fn drop(&mut self) {
        metrics::gauge!(UPLOADS_UNDER_WAY).decrement(1);
    }
}

impl<W: StreamWatch<BadLine> + Send> StreamWatch<BadLine> for MeasuredUpload<'_, W> {
    fn hear(&mut self, event: StreamEvent<'_, BadLine>) {
        match &event {
            StreamEvent::Came(_) => self.read.increment(1),
            StreamEvent::Bad(_) => {
                self.read.increment(1);
                self.refused.increment(1);
            }
            StreamEvent::Sent(sent) => {
                let is_stored = |outcome| matches!(outcome, RowOutcome::Stored(_));
                let stored = sent.outcomes().filter(|(_, outcome)| is_stored(*outcome)).count();
                self.stored.increment(stored as u64);
                self.items.add(stored as u64);
                self.refused.increment(sent.refused().count() as u64);
                let settled = sent.outcomes().count();
                self.unsettled.send_modify(|unsettled| *unsettled = unsettled.saturating_sub(settled));
            }
            StreamEvent::Progress(_) | StreamEvent::Waiting(_) | StreamEvent::Interrupted(_) => {}
        }
        self.inner.hear(event);
    }

    fn full(&self) -> bool {
        self.inner.full()
    }

    fn held(&self) -> usize {
        self.inner.held()
    }

    fn hand_on(&mut self) -> impl Future<Output = Result<(), NotTaken>> + Send {
        self.inner.hand_on()
    }
}
