//! Making a tile from its pages.
//!
//! A maker may be stopped after it has read the pages, and go on when their owner is erased. So the insert
//! has the fence of statements that open pages ([`fence`](crate::store::collection::fence)), with the same
//! `maxTimeMS`:
//!
//! ```text
//! {$cond: [{$lt: ["$$CLUSTER_TIME", deadline]}, {$literal: tile}, {$toInt: "$_id"}]}
//! ```
//!
//! Late, the command fails, because no `_id` of a tile is a number. The deadline is
//! [`Ages::tail`](crate::capacity::Ages::tail) after a time that the database had shown before the owner's
//! markers were read. The last sweep of an erasure comes later, and deletes what came before.

use std::sync::Arc;

use mongodb::bson::{Document, doc};
use pagebucket_model::domain::{Instant, OwnerId, PageNumber};
use pagebucket_model::metric::TILES;
use pagebucket_model::summary::{PartialSummary, write_tile};

use super::tile_id::{self, TileNumber};
use super::tiles::{COLLECTION, KEPT, TileSet};
use crate::mongo::values::{binary, date};
use crate::mongo::{COMMAND, Deadline, Error, Result};
use crate::store::buckets::document::Bucket;
use crate::store::buckets::marker;
use crate::store::collection::fence::ReadTime;
use crate::store::collection::{OfOwner, owner_bson};
use crate::store::reads::reader::HistoryReader;

const MOST_BYTES: usize = 1 << 20;

/// The most bytes of a kept tile: a document has at most 16 MiB.
const MOST_KEPT_BYTES: usize = 8 << 20;

/// How many times shorter a tile must be than its pages.
const SHORTER: usize = 8;

/// Makes tiles of one history.
#[derive(Debug, Clone)]
pub(crate) struct TileMaker {
    pub(crate) reader: HistoryReader,
    pub(crate) tiles: TileSet,
}

/// What pages of a tile add up to.
struct AddedPages {
    summary: PartialSummary,
    /// Bytes of the pages.
    bytes: usize,
    dates: [Instant; 2],
    read: ReadTime,
}

impl TileMaker {
    /// `None` if the definition has no summaries.
    pub(crate) fn of(reader: &HistoryReader) -> Option<Self> {
        Some(Self { reader: reader.clone(), tiles: TileSet::of(&reader.source)? })
    }

    /// Makes a tile and stores it. Its pages must be full. Returns whether they are there: they may be
    /// deleted.
    pub(crate) async fn make(&self, owner: &OwnerId, tile: TileNumber, deadline: Deadline) -> Result<bool> {
        let of = self.reader.source.of(owner, deadline.or_within(COMMAND));
        let Some((document, read)) = self.compute(of, tile).await? else { return Ok(false) };
        let result = if document.contains_key("points") { "made" } else { "stub" };
        store(of, COLLECTION, document, read).await?;
        metrics::counter!(TILES, "result" => result).increment(1);
        Ok(true)
    }

    /// Makes the kept tile of pages that are about to be retired, those of a tile from `first` on, and stores
    /// it. They must be full. Returns whether they are there: the owner may be erased.
    pub(crate) async fn keep(&self, of: OfOwner<'_>, tile: TileNumber, first: PageNumber) -> Result<bool> {
        let Some(added) = self.add_up(of, tile, first).await? else { return Ok(false) };
        let read = added.read;
        let mut document = self.tile(KEPT, of, tile, added, MOST_KEPT_BYTES);
        if !document.contains_key("points") {
            let (history, owner) = (of.source.collection(), of.owner);
            tracing::warn!(history, %owner, %tile, "pages are retired whose summary is too long to be kept");
        }
        document.insert("firstPage", first);
        store(of, KEPT, document, read).await?;
        metrics::counter!(TILES, "result" => "kept").increment(1);
        Ok(true)
    }

    /// Reads the pages of a tile and adds them up. Returns the tile, and a time before that read. `None` if
    /// one of the pages is deleted.
    pub(crate) async fn compute(
        &self,
        of: OfOwner<'_>,
        tile: TileNumber,
    ) -> Result<Option<(Document, ReadTime)>> {
        let Some(added) = self.add_up(of, tile, tile.first_page()).await? else { return Ok(None) };
        let (most, read) = (MOST_BYTES.min(added.bytes / SHORTER), added.read);
        Ok(Some((self.tile(COLLECTION, of, tile, added, most), read)))
    }

    /// The document of a tile of less than `most` bytes. With more it is one without groups; if that has more
    /// as well, or is a kept tile, a stub.
    fn tile(
        &self,
        collection: &'static str,
        of: OfOwner<'_>,
        tile: TileNumber,
        added: AddedPages,
        most: usize,
    ) -> Document {
        let AddedPages { summary, dates: [first, last], .. } = added;
        let mut document = doc! {
            "_id": tile_id::id(&self.tiles.prefix(of), tile),
            of.source.owner_field(): owner_bson(of.owner),
            "first": date(first),
            "last": date(last),
        };
        let bytes = |summary: &PartialSummary| {
            Some(write_tile(summary, tile.first_seq(of.source.page_size())))
                .filter(|points| points.len() < most)
        };
        let mut points = bytes(&summary);
        if points.is_none() && collection == COLLECTION && !self.tiles.shape.groups.is_empty() {
            let mut ungrouped = PartialSummary::new(Arc::clone(&self.tiles.ungrouped));
            ungrouped.merge_finer(summary, |_, _| true);
            points = bytes(&ungrouped);
            if points.is_some() {
                document.insert("grouped", false);
            }
        }
        document.insert("size", points.as_ref().map_or(0, |points| points.len() as i32));
        if let Some(points) = points {
            document.insert("points", binary(points));
        }
        document
    }

    /// Adds up the pages of a tile from `begin` on. `None` if one of them is deleted.
    async fn add_up(
        &self,
        of: OfOwner<'_>,
        tile: TileNumber,
        begin: PageNumber,
    ) -> Result<Option<AddedPages>> {
        let source = of.source;
        // Before the markers are read: one that the read does not show is written later.
        let read = source.read_time(of.deadline).await?;
        if marker::find(of).await?.is_some_and(|marker| marker.lacks(begin)) {
            return Ok(None);
        }
        let mut summary = PartialSummary::new(self.tiles.shape.clone());
        let (mut bytes, mut dates) = (0, None);
        let pages: Vec<_> = begin.up_to(tile.last_page()).collect();
        for pages in pages.chunks(source.most_buckets()) {
            let buckets = match self.reader.read_full(of.owner, pages, None, of.deadline).await {
                Err(Error::Gone(_)) => return Ok(None),
                buckets => buckets?,
            };
            bytes += buckets.iter().map(Bucket::bytes).sum::<usize>();
            for item in buckets.iter().flat_map(Bucket::items) {
                summary.add(item.seq, item.date(), item.document());
                let (first, last) = dates.unwrap_or((item.date(), item.date()));
                dates = Some((first.min(item.date()), last.max(item.date())));
            }
        }
        let Some((first, last)) = dates else { return Ok(None) };
        Ok(Some(AddedPages { summary, bytes, dates: [first, last], read }))
    }
}

/// Stores a tile of pages that were read at `read`, in the place of one that is there.
async fn store(of: OfOwner<'_>, collection: &'static str, document: Document, read: ReadTime) -> Result<()> {
    let this = doc! { "_id": document.get("_id") };
    // Late, the command fails: an `_id` is no number. That needs no validator, and no other document in
    // its place.
    let late = doc! { "$toInt": "$_id" };
    let tile = doc! { "$cond": [of.source.fence_after(read).is_open(), { "$literal": document }, late] };
    let update = doc! { "q": this, "u": [{ "$replaceWith": tile }], "upsert": true, "hint": { "_id": 1 } };
    of.source.update_in_time(collection, update, of.deadline).await
}
