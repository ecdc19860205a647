//! A history from some trade on, to its end, a batch of pages at a time.
//!
//! Each batch is one command that seeks pages by their numbers, or of a span of time those that were
//! chosen for it ([`super::date_scan`]). Between two batches the database holds nothing for an export: no
//! cursor, no snapshot, no session. It needs none: pages before the tail never change, and the tail was
//! read first. So an export is of one moment, its beginning, however long it takes.

use std::collections::VecDeque;

use super::date_scan::{self, DateScan};
use super::document::Bucket;
use super::engine::Trades;
use super::reads::History;
use crate::domain::{CustomerId, DateRange, PageNumber, Position, Seq, Totals, Trade};
use crate::store::{COMMAND, Deadline, Error};

/// Pages in a batch, 1,000 trades: about 120 KB of rows.
const BATCH: usize = 100;

/// A history on its way out.
#[derive(Debug)]
pub struct Export {
    history: History,
    /// All before it is behind us.
    at: Position,
    dated: Option<Dated>,
}

/// Of a span of time alone.
#[derive(Debug)]
struct Dated {
    dates: DateRange,
    search: DateScan,
    /// Full pages that may hold trades of it, not yet read. So many numbers at most as the search chooses at
    /// once.
    chosen: VecDeque<PageNumber>,
}

impl Trades {
    /// The trades of a history behind `after`, of these dates if there are any, as it is now. An unknown
    /// customer has none.
    ///
    /// # Errors
    /// No database in time, or a corrupt bucket.
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
    /// How much the history held when it began.
    pub fn totals(&self) -> Totals {
        self.history.totals()
    }

    /// As far as it has come: to go on from here, begin another one behind it.
    pub fn position(&self) -> Position {
        self.at
    }

    /// The next trades, in order of their addresses; none at the end. It takes as long as it takes: each
    /// command has a deadline of its own. After an error the same trades can be asked for again.
    ///
    /// # Errors
    /// No database in time, or a corrupt bucket.
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
    /// Some of the full pages that may hold trades of these dates, and how far they reach.
    async fn read(&mut self, history: &History) -> Result<Option<(Vec<Bucket>, Position)>, Error> {
        let Some(tail) = history.tail() else { return Ok(None) };
        if self.chosen.is_empty() {
            let left = self.search.left;
            let chosen = self.search.choose(history.source(), tail, Deadline::within(COMMAND)).await;
            // It takes what is left before it looks.
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
