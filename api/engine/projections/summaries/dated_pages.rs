//! Finds the pages that may have items of a span of time, in the order of their dates, for
//! [`choice`](super::choice): by the index over dates, or by their numbers if they are few.
//!
//! The index examines the keys of all pages whose last date is not before the span of time, as
//! [`date_scan`](crate::store::reads::date_scan) does, unless tiles say how late the pages can be that a
//! request reads.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{DateTime, Document, doc};
use pagebucket_model::domain::{DateRange, Order, PageNumber};

use super::tile_id::{PAGES, TileNumber};
use super::tiles::TilePlace;
use crate::mongo::values::instant;
use crate::mongo::{Corruption, Result};
use crate::store::collection::{NO_PAGE, OfOwner, page_of};
use crate::store::reads::date_scan::{by_date, may_have};
use crate::store::reads::matching::MOST_EXAMINED;

/// The number of tiles that have twice as many pages as a request reads.
pub(super) const ENOUGH_TILES: usize = 2 * MOST_EXAMINED.div_ceil(PAGES as usize);

/// Among which pages those are that a request reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DateBound {
    /// Enough pages have no item after this date.
    until: i64,
    /// No page with an item of that date or before has one after this.
    last: i64,
}

/// The bound that tiles of these least and greatest dates set; `None` if they are few.
pub(super) fn earliest(mut tiles: Vec<(i64, i64)>) -> Option<DateBound> {
    tiles.sort_unstable();
    let last = |tiles: &[(i64, i64)]| tiles.iter().map(|(_, last)| *last).max();
    let until = last(tiles.get(..ENOUGH_TILES)?)?;
    let near = tiles.partition_point(|(first, _)| *first <= until);
    Some(DateBound { until, last: last(&tiles[..near])? })
}

/// The keys and numbers of pages that a search has found, and the least key that others may have, if there
/// may be others.
pub(super) type FoundPages = (Vec<(i64, PageNumber)>, Option<i64>);

/// A search for pages that may have items of these dates, in the order of their keys.
#[derive(Clone, Copy)]
pub(super) struct DateSearch<'a> {
    pub(super) of: OfOwner<'a>,
    pub(super) dates: Option<DateRange>,
    pub(super) order: Order,
    pub(super) pages: (PageNumber, PageNumber),
    /// How many it finds.
    pub(super) most: usize,
}

impl DateSearch<'_> {
    /// Finds pages, of those without an item after `latest` if it is given.
    pub(super) async fn pages(self, latest: Option<i64>) -> Result<FoundPages> {
        let Self { of, dates, order, pages, most } = self;
        let sort = match order {
            Order::Ascending => doc! { "first": 1, "page": 1 },
            // The index backwards.
            Order::Descending => doc! { "last": -1, "first": -1, "page": -1 },
        };
        let command = by_date(of, may_have(dates, latest), pages, shown(), sort, most);
        let found = of.find(command, place(of, order)).await?;
        let horizon = horizon(&found, most);
        Ok((found, horizon))
    }

    /// Finds the first pages within a bound that the tiles set. The pages from `first` to `last` that are in
    /// no tile, at either end, are found by their numbers. `None` if these are more than a request reads, or
    /// if fewer are found.
    pub(super) async fn first_pages(
        self,
        (first, last): (PageNumber, PageNumber),
        (begin, end): (TileNumber, TileNumber),
        bound: DateBound,
        is_other: impl Fn(PageNumber) -> bool,
    ) -> Result<Option<FoundPages>> {
        let (before, after) = (begin.first_page(), end.last_page());
        let at_begin = before.previous().into_iter().flat_map(|end| first.up_to(end));
        let ends: Vec<_> = at_begin.chain(after.next().up_to(last)).take(MOST_EXAMINED + 1).collect();
        if ends.len() > MOST_EXAMINED {
            return Ok(None);
        }
        let (mut found, horizon) = self.pages(Some(bound.last)).await?;
        let is_tiled = |page: PageNumber| (before..=after).contains(&page) && is_other(page);
        found.retain(|(first, page)| *first <= bound.until && is_tiled(*page));
        if found.len() <= MOST_EXAMINED {
            return Ok(None);
        }
        found.extend(pages_by_number(self.of, self.dates, self.order, &ends).await?);
        // Of later pages not all are found.
        let horizon = horizon.unwrap_or(i64::MAX).min(bound.until + 1);
        Ok(Some((found, Some(horizon))))
    }
}

/// No key that a search for at most `most` has left out is less than this. `None` if it has found all.
fn horizon(found: &[(i64, PageNumber)], most: usize) -> Option<i64> {
    found.last().filter(|_| found.len() >= most).map(|(key, _)| *key)
}

/// The same of these pages, which are few.
pub(super) async fn pages_by_number(
    of: OfOwner<'_>,
    dates: Option<DateRange>,
    order: Order,
    pages: &[PageNumber],
) -> Result<Vec<(i64, PageNumber)>> {
    let mut condition = may_have(dates, None);
    condition.insert("page", doc! { "$in": pages.to_vec() });
    let mut command = of.at_most(condition, pages.len());
    command.insert("projection", shown());
    of.find(command, place(of, order)).await
}

/// The dates of the pages of these tiles, in their order, as those of stubs: by the keys of all full pages of
/// the owner, or by the documents of these. A tile that lacks a full page has none.
pub(super) async fn tile_dates(
    of: OfOwner<'_>,
    (first, last): (TileNumber, TileNumber),
    index: Document,
) -> Result<Vec<TilePlace>> {
    let pages = doc! { "$gte": first.first_page(), "$lte": last.last_page() };
    let place = doc! { "$subtract": ["$page", 1_i64] };
    let group = doc! {
        "_id": { "$subtract": [&place, { "$mod": [&place, PAGES as i64] }] },
        "first": { "$min": "$first" }, "last": { "$max": "$last" }, "pages": { "$sum": 1 },
    };
    let command = doc! {
        "aggregate": of.source.collection(),
        "pipeline": [
            { "$match": of.filter(doc! { "count": of.source.page_size(), "page": pages }) },
            { "$group": group },
            { "$sort": { "_id": 1 } },
        ],
        "hint": index,
        "cursor": { "batchSize": i32::MAX },
    };
    let place = |found: &RawDocument| {
        let date = |field| found.get_datetime(field).ok().map(DateTime::timestamp_millis);
        let place = || {
            let page = PageNumber::new(u64::try_from(found.get_i64("_id").ok()?).ok()? + 1).ok()?;
            Some(TilePlace {
                tile: TileNumber::of(page),
                first_page: page,
                first: date("first")?,
                last: date("last")?,
                grouped: false,
                size: 0,
            })
        };
        Ok(place().filter(|_| found.get_i32("pages").is_ok_and(|pages| pages as u64 == PAGES)))
    };
    Ok(of.find(command, place).await?.into_iter().flatten().collect())
}

/// What [`place`] reads.
fn shown() -> Document {
    doc! { "_id": 0, "page": 1, "first": 1, "last": 1 }
}

fn place(
    of: OfOwner<'_>,
    order: Order,
) -> impl Fn(&RawDocument) -> Result<(i64, PageNumber)> + Send + Sync + 'static {
    let id = format!("{}_", of.owner);
    move |found| {
        let corrupt =
            |field: &str, detail| Corruption::new(&*id, format!("{field} of one of the pages"), detail);
        let page = page_of(found).ok_or_else(|| corrupt("page", NO_PAGE))?;
        let date = |field: &str| {
            let date = found.get_datetime(field).ok().and_then(instant);
            date.ok_or_else(|| corrupt(field, "is not a date of the years 0000 to 9999"))
        };
        Ok((key(date("first")?.millis(), date("last")?.millis(), order), page))
    }
}

/// By what stretches are ordered, from their least and their greatest date: in descending order time is
/// mirrored.
pub(super) fn key(first: i64, last: i64, order: Order) -> i64 {
    match order {
        Order::Ascending => first,
        Order::Descending => -last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_say_how_late_the_first_pages_are() {
        let day = |day: i64| (10 * day, 10 * day + 9);
        let many = ENOUGH_TILES as i64;
        let bound = |tiles: Vec<(i64, i64)>| earliest(tiles).map(|DateBound { until, last }| (until, last));
        assert_eq!(bound((1..many).map(day).collect()), None, "too few");
        let last = 10 * many + 9;
        assert_eq!(bound((1..=3 * many).rev().map(day).collect()), Some((last, last)));
        // One that begins among them ends later.
        let tiles = (1..=3 * many).map(day).chain([(last, last + 500)]).collect();
        assert_eq!(bound(tiles), Some((last, last + 500)));
        // One of the first ends late: others that begin before its end end later.
        let tiles = (1..=3 * many).map(day).chain([(5, last + 15)]).collect();
        assert_eq!(bound(tiles), Some((last + 15, last + 20)));
    }

    /// Others may have the key of the last page that is found, or a greater one.
    #[test]
    fn a_search_that_fills_its_bound_has_a_horizon() {
        let found = [(3, PageNumber::FIRST), (5, PageNumber::FIRST.next())];
        assert_eq!([1, 2, 3].map(|most| horizon(&found, most)), [Some(5), Some(5), None]);
        assert_eq!(horizon(&[], 1), None);
        assert_eq!([Order::Ascending, Order::Descending].map(|order| key(3, 7, order)), [3, -7]);
    }
}
