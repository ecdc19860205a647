//! The items of a span of time.
//!
//! Items arrive out of order, so neither pages nor sequence numbers are in order of date. A bucket is chosen
//! by its `first` and `last`. A partial index covers this choice for full buckets, with the page number:
//! buckets outside the span are never read, and no more buckets than the window needs. `last >= from` bounds
//! the scan on one side only, so an early day of a long history examines many keys, but never many documents.
//! The tail is not in that index; it was read with the history.
//!
//! One query for both, with `$or` inside `customerId`, would not use the index.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{DateTime, Document, doc};

use super::bucket_id::BucketId;
use super::document::Bucket;
use super::reads::History;
use super::source::Source;
use super::tail::Tail;
use crate::domain::{Cursor, DateRange, OwnerId, PageNumber, Position, Seq};
use crate::store::{COMMAND, Corruption, Deadline, Error};

/// How many pages the first scan of the index chooses. Each further scan chooses four times as many, at most
/// [`MOST_CHOSEN`], because every scan examines all keys of the range again.
const FIRST_CHOICE: usize = 256;
pub(super) const MOST_CHOSEN: usize = 65_536;

/// The most buckets in one command.
const MOST_READ: usize = 256;

/// A scan of the full pages of one history for a span of time, in one direction.
#[derive(Debug)]
pub(super) struct DateScan {
    pub(super) owner: OwnerId,
    pub(super) dates: DateRange,
    /// Whether pages are scanned in descending order.
    pub(super) backwards: bool,
    /// The first and the last page that are still to be scanned.
    pub(super) left: Option<(PageNumber, PageNumber)>,
    /// How many pages the next scan chooses.
    pub(super) chosen: usize,
}

impl History {
    /// Up to `count` items of `dates`, those nearest to the cursor, in order of their addresses: each with the
    /// bucket that holds it.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub async fn dated(
        &self,
        dates: DateRange,
        cursor: Cursor,
        count: usize,
        deadline: Deadline,
    ) -> Result<Vec<(Bucket, Seq)>, Error> {
        let (Some(last), Some(tail)) = (self.last(), self.tail()) else { return Ok(Vec::new()) };
        let end = Position::end_of(self.totals());
        let (start, end) = match cursor {
            Cursor::After(position) => (position, end),
            Cursor::Before(position) => (Position::BEGINNING, position.min(end)),
            Cursor::End => (Position::BEGINNING, end),
        };
        let size = tail.page_size;
        let backwards = !matches!(cursor, Cursor::After(_));
        let shown = |bucket: &Bucket| {
            let items = bucket.items();
            let items = items.filter(|item| item.seq.within(start, end) && dates.contains(item.date()));
            let mut shown: Vec<_> = items.map(|item| (bucket.clone(), item.seq)).collect();
            if backwards {
                shown.reverse();
            }
            shown
        };
        // In the order of the scan.
        let mut found = Vec::new();
        if backwards {
            found.extend(shown(last));
        }
        let left = tail.page.previous().and_then(|full| {
            let (low, high) = (size.page_of(start.next_seq()?), size.page_of(end.last_seq()?).min(full));
            (low <= high).then_some((low, high))
        });
        let mut search = DateScan { owner: self.owner.clone(), dates, backwards, left, chosen: FIRST_CHOICE };
        // Doubled with each command: more than one command is needed if few items match the dates.
        let mut most = (count.div_ceil(size.get()) + 1).min(self.source().most_buckets());
        while found.len() < count && search.left.is_some() {
            let pages = search.choose(self.source(), tail, deadline).await?;
            let mut unread = pages.as_slice();
            while !unread.is_empty() && found.len() < count {
                let (now, later) = unread.split_at(unread.len().min(most));
                for bucket in self.read(now, tail, deadline).await? {
                    found.extend(shown(&bucket));
                }
                (unread, most) = (later, (most * 2).min(MOST_READ).min(self.source().most_buckets()));
            }
        }
        if !backwards && found.len() < count {
            found.extend(shown(last));
        }
        found.truncate(count);
        if backwards {
            found.reverse();
        }
        Ok(found)
    }

    /// Reads full pages, in the given order.
    pub(super) async fn read(
        &self,
        pages: &[PageNumber],
        tail: Tail,
        deadline: Deadline,
    ) -> Result<Vec<Bucket>, Error> {
        let (engine, pages, deadline) = (self.engine.clone(), pages.to_vec(), deadline.or_within(COMMAND));
        let owner = self.owner.clone();
        deadline.read(async move { engine.read_full(&owner, &pages, Some(tail), deadline).await }).await
    }
}

impl DateScan {
    /// The numbers of the next pages that may hold items of these dates, in the direction of the scan.
    pub(super) async fn choose(
        &mut self,
        source: &Source,
        tail: Tail,
        deadline: Deadline,
    ) -> Result<Vec<PageNumber>, Error> {
        let Some((low, high)) = self.left.take() else { return Ok(Vec::new()) };
        let (reads, deadline) = (source.reads.clone(), deadline.or_within(COMMAND));
        let command = self.command(source, low, high);
        let last = tail.id(&self.owner);
        let choice =
            async move { reads.find(None, &command, None, deadline, |page| number(page, &last)).await };
        let pages = deadline.read(choice).await?;
        if let Some(&reached) = pages.last().filter(|_| pages.len() == self.chosen) {
            self.left = match self.backwards {
                true => reached.previous().map(|high| (low, high)),
                false => Some((reached.next(), high)),
            };
            self.left = self.left.filter(|(low, high)| low <= high);
            self.chosen = (self.chosen * 4).min(MOST_CHOSEN);
        }
        Ok(pages)
    }

    fn command(&self, source: &Source, low: PageNumber, high: PageNumber) -> Document {
        let mut filter = source.owned_by(&self.owner);
        filter.insert("count", source.page_size().get() as i32);
        if let Some(from) = self.dates.from() {
            filter.insert("last", doc! { "$gte": DateTime::from_millis(from.millis()) });
        }
        if let Some(to) = self.dates.to() {
            filter.insert("first", doc! { "$lt": DateTime::from_millis(to.millis()) });
        }
        filter.insert("page", doc! { "$gte": low.get() as i64, "$lte": high.get() as i64 });
        doc! {
            "find": source.collection(),
            "filter": filter,
            // A covered query: the index holds every field.
            "projection": { "_id": 0, "page": 1 },
            "sort": { "page": if self.backwards { -1 } else { 1 } },
            "limit": self.chosen as i64,
            "batchSize": self.chosen as i64 + 1,
            "hint": { source.owner_field(): 1, "count": 1, "last": 1, "first": 1, "page": 1 },
        }
    }
}

fn number(page: &RawDocument, last: &BucketId) -> Result<PageNumber, Error> {
    let page = page.get_i64("page").ok().and_then(|page| PageNumber::new(page.try_into().ok()?).ok());
    page.ok_or_else(|| {
        Error::from(Corruption {
            id: last.to_string(),
            field: "page of one before it".to_owned(),
            detail: "is not a positive int64".to_owned(),
        })
    })
}
