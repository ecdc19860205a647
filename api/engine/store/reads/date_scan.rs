//! The items of a span of time.
//!
//! Items arrive out of order, so neither pages nor sequence numbers are in order of date. A bucket is chosen
//! by its `first` and `last`. A partial index covers this choice for full buckets, with the page number:
//! buckets outside the span are never read, and no more buckets than the window needs. `last >= from` bounds
//! the scan on one side only, so an early day of a long history examines many keys, but never many documents.
//! The tail is not in that index; it was read with the history.
//!
//! One query for both, with `$or` inside `customerId`, would not use the index.

use std::collections::VecDeque;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{DateTime, Document, doc};
use pagebucket_model::domain::{Cursor, DateRange, PageNumber};

use super::cursor_search::SearchResult;
use super::reader::History;
use crate::mongo::majority::at_most;
use crate::mongo::values::date;
use crate::mongo::{COMMAND, Corruption, Deadline, Result};
use crate::store::buckets::document::Bucket;
use crate::store::collection::{NO_PAGE, OfOwner, page_of};

/// How many pages the first scan of the index chooses. Each further scan chooses four times as many, at most
/// [`MOST_CHOSEN`], because every scan examines all keys of the range again.
const FIRST_CHOICE: usize = 256;
pub(crate) const MOST_CHOSEN: usize = 65_536;

/// The most buckets in one command.
const MOST_READ: usize = 256;

/// A scan of the full pages of one history for a span of time, in one direction.
#[derive(Debug)]
pub(crate) struct DateScan {
    pub(crate) dates: DateRange,
    /// Whether pages are scanned in descending order.
    backwards: bool,
    /// The first and the last page that are still to be scanned; none if the first is after the last.
    left: Option<(PageNumber, PageNumber)>,
    /// How many pages the next scan chooses.
    choice: usize,
    /// Pages that may hold items of the span and are not read yet: at most as many as one scan chooses.
    pub(crate) chosen: VecDeque<PageNumber>,
}

impl History {
    /// Up to `limit` items of `dates`, those nearest to the cursor. Reads one more, to know whether there are
    /// more.
    ///
    /// # Errors
    /// The database does not answer in time, pages that were searched are deleted, or a bucket is corrupt.
    pub async fn dated(
        &self,
        dates: DateRange,
        cursor: Cursor,
        limit: usize,
        deadline: Deadline,
    ) -> Result<SearchResult> {
        let Some(tail) = self.last() else { return Ok(SearchResult::default()) };
        let search = self.search(cursor);
        let backwards = search.backwards;
        let shown = |bucket: &Bucket| search.shown(bucket, |item| dates.contains(item.date()));
        // In the order of the scan.
        let (mut found, mut read) = (Vec::new(), 0);
        if backwards {
            found.extend(shown(tail));
        }
        let mut scan = DateScan::new(dates, backwards, search.full, FIRST_CHOICE);
        // Doubled with each command: more than one command is needed if few items match the dates.
        let mut most =
            ((limit + 1).div_ceil(self.source().page_size().get()) + 1).min(self.source().most_buckets());
        while found.len() <= limit {
            let buckets = scan.read(self, most, deadline).await?;
            if buckets.is_empty() {
                break;
            }
            read += buckets.len();
            found.extend(buckets.iter().flat_map(shown));
            scan.pass(&buckets);
            most = (most * 2).min(MOST_READ).min(self.source().most_buckets());
        }
        if !backwards && found.len() <= limit {
            found.extend(shown(tail));
        }
        if let Some(first) = search.first_page(limit, &found) {
            self.still_has(first, deadline).await?;
        }
        Ok(SearchResult { read, ..SearchResult::up_to(limit, found, None, backwards) })
    }
}

impl DateScan {
    /// A scan of the pages from the first to the last of `left`, which chooses `choice` of them at first.
    pub(crate) fn new(
        dates: DateRange,
        backwards: bool,
        left: Option<(PageNumber, PageNumber)>,
        choice: usize,
    ) -> Self {
        Self { dates, backwards, left, choice, chosen: VecDeque::new() }
    }

    /// Whether pages are left that no scan has examined.
    pub(crate) fn has_more(&self) -> bool {
        self.left.is_some_and(|(low, high)| low <= high)
    }

    /// Chooses the next pages, unless some of the last choice are not read yet.
    pub(crate) async fn choose(&mut self, history: &History, deadline: Deadline) -> Result<()> {
        let Some(tail) = history.tail() else { return Ok(()) };
        let Some((low, high)) = self.left.filter(|_| self.chosen.is_empty() && self.has_more()) else {
            return Ok(());
        };
        let last = tail.id(&history.owner).to_string();
        let number = move |page: &RawDocument| {
            page_of(page).ok_or_else(|| Corruption::new(&last, "page of one before it", NO_PAGE).into())
        };
        let of = history.source().of(&history.owner, deadline.or_within(COMMAND));
        let (shown, sort) =
            (doc! { "_id": 0, "page": 1 }, doc! { "page": if self.backwards { -1 } else { 1 } });
        let command = by_date(of, may_have(Some(self.dates), None), (low, high), shown, sort, self.choice);
        let pages = of.find(command, number).await?;
        let reached = pages.last().filter(|_| pages.len() == self.choice);
        self.left = reached.and_then(|reached| match self.backwards {
            true => reached.previous().map(|high| (low, high)),
            false => Some((reached.next(), high)),
        });
        self.choice = (self.choice * 4).min(MOST_CHOSEN);
        self.chosen = pages.into();
        Ok(())
    }

    /// Reads the next pages, at most `most`, that may hold items of these dates, in the direction of the
    /// scan; none at its end. Sends at most two commands. The same pages are read again until
    /// [`DateScan::pass`].
    pub(crate) async fn read(
        &mut self,
        history: &History,
        most: usize,
        deadline: Deadline,
    ) -> Result<Vec<Bucket>> {
        self.choose(history, deadline).await?;
        let pages: Vec<_> = self.chosen.iter().copied().take(most).collect();
        history.reader.read_full(&history.owner, &pages, history.tail(), deadline).await
    }

    /// Goes on behind these pages, which were read last.
    pub(crate) fn pass(&mut self, read: &[Bucket]) {
        self.chosen.drain(..read.len());
    }
}

/// The condition that a page may have items of these dates, and none after `latest`, in milliseconds since
/// 1970.
pub(crate) fn may_have(dates: Option<DateRange>, latest: Option<i64>) -> Document {
    let mut condition = Document::new();
    let mut last = Document::new();
    last.extend(dates.and_then(DateRange::from).map(|from| ("$gte".to_owned(), date(from).into())));
    last.extend(latest.map(|latest| ("$lte".to_owned(), DateTime::from_millis(latest).into())));
    if !last.is_empty() {
        condition.insert("last", last);
    }
    if let Some(to) = dates.and_then(DateRange::to) {
        condition.insert("first", doc! { "$lt": date(to) });
    }
    condition
}

/// The command that finds at most `most` of the full pages from `low` to `high` that meet a condition of
/// dates. A covered query: the index holds every field of a condition, and every one that is shown.
pub(crate) fn by_date(
    of: OfOwner<'_>,
    mut condition: Document,
    (low, high): (PageNumber, PageNumber),
    shown: Document,
    sort: Document,
    most: usize,
) -> Document {
    condition.extend(doc! { "count": of.source.page_size(), "page": { "$gte": low, "$lte": high } });
    let mut command = at_most(of.source.collection(), of.filter(condition), most, date_index(of));
    command.extend(doc! { "projection": shown, "sort": sort });
    command
}

/// The keys of the index of full pages by their dates, as a hint.
pub(crate) fn date_index(of: OfOwner<'_>) -> Document {
    doc! { of.source.owner_field(): 1, "count": 1, "last": 1, "first": 1, "page": 1 }
}
