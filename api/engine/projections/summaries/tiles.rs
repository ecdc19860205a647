//! Tiles in the database: the collections `summary_tiles` and `kept_summaries`, clustered on `_id`.
//!
//! `{_id, customerId, first, last, grouped?, size, points?}`: `first` and `last` are the least and the
//! greatest date of the items, `points` what they add up to, and `size` its bytes. If that is hardly shorter
//! than the pages, `grouped` is false, and the points are those of no group: a question about groups reads
//! the pages. If it is still hardly shorter, the tile is a *stub*, without `points` and with the size 0: its
//! pages are always read.
//!
//! Whatever is deleted of `summary_tiles` is made again when it is needed. So nothing is deleted too much,
//! and what must go is deleted by ranges of `_id`. A *kept tile*, one of `kept_summaries`, has also
//! `firstPage`, and outlives its pages ([`kept`](super::kept)): only an erasure deletes it.

use std::collections::HashMap;
use std::sync::Arc;

use mongodb::bson::raw::{RawDocument, RawDocumentBuf};
use mongodb::bson::{Bson, DateTime, Document, doc};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{PageNumber, SeqRange};
use pagebucket_model::summary::{PartialSummary, SummaryShape, read_tile, tile_shape};

use super::tile_id::{self, TileNumber, after, prefix, range};
use crate::mongo::majority::at_most;
use crate::mongo::{COMMAND, Deadline, Result};
use crate::store::collection::{HistoryCollection, OfOwner};

/// Name of the collection of tiles whose pages are there.
pub(crate) const COLLECTION: &str = "summary_tiles";

/// Name of the collection of tiles whose pages are retired.
pub(crate) const KEPT: &str = "kept_summaries";

/// The most tiles that a command looks for.
const MOST_LOOKED_FOR: u64 = 20_000;

/// Tiles of one history have at most this many hashes: definitions that differ in their `summaries`.
const MOST_HASHES: usize = 1_000;

/// The tiles of the present definition of a history, of one of the two collections.
#[derive(Debug, Clone)]
pub(crate) struct TileSet {
    pub(crate) collection: &'static str,
    /// What the `_id`s of the tiles have in common.
    pub(crate) hash: String,
    /// By what they summarise.
    pub(crate) shape: Arc<SummaryShape>,
    /// By what those without groups summarise.
    pub(crate) ungrouped: Arc<SummaryShape>,
}

/// Where a tile stands, without what its items add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TilePlace {
    pub(crate) tile: TileNumber,
    /// The first of its pages that is in it. In a kept tile earlier ones may be missing, because they had
    /// been deleted before.
    pub(crate) first_page: PageNumber,
    /// The least date of its items, in milliseconds since 1970.
    pub(crate) first: i64,
    /// The greatest one.
    pub(crate) last: i64,
    /// Whether its points are of groups.
    pub(crate) grouped: bool,
    /// Bytes of its points; 0 for a stub.
    pub(crate) size: usize,
}

/// The points of a tile, as they are stored. In memory what they say is many times as long.
#[derive(Debug)]
pub(crate) struct StoredPoints {
    bytes: Vec<u8>,
    grouped: bool,
}

impl TileSet {
    /// `None` if the definition has no summaries.
    pub(crate) fn of(source: &HistoryCollection) -> Option<Self> {
        let summaries = source.definition.summaries.as_ref()?;
        let (hash, shape) = (tile_id::hash(&source.definition)?, tile_shape(summaries));
        let ungrouped = Arc::new(SummaryShape { groups: Vec::new(), ..(*shape).clone() });
        Some(Self { collection: COLLECTION, hash, shape, ungrouped })
    }

    /// The kept tiles of the same definition.
    pub(crate) fn kept(self) -> Self {
        Self { collection: KEPT, ..self }
    }

    /// What the `_id`s of the tiles of an owner begin with.
    pub(crate) fn prefix(&self, of: OfOwner<'_>) -> String {
        prefix(of.source.collection(), Some((&self.hash, Some(of.owner))))
    }

    /// Where the tiles from `first` to `last` stand, those that there are, in their order.
    pub(crate) async fn places(
        &self,
        of: OfOwner<'_>,
        first: TileNumber,
        last: TileNumber,
    ) -> Result<Vec<TilePlace>> {
        let (prefix, mut next, mut places) = (self.prefix(of), first, Vec::new());
        while next <= last {
            let end = last.min(next.last_of(MOST_LOOKED_FOR));
            let range = doc! { "$gte": tile_id::id(&prefix, next), "$lte": tile_id::id(&prefix, end) };
            let command = doc! {
                "find": self.collection,
                "filter": { "_id": range },
                "projection": { "firstPage": 1, "first": 1, "last": 1, "grouped": 1, "size": 1 },
                "sort": { "_id": 1 },
                "hint": { "_id": 1 },
                "batchSize": i32::MAX,
            };
            let definition = Arc::clone(&of.source.definition);
            // What is damaged is not there: it is made again.
            let place = move |tile: &RawDocument| Ok(TilePlace::read(tile, &definition));
            places.extend(of.find(command, place).await?.into_iter().flatten());
            next = end.next();
        }
        Ok(places)
    }

    /// The points of these tiles. Tiles that are not there any more are missing.
    pub(crate) async fn read(
        &self,
        of: OfOwner<'_>,
        tiles: &[TileNumber],
    ) -> Result<HashMap<TileNumber, StoredPoints>> {
        let prefix = self.prefix(of);
        let mut tiles = tiles.to_vec();
        tiles.sort_unstable();
        let mut points = HashMap::new();
        for near in tiles.chunk_by(|one, next| next.is_near(*one)) {
            let ids: Vec<_> = near.iter().map(|tile| tile_id::id(&prefix, *tile)).collect();
            let command =
                at_most(self.collection, doc! { "_id": any_of(ids) }, near.len(), doc! { "_id": 1 });
            let definition = Arc::clone(&of.source.definition);
            let read = move |document: &RawDocument| {
                let stored = || {
                    let (_, _, tile) = tile_id::parse(document.get_str("_id").ok()?, &definition)?;
                    let bytes = document.get_binary("points").ok()?.bytes.to_vec();
                    Some((tile, StoredPoints { bytes, grouped: has_groups(document) }))
                };
                Ok(stored())
            };
            points.extend(of.find(command, read).await?.into_iter().flatten());
        }
        Ok(points)
    }

    /// What the items of a tile add up to. `None` if it is damaged.
    pub(crate) fn add_up(
        &self,
        tile: TileNumber,
        stored: &StoredPoints,
        definition: &Definition,
    ) -> Option<PartialSummary> {
        let shape = if stored.grouped { &self.shape } else { &self.ungrouped };
        let summary = read_tile(&stored.bytes, shape, tile.first_seq(definition.page_size));
        if summary.is_none() {
            tracing::warn!(history = &*definition.name, %tile, "a tile is damaged");
        }
        summary
    }

    /// Whether a kept tile counts as many items as its pages had, or is a stub.
    pub(crate) fn holds_all_items(&self, stored: &Document, source: &HistoryCollection) -> bool {
        let definition = &source.definition;
        let holds = || {
            let document = RawDocumentBuf::try_from(stored).ok()?;
            let place = TilePlace::read(&document, definition)?;
            if place.size == 0 {
                return Some(!stored.contains_key("points"));
            }
            let (points, size) = (document.get_binary("points").ok()?.bytes, definition.page_size);
            let summary = read_tile(points, &self.shape, place.tile.first_seq(size))?;
            let seqs = SeqRange {
                first: size.first_seq(place.first_page),
                last: size.last_seq(place.tile.last_page()),
            };
            Some(points.len() == place.size && summary.is_of(seqs))
        };
        holds().unwrap_or(false)
    }
}

impl TilePlace {
    /// Reads a tile, or the part of it without `points`. `None` if it is damaged.
    pub(crate) fn read(tile: &RawDocument, definition: &Definition) -> Option<Self> {
        let (_, _, number) = tile_id::parse(tile.get_str("_id").ok()?, definition)?;
        let date = |field| tile.get_datetime(field).ok().map(DateTime::timestamp_millis);
        let size = usize::try_from(tile.get_i32("size").ok()?).ok()?;
        let first_page = match tile.get("firstPage").ok()? {
            None => number.first_page(),
            Some(page) => PageNumber::new(page.as_i64()?.try_into().ok()?).ok()?,
        };
        let is_inside = (number.first_page()..=number.last_page()).contains(&first_page);
        is_inside.then_some(Self {
            tile: number,
            first_page,
            first: date("first")?,
            last: date("last")?,
            grouped: has_groups(tile),
            size,
        })
    }
}

/// The condition that an `_id` is one of these, which are in their order and near each other. Of a clustered
/// collection all documents between the ends are examined; with `$in` alone mongod 6.0.5 examines all that
/// there are.
pub(crate) fn any_of(ids: Vec<String>) -> Document {
    let mut condition = Document::new();
    if let (Some(first), Some(last)) = (ids.first(), ids.last()) {
        condition.extend(doc! { "$gte": first, "$lte": last });
    }
    condition.insert("$in", ids);
    condition
}

/// Whether the points of a tile are of groups.
fn has_groups(tile: &RawDocument) -> bool {
    tile.get_bool("grouped").unwrap_or(true)
}

/// Deletes the tiles of an owner whose pages are there, those that have a page before `end`, of all
/// definitions.
pub(crate) async fn forget(of: OfOwner<'_>, end: PageNumber) -> Result<()> {
    forget_in(COLLECTION, of, end).await
}

/// Deletes the tiles of an erased owner that have a page before `end`, also kept ones.
pub(crate) async fn forget_erased(of: OfOwner<'_>, end: PageNumber) -> Result<()> {
    forget_in(COLLECTION, of, end).await?;
    forget_in(KEPT, of, end).await
}

async fn forget_in(collection: &'static str, of: OfOwner<'_>, end: PageNumber) -> Result<()> {
    let Some(last) = end.previous().map(TileNumber::of) else { return Ok(()) };
    for hash in hashes(collection, of.source, of.deadline).await? {
        let prefix = prefix(of.source.collection(), Some((&hash, Some(of.owner))));
        let range = doc! { "$gte": &prefix, "$lte": tile_id::id(&prefix, last) };
        delete(collection, of.source, range, of.deadline).await?;
    }
    Ok(())
}

/// Deletes tiles of a history that no definition of this instance has, a bounded number of them. Returns
/// whether it may have left some.
pub(crate) async fn forget_others(source: &HistoryCollection, deadline: Deadline) -> Result<bool> {
    const MOST: usize = 1_000;
    let present = tile_id::hash(&source.definition);
    let hashes = hashes(COLLECTION, source, deadline).await?;
    let others = hashes.into_iter().find(|hash| Some(hash) != present.as_ref());
    let Some(hash) = others else { return Ok(false) };
    let prefix = prefix(source.collection(), Some((&hash, None)));
    let found = ids(COLLECTION, source, range(&prefix, &prefix), MOST, deadline).await?;
    if let Some(last) = found.last() {
        delete(COLLECTION, source, doc! { "$gte": prefix, "$lte": last }, deadline).await?;
    }
    Ok(true)
}

/// Deletes all tiles of all histories whose pages are there, because the database was restored: they may be
/// of other pages.
pub(crate) async fn forget_all(database: &mongodb::Database) -> Result<()> {
    database.collection::<Document>(COLLECTION).delete_many(doc! {}).await?;
    Ok(())
}

/// The hashes that tiles of a history have. One seek finds each.
async fn hashes(
    collection: &'static str,
    source: &HistoryCollection,
    deadline: Deadline,
) -> Result<Vec<String>> {
    let all = prefix(source.collection(), None);
    let (mut hashes, mut from) = (Vec::new(), all.clone());
    while hashes.len() < MOST_HASHES {
        let Some(id) = ids(collection, source, range(&all, &from), 1, deadline).await?.pop() else { break };
        let Some(hash) = id.split('/').nth(1) else { break };
        from = after(&prefix(source.collection(), Some((hash, None))));
        hashes.push(hash.to_owned());
    }
    Ok(hashes)
}

/// The `_id`s of the first tiles of these, in their order.
pub(crate) async fn ids(
    collection: &'static str,
    source: &HistoryCollection,
    filter: Document,
    most: usize,
    deadline: Deadline,
) -> Result<Vec<String>> {
    let mut command = at_most(collection, filter, most, doc! { "_id": 1 });
    command.insert("projection", doc! { "_id": 1 });
    let id = |tile: &RawDocument| Ok(tile.get_str("_id").unwrap_or_default().to_owned());
    source.reads.find(command, deadline.or_within(COMMAND), id).await
}

/// Deletes the tiles whose `_id` meets a condition.
pub(crate) async fn delete(
    collection: &'static str,
    source: &HistoryCollection,
    ids: impl Into<Bson>,
    deadline: Deadline,
) -> Result<()> {
    source.delete(collection, [doc! { "_id": ids.into() }], deadline.or_within(COMMAND)).await
}
