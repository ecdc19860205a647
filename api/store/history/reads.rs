//! Reads of pages, each by one seek, whatever the length of the history.
//!
//! Every read has read concern majority, so data that may still be rolled back is not shown. Data that was
//! shown or acknowledged is in every later read, whichever server is then primary ([`majority`](crate::store::majority)).
//!
//! # Full pages from the preferred member
//!
//! A full page never changes, so any server that shows it at majority shows its final content; this need not be
//! the primary. A lagging server may show no page, or a page that is not full yet. Then, and when the server
//! does not answer soon, the primary is read as usual. Tails and totals are read only from the primary.
//!
//! Pages are reached from the beginning or by their number, never from the end: a lagging server has an earlier
//! end, so counting from there would reach another page.

use std::sync::Arc;

use super::bucket_id::Tail;
use super::document::Bucket;
use super::engine::Engine;
use super::find::{self, find, find_page, numbered};
use super::source::Source;
use crate::definition::Definition;
use crate::domain::{OwnerId, PageNumber, Seq, SeqRange, Totals};
use crate::metric::PREFERRED_READS;
use crate::store::read_preference::SOON;
use crate::store::{COMMAND, Corruption, Deadline, Error, ReadPreference};

/// A history at the moment when its tail was read. Every page before the tail is full and never changes, so
/// pages that are read later belong to the same moment.
#[derive(Debug, Clone)]
pub struct History {
    pub(super) engine: Engine,
    pub(super) owner: OwnerId,
    last: Option<Bucket>,
}

/// The pages of a history that were full at some moment. They never change.
#[derive(Debug, Clone)]
pub struct FullPages {
    engine: Engine,
    owner: OwnerId,
    last: Option<PageNumber>,
    /// The tail after these pages, if it was read.
    tail: Option<Tail>,
}

impl Engine {
    /// An owner's history as it is now. An unknown owner's history is empty.
    ///
    /// # Errors
    /// The database does not answer in time, or the tail is corrupt.
    pub async fn history(&self, owner: OwnerId, deadline: Deadline) -> Result<History, Error> {
        let source = &self.0.source;
        let last =
            find(source, &owner, find::last(source, &owner), None, deadline.or_within(COMMAND)).await?.pop();
        if let Some(tail) = last.as_ref().map(Bucket::tail) {
            self.0.high_water.note(&owner, tail.last_seq());
        }
        Ok(History { engine: self.clone(), owner, last })
    }

    /// The full pages of the history up to `last`, if this process knows without reading the database that the
    /// history has the item `last`.
    pub fn full_as_of(&self, owner: &OwnerId, last: Seq) -> Option<FullPages> {
        let full = || {
            let last = self.totals(Some(last)).last_full_page();
            FullPages { engine: self.clone(), owner: owner.clone(), last, tail: None }
        };
        self.0.high_water.held(owner, last).then(full)
    }

    /// A page by its number.
    ///
    /// # Errors
    /// The database does not answer in time, or the bucket is corrupt.
    pub async fn page(
        &self,
        owner: &OwnerId,
        page: PageNumber,
        deadline: Deadline,
    ) -> Result<Option<Bucket>, Error> {
        if let Some(mut full) = self.preferred(owner, &[page], deadline).await {
            return Ok(full.pop());
        }
        let (source, deadline) = (&self.0.source, deadline.or_within(COMMAND));
        if find::skips_to(page) {
            return find_page(source, owner, page, deadline).await;
        }
        self.0.readers.page(source, owner, page, deadline).await
    }

    /// Reads pages that must exist and be full by the invariants, in ascending or descending order.
    pub(super) async fn read_full(
        &self,
        owner: &OwnerId,
        pages: &[PageNumber],
        tail: Option<Tail>,
        deadline: Deadline,
    ) -> Result<Vec<Bucket>, Error> {
        let (source, deadline) = (&self.0.source, deadline.or_within(COMMAND));
        let downwards = pages.is_sorted_by(|one, next| one > next);
        let mut full = Vec::with_capacity(pages.len());
        // All buckets of a command must fit into its reply.
        for pages in pages.chunks(source.most_buckets()) {
            let mut found = match self.preferred(owner, pages, deadline).await {
                Some(full) => full,
                None => find(source, owner, find::pages(source, owner, pages, tail), None, deadline).await?,
            };
            if downwards {
                found.reverse();
            }
            let mut found = found.into_iter();
            for &page in pages {
                let corrupt = |detail| match tail {
                    Some(tail) => {
                        Corruption::new(tail.id(owner).to_string(), format!("page {page} before it"), detail)
                    }
                    None => Corruption::new(format!("{owner}_"), format!("page {page}"), detail),
                };
                let bucket = found.next().ok_or_else(|| corrupt("is missing"))?;
                // Several pages are found by their numbers: another number here means that the page is missing.
                if pages.len() > 1 && bucket.page() != page {
                    return Err(corrupt("is missing").into());
                }
                let bucket = numbered(bucket, page)?;
                if !bucket.full() {
                    return Err(corrupt("is not full, though it is not the last").into());
                }
                full.push(bucket);
            }
        }
        Ok(full)
    }

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
        let (source, deadline) = (&self.0.source, deadline.or_within(SOON));
        let command = find::pages(source, owner, pages, None);
        let found = find(source, owner, command, Some(criteria), deadline).await;
        let result = match &found {
            Ok(found) if found.iter().map(Bucket::page).eq(expected) && found.iter().all(Bucket::full) => {
                "full"
            }
            Ok(_) => "behind",
            Err(error) => {
                // The read is repeated at the primary, which reports any lasting error.
                tracing::debug!(%error, "the preferred member did not return full pages; the primary is read");
                "failed"
            }
        };
        metrics::counter!(PREFERRED_READS, "result" => result).increment(1);
        found.ok().filter(|_| result == "full")
    }
}

impl History {
    /// The definition of the history.
    pub fn definition(&self) -> &Arc<Definition> {
        self.engine.definition()
    }

    /// The owner whose history this is.
    pub fn owner(&self) -> &OwnerId {
        &self.owner
    }

    /// The history's totals.
    pub fn totals(&self) -> Totals {
        self.source().totals(self.tail().map(Tail::last_seq))
    }

    /// The history's last page, if there is one.
    pub fn last(&self) -> Option<&Bucket> {
        self.last.as_ref()
    }

    pub(super) fn source(&self) -> &Source {
        &self.engine.0.source
    }

    pub(super) fn tail(&self) -> Option<Tail> {
        self.last.as_ref().map(Bucket::tail)
    }

    /// The history's full pages, except the last page of all, which [`History::last`] returns.
    pub fn full(&self) -> FullPages {
        let last = self.tail().and_then(|tail| tail.page.previous());
        FullPages { engine: self.engine.clone(), owner: self.owner.clone(), last, tail: self.tail() }
    }

    /// The pages from `first` to `last`, both included, as far as the history has them. All are full, except
    /// the last page of the history, which is returned as it was read and not read again.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub async fn pages(
        &self,
        first: PageNumber,
        last: PageNumber,
        deadline: Deadline,
    ) -> Result<Vec<Bucket>, Error> {
        let mut pages = self.full().read(first, last, deadline).await?;
        pages.extend(self.last.iter().filter(|tail| (first..=last).contains(&tail.page())).cloned());
        Ok(pages)
    }
}

impl FullPages {
    /// The definition of the history.
    pub fn definition(&self) -> &Arc<Definition> {
        self.engine.definition()
    }

    /// The owner whose pages these are.
    pub fn owner(&self) -> &OwnerId {
        &self.owner
    }

    /// The number of the last full page, if there is one.
    pub fn last(&self) -> Option<PageNumber> {
        self.last
    }

    /// Whether all items of the range are on these pages.
    pub fn hold(&self, range: SeqRange) -> bool {
        self.last >= Some(self.definition().page_size.page_of(range.last))
    }

    /// Reads the pages from `first` to `last`, both included, as far as they exist.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub async fn read(
        &self,
        first: PageNumber,
        last: PageNumber,
        deadline: Deadline,
    ) -> Result<Vec<Bucket>, Error> {
        let Some(last) = self.last.map(|end| end.min(last)).filter(|last| first <= *last) else {
            return Ok(Vec::new());
        };
        let pages: Vec<_> = first.up_to(last).collect();
        self.engine.read_full(&self.owner, &pages, self.tail, deadline).await
    }
}
