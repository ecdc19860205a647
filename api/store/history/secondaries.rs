//! Reads of full pages from the preferred member.
//!
//! A full page never changes, so any server that shows it at majority shows its final content; this need not be
//! the primary. A lagging server may show no page, or a page that is not full yet. Then, and when the server
//! does not answer soon, the primary is read as usual. Tails and totals are read only from the primary.
//!
//! Pages are reached from the beginning or by their number, never from the end: a lagging server has an earlier
//! end, so counting from there would reach another page.

use super::document::Bucket;
use super::engine::Engine;
use super::find::Find;
use crate::domain::{OwnerId, PageNumber};
use crate::metric::PREFERRED_READS;
use crate::store::read_preference::SOON;
use crate::store::{Deadline, Error, ReadPreference};

impl Engine {
    /// The same histories, with full pages read from the preferred members.
    #[must_use]
    pub(in crate::store) fn preferring(&self, preference: ReadPreference) -> Self {
        Self(self.0.clone(), preference)
    }

    /// These pages in ascending order, if another member than the primary is preferred and shows them full.
    /// `None` only means that the primary must be read.
    pub(super) async fn preferred(
        &self,
        owner: &OwnerId,
        pages: &[PageNumber],
        deadline: Deadline,
    ) -> Option<Vec<Bucket>> {
        let criteria = self.1.criteria()?;
        let mut expected = pages.to_vec();
        expected.sort_unstable();
        let (source, owner, pages) = (self.0.source.clone(), owner.clone(), pages.to_vec());
        let deadline = deadline.or_within(SOON);
        let read = async move {
            let find = match pages[..] {
                [page] => Find::page(&source, &owner, page, None),
                _ => Find::pages(&source, &owner, &pages),
            };
            find.find_all_at(Some(&criteria), deadline).await
        };
        let found = deadline.read(read).await;
        let result = match &found {
            Ok(found) if found.iter().map(Bucket::page).eq(expected) && found.iter().all(Bucket::full) => {
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

/// Logs at debug level: the read is repeated at the primary, which reports any lasting error.
fn log(error: &Error) {
    tracing::debug!(%error, "the preferred member did not return full pages; the primary is read");
}
