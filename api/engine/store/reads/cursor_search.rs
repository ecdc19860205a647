//! Searches for items nearest to a cursor. What searches by date and by value have in common.

use super::reader::History;
use crate::store::buckets::document::{Bucket, StoredItem};
use crate::store::buckets::marker;
use pagebucket_model::domain::{Cursor, PageNumber, Position, Seq};

use crate::mongo::{Deadline, Result};

/// What a search found.
#[derive(Debug, Default)]
pub struct SearchResult {
    /// In order of their addresses, each with the bucket that holds it.
    pub items: Vec<(Bucket, Seq)>,
    /// The last item that was examined, in the direction of the search; `None` if the search came to the end
    /// of the history.
    pub reached: Option<Seq>,
    /// Number of full pages that were read.
    pub read: usize,
    /// Number of full pages that the server examined to find those.
    pub examined: usize,
}

impl SearchResult {
    /// The first `limit` of the items in the order of the search, which ended at `reached`.
    pub(crate) fn up_to(
        limit: usize,
        mut items: Vec<(Bucket, Seq)>,
        mut reached: Option<Seq>,
        backwards: bool,
    ) -> Self {
        if items.len() > limit {
            items.truncate(limit);
            reached = items.last().map(|(_, seq)| *seq);
        }
        if backwards {
            items.reverse();
        }
        Self { items, reached, ..Self::default() }
    }
}

/// Where a search of one history goes.
pub(crate) struct CursorSearch {
    start: Position,
    end: Position,
    /// Whether items are searched in descending order.
    pub(crate) backwards: bool,
    /// The first and the last of the full pages that may hold items; none if the first is after the last. The
    /// tail is not among them.
    pub(crate) full: Option<(PageNumber, PageNumber)>,
}

impl CursorSearch {
    /// The first page that matters to the answer, of items that were found in the order of the search.
    pub(crate) fn first_page(&self, limit: usize, found: &[(Bucket, Seq)]) -> Option<PageNumber> {
        let last = found.get(limit).filter(|_| self.backwards).map(|(bucket, _)| bucket.page());
        self.full.map(|(first, _)| last.unwrap_or(first))
    }

    /// The items of a bucket that are searched and that are `wanted`, in the order of the search.
    pub(crate) fn shown(
        &self,
        bucket: &Bucket,
        wanted: impl Fn(&StoredItem<'_>) -> bool,
    ) -> Vec<(Bucket, Seq)> {
        let items = bucket.items().filter(|item| item.seq.within(self.start, self.end) && wanted(item));
        let mut shown: Vec<_> = items.map(|item| (bucket.clone(), item.seq)).collect();
        if self.backwards {
            shown.reverse();
        }
        shown
    }
}

impl History {
    /// A search in the direction of a cursor.
    pub(crate) fn search(&self, cursor: Cursor) -> CursorSearch {
        let end = Position::end_of(self.totals());
        let (start, end) = match cursor {
            Cursor::After(position) => (position, end),
            Cursor::Before(position) => (Position::BEGINNING, position.min(end)),
            Cursor::End => (Position::BEGINNING, end),
        };
        // What is deleted is not searched.
        let (start, end) = (start.max(Position::before(self.first_seq())), end);
        let size = self.source().page_size();
        let full = self.tail().and_then(|tail| {
            let last = size.page_of(end.last_seq()?).min(tail.page.previous()?);
            Some((size.page_of(start.next_seq()?), last))
        });
        let full = full.filter(|(first, last)| first <= last);
        CursorSearch { start, end, backwards: !matches!(cursor, Cursor::After(_)), full }
    }

    /// Checks that no page from this one on is deleted: a search does not notice that a page is missing.
    ///
    /// # Errors
    /// The page is deleted, or the database does not answer in time.
    pub(crate) async fn still_has(&self, page: PageNumber, deadline: Deadline) -> Result<()> {
        let of = self.source().of(&self.owner, deadline);
        // The first page becomes a marker at once, while this process may not know that there are any. Later
        // ones are deleted when all know.
        if page == PageNumber::FIRST {
            marker::check(of, page).await
        } else {
            marker::check_if_any(of, page).await
        }
    }
}
