//! Where tiles stand, in memory: so that a summary of a short span reads the tiles of that span, and not the
//! dates of all tiles. Before there are tiles, their dates are known all the same
//! ([`KnownTiles::dates`]), so that a walk examines the keys of all pages once, and not in each request.
//!
//! The dates of a tile are those of pages that never change, and page numbers are never used again. So what
//! is known stays true also of a tile that is deleted: a request that does not find it reads its pages and
//! [forgets](KnownTiles::forget) it. As all that an instance knows of full pages, it lasts until the restart
//! that follows a restore.

use hashlink::LruCache;
use pagebucket_model::domain::OwnerId;
use parking_lot::Mutex;

use super::dated_pages::{ENOUGH_TILES, tile_dates};
use super::tile_id::TileNumber;
use super::tiles::{TilePlace, TileSet};
use crate::mongo::Result;
use crate::store::collection::OfOwner;
use crate::store::reads::date_scan::date_index;

/// The most tiles that are remembered, of all owners, at 48 bytes each; and as many whose dates are.
const MOST: usize = 200_000;

/// Where the tiles of some owners stand.
#[derive(Debug, Default)]
pub(crate) struct KnownTiles {
    stored: Places,
    dates: Places,
}

#[derive(Debug)]
struct Places(Mutex<PlacesOf>);

#[derive(Debug)]
struct PlacesOf {
    /// Of each owner tiles that follow each other.
    owners: LruCache<OwnerId, Vec<TilePlace>>,
    count: usize,
}

impl Default for Places {
    fn default() -> Self {
        Self(Mutex::new(PlacesOf { owners: LruCache::new_unbounded(), count: 0 }))
    }
}

impl KnownTiles {
    /// Where the tiles from `first` to `last` stand, those that there are, in their order. Only those that
    /// are not known are read.
    pub(crate) async fn places(
        &self,
        set: &TileSet,
        of: OfOwner<'_>,
        first: TileNumber,
        last: TileNumber,
    ) -> Result<Vec<TilePlace>> {
        self.stored.complete(of, first, last, async |next| set.places(of, next, last).await).await
    }

    /// The dates of the tiles from `first` to `last`, whether they are stored or not, as those of stubs. If
    /// many are not known, they are read only for `all`; a few are cheap.
    pub(crate) async fn dates(
        &self,
        of: OfOwner<'_>,
        first: TileNumber,
        last: TileNumber,
        all: bool,
    ) -> Result<Vec<TilePlace>> {
        let read = async |next: TileNumber| match last <= next.last_of(ENOUGH_TILES as u64) {
            true => tile_dates(of, (next, last), of.source.by_page()).await,
            false if all => tile_dates(of, (next, last), date_index(of)).await,
            false => Ok(Vec::new()),
        };
        self.dates.complete(of, first, last, read).await
    }

    /// Forgets the tiles of an owner: one is missing.
    pub(crate) fn forget(&self, owner: &OwnerId) {
        self.stored.forget(owner);
    }
}

impl Places {
    /// The known ones, and those that follow them, as `read` finds them.
    async fn complete(
        &self,
        of: OfOwner<'_>,
        first: TileNumber,
        last: TileNumber,
        read: impl AsyncFnOnce(TileNumber) -> Result<Vec<TilePlace>>,
    ) -> Result<Vec<TilePlace>> {
        let mut places = self.known(of.owner, first, last);
        let next = places.last().map_or(first, |place| place.tile.next());
        if next <= last {
            places.extend(read(next).await?);
            self.learn(of.owner, first, &places);
        }
        Ok(places)
    }

    fn forget(&self, owner: &OwnerId) {
        let mut places = self.0.lock();
        let forgotten = places.owners.remove(owner).map_or(0, |known| known.len());
        places.count -= forgotten;
    }

    /// The known ones from `first` on, without a gap.
    fn known(&self, owner: &OwnerId, first: TileNumber, last: TileNumber) -> Vec<TilePlace> {
        let mut places = self.0.lock();
        let known = places.owners.get(owner).map(Vec::as_slice).unwrap_or_default();
        let from = known.partition_point(|place| place.tile < first);
        let known = known[from..].iter().take_while(|place| place.tile <= last).copied();
        // Before the first known one others may be missing.
        known
            .enumerate()
            .take_while(|(nth, place)| place.tile == first.plus(*nth))
            .map(|(_, place)| place)
            .collect()
    }

    /// Remembers these, as far as they follow each other from `first` on.
    fn learn(&self, owner: &OwnerId, first: TileNumber, found: &[TilePlace]) {
        let run = found.iter().enumerate().take_while(|(nth, place)| place.tile == first.plus(*nth)).count();
        let mut places = self.0.lock();
        let known = places.owners.get(owner).and_then(|known| known.last());
        // Another request may have learned more.
        if found[..run].last().is_none_or(|last| known.is_some_and(|known| last.tile <= known.tile)) {
            return;
        }
        places.count += run;
        places.count -=
            places.owners.insert(owner.clone(), found[..run].to_vec()).map_or(0, |before| before.len());
        while places.count > MOST
            && let Some((_, forgotten)) = places.owners.remove_lru()
        {
            places.count -= forgotten.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use pagebucket_model::domain::PageNumber;

    use super::*;

    #[test]
    fn what_follows_without_a_gap_is_known() {
        let (known, owner) = (Places::default(), OwnerId::Integer(1));
        let tile = |number: usize| TileNumber::of(PageNumber::FIRST).plus(number);
        let places = |numbers: &[usize]| -> Vec<TilePlace> {
            let place = |number: &usize| TilePlace {
                tile: tile(*number),
                first_page: tile(*number).first_page(),
                first: 0,
                last: 0,
                grouped: true,
                size: 1,
            };
            numbers.iter().map(place).collect()
        };
        known.learn(&owner, tile(2), &places(&[2, 3, 4, 6]));
        assert_eq!(known.known(&owner, tile(2), tile(9)), places(&[2, 3, 4]));
        assert_eq!(known.known(&owner, tile(3), tile(3)), places(&[3]));
        assert_eq!(known.known(&owner, tile(1), tile(9)), [], "the first one may be missing");
        known.learn(&owner, tile(2), &places(&[2, 3]));
        known.learn(&owner, tile(7), &places(&[8]));
        assert_eq!(known.known(&owner, tile(2), tile(9)).len(), 3, "others have learned more");
        known.learn(&owner, tile(4), &places(&[4, 5, 6]));
        assert_eq!(known.known(&owner, tile(4), tile(9)), places(&[4, 5, 6]));
        assert_eq!((known.known(&owner, tile(2), tile(9)), known.0.lock().count), (Vec::new(), 3));
        known.forget(&owner);
        known.forget(&owner);
        assert_eq!((known.known(&owner, tile(4), tile(9)), known.0.lock().count), (Vec::new(), 0));
    }
}
