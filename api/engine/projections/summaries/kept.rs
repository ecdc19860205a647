//! Kept tiles: what retired pages add up to, so that the days of a history outlive its pages
//! (`--keep-summaries`).
//!
//! Nothing can make a kept tile again. So kept tiles have a collection of their own, because all that may be
//! done to other tiles would lose them: deleting those of other definitions, of retired pages, or all. Kept
//! tiles of another definition stay, and are read when their definition is back. Only an erasure deletes
//! them, and a restore (`--renew-epoch`) deletes those of pages that are not retired, because these pages may
//! become others.

use pagebucket_model::domain::PageNumber;

use super::make::TileMaker;
use super::tile_id::{self, TileNumber, prefix, range};
use super::tiles::{KEPT, any_of, delete, ids};
use crate::mongo::{COMMAND, Deadline, Result};
use crate::store::buckets::marker;
use crate::store::collection::{HistoryCollection, OfOwner};

impl TileMaker {
    /// Keeps what the pages from `first` on add up to, as far as whole tiles of them end before `end`, until
    /// the time is up. Returns the first page that is in none of these tiles, if it is later than `first`.
    pub(crate) async fn keep_before(
        &self,
        of: OfOwner<'_>,
        first: PageNumber,
        end: PageNumber,
        until: Deadline,
    ) -> Result<Option<PageNumber>> {
        let mut next = first;
        while TileNumber::of(next).last_page() < end && !until.passed() {
            let tile = TileNumber::of(next);
            if !self.keep(of, tile, next).await? {
                return Ok(None);
            }
            next = tile.last_page().next();
        }
        Ok(Some(next).filter(|next| *next > first))
    }
}

/// Whether a history has kept tiles, of any owner and definition.
pub(crate) async fn has_kept_tiles(source: &HistoryCollection, deadline: Deadline) -> Result<bool> {
    let all = prefix(source.collection(), None);
    Ok(!ids(KEPT, source, range(&all, &all), 1, deadline).await?.is_empty())
}

/// Deletes the kept tiles of a history whose pages are not all retired, because the database was restored:
/// its pages may become others. Also those of erased owners.
pub(crate) async fn forget_unretired(source: &HistoryCollection) -> Result<()> {
    const MOST: usize = 1_000;
    let all = prefix(source.collection(), None);
    let mut from = all.clone();
    loop {
        let deadline = Deadline::within(COMMAND);
        let found = ids(KEPT, source, range(&all, &from), MOST, deadline).await?;
        let mut others = Vec::new();
        for id in &found {
            let is_retired = match tile_id::parse(id, &source.definition) {
                Some((_, owner, tile)) => {
                    let marker = marker::find(source.of(&owner, deadline)).await?;
                    marker.is_some_and(|marker| !marker.erased && tile.last_page() < marker.first_page)
                }
                None => false,
            };
            others.extend((!is_retired).then(|| id.clone()));
        }
        delete(KEPT, source, any_of(others), deadline).await?;
        match found.last().filter(|_| found.len() == MOST) {
            Some(last) => from.clone_from(last),
            None => return Ok(()),
        }
    }
}
