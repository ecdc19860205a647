//! Which tiles and pages a summary is read from ([`summaries`](super), "Reading").
//!
//! A tile is read instead of its pages if all of its pages count, and its groups say which items are wanted.
//! Other pages are found by their dates ([`dated_pages`](super::dated_pages)).

use std::collections::{BTreeSet, VecDeque};

use pagebucket_model::definition::Summaries;
use pagebucket_model::domain::{DateRange, Order, PageNumber, Seq};

use super::dated_pages::{DateSearch, ENOUGH_TILES, earliest, key, pages_by_number};
use super::known::KnownTiles;
use super::tile_id::TileNumber;
use super::tiles::{TilePlace, TileSet};
use crate::mongo::{COMMAND, Deadline, Result};
use crate::store::reads::date_scan::MOST_CHOSEN;
use crate::store::reads::matching::{FilterValues, MOST_EXAMINED};
use crate::store::reads::reader::History;

/// The most tiles that a request looks for: the first ones, and the last ones of those that are kept. Other
/// tiles are ignored.
const MOST_TILES: u64 = 200_000;

/// The most tiles whose dates are read from their pages: a command examines the keys of 3.2 million pages.
const MOST_DATED: u64 = 50_000;

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
pub(crate) struct UsableTiles {
    pub(crate) set: TileSet,
    /// The last page that counts as a whole.
    pub(crate) whole: PageNumber,
    /// Whether tiles without groups are not read.
    pub(crate) needs_groups: bool,
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
        (tiles, known): (Option<UsableTiles>, &KnownTiles),
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
        let (mut unread, mut missing) = (Vec::new(), Vec::new());
        let mut tiled = None;
        if let Some((UsableTiles { set, needs_groups, .. }, (begin, end))) = range {
            let end = end.min(begin.last_of(MOST_TILES));
            tiled = Some((begin, end));
            let mut next = begin;
            for place in known.places(&set, of, begin, end).await? {
                missing.extend(next.before(place.tile));
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
            missing.extend(next.before(end.next()));
            choice.lacks_tiles = !missing.is_empty();
            open.extend(&missing);
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
            // Where no tile can answer, the pages are bounded in the same way.
            let tiled = tiled.or_else(|| {
                let (begin, end) = TileNumber::within(first, last)?;
                missing.extend(begin.before(end.next()));
                Some((begin, end))
            });
            let is_bounded = order == Order::Ascending
                && self.date_missing(&missing, &mut unread, known, dates, deadline).await?;
            let found = match tiled.zip(earliest(unread).filter(|_| is_bounded)) {
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

    /// Adds the dates of missing tiles to those of unread ones, as far as they may have items of these dates.
    /// Returns whether all are known. They are read for a summary that begins with the history, as a walk
    /// does, whose next requests then know them.
    async fn date_missing(
        &self,
        missing: &[TileNumber],
        unread: &mut Vec<(i64, i64)>,
        known: &KnownTiles,
        dates: Option<DateRange>,
        deadline: Deadline,
    ) -> Result<bool> {
        let (Some(&begin), Some(&end)) = (missing.first(), missing.last()) else { return Ok(true) };
        if unread.len() + missing.len() < ENOUGH_TILES || begin.last_of(MOST_DATED) < end {
            return Ok(false);
        }
        let of = self.source().of(self.owner(), deadline.or_within(COMMAND));
        let is_walk = dates.and_then(DateRange::from).is_none();
        let mut places = known.dates(of, begin, end, is_walk).await?;
        places.retain(|place| missing.binary_search(&place.tile).is_ok());
        let is_all = places.len() == missing.len();
        unread
            .extend(places.iter().filter(|place| place.meets(dates)).map(|place| (place.first, place.last)));
        Ok(is_all)
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
