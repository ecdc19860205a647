//! Snapshots: windows of a history as it was at an earlier moment.
//!
//! A walk along the links begins with a read of the history's last page. Its links name the last trade of that moment
//! (`asOf`). As long as windows lie on pages that were full then, nothing in them can change, including the totals of
//! that moment: such a window depends on its address alone. It needs no read of the tail, and may be cached forever.
//!
//! A client may name any trade. If the history has it, the totals are those of the history up to this trade, even if
//! the history never ended there: 25 trades of one command become visible at once, and `asOf=24` still gives 24. A
//! trade beyond the end is ignored. This process remembers how long it has seen histories, and reads the tail only if
//! that does not suffice.

use super::params::Selection;
use crate::domain::{CustomerId, Limit, Seq, Span, Totals, Window};
use crate::http::api::Api;
use crate::http::cache::control::Caching;
use crate::http::cache::reading::Reading;
use crate::store::history::{FullPages, History};
use crate::store::{Epoch, Error};

/// A window of full pages, of a history that ends with a certain trade.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot {
    window: Window,
    last: Seq,
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
    pub fn of(selection: &Selection) -> Option<Self> {
        let Selection::Window(window, Some(last)) = *selection else { return None };
        let snapshot = Self { window, last };
        window.lies_in_full_pages(snapshot.totals()).then_some(snapshot)
    }

    /// How the snapshot may be cached, if the history is long enough.
    pub fn caching(self, epoch: Epoch, customer: CustomerId) -> Caching {
        Caching::of_snapshot(epoch, customer, self.last)
    }

    /// The totals of that moment.
    pub fn totals(self) -> Totals {
        Totals::ending_with(Some(self.last))
    }

    /// The trades it shows.
    pub fn span(self) -> Span {
        self.window.span(self.totals())
    }

    /// Most trades in the window.
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
        api: &Api,
        customer: CustomerId,
        snapshot: Option<Snapshot>,
        reading: &mut Reading,
    ) -> Result<Self, Error> {
        let trades = api.store.trades();
        let known = snapshot.and_then(|then| Some((then, trades.full_as_of(customer, then.last)?)));
        if let Some((then, full)) = known {
            return Ok(Self::Then(then, full));
        }
        let now = reading.database(trades.history(customer, reading.deadline)).await?;
        let found = snapshot.and_then(|then| Some((then, now.full_as_of(then.last)?)));
        Ok(found.map_or(Self::Now(now), |(then, full)| Self::Then(then, full)))
    }
}
