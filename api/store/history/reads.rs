//! Reads of pages, each by one seek, whatever the length of the history.
//!
//! Every read has read concern majority, so data that may still be rolled back is not shown. Data that was
//! shown or acknowledged is in every later read, whichever server is then primary ([`majority`](crate::store::majority)). Full
//! pages may be read from servers other than the primary ([`super::secondaries`]).

use std::sync::Arc;

use super::document::Bucket;
use super::engine::Engine;
use super::find::{Find, numbered};
use super::source::Source;
use super::tail::Tail;
use crate::definition::Definition;
use crate::domain::{OwnerId, PageNumber, Seq, Totals};
use crate::store::{COMMAND, Corruption, Deadline, Error};

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
        let (engine, deadline) = (self.clone(), deadline.or_within(COMMAND));
        let read = async move {
            let last = Find::last(&engine.0.source, &owner).find(deadline).await?;
            if let Some(tail) = last.as_ref().map(Bucket::tail) {
                engine.0.high_water.note(&owner, tail.last_seq());
            }
            Ok(History { engine, owner, last })
        };
        deadline.read(read).await
    }

    /// The full pages of the history up to `last`, if this process knows without reading the database that the
    /// history has the item `last`. Otherwise use [`History::full_as_of`].
    pub fn full_as_of(&self, owner: &OwnerId, last: Seq) -> Option<FullPages> {
        self.0.high_water.held(owner, last).then(|| FullPages::of(self, owner, last))
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
        let (this, owner, deadline) = (self.clone(), owner.clone(), deadline.or_within(COMMAND));
        if !Find::skips_to(page) {
            return this.0.readers.page(&this.0.source, owner, page, deadline).await;
        }
        let read = async move {
            let found = Find::page(&this.0.source, &owner, page, None).find(deadline).await?;
            found.map(|bucket| numbered(bucket, page)).transpose()
        };
        deadline.read(read).await
    }

    /// Reads pages that must exist and be full by the invariants.
    pub(super) async fn read_full(
        &self,
        owner: &OwnerId,
        pages: &[PageNumber],
        tail: Option<Tail>,
        deadline: Deadline,
    ) -> Result<Vec<Bucket>, Error> {
        // All buckets of a command must fit into its reply.
        let mut full = Vec::with_capacity(pages.len());
        for pages in pages.chunks(self.0.source.most_buckets()) {
            full.extend(self.read_some(owner, pages, tail, deadline).await?);
        }
        Ok(full)
    }

    async fn read_some(
        &self,
        owner: &OwnerId,
        pages: &[PageNumber],
        tail: Option<Tail>,
        deadline: Deadline,
    ) -> Result<Vec<Bucket>, Error> {
        let downwards = pages.is_sorted_by(|one, next| one > next);
        if let Some(mut full) = self.preferred(owner, pages, deadline).await {
            if downwards {
                full.reverse();
            }
            return Ok(full);
        }
        let seek = match pages {
            [page] => Find::page(&self.0.source, owner, *page, tail),
            pages => Find::pages(&self.0.source, owner, pages),
        };
        let mut found = seek.find_all(deadline).await?;
        if downwards {
            found.reverse();
        }
        let mut found = found.into_iter();
        let mut full = Vec::with_capacity(pages.len());
        for &page in pages {
            let corrupt = |detail: &str| {
                let (id, field) = match tail {
                    Some(tail) => (tail.id(owner).to_string(), format!("page {page} before it")),
                    None => (format!("{owner}_"), format!("page {page}")),
                };
                Error::from(Corruption { id, field, detail: detail.to_owned() })
            };
            let bucket = match found.next() {
                // Several pages are found by their numbers: another number here means that the page is missing.
                Some(bucket) if pages.len() > 1 && bucket.page() != page => {
                    return Err(corrupt("is missing"));
                }
                Some(bucket) => numbered(bucket, page)?,
                None => return Err(corrupt("is missing")),
            };
            if !bucket.full() {
                return Err(corrupt("is not full, though it is not the last"));
            }
            full.push(bucket);
        }
        Ok(full)
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

    /// The full pages up to `last`, if the history has the item `last`.
    pub fn full_as_of(&self, last: Seq) -> Option<FullPages> {
        let has_been = self.totals().last_seq().is_some_and(|end| last <= end);
        has_been.then(|| FullPages::of(&self.engine, &self.owner, last))
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
    fn of(engine: &Engine, owner: &OwnerId, last: Seq) -> Self {
        let last = engine.0.source.totals(Some(last)).last_full_page();
        Self { engine: engine.clone(), owner: owner.clone(), last, tail: None }
    }

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
        let Self { engine, owner, tail, .. } = self.clone();
        let (pages, deadline) = (first.up_to(last).collect::<Vec<_>>(), deadline.or_within(COMMAND));
        deadline.read(async move { engine.read_full(&owner, &pages, tail, deadline).await }).await
    }
}
