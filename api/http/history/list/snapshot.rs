//! Windows of a history as it was: what a walk along the links goes through.
//!
//! A walk begins with a look at the history's last page. Its links name the last trade of that moment
//! (`asOf`), and as long as windows lie on pages that were full by then, nothing of them can change any
//! more, the totals of that moment included: such a window is a function of its address. It needs no look
//! at the tail, and may be kept forever.
//!
//! A client may name any trade. As long as the history holds it, it ends a beginning of the history, and the totals are
//! those of this beginning, whether or not there was a moment when the history held no more: 25 trades in one command
//! are visible at once, and `asOf=24` gives 24 all the same. A trade beyond the end names nothing. This process
//! remembers how far it has seen histories come, and looks at the tail otherwise.

use super::params::Selection;
use crate::domain::{CustomerId, Limit, Seq, Span, Totals, Window};
use crate::http::api::Api;
use crate::http::cache::control::Caching;
use crate::http::cache::reading::Reading;
use crate::store::history::{FullPages, History};
use crate::store::{Epoch, Error};

/// A window in full pages, of a history that ends with a certain trade.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot {
    window: Window,
    last: Seq,
}

/// What a listing is of.
pub enum Moment {
    /// An earlier one: the full pages of then.
    Then(Snapshot, FullPages),
    /// This one.
    Now(History),
}

impl Snapshot {
    /// What is asked for, if it is one.
    pub fn of(selection: &Selection) -> Option<Self> {
        let Selection::Window(window, Some(last)) = *selection else { return None };
        let snapshot = Self { window, last };
        window.lies_in_full_pages(snapshot.totals()).then_some(snapshot)
    }

    /// How it may be kept, if the history has come so far.
    pub fn caching(self, epoch: Epoch, customer: CustomerId) -> Caching {
        Caching::of_snapshot(epoch, customer, self.last)
    }

    /// Of that moment.
    pub fn totals(self) -> Totals {
        Totals::ending_with(Some(self.last))
    }

    /// The trades it shows.
    pub fn span(self) -> Span {
        self.window.span(self.totals())
    }

    /// How many at most.
    pub fn limit(self) -> Limit {
        self.window.limit
    }
}

impl Moment {
    /// That of the snapshot, if the history has come so far; else this one. The tail is read unless that is known.
    ///
    /// # Errors
    /// No database in time, or a corrupt bucket.
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
