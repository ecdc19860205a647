//! The items whose properties have given values, of all dates or of a span of time.
//!
//! No index has the values: it would take as many bytes as the items (`docs/explanation/reading.md`). A
//! search examines pages one after the other, at most [`MOST_EXAMINED`] of them, and says how far it came.
//! For a span of time these are only pages that may hold items of it: [`super::date_scan`] chooses them
//! from its index, so pages outside the span cost no examination.

use mongodb::bson::raw::RawBsonRef;
use mongodb::bson::{Document, doc};
use pagebucket_model::domain::{Cursor, DateRange, PageNumber};

use super::cursor_search::{CursorSearch, SearchResult};
use super::date_scan::DateScan;
use super::find::find;
use super::reader::History;
use crate::mongo::values::date;
use crate::mongo::{COMMAND, Deadline, Result};
use crate::store::buckets::document::{Bucket, StoredItem};
use crate::store::collection::OfOwner;

/// The most pages that a search examines. mongod 6.0.5 examined this many pages of trades in
/// 3 to 14 ms.
pub const MOST_EXAMINED: usize = 1_000;

/// The names of text properties, each with the values of which it must have one.
pub type FilterValues = [(String, Vec<String>)];

/// The full pages that one search examines, in its direction.
struct Candidates {
    pages: PagesToExamine,
    /// The page that is examined last.
    end: PageNumber,
    /// Whether pages after `end` are left for the next search.
    more: bool,
}

/// In the direction of the search.
enum PagesToExamine {
    /// All from the first to the last.
    Range(PageNumber, PageNumber),
    Chosen(Vec<PageNumber>),
}

impl History {
    /// Up to `limit` items with these values and of these dates, those nearest to the cursor.
    ///
    /// # Errors
    /// The database does not answer in time, pages that were searched are deleted, or a bucket is corrupt.
    pub async fn matching(
        &self,
        values: &FilterValues,
        dates: Option<DateRange>,
        cursor: Cursor,
        limit: usize,
        deadline: Deadline,
    ) -> Result<SearchResult> {
        let Some(tail) = self.last() else { return Ok(SearchResult::default()) };
        let search = self.search(cursor);
        let backwards = search.backwards;
        let shown = |bucket: &Bucket| search.shown(bucket, |item| is_wanted(item, values, dates));
        let mut found = Vec::new();
        if backwards {
            found.extend(shown(tail));
        }
        let (mut reached, mut read, mut examined) = (None, 0, 0);
        let candidates = match found.len() <= limit {
            true => self.candidates(&search, dates, deadline).await?,
            false => None,
        };
        if let Some(candidates) = candidates {
            let source = self.source();
            // Each bucket has an item that is wanted; that of the first one may be on the other side of the
            // cursor.
            let wanted = (limit + 2).min(source.most_buckets());
            let of = source.of(self.owner(), deadline.or_within(COMMAND));
            let condition = doc! { "history": { "$elemMatch": self.condition(values, dates) } };
            let buckets = find(of, candidates.command(of, condition, backwards, wanted), None).await?;
            read = buckets.len();
            let last = buckets.last().filter(|_| read == wanted).map(Bucket::page);
            let end = last.unwrap_or(candidates.end);
            examined = candidates.up_to(end);
            let size = source.page_size();
            reached = (candidates.more || end != candidates.end).then(|| match backwards {
                true => size.first_seq(end),
                false => size.last_seq(end),
            });
            found.extend(buckets.iter().flat_map(shown));
        }
        if !backwards && reached.is_none() {
            found.extend(shown(tail));
        }
        let reached_page = reached.filter(|_| backwards).map(|seq| self.source().page_size().page_of(seq));
        if let Some(first) = search.first_page(limit, &found).max(reached_page) {
            self.still_has(first, deadline).await?;
        }
        Ok(SearchResult { read, examined, ..SearchResult::up_to(limit, found, reached, backwards) })
    }

    /// The pages that a search examines; `None` if there are none.
    async fn candidates(
        &self,
        search: &CursorSearch,
        dates: Option<DateRange>,
        deadline: Deadline,
    ) -> Result<Option<Candidates>> {
        let Some((low, high)) = search.full else { return Ok(None) };
        let (backwards, most) = (search.backwards, MOST_EXAMINED.min(self.source().most_buckets()));
        let Some(dates) = dates else {
            let others = most as u64 - 1;
            let nearest = |page: u64| PageNumber::new(page).ok();
            let (first, last, end) = match backwards {
                true => (high, low.max(nearest(high.get().saturating_sub(others)).unwrap_or(low)), low),
                false => (low, high.min(nearest(low.get() + others).unwrap_or(high)), high),
            };
            let pages = PagesToExamine::Range(first, last);
            return Ok(Some(Candidates { pages, end: last, more: last != end }));
        };
        let mut scan = DateScan::new(dates, backwards, search.full, most);
        scan.choose(self, deadline).await?;
        let more = scan.has_more();
        let end = scan.chosen.back().copied();
        Ok(end.map(|end| Candidates { pages: PagesToExamine::Chosen(scan.chosen.into()), end, more }))
    }

    /// What an item must be that is wanted, as a condition of the database.
    fn condition(&self, values: &FilterValues, dates: Option<DateRange>) -> Document {
        let mut condition: Document =
            values.iter().map(|(name, any)| (name.clone(), doc! { "$in": any }.into())).collect();
        let bounds = dates.map(|dates| [("$gte", dates.from()), ("$lt", dates.to())]);
        let bounds: Document = bounds
            .into_iter()
            .flatten()
            .filter_map(|(operator, bound)| Some((operator.to_owned(), date(bound?).into())))
            .collect();
        if !bounds.is_empty() {
            condition.insert(self.definition().date.name.clone(), bounds);
        }
        condition
    }
}

impl Candidates {
    /// The command that finds at most `most` of the pages for which `condition` holds, in the direction of
    /// the search.
    fn command(&self, of: OfOwner<'_>, mut condition: Document, backwards: bool, most: usize) -> Document {
        let pages = match &self.pages {
            PagesToExamine::Range(first, last) => {
                doc! { "$gte": first.min(last), "$lte": first.max(last) }
            }
            PagesToExamine::Chosen(pages) => {
                doc! { "$in": pages.to_vec() }
            }
        };
        condition.insert("page", pages);
        let mut command = of.at_most(condition, most);
        command.insert("sort", doc! { "page": if backwards { -1 } else { 1 } });
        command
    }

    /// How many of them there are up to `end`, which is one of them.
    fn up_to(&self, end: PageNumber) -> usize {
        match &self.pages {
            PagesToExamine::Range(first, _) => first.get().abs_diff(end.get()) as usize + 1,
            PagesToExamine::Chosen(pages) => pages.iter().take_while(|page| **page != end).count() + 1,
        }
    }
}

/// Whether an item has one of the values of each property, and one of the dates.
pub(crate) fn is_wanted(item: &StoredItem<'_>, values: &FilterValues, dates: Option<DateRange>) -> bool {
    let text = |name: &str| item.document().get(name).ok().flatten().and_then(RawBsonRef::as_str);
    values.iter().all(|(name, any)| text(name).is_some_and(|text| any.iter().any(|value| value == text)))
        && dates.is_none_or(|dates| dates.contains(item.date()))
}
