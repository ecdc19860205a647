//! Exports: the items of a history from a position to the end, a batch of pages at a time.
//!
//! Each batch is one command that seeks pages by their numbers. For a span of time these are the pages that
//! [`super::date_scan`] has chosen. Between two batches the database holds nothing for an export: no cursor,
//! no snapshot, no session. None is needed: pages before the tail never change, and the tail was read first.
//! So an export shows the moment of its beginning, however long it takes.

use super::date_scan::{self, DateScan};
use super::reader::{History, HistoryReader};
use crate::store::buckets::document::{Bucket, StoredItem};
use pagebucket_model::domain::{DateRange, OwnerId, PageNumber, Position, Totals};

use crate::mongo::{COMMAND, Deadline, Error, Gone, Result};

/// The most pages in a batch, if they fit into one reply. Of trades, 1,000 items: about 120 KB of rows.
const BATCH: usize = 100;

/// An export in progress.
#[derive(Debug)]
pub struct Export {
    history: History,
    /// Everything before this position is exported.
    at: Position,
    /// Whether it is to begin with the first item that is there, and has read none.
    begins: bool,
    /// The scan, if the export is limited to a span of time.
    dated: Option<DateScan>,
}

impl HistoryReader {
    /// Begins an export of the items after `after`, limited to `dates` if given, as the history is now. An
    /// unknown owner has no items. From the beginning means from the first item that is there.
    ///
    /// # Errors
    /// The database does not answer in time, the item after `after` is deleted, or a bucket is corrupt.
    pub async fn export(
        &self,
        owner: OwnerId,
        after: Position,
        dates: Option<DateRange>,
        deadline: Deadline,
    ) -> Result<Export> {
        let history = self.history(owner, deadline).await?;
        let at = history.from(after)?;
        let dated = dates.map(|dates| scan_of(&history, at, dates));
        Ok(Export { history, at, begins: after == Position::BEGINNING, dated })
    }
}

/// The scan for a span of time, after a position.
fn scan_of(history: &History, at: Position, dates: DateRange) -> DateScan {
    let size = history.definition().page_size;
    let before_tail = history.totals().last_page().and_then(PageNumber::previous);
    let left = at.next_seq().map(|first| size.page_of(first)).zip(before_tail);
    DateScan::new(dates, false, left, date_scan::MOST_CHOSEN)
}

impl Export {
    /// The rest of a history after a position. `begins` says whether it is to begin with the first item that
    /// is there.
    pub(crate) fn of(history: History, at: Position, begins: bool) -> Self {
        Self { history, at, begins, dated: None }
    }

    /// The totals of the history when the export began.
    pub fn totals(&self) -> Totals {
        self.history.totals()
    }

    /// The position that the export has reached. To continue later, begin another export after it.
    pub fn position(&self) -> Position {
        self.at
    }

    /// The most pages in a batch.
    pub fn most_pages(&self) -> usize {
        BATCH.min(self.history.source().most_buckets())
    }

    /// Whether the export has reached the end.
    pub fn is_at_end(&self) -> bool {
        self.at >= Position::end_of(self.totals())
    }

    /// The next pages, perhaps none with an item of the dates that were asked for; `None` at the end. The
    /// call has no deadline, but each of its commands has one. After an error the same pages can be requested
    /// again.
    ///
    /// # Errors
    /// The database does not answer in time, the next pages were deleted meanwhile, or a bucket is corrupt.
    pub async fn next(&mut self) -> Result<Option<ExportBatch>> {
        self.next_of(BATCH).await
    }

    /// Same as [`Export::next`] for at most `most` pages, which is not 0.
    pub async fn next_of(&mut self, most: usize) -> Result<Option<ExportBatch>> {
        let mut read = self.read(most).await;
        // Another process may have retired pages since this one last asked.
        while let Err(Error::Gone(Gone::Retired { .. })) = read
            && self.begins
            && self.begin_again().await?
        {
            read = self.read(most).await;
        }
        self.begins &= read.is_err();
        read
    }

    /// Begins with the first item that is there now. Returns whether that is a later one.
    async fn begin_again(&mut self) -> Result<bool> {
        let History { reader, owner, .. } = &self.history;
        let history = reader.history(owner.clone(), Deadline::within(COMMAND)).await?;
        let first = history.from(Position::BEGINNING)?;
        let is_later = first > self.at;
        if is_later {
            let dated = self.dated.as_ref().map(|scan| scan_of(&history, first, scan.dates));
            *self = Self { history, at: first, begins: true, dated };
        }
        Ok(is_later)
    }

    async fn read(&mut self, most: usize) -> Result<Option<ExportBatch>> {
        let most = self.most_pages().min(most);
        let size = self.totals().page_size();
        let end = Position::end_of(self.totals());
        let left = self.at.next_seq().zip(self.totals().last_page()).filter(|_| self.at < end);
        let Some((first, last)) = left else { return Ok(None) };
        let (buckets, reached) = match &mut self.dated {
            None => {
                let first = size.page_of(first);
                let to = first.up_to(last).take(most).last().unwrap_or(last);
                let buckets = self.history.pages(first, to, Deadline::within(COMMAND)).await?;
                (buckets, Position::behind(size.last_seq(to)).min(end))
            }
            Some(scan) => {
                // Each of its two commands may take as long.
                let buckets = scan.read(&self.history, most, Deadline::within(2 * COMMAND)).await?;
                self.history.still_has(size.page_of(first), Deadline::within(COMMAND)).await?;
                scan.pass(&buckets);
                match buckets.last().map(Bucket::page) {
                    Some(last) => (buckets, Position::behind(size.last_seq(last))),
                    None => (self.history.last().cloned().into_iter().collect(), end),
                }
            }
        };
        let dates = self.dated.as_ref().map(|scan| scan.dates);
        let batch = ExportBatch { buckets, after: self.at, end, dates };
        self.at = reached;
        Ok(Some(batch))
    }
}

/// A part of an export.
#[derive(Debug)]
pub struct ExportBatch {
    buckets: Vec<Bucket>,
    after: Position,
    end: Position,
    dates: Option<DateRange>,
}

impl ExportBatch {
    /// Number of pages that were read.
    pub fn pages(&self) -> usize {
        self.buckets.len()
    }

    /// The position of the export before it.
    pub(crate) fn after(&self) -> Position {
        self.after
    }

    /// The pages, of which the first may have items before the position of the export.
    pub(crate) fn into_pages(self) -> Vec<Bucket> {
        self.buckets
    }

    /// The items, in order of their addresses.
    pub fn items(&self) -> impl Iterator<Item = StoredItem<'_>> {
        self.buckets.iter().flat_map(Bucket::items).filter(|item| {
            item.seq.within(self.after, self.end)
                && self.dates.is_none_or(|dates| dates.contains(item.date()))
        })
    }
}
