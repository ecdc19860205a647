//! Compares tiles of summaries with their pages.
//!
//! A tile is a function of pages that never change: one that differs is damaged, whatever others do
//! meanwhile. Tiles that are missing are no finding, nor are those of other definitions, which housekeeping
//! deletes.
//!
//! The pages of kept tiles are deleted. What is left to check is that a kept tile can be read, and that it
//! counts as many items as its pages had. Those of other definitions are not checked.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};
use pagebucket_model::domain::OwnerId;

use super::finding::Mended;
use super::verifier::Verifier;
use crate::mongo::majority::at_most;
use crate::mongo::{COMMAND, Deadline, Error, Result};
use crate::projections::summaries::make::TileMaker;
use crate::projections::summaries::tile_id::{self, TileNumber, prefix, range};
use crate::projections::summaries::tiles::{COLLECTION, KEPT, delete};
use crate::store::buckets::marker;

/// The most tiles of a step. The pages of each are read.
const MOST: usize = 8;

/// A scan of the tiles of a history, or of one of its owners, and then of the kept ones, from one step to the
/// next.
#[derive(Debug, Default)]
pub struct TileScan {
    /// Whether the others were read.
    at_kept: bool,
    /// Only the tiles of this owner.
    owner: Option<OwnerId>,
    /// How many tiles were compared with their pages.
    pub compared: u64,
    /// Whether all were read.
    pub ended: bool,
    /// The `_id` of the last tile that was read.
    after: Option<String>,
}

/// A tile that is not what its pages add up to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileFinding {
    /// The collection.
    pub collection: &'static str,
    /// Its `_id`.
    pub id: String,
    /// What is wrong, as a sentence without its subject, the tile.
    pub what: &'static str,
    mend: TileMend,
}

/// How a tile is repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TileMend {
    /// It is made again.
    Again(OwnerId, TileNumber),
    Delete,
    /// Not at all: its pages are deleted.
    No,
}

impl TileScan {
    /// A scan of the tiles of an owner, or of all owners.
    pub fn of(owner: Option<OwnerId>) -> Self {
        Self { owner, ..Self::default() }
    }
}

impl Verifier {
    /// Reads the next tiles of a scan, and compares them with their pages.
    pub async fn scan_tiles(&self, scan: &mut TileScan, deadline: Deadline) -> Result<Vec<TileFinding>> {
        let Some(maker) = TileMaker::of(&self.reader) else {
            scan.ended = true;
            return Ok(Vec::new());
        };
        let collection = if scan.at_kept { KEPT } else { COLLECTION };
        let of_hash = Some((&*maker.tiles.hash, scan.owner.as_ref()));
        let prefix = prefix(self.reader.source.collection(), of_hash);
        let range = range(&prefix, scan.after.as_ref().unwrap_or(&prefix));
        let command = at_most(collection, range, MOST + 1, doc! { "_id": 1 });
        let whole = |tile: &RawDocument| Document::try_from(tile).map_err(Error::internal);
        let reads = &self.reader.source.reads;
        let found = reads.find(command, deadline.or_within(COMMAND), whole).await?;
        let is_last = found.len() <= MOST;
        let mut findings = Vec::new();
        for tile in found {
            let id = tile.get_str("_id").unwrap_or_default().to_owned();
            if scan.after.as_ref() != Some(&id) {
                let found = self.compare(&maker, collection, &tile, deadline).await?;
                findings.extend(found.map(|(what, mend)| TileFinding {
                    collection,
                    id: id.clone(),
                    what,
                    mend,
                }));
                scan.after = Some(id);
                scan.compared += u64::from(!scan.at_kept);
            }
        }
        if is_last {
            scan.ended = std::mem::replace(&mut scan.at_kept, true);
            scan.after = None;
        }
        Ok(findings)
    }

    /// What is wrong with a tile.
    async fn compare(
        &self,
        maker: &TileMaker,
        collection: &'static str,
        stored: &Document,
        deadline: Deadline,
    ) -> Result<Option<(&'static str, TileMend)>> {
        let id = stored.get_str("_id").unwrap_or_default();
        let Some((_, owner, tile)) = tile_id::parse(id, self.reader.definition()) else {
            return Ok(Some(("_id is not that of a tile", TileMend::Delete)));
        };
        let of = self.reader.source.of(&owner, deadline.or_within(COMMAND));
        let marker = match marker::find(of).await {
            // The marker is a finding by itself.
            Err(Error::Corrupt(_)) => return Ok(None),
            marker => marker?,
        };
        let is_kept = collection == KEPT;
        if let Some(marker) = marker.filter(|it| it.erased || !is_kept && tile.first_page() < it.first_page) {
            // Before that it is being deleted.
            return Ok(marker.swept.then_some(("is left, though pages of it are deleted", TileMend::Delete)));
        }
        if is_kept {
            let is_retired = marker.is_some_and(|marker| tile.last_page() < marker.first_page);
            // Before that it is not read, and is made again when its pages are retired.
            let is_damaged = is_retired && !maker.tiles.holds_all_items(stored, &self.reader.source);
            return Ok(is_damaged.then_some(("does not count the items that its pages had", TileMend::No)));
        }
        match maker.compute(of, tile).await {
            Ok(Some((made, _))) if made != *stored => {
                Ok(Some(("is not what its pages add up to", TileMend::Again(owner, tile))))
            }
            // Its pages are deleted meanwhile, or are findings by themselves.
            Ok(_) | Err(Error::Corrupt(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a tile again, or deletes it.
    pub async fn mend_tile(&self, finding: &TileFinding, deadline: Deadline) -> Result<Mended> {
        let maker = TileMaker::of(&self.reader);
        match (&finding.mend, maker) {
            (TileMend::Again(owner, tile), Some(maker)) => {
                Ok(match maker.make(owner, *tile, deadline).await? {
                    true => Mended::Set(doc! { "_id": &finding.id }),
                    false => Mended::Left("its pages are deleted meanwhile; run the command again"),
                })
            }
            (TileMend::Delete, _) => {
                delete(finding.collection, &self.reader.source, &finding.id, deadline).await?;
                Ok(Mended::Set(doc! {}))
            }
            (TileMend::Again(..) | TileMend::No, _) => {
                Ok(Mended::Left("its pages are deleted, and nothing else says what they added up to"))
            }
        }
    }
}
