//! The items whose properties have given values.
//!
//! No index has the values: it would take as many bytes as the items (`docs/reading.md`). A search examines pages one after
//! the other, at most [`MOST_EXAMINED`] of them, and says how far it came.

use mongodb::bson::raw::RawBsonRef;
use mongodb::bson::{Document, doc};
use pagebucket_model::domain::{Cursor, PageNumber};

use super::find::find;
use super::reader::History;
use super::search::Found;
use crate::history::buckets::document::{Bucket, Stored};
use crate::history::collection::OfOwner;
use crate::mongo::{COMMAND, Deadline, Result};

/// The most pages that a search examines. The server examines so many pages of trades in 3 to 14 ms
/// (`docs/architecture.md`).
pub const MOST_EXAMINED: usize = 1_000;

/// The names of text properties, each with the value that it must have.
pub type Values = [(String, String)];

impl History {
    /// Up to `limit` items with these values, those nearest to the cursor.
    ///
    /// # Errors
    /// The database does not answer in time, pages that were searched are deleted, or a bucket is corrupt.
    pub async fn matching(
        &self,
        values: &Values,
        cursor: Cursor,
        limit: usize,
        deadline: Deadline,
    ) -> Result<Found> {
        let Some(tail) = self.last() else { return Ok(Found::default()) };
        let search = self.search(cursor);
        let shown = |bucket: &Bucket| search.shown(bucket, |item| has(item, values));
        let mut found = Vec::new();
        if search.backwards {
            found.extend(shown(tail));
        }
        let (mut reached, mut read, mut examined) = (None, 0, 0);
        if let Some((low, high)) = search.full.filter(|_| found.len() <= limit) {
            let source = self.source();
            let most = MOST_EXAMINED.min(source.most_buckets()) as u64 - 1;
            let (from, to) = match search.backwards {
                true => (low.max(PageNumber::new(high.get().saturating_sub(most)).unwrap_or(low)), high),
                false => (low, high.min(PageNumber::new(low.get() + most).unwrap_or(high))),
            };
            // Each bucket has an item with the values; that of the first one may be on the other side of the cursor.
            let wanted = (limit + 2).min(source.most_buckets());
            let of = source.of(self.owner(), deadline.or_within(COMMAND));
            let command = search_command(of, values, (from, to), search.backwards, wanted);
            let buckets = find(of, command, None).await?;
            let last = buckets.last().filter(|_| buckets.len() == wanted).map(Bucket::page);
            read = buckets.len();
            let end = last.unwrap_or(if search.backwards { from } else { to }).get();
            examined = (if search.backwards { high.get() - end } else { end - low.get() }) as usize + 1;
            let size = source.page_size();
            reached = match search.backwards {
                true => {
                    Some(last.unwrap_or(from)).filter(|page| *page > low).map(|page| size.first_seq(page))
                }
                false => last.or((to < high).then_some(to)).map(|page| size.last_seq(page)),
            };
            found.extend(buckets.iter().flat_map(shown));
        }
        if !search.backwards && reached.is_none() {
            found.extend(shown(tail));
        }
        let reached_page =
            reached.filter(|_| search.backwards).map(|seq| self.source().page_size().page_of(seq));
        if let Some(first) = search.first_page(limit, &found).max(reached_page) {
            self.still_has(first, deadline).await?;
        }
        Ok(Found { read, examined, ..Found::up_to(limit, found, reached, search.backwards) })
    }
}

/// The command that finds at most `most` pages that have an item with the values.
fn search_command(
    of: OfOwner<'_>,
    values: &Values,
    (from, to): (PageNumber, PageNumber),
    backwards: bool,
    most: usize,
) -> Document {
    let values: Document = values.iter().map(|(name, value)| (name.clone(), value.into())).collect();
    let condition = doc! {
        "page": { "$gte": from.get() as i64, "$lte": to.get() as i64 },
        "history": { "$elemMatch": values },
    };
    let mut command = of.at_most(condition, most);
    command.insert("sort", doc! { "page": if backwards { -1 } else { 1 } });
    command
}

fn has(item: &Stored<'_>, values: &Values) -> bool {
    let given = |name: &str| item.document().get(name).ok().flatten();
    values.iter().all(|(name, value)| given(name) == Some(RawBsonRef::String(value)))
}
