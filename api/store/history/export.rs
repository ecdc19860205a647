//! Exports: the trades of a history from a position to the end, a batch of pages at a time.
//!
//! Each batch is one command that seeks pages by their numbers. For a span of time these are the pages that
//! [`super::date_scan`] has chosen. Between two batches the database holds nothing for an export: no cursor, no
//! snapshot, no session. None is needed: pages before the tail never change, and the tail was read first. So an
//! export shows the moment of its beginning, however long it takes.

use std::collections::VecDeque;

use super::date_scan::{self, DateScan};
use super::document::Bucket;
use super::engine::Trades;
use super::reads::History;
use crate::domain::{CustomerId, DateRange, PageNumber, Position, Seq, Totals, Trade};
use crate::store::{COMMAND, Deadline, Error};

/// Pages in a batch, 1,000 trades: about 120 KB of rows.
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
    /// Full pages that may hold trades of the span and are not read yet: at most as many as one scan chooses.
    chosen: VecDeque<PageNumber>,
}

impl Trades {
    /// Begins an export of the trades after `after`, limited to `dates` if given, as the history is now. An
    /// unknown customer has no trades.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub async fn export(
        &self,
        customer: CustomerId,
        after: Position,
        dates: Option<DateRange>,
        deadline: Deadline,
    ) -> Result<Export, Error> {
        let history = self.history(customer, deadline).await?;
        let dated = dates.map(|dates| {
            let before_tail = history.totals().last_page().and_then(PageNumber::previous);
            let left = after.next_seq().zip(before_tail).map(|(first, last)| (first.page(), last));
            Dated {
                dates,
                search: DateScan {
                    customer,
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

    /// The next trades, in order of their addresses; empty at the end. The call has no deadline, but each of
    /// its commands has one. After an error the same trades can be requested again.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub async fn next(&mut self) -> Result<Vec<(Seq, Trade)>, Error> {
        loop {
            let end = Position::end_of(self.totals());
            let (Some(first), Some(last)) = (self.at.next_seq(), self.totals().last_page()) else {
                return Ok(Vec::new());
            };
            if self.at >= end {
                return Ok(Vec::new());
            }
            let (buckets, reached) = match &mut self.dated {
                None => {
                    let to = first.page().up_to(last).take(BATCH).last().unwrap_or(last);
                    let buckets = self.history.pages(first.page(), to, Deadline::within(COMMAND)).await?;
                    (buckets, Position::behind(to.first_seq().plus(9)).min(end))
                }
                Some(dated) => match dated.read(&self.history).await? {
                    Some(found) => found,
                    None => (self.history.last().cloned().into_iter().collect(), end),
                },
            };
            let (at, dates) = (self.at, self.dated.as_ref().map(|dated| dated.dates));
            self.at = reached;
            let trades: Vec<_> = buckets
                .into_iter()
                .flat_map(addressed)
                .filter(|(seq, trade)| {
                    seq.within(at, end) && dates.is_none_or(|dates| dates.contains(trade.date))
                })
                .collect();
            if !trades.is_empty() {
                return Ok(trades);
            }
        }
    }
}

impl Dated {
    /// Reads the next full pages that may hold trades of these dates. Returns them and the position after the
    /// last one; `None` if none are left.
    async fn read(&mut self, history: &History) -> Result<Option<(Vec<Bucket>, Position)>, Error> {
        let Some(tail) = history.tail() else { return Ok(None) };
        if self.chosen.is_empty() {
            let left = self.search.left;
            let chosen = self.search.choose(history.source(), tail, Deadline::within(COMMAND)).await;
            // `choose` takes `left` before it reads, so an error must restore it.
            self.chosen = chosen.inspect_err(|_| self.search.left = left)?.into();
        }
        let pages: Vec<_> = self.chosen.iter().copied().take(BATCH).collect();
        let Some(last) = pages.last() else { return Ok(None) };
        let buckets = history.read(&pages, tail, Deadline::within(COMMAND)).await?;
        self.chosen.drain(..pages.len());
        Ok(Some((buckets, Position::behind(last.first_seq().plus(9)))))
    }
}

fn addressed(bucket: Bucket) -> impl Iterator<Item = (Seq, Trade)> {
    let first = bucket.first_seq();
    bucket.trades.into_iter().enumerate().map(move |(place, trade)| (first.plus(place), trade))
}
