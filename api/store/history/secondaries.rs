//! Full pages from whichever server is to be preferred.
//!
//! A full page never changes, so that any server that shows it at majority shows it as it is for ever: it
//! need not be the primary. A server that lags behind shows less: no page, or one that is not full yet.
//! Then, and when it does not answer soon, the primary is asked, as if nobody else had been. Tails and
//! totals are never asked of anybody else.
//!
//! Pages are reached from the beginning or by their number, never from the end: where a server that lags
//! sees the end, another page would be so many places before it.

use super::document::Bucket;
use super::engine::Trades;
use super::find::Find;
use crate::domain::{CustomerId, PageNumber};
use crate::metric::PREFERRED_READS;
use crate::store::read_preference::SOON;
use crate::store::{Deadline, Error, ReadPreference};

impl Trades {
    /// The same histories, with full pages read by preference.
    #[must_use]
    pub(in crate::store) fn preferring(&self, preference: ReadPreference) -> Self {
        Self(self.0.clone(), preference)
    }

    /// These pages, upwards, if a server other than the primary is preferred and shows them full. `None` says
    /// no more than that the primary is to be asked.
    pub(super) async fn preferred(
        &self,
        customer: CustomerId,
        pages: &[PageNumber],
        deadline: Deadline,
    ) -> Option<Vec<Bucket>> {
        let criteria = self.1.criteria()?;
        let seek = match pages {
            [page] => Find::page(customer, *page, None),
            pages => Find::pages(customer, pages),
        };
        let mut expected = pages.to_vec();
        expected.sort_unstable();
        let (reads, deadline) = (self.0.reads.clone(), deadline.or_within(SOON));
        let read = async move { seek.find_all_at(Some(&criteria), &reads, deadline).await };
        let found = deadline.read(read).await;
        let result = match &found {
            Ok(found)
                if found.iter().map(|bucket| bucket.page).eq(expected) && found.iter().all(Bucket::full) =>
            {
                "full"
            }
            Ok(_) => "behind",
            Err(error) => {
                log(error);
                "failed"
            }
        };
        metrics::counter!(PREFERRED_READS, "result" => result).increment(1);
        found.ok().filter(|_| result == "full")
    }
}

/// Whatever it is, the primary says it again, or knows better.
fn log(error: &Error) {
    tracing::debug!(%error, "the preferred server did not show full pages; the primary is asked");
}
