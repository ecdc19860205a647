//! A summary of a history, computed from its tiles and pages.
//!
//! Items arrive out of order, so a page may have items of several spans of time, and a span items on many
//! pages. Tiles and pages are read in the order of their least dates: if that of the next one is F, none that
//! is left has an item before F, and all spans that end by F are complete. So the work of a request can end
//! after any of them, and the next request goes on with the first span that is not complete.
//!
//! From the newest span on, time is mirrored: they are read in the order of their greatest dates, and all
//! spans that begin after that of the next one are complete.
//!
//! A request reads at most [`MOST_EXAMINED`] tiles and pages ([`choice`](super::choice)). What each adds up
//! to is merged, whatever their order.

use std::sync::Arc;

use pagebucket_model::definition::{Measure, SummaryValue};
use pagebucket_model::domain::{DateRange, Instant, Order, Seq};
use pagebucket_model::metric::TILES;
use pagebucket_model::summary::{
    Fill, GroupKey, PartialSummary, PointBounds, PointPage, Quantity, SpanLength, SummaryPoint, SummaryShape,
    TimeSpan, TooManyPoints, page_of_points,
};

use super::choice::{ChosenStretches, Stretch, UsableTiles, are_groups};
use super::known::KnownTiles;
use super::makers::TiledSummaries;
use super::tile_id::{self, PAGES};
use super::tiles::{StoredPoints, TileSet};
use crate::mongo::{COMMAND, Corruption, Deadline, Error, Result};
use crate::store::buckets::document::{Bucket, StoredItem};
use crate::store::reads::matching::{MOST_EXAMINED, is_wanted};
use crate::store::reads::reader::History;

/// The most tiles and pages that are read at once.
const BATCH: usize = 100;

/// Bytes of items and tiles that a request reads, and one more batch.
const MOST_BYTES: usize = 64 << 20;

/// Bytes of tiles that are read at once, and one more tile.
const MOST_TILE_BYTES: usize = 1 << 20;

/// Values of points that a request holds in memory, and those of one more batch of pages or one more tile: of
/// texts that are all different each item is a point, and each point has all values of the definition.
const MOST_HELD: usize = 50_000;

/// How many points are looked at at once for the last values before an empty span: the last one has mostly
/// all of them.
const SOUGHT_AT_ONCE: usize = 10;

/// What a summary is asked for.
#[derive(Debug, Clone)]
pub struct SummaryQuery {
    /// By what items are summarised.
    pub shape: Arc<SummaryShape>,
    /// Where the first span begins and the last one ends, in milliseconds since 1970.
    pub ends: [Option<i64>; 2],
    /// What items must have.
    pub filters: Vec<(String, Vec<String>)>,
    /// The last item of the moment that is asked for; `None` is now.
    pub as_of: Option<Seq>,
    /// Whether spans without items have points. [`Fill::Previous`] is of spans without groups.
    pub fill: Fill,
    /// Which spans come first.
    pub order: Order,
    /// The most points.
    pub limit: usize,
}

/// A summary whose tiles and pages are chosen and not read yet.
#[derive(Debug)]
pub struct SummaryScan {
    history: History,
    query: SummaryQuery,
    tiles: Option<TileSet>,
    known: Arc<KnownTiles>,
    choice: ChosenStretches,
}

/// A summary.
#[derive(Debug)]
pub struct SummaryPage {
    /// Its points.
    pub page: PointPage,
    /// How many tiles and full pages were read.
    pub read: usize,
    /// Whether a tile is missing that would be read instead of its pages.
    pub lacks_tiles: bool,
}

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    /// A request cannot read all pages that may have items of the first span of time.
    #[error("one span of time may have items on too many pages")]
    TooManyPages {
        /// How many tiles and full pages were read.
        read: usize,
        /// Whether tiles are missing, with which it may be fewer.
        lacks_tiles: bool,
    },
    /// The first span of time alone has more groups than an answer may have points. How many tiles and full
    /// pages were read.
    #[error("one span of time has too many groups")]
    TooManyGroups(usize),
    /// The database does not answer in time, pages are deleted, or a bucket is corrupt.
    #[error(transparent)]
    Store(#[from] Error),
}

impl TiledSummaries {
    /// Chooses the tiles and pages of a summary of a history.
    pub async fn of(self, history: History, query: SummaryQuery, deadline: Deadline) -> Result<SummaryScan> {
        history.summary(query, &self.known, deadline).await
    }
}

impl History {
    async fn summary(
        self,
        query: SummaryQuery,
        known: &Arc<KnownTiles>,
        deadline: Deadline,
    ) -> Result<SummaryScan> {
        let last = query.as_of.or(self.totals().last_seq());
        let size = self.source().page_size();
        let before_tail = self.tail().and_then(|tail| tail.page.previous());
        let full = last.and_then(|last| Some(size.page_of(last).min(before_tail?)));
        let is_empty = query.ends[0].is_some() && query.ends[0] == query.ends[1];
        let summaries = self.definition().summaries.as_ref();
        let can_say = summaries.is_some_and(|summaries| are_groups(&query.filters, summaries))
            && query.shape.spans.length >= SpanLength::Quarter;
        let tiles = TileSet::of(self.source()).filter(|_| can_say);
        let mut choice = match full.filter(|full| !is_empty && self.first_page() <= *full) {
            Some(full) => {
                // Of a page that has later items, some count.
                let whole = last
                    .and_then(|last| if size.last_seq(full) <= last { Some(full) } else { full.previous() });
                let needs_groups = query.needs_groups();
                let usable =
                    tiles.clone().zip(whole).map(|(set, whole)| UsableTiles { set, whole, needs_groups });
                self.choose(query.dates(), full, (usable, known), query.order, deadline).await?
            }
            None => ChosenStretches::default(),
        };
        // For a moment among retired pages, kept tiles cannot tell earlier items from later ones.
        if let Some(kept) = tiles.clone().filter(|_| !is_empty && last >= Some(self.first_seq())) {
            self.choose_kept(&kept.kept(), query.dates(), query.order, &mut choice, deadline).await?;
        }
        Ok(SummaryScan { history: self, query, tiles, known: Arc::clone(known), choice })
    }
}

impl SummaryQuery {
    /// Whether what no group has cannot answer it.
    fn needs_groups(&self) -> bool {
        !self.shape.groups.is_empty() || !self.filters.is_empty()
    }

    /// Where the span of a key ([`ChosenStretches::stretches`]) begins, or ends if the order is descending.
    fn begin_of(&self, key: i64) -> i64 {
        match self.order {
            Order::Ascending => self.shape.spans.at(key).start,
            Order::Descending => self.shape.spans.at(-key).end,
        }
    }

    /// The dates that items must have; `None` for all.
    fn dates(&self) -> Option<DateRange> {
        // An end outside the years of dates excludes none.
        let [from, to] = self.ends.map(|end| Instant::from_millis(end?).ok());
        DateRange::new(from, to).ok().filter(|_| from.is_some() || to.is_some())
    }
}

impl SummaryScan {
    /// How many tiles and pages may have to be read.
    pub fn stretches(&self) -> usize {
        let spans = &self.query.shape.spans;
        let date = |key: i64| if self.query.order == Order::Ascending { key } else { -key };
        let most = |(key, stretch): &(i64, Stretch)| match stretch {
            // It may not be able to say what is in a span that begins inside a quarter of an hour.
            Stretch::Tile(..) if !spans.are_of_quarters(date(*key)) => PAGES as usize,
            _ => 1,
        };
        self.choice.stretches.iter().map(most).sum::<usize>().min(MOST_EXAMINED)
    }

    /// The first item that is summarised, as all items after it are. Earlier ones are retired, and their
    /// tiles were not kept, or not all of them.
    pub fn first_seq(&self) -> Seq {
        self.choice.first_seq.unwrap_or(self.history.first_seq())
    }

    /// Whether a tile is known to be missing that would be read instead of its pages.
    pub fn lacks_tiles(&self) -> bool {
        self.choice.lacks_tiles
    }

    /// Reads the tiles and pages, as many as are needed.
    pub async fn read(self, deadline: Deadline) -> Result<SummaryPage, SummaryError> {
        let before = (self.query.fill == Fill::Previous)
            .then(|| (self.history.clone(), self.query.clone(), Arc::clone(&self.known)));
        let mut page = self.read_points(deadline).await?;
        if let Some((history, query, known)) = before {
            page.carry(&history, &query, &known, deadline).await?;
        }
        Ok(page)
    }

    async fn read_points(self, deadline: Deadline) -> Result<SummaryPage, SummaryError> {
        let is_ascending = self.query.order == Order::Ascending;
        let begin = self.choice.stretches.front().map(|(key, _)| *key).or(self.choice.horizon);
        let asked = self.query.ends[usize::from(!is_ascending)];
        let begin = asked.or(begin.map(|key| self.query.begin_of(key)));
        let mut reading = SummaryReading::new(self);
        let until = reading.go_on(deadline).await?;
        let SummaryReading { scan: SummaryScan { history, query, choice, .. }, summary, read, .. } = reading;
        // A search does not notice that a page is missing.
        history.still_has(history.first_page(), deadline).await?;
        let page = page_of_points(
            &summary,
            PointBounds { ends: query.ends, until },
            query.fill,
            query.order,
            query.limit,
        );
        let page = page.map_err(|TooManyPoints(_)| SummaryError::TooManyGroups(read))?;
        let lacks_tiles = choice.lacks_tiles;
        let is_behind = until
            .zip(begin)
            .is_some_and(|(until, begin)| if is_ascending { until <= begin } else { begin <= until });
        if page.points.is_empty() && is_behind {
            let mut spans = summary.spans();
            let first = if is_ascending { spans.next() } else { spans.last() };
            return Err(if first.is_some_and(|(_, groups)| groups.len() > query.limit) {
                SummaryError::TooManyGroups(read)
            } else {
                SummaryError::TooManyPages { read, lacks_tiles }
            });
        }
        Ok(SummaryPage { page, read, lacks_tiles })
    }
}

impl SummaryPage {
    /// Gives spans without items the last values before them. Those before the first span are looked for as
    /// far as a request reads.
    async fn carry(
        &mut self,
        history: &History,
        query: &SummaryQuery,
        known: &Arc<KnownTiles>,
        deadline: Deadline,
    ) -> Result<(), SummaryError> {
        let values = &query.shape.values;
        let is_missing = |(value, last): (&SummaryValue, &Option<Quantity>)| {
            last.is_none() && value.measures.contains(&Measure::Ohlc)
        };
        let (mut last, mut sought) = (vec![None; values.len()], 0);
        self.page.carry(query.order, last.clone());
        let lacks = |point: &SummaryPoint| values.iter().zip(&point.previous).any(is_missing);
        let is_needed = self.page.points.iter().any(lacks);
        let first = self.page.points.iter().map(|point| point.span.start).min();
        let mut until = first.filter(|_| is_needed);
        while let Some(end) = until {
            let before = SummaryQuery {
                ends: [None, Some(end)],
                fill: Fill::None,
                order: Order::Descending,
                limit: SOUGHT_AT_ONCE,
                ..query.clone()
            };
            let scan = history.clone().summary(before, known, deadline).await?;
            let (page, read, lacks_tiles) = match scan.read_points(deadline).await {
                Ok(SummaryPage { page, read, lacks_tiles }) => (Some(page), read, lacks_tiles),
                Err(SummaryError::TooManyPages { read, lacks_tiles }) => (None, read, lacks_tiles),
                Err(error) => return Err(error),
            };
            sought += read;
            self.lacks_tiles |= lacks_tiles;
            for earlier in
                page.iter().flat_map(|page| &page.points).filter_map(|point| point.aggregate.as_ref())
            {
                let earlier = earlier.last_numbers(&[]);
                last.iter_mut().zip(earlier).for_each(|(last, earlier)| *last = last.or(earlier));
            }
            let goes_on = values.iter().zip(&last).any(is_missing) && sought < MOST_EXAMINED;
            until = page.and_then(|page| page.next).filter(|_| goes_on);
        }
        self.read += sought;
        self.page.carry(query.order, last);
        Ok(())
    }
}

/// A summary of what is read so far.
struct SummaryReading {
    scan: SummaryScan,
    summary: PartialSummary,
    /// How many tiles and pages were read.
    read: usize,
    /// Their bytes.
    bytes: usize,
    /// How many points are complete: those of the spans up to `counted`.
    complete: usize,
    counted: Option<i64>,
}

impl SummaryReading {
    fn new(scan: SummaryScan) -> Self {
        let summary = PartialSummary::new(Arc::clone(&scan.query.shape));
        let mut reading = Self { scan, summary, read: 0, bytes: 0, complete: 0, counted: None };
        let tail = reading.scan.history.last().cloned();
        reading.add_pages(tail.as_slice());
        reading
    }

    /// Reads until a bound is reached. Returns where the first span begins that may have items which are not
    /// read, or in descending order where it ends; `None` if all are.
    async fn go_on(&mut self, deadline: Deadline) -> Result<Option<i64>> {
        while let Some((key, _)) = self.scan.choice.stretches.front() {
            let reached = self.scan.query.begin_of(*key);
            // Later stretches add nothing to these spans.
            self.complete += match self.scan.query.order {
                Order::Ascending => self.summary.points_between(self.counted.unwrap_or(i64::MIN), reached),
                Order::Descending => self.summary.points_between(reached, self.counted.unwrap_or(i64::MAX)),
            };
            self.counted = Some(reached);
            let is_spent = self.read >= MOST_EXAMINED
                || self.bytes >= MOST_BYTES
                || self.holds_enough()
                || self.complete > self.scan.query.limit;
            if is_spent {
                return Ok(Some(reached));
            }
            self.read_batch(deadline).await?;
        }
        Ok(self.scan.choice.horizon.map(|horizon| self.scan.query.begin_of(horizon)))
    }

    fn holds_enough(&self) -> bool {
        self.summary.points() >= MOST_HELD / self.summary.shape().values.len().max(1)
    }

    async fn read_batch(&mut self, deadline: Deadline) -> Result<()> {
        let SummaryScan { history, choice, .. } = &mut self.scan;
        let most = BATCH.min(history.source().most_buckets()).min(MOST_EXAMINED - self.read);
        let (mut pages, mut tiles, mut count, mut bytes) = (Vec::new(), Vec::new(), 0, 0);
        while count < most && bytes < MOST_TILE_BYTES {
            let Some((first, stretch)) = choice.stretches.pop_front() else { break };
            count += 1;
            bytes += match stretch {
                Stretch::Page(page) => {
                    pages.push(page);
                    0
                }
                Stretch::Tile(_, size) | Stretch::Kept(_, size) => {
                    tiles.push((first, stretch));
                    size
                }
            };
        }
        pages.sort_unstable();
        let buckets = history.reader.read_full(history.owner(), &pages, history.tail(), deadline).await?;
        self.bytes += bytes + buckets.iter().map(Bucket::bytes).sum::<usize>();
        self.read += count;
        self.add_pages(&buckets);
        self.read_tiles(tiles, deadline).await
    }

    fn add_pages(&mut self, buckets: &[Bucket]) {
        let query = &self.scan.query;
        let dates = query.dates();
        let is_wanted = |item: &StoredItem<'_>| {
            query.as_of.is_none_or(|last| item.seq <= last) && is_wanted(item, &query.filters, dates)
        };
        for item in buckets.iter().flat_map(Bucket::items).filter(is_wanted) {
            self.summary.add(item.seq, item.date(), item.document());
        }
    }

    /// Adds what tiles add up to. The pages of tiles without an answer are read next, and so are the tiles
    /// that exceed the memory.
    async fn read_tiles(&mut self, tiles: Vec<(i64, Stretch)>, deadline: Deadline) -> Result<()> {
        let Some(set) = self.scan.tiles.clone() else { return Ok(()) };
        let SummaryScan { history, query, .. } = &self.scan;
        let of = history.source().of(history.owner(), deadline.or_within(COMMAND));
        let (mut numbers, mut kept) = (Vec::new(), Vec::new());
        for (_, stretch) in &tiles {
            match stretch {
                Stretch::Tile(tile, _) => numbers.push(*tile),
                Stretch::Kept(tile, _) => kept.push(*tile),
                Stretch::Page(_) => {}
            }
        }
        let mut found = set.read(of, &numbers).await?;
        let mut found_kept = set.clone().kept().read(of, &kept).await?;
        metrics::counter!(TILES, "result" => "read").increment((found.len() + found_kept.len()) as u64);
        let [from, to] = query.ends;
        let place = |name: &String| set.shape.groups.iter().position(|group| group == name);
        let filters: Vec<_> =
            query.filters.iter().filter_map(|(name, values)| Some((place(name)?, values.clone()))).collect();
        let chosen = |span: TimeSpan, group: &GroupKey| {
            let is_wanted = |(place, values): &(usize, Vec<String>)| {
                group[*place].as_ref().is_some_and(|text| values.contains(text))
            };
            from.is_none_or(|from| from <= span.start)
                && to.is_none_or(|to| span.end <= to)
                && filters.iter().all(is_wanted)
        };
        let (mut next, mut lacks_tiles) = (Vec::new(), false);
        for (first, stretch) in tiles {
            if self.holds_enough() {
                next.push((first, stretch));
                continue;
            }
            let SummaryScan { history, query, .. } = &self.scan;
            let add_up =
                |tile, stored: Option<StoredPoints>| set.add_up(tile, &stored?, history.definition());
            // A span of time may begin inside a quarter of an hour: in 1890 offsets had seconds.
            let fits = |summary: &PartialSummary| summary.fits_into(&query.shape.spans, query.ends);
            match stretch {
                Stretch::Page(_) => {}
                Stretch::Kept(tile, _) => {
                    let Some(summary) = add_up(tile, found_kept.remove(&tile)) else {
                        history.still_has(history.first_page(), deadline).await?;
                        let of = history.source().of(history.owner(), deadline);
                        let id = tile_id::id(&set.prefix(of), tile);
                        return Err(Corruption::new(id, "points", "is not that of a kept tile").into());
                    };
                    if !fits(&summary) {
                        return Err(history.retired().into());
                    }
                    self.summary.merge_finer(summary, chosen);
                }
                Stretch::Tile(tile, _) => {
                    // It may have been made again, without groups, since it was chosen.
                    let has_groups = |summary: &PartialSummary| {
                        !query.needs_groups() || summary.shape().groups == set.shape.groups
                    };
                    let stored = found.remove(&tile);
                    lacks_tiles |= stored.is_none();
                    let summary = add_up(tile, stored);
                    match summary.filter(|summary| fits(summary) && has_groups(summary)) {
                        Some(summary) => self.summary.merge_finer(summary, chosen),
                        None => {
                            next.extend(tile.pages().into_iter().map(|page| (first, Stretch::Page(page))));
                        }
                    }
                }
            }
        }
        if lacks_tiles {
            self.scan.choice.lacks_tiles = true;
            self.scan.known.forget(self.scan.history.owner());
        }
        // These tiles are not read yet.
        self.read -= next.iter().filter(|(_, stretch)| !matches!(stretch, Stretch::Page(_))).count();
        next.into_iter().rev().for_each(|stretch| self.scan.choice.stretches.push_front(stretch));
        Ok(())
    }
}
