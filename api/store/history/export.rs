//! Exports: the items of a history from a position to the end, a batch of pages at a time.
//!
//! Each batch is one command that seeks pages by their numbers. For a span of time these are the pages that
//! [`super::date_scan`] has chosen. Between two batches the database holds nothing for an export: no cursor, no
//! snapshot, no session. None is needed: pages before the tail never change, and the tail was read first. So an
//! export shows the moment of its beginning, however long it takes.

use std::collections::VecDeque;

use super::date_scan::{self, DateScan};
use super::document::{Bucket, Stored};
use super::engine::Engine;
use super::reads::History;
use crate::domain::{DateRange, OwnerId, PageNumber, Position, Totals};
use crate::store::{COMMAND, Deadline, Error};

/// The most pages in a batch, if they fit into one reply. Of trades, 1,000 items: about 120 KB of rows.
const BATCH: usize = 100;

/// An export in progress.
#[derive(Debug)]
pub struct Export {
    history: History,
    /// Everything before this position is exported.
    at: Position,
    dated: Option<Dated>,
}

/// The state of an export that is limited to a span of time.
#[derive(Debug)]
struct Dated {
    dates: DateRange,
    search: DateScan,
    /// Full pages that may hold items of the span and are not read yet: at most as many as one scan chooses.
    chosen: VecDeque<PageNumber>,
}

impl Engine {
    /// Begins an export of the items after `after`, limited to `dates` if given, as the history is now. An
    /// unknown owner has no items.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub async fn export(
        &self,
        owner: OwnerId,
        after: Position,
        dates: Option<DateRange>,
        deadline: Deadline,
    ) -> Result<Export, Error> {
        let size = self.definition().page_size;
        let history = self.history(owner.clone(), deadline).await?;
        let dated = dates.map(|dates| {
            let before_tail = history.totals().last_page().and_then(PageNumber::previous);
            let left = after.next_seq().zip(before_tail).map(|(first, last)| (size.page_of(first), last));
            Dated {
                dates,
                search: DateScan {
                    owner,
                    dates,
                    backwards: false,
                    left: left.filter(|(first, last)| first <= last),
                    chosen: date_scan::MOST_CHOSEN,
                },
                chosen: VecDeque::new(),
            }
        });
        Ok(Export { history, at: after, dated })
    }
}

impl Export {
    /// The totals of the history when the export began.
    pub fn totals(&self) -> Totals {
        self.history.totals()
    }

    /// The position that the export has reached. To continue later, begin another export after it.
    pub fn position(&self) -> Position {
        self.at
    }

    /// The next items; `None` at the end. The call has no deadline, but each of
    /// its commands has one. After an error the same items can be requested again.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub async fn next(&mut self) -> Result<Option<Batch>, Error> {
        let most = BATCH.min(self.history.source().most_buckets());
        let size = self.totals().page_size();
        loop {
            let end = Position::end_of(self.totals());
            let (Some(first), Some(last)) = (self.at.next_seq(), self.totals().last_page()) else {
                return Ok(None);
            };
            if self.at >= end {
                return Ok(None);
            }
            let (buckets, reached) = match &mut self.dated {
                None => {
                    let first = size.page_of(first);
                    let to = first.up_to(last).take(most).last().unwrap_or(last);
                    let buckets = self.history.pages(first, to, Deadline::within(COMMAND)).await?;
                    (buckets, Position::behind(size.last_seq(to)).min(end))
                }
                Some(dated) => match dated.read(&self.history, most).await? {
                    Some(found) => found,
                    None => (self.history.last().cloned().into_iter().collect(), end),
                },
            };
            let dates = self.dated.as_ref().map(|dated| dated.dates);
            let batch = Batch { buckets, after: self.at, end, dates };
            self.at = reached;
            if batch.items().next().is_some() {
                return Ok(Some(batch));
            }
        }
    }
}

/// A part of an export.
#[derive(Debug)]
pub struct Batch {
    buckets: Vec<Bucket>,
    after: Position,
    end: Position,
    dates: Option<DateRange>,
}

impl Batch {
    /// The items, in order of their addresses.
    pub fn items(&self) -> impl Iterator<Item = Stored<'_>> {
        self.buckets.iter().flat_map(Bucket::items).filter(|item| {
            item.seq.within(self.after, self.end)
                && self.dates.is_none_or(|dates| dates.contains(item.date()))
        })
    }
}

impl Dated {
    /// Reads the next full pages, at most `most`, that may hold items of these dates. Returns them and the position after the
    /// last one; `None` if none are left.
    async fn read(
        &mut self,
        history: &History,
        most: usize,
    ) -> Result<Option<(Vec<Bucket>, Position)>, Error> {
        let Some(tail) = history.tail() else { return Ok(None) };
        if self.chosen.is_empty() {
            let left = self.search.left;
            let chosen = self.search.choose(history.source(), tail, Deadline::within(COMMAND)).await;
            // `choose` takes `left` before it reads, so an error must restore it.
            self.chosen = chosen.inspect_err(|_| self.search.left = left)?.into();
        }
        let pages: Vec<_> = self.chosen.iter().copied().take(most).collect();
        let Some(last) = pages.last() else { return Ok(None) };
        let buckets = history.read(&pages, tail, Deadline::within(COMMAND)).await?;
        self.chosen.drain(..pages.len());
        Ok(Some((buckets, Position::behind(tail.page_size.last_seq(*last)))))
    }
}
