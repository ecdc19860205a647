//! Snapshots: windows of a history as it was at an earlier moment.
//!
//! A walk along the links begins with a read of the history's last page. Its links name the last item of that moment
//! (`asOf`). As long as windows lie on pages that were full then, nothing in them can change, including the totals of
//! that moment: such a window depends on its address alone. It needs no read of the tail, and may be cached forever.
//!
//! A client may name any item. If the history has it, the totals are those of the history up to this item, even if
//! the history never ended there: 25 items of one command become visible at once, and `asOf=24` still gives 24. A
//! item beyond the end is ignored. This process remembers how long it has seen histories, and reads the tail only if
//! that does not suffice.

use super::params::Selection;
use crate::definition::Definition;
use crate::domain::{Limit, OwnerId, PageSize, Seq, Span, Totals, Window};
use crate::http::cache::control::Caching;
use crate::http::cache::reading::Reading;
use crate::store::history::{Engine, FullPages, History};
use crate::store::{Epoch, Error};

/// A window of full pages, of a history that ends with a certain item.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot {
    window: Window,
    last: Seq,
    page_size: PageSize,
}

/// The moment that a listing shows.
pub enum Moment {
    /// An earlier moment: the pages that were full then.
    Then(Snapshot, FullPages),
    /// The current moment.
    Now(History),
}

impl Snapshot {
    /// The snapshot that is asked for, if the window lies in full pages.
    pub fn of(selection: &Selection, page_size: PageSize) -> Option<Self> {
        let Selection::Window(window, Some(last)) = *selection else { return None };
        let snapshot = Self { window, last, page_size };
        window.lies_in_full_pages(snapshot.totals()).then_some(snapshot)
    }

    /// How the snapshot may be cached, if the history is long enough.
    pub fn caching(self, epoch: Epoch, definition: &Definition, owner: &OwnerId) -> Caching {
        Caching::of_snapshot(epoch, definition, owner, self.last)
    }

    /// The totals of that moment.
    pub fn totals(self) -> Totals {
        Totals::ending_with(self.page_size, Some(self.last))
    }

    /// The items it shows.
    pub fn span(self) -> Span {
        self.window.span(self.totals())
    }

    /// Most items in the window.
    pub fn limit(self) -> Limit {
        self.window.limit
    }
}

impl Moment {
    /// The moment of the snapshot, if the history is long enough; else the current one. Reads the tail only if this
    /// process does not know that the history is long enough.
    ///
    /// # Errors
    /// The database is not available in time, or a bucket is corrupt.
    pub async fn find(
        engine: &Engine,
        owner: &OwnerId,
        snapshot: Option<Snapshot>,
        reading: &mut Reading,
    ) -> Result<Self, Error> {
        let known = snapshot.and_then(|then| Some((then, engine.full_as_of(owner, then.last)?)));
        if let Some((then, full)) = known {
            return Ok(Self::Then(then, full));
        }
        let now = reading.database(engine.history(owner.clone(), reading.deadline)).await?;
        let found = snapshot.and_then(|then| Some((then, now.full_as_of(then.last)?)));
        Ok(found.map_or(Self::Now(now), |(then, full)| Self::Then(then, full)))
    }
}
