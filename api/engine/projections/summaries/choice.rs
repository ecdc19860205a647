//! Which tiles and pages a summary is read from ([`summaries`](super), "Reading").
//!
//! A tile is read instead of its pages if all of its pages count, and its groups say which items are wanted.
//! The index over dates examines the keys of all pages whose last date is not before the span of time, as
//! [`date_scan`](crate::store::reads::date_scan) does, unless tiles say how late the pages can be that a
//! request reads.

use std::collections::{BTreeSet, VecDeque};

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};
use pagebucket_model::definition::Summaries;
use pagebucket_model::domain::{DateRange, Order, PageNumber, Seq};

use super::known::KnownTiles;
use super::tile_id::{PAGES, TileNumber};
use super::tiles::{TilePlace, TileSet};
use crate::mongo::values::instant;
use crate::mongo::{COMMAND, Corruption, Deadline, Result};
use crate::store::collection::{NO_PAGE, OfOwner, page_of};
use crate::store::reads::date_scan::{MOST_CHOSEN, by_date, may_have};
use crate::store::reads::matching::{FilterValues, MOST_EXAMINED};
use crate::store::reads::reader::History;

/// The most tiles that a request looks for: the first ones, and the last ones of those that are kept. Other
/// tiles are ignored.
const MOST_TILES: u64 = 200_000;

/// The number of tiles that have twice as many pages as a request reads.
const ENOUGH_TILES: usize = 2 * MOST_EXAMINED.div_ceil(PAGES as usize);

/// What is read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stretch {
    Page(PageNumber),
    /// A tile, and its bytes.
    Tile(TileNumber, usize),
    /// A kept tile, and its bytes.
    Kept(TileNumber, usize),
}

/// Tiles that can say which items are wanted.
pub(crate) struct UsableTiles<'a> {
    pub(crate) set: TileSet,
    /// The last page that counts as a whole.
    pub(crate) whole: PageNumber,
    /// Whether tiles without groups are not read.
    pub(crate) needs_groups: bool,
    pub(crate) known: &'a KnownTiles,
}

/// What a summary is read from.
#[derive(Debug, Default)]
pub(crate) struct ChosenStretches {
    /// The key of each stretch, in the order of these keys: its least date, or if the newest are asked for,
    /// its greatest one, negated.
    pub(crate) stretches: VecDeque<(i64, Stretch)>,
    /// No stretch that is left out has a lesser key.
    pub(crate) horizon: Option<i64>,
    /// Whether a tile is missing that could have been read.
    pub(crate) lacks_tiles: bool,
    /// The first item whose page, or whose kept tile, is there, and so are those of all items after it.
    pub(crate) first_seq: Option<Seq>,
}

impl History {
    /// Chooses what has the full pages up to `last`, as far as they may have items of these dates.
    pub(crate) async fn choose(
        &self,
        dates: Option<DateRange>,
        last: PageNumber,
        tiles: Option<UsableTiles<'_>>,
        order: Order,
        deadline: Deadline,
    ) -> Result<ChosenStretches> {
        let first = self.first_page();
        let of = self.source().of(self.owner(), deadline.or_within(COMMAND));
        let range =
            tiles.and_then(|tiles| TileNumber::within(first, tiles.whole).map(|range| (tiles, range)));
        let mut choice = ChosenStretches::default();
        // Tiles whose pages are read: they are missing, or do not have the answer.
        let mut open = BTreeSet::new();
        // The least and the greatest date of tiles that are not read.
        let mut unread = Vec::new();
        let mut tiled = None;
        if let Some((UsableTiles { set, needs_groups, known, .. }, (begin, end))) = range {
            let end = end.min(begin.last_of(MOST_TILES));
            tiled = Some((begin, end));
            let mut next = begin;
            for place in known.places(&set, of, begin, end).await? {
                open.extend(next.before(place.tile));
                next = place.tile.next();
                if !place.meets(dates) {
                    continue;
                }
                if place.size == 0 || !place.grouped && needs_groups {
                    unread.push((place.first, place.last));
                    open.insert(place.tile);
                } else {
                    choice.stretches.push_back((place.key(order), Stretch::Tile(place.tile, place.size)));
                }
            }
            open.extend(next.before(end.next()));
            choice.lacks_tiles = open.len() > unread.len();
            choice.shorten();
        }
        let is_open = |page: PageNumber| {
            let tile = TileNumber::of(page);
            tiled.is_none_or(|(begin, end)| tile < begin || tile > end) || open.contains(&tile)
        };
        let runs = runs((first, last), tiled, &open);
        let (Some((low, _)), Some((_, high))) = (runs.first(), runs.last()) else {
            choice.order();
            return Ok(choice);
        };
        let left: u64 = runs.iter().map(|(first, last)| last.get() - first.get() + 1).sum();
        let all = last.get() - first.get() + 1;
        let chosen = if left < all && left <= MOST_EXAMINED as u64 {
            let pages: Vec<_> = runs.iter().flat_map(|(first, last)| first.up_to(*last)).collect();
            pages_by_number(of, dates, order, &pages).await?
        } else {
            // The command also finds pages that tiles cover. They are left out below.
            let others = high.get() - low.get() + 1 - left;
            let most = usize::try_from(others).unwrap_or(MOST_CHOSEN).saturating_add(MOST_EXAMINED + 1);
            let most = most.min(MOST_CHOSEN);
            let search = DateSearch { of, dates, order, pages: (*low, *high), most };
            let is_bounded = order == Order::Ascending && !choice.lacks_tiles;
            let bound = earliest(unread).filter(|_| is_bounded);
            let found = match tiled.zip(bound) {
                Some((tiled, bound)) => search.first_pages((first, last), tiled, bound, is_open).await?,
                None => None,
            };
            let (chosen, horizon) = match found {
                Some(found) => found,
                None => search.pages(None).await?,
            };
            choice.end_before(horizon);
            chosen
        };
        let others = chosen.into_iter().filter(|(_, page)| is_open(*page));
        choice.stretches.extend(others.map(|(first, page)| (first, Stretch::Page(page))));
        choice.order();
        Ok(choice)
    }

    /// Adds the kept tiles of the retired pages, as far as they may have items of these dates.
    pub(crate) async fn choose_kept(
        &self,
        kept: &TileSet,
        dates: Option<DateRange>,
        order: Order,
        choice: &mut ChosenStretches,
        deadline: Deadline,
    ) -> Result<()> {
        let Some(end) = self.first_page().previous() else { return Ok(()) };
        let of = self.source().of(self.owner(), deadline.or_within(COMMAND));
        let last = TileNumber::of(end);
        let mut places = kept.places(of, last.first_of(MOST_TILES), last).await?;
        // The pages of others are still there, or are not full.
        places.retain(|place| place.size > 0 && place.tile.last_page() <= end);
        let mut next = self.first_page();
        for place in places.iter().rev() {
            if place.tile.last_page().next() != next {
                break;
            }
            next = place.first_page;
        }
        choice.first_seq = Some(self.source().page_size().first_seq(next));
        let meets = places.iter().filter(|place| place.meets(dates));
        let stretches = meets.map(|place| (place.key(order), Stretch::Kept(place.tile, place.size)));
        choice.stretches.extend(stretches);
        choice.shorten();
        choice.order();
        Ok(())
    }
}

/// The pages before the tiles, those of open tiles, and those after the tiles, in their order: the first and
/// the last of each run.
fn runs(
    (first, last): (PageNumber, PageNumber),
    tiles: Option<(TileNumber, TileNumber)>,
    open: &BTreeSet<TileNumber>,
) -> Vec<(PageNumber, PageNumber)> {
    let Some((begin, end)) = tiles else { return vec![(first, last)] };
    let mut runs: Vec<_> = begin.first_page().previous().map(|end| (first, end)).into_iter().collect();
    let pages = open.iter().map(|tile| (tile.first_page(), tile.last_page()));
    for (low, high) in pages.chain([(end.last_page().next(), last)]) {
        match runs.last_mut() {
            Some((_, end)) if end.next() == low => *end = high,
            _ => runs.push((low, high)),
        }
    }
    runs.retain(|(first, last)| first <= last);
    runs
}

/// Among which pages those are that a request reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DateBound {
    /// Enough pages have no item after this date.
    until: i64,
    /// No page with an item of that date or before has one after this.
    last: i64,
}

/// The bound that tiles of these least and greatest dates set; `None` if they are few.
fn earliest(mut tiles: Vec<(i64, i64)>) -> Option<DateBound> {
    tiles.sort_unstable();
    let last = |tiles: &[(i64, i64)]| tiles.iter().map(|(_, last)| *last).max();
    let until = last(tiles.get(..ENOUGH_TILES)?)?;
    let near = tiles.partition_point(|(first, _)| *first <= until);
    Some(DateBound { until, last: last(&tiles[..near])? })
}

/// The keys and numbers of pages that a search has found, and the least key that others may have, if there
/// may be others.
type FoundPages = (Vec<(i64, PageNumber)>, Option<i64>);

/// A search for pages that may have items of these dates, in the order of their keys.
#[derive(Clone, Copy)]
struct DateSearch<'a> {
    of: OfOwner<'a>,
    dates: Option<DateRange>,
    order: Order,
    pages: (PageNumber, PageNumber),
    /// How many it finds.
    most: usize,
}

impl DateSearch<'_> {
    /// Finds pages, of those without an item after `latest` if it is given.
    async fn pages(self, latest: Option<i64>) -> Result<FoundPages> {
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
    async fn first_pages(
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
async fn pages_by_number(
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
fn key(first: i64, last: i64, order: Order) -> i64 {
    match order {
        Order::Ascending => first,
        Order::Descending => -last,
    }
}

impl ChosenStretches {
    /// Leaves out what has no lesser key than this.
    fn end_before(&mut self, horizon: Option<i64>) {
        self.horizon = self.horizon.into_iter().chain(horizon).min();
    }

    /// Leaves out what a request cannot read.
    fn shorten(&mut self) {
        self.stretches.make_contiguous().sort_unstable();
        self.end_before(self.stretches.get(MOST_EXAMINED).map(|(first, _)| *first));
        self.stretches.truncate(MOST_EXAMINED);
    }

    /// Sorts the stretches, and drops those that come after the horizon or may be as late.
    fn order(&mut self) {
        let horizon = self.horizon.unwrap_or(i64::MAX);
        self.stretches.retain(|(first, _)| *first < horizon);
        self.stretches.make_contiguous().sort_unstable();
    }
}

impl TilePlace {
    fn key(&self, order: Order) -> i64 {
        key(self.first, self.last, order)
    }

    fn meets(&self, dates: Option<DateRange>) -> bool {
        let [from, to] = [dates.and_then(DateRange::from), dates.and_then(DateRange::to)];
        from.is_none_or(|from| from.millis() <= self.last) && to.is_none_or(|to| self.first < to.millis())
    }
}

/// Whether the groups of tiles say which items have these values.
pub(crate) fn are_groups(filters: &FilterValues, summaries: &Summaries) -> bool {
    filters.iter().all(|(name, values)| {
        // A longer text is in the group of the items without one.
        summaries.groups.contains(name) && values.iter().all(|value| value.len() <= Summaries::MAX_GROUP)
    })
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

    /// Whatever is left out, the horizon says where the next request goes on.
    #[test]
    fn what_a_request_cannot_read_is_left_to_the_next_one() {
        let mut choice = ChosenStretches::default();
        let tile = |date: i64| (date, Stretch::Tile(TileNumber::of(PageNumber::FIRST), 1));
        for part in 1..=3 {
            choice.stretches.extend((0..600).rev().map(|place| tile(3 * place + part)));
            choice.shorten();
        }
        let dates = |choice: &ChosenStretches| choice.stretches.iter().map(|(first, _)| *first).collect();
        let all: Vec<i64> = dates(&choice);
        assert_eq!((all, choice.horizon), ((1..=1_000).collect(), Some(1_001)));
        // Another command has found the pages before this date.
        choice.stretches.extend([tile(7), tile(501)]);
        choice.end_before(Some(500));
        choice.order();
        let left: Vec<i64> = dates(&choice);
        assert_eq!((left.len(), left[6..8].to_vec(), left.last()), (500, vec![7, 7], Some(&499)));
        assert_eq!(choice.horizon, Some(500));
    }
}
