//! Reads of pages, each by one seek, whatever the length of the history.
//!
//! Every read has read concern majority, so data that may still be rolled back is not shown. Data that was
//! shown or acknowledged is in every later read, whichever server is then primary
//! ([`majority`](crate::mongo::majority)).
//!
//! # Full pages from the preferred member
//!
//! A full page never changes, so any server that shows it at majority shows its final content; this need not
//! be the primary. A lagging server may show no page, or a page that is not full yet. Then, and when the
//! server does not answer soon, the primary is read as usual. Tails and totals are read only from the
//! primary.
//!
//! Pages are reached from the beginning or by their number, never from the end: a lagging server has an
//! earlier end, so counting from there would reach another page.

use std::sync::Arc;

use mongodb::options::SelectionCriteria;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{
    OwnerId, PageNumber, Position, ReadPreference, Seq, SeqRange, Totals, Window,
};
use pagebucket_model::metric::PREFERRED_READS;
use tokio::sync::watch;

use super::find::{self, find};
use super::group_read::GroupReads;
use super::high_water::HighWater;
use crate::mongo::read_preference::{SOON, criteria};
use crate::mongo::{COMMAND, Corruption, Deadline, Error, Gone, Result};
use crate::store::buckets::bucket_id::Tail;
use crate::store::buckets::document::Bucket;
use crate::store::buckets::marker;
use crate::store::collection::HistoryCollection;
use crate::store::collection::moment::Moment;

/// Reads of the histories of one definition. Clones share what readers have in common.
#[derive(Debug, Clone)]
pub struct HistoryReader {
    pub(crate) source: Arc<HistoryCollection>,
    buckets: GroupReads,
    high_water: HighWater,
    /// The members that are preferred for full pages; `None` is the primary.
    preferred: Option<SelectionCriteria>,
}

/// What was known of deleted pages at some moment.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    markers: i64,
    at: Moment,
}

/// A history at the moment when its tail was read. Every page before the tail is full and never changes, so
/// pages that are read later belong to the same moment.
#[derive(Debug, Clone)]
pub struct History {
    pub(crate) reader: HistoryReader,
    pub(crate) owner: OwnerId,
    last: Option<Bucket>,
    first: PageNumber,
}

/// The pages of a history that were full at some moment. They never change.
#[derive(Debug, Clone)]
pub struct FullPages {
    reader: HistoryReader,
    owner: OwnerId,
    last: Option<PageNumber>,
    /// The tail after these pages, if it was read.
    tail: Option<Tail>,
}

impl HistoryReader {
    pub(crate) fn new(source: Arc<HistoryCollection>) -> Self {
        let buckets = GroupReads::of(Arc::clone(&source));
        Self { source, buckets, high_water: HighWater::default(), preferred: None }
    }

    /// The definition of these histories.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.source.definition
    }

    /// Forgets which histories have which items: pages may have been deleted.
    pub(crate) fn forget(&self) {
        self.high_water.clear();
    }

    /// What is known now. Taken before a page is read.
    pub fn known_now(&self) -> Known {
        Known { markers: self.source.markers.count(), at: Moment::now(&self.source.clock) }
    }

    /// Whether a page that was read then is still there, or was until a short time ago.
    pub fn still_holds(&self, known: Known) -> bool {
        let HistoryCollection { markers, clock, .. } = &*self.source;
        // One comparison as long as no page was deleted.
        !markers.any(clock)
            || known.markers == markers.count() && known.at.is_within(markers.ages.tail, clock)
    }

    /// Sends when pages may have been deleted.
    pub fn deletions(&self) -> watch::Receiver<()> {
        self.source.markers.changes()
    }

    /// An owner's history as it is now. An unknown owner's history is empty.
    ///
    /// # Errors
    /// The database does not answer in time, the owner is erased, or the tail is corrupt.
    pub async fn history(&self, owner: OwnerId, deadline: Deadline) -> Result<History> {
        let (source, deadline) = (&self.source, deadline.or_within(COMMAND));
        let of = source.of(&owner, deadline);
        let last = self.buckets.last(&owner, deadline);
        let beginning = async {
            match source.markers.any(&source.clock) {
                true => marker::find(of).await,
                false => Ok(None),
            }
        };
        let (last, beginning) = tokio::join!(last, beginning);
        let mut first = match beginning? {
            Some(marker) if marker.erased => return Err(marker.gone(source.page_size()).into()),
            marker => marker.map_or(PageNumber::FIRST, |marker| marker.first_page),
        };
        let last = match last {
            Ok(last) => last,
            // The marker of the beginning is all that there is.
            Err(Error::Gone(Gone::Retired { first_page, .. })) => {
                first = first_page;
                None
            }
            Err(error) => return Err(error),
        };
        if let Some(tail) = last.as_ref().map(Bucket::tail) {
            self.high_water.note(&owner, tail.last_seq());
            // The marker may have been read later.
            first = first.min(tail.page);
        }
        Ok(History { reader: self.clone(), owner, last, first })
    }

    /// Whether pages of these histories may have been deleted, of any owner. If not, the tag of a full page
    /// shows that the page exists.
    pub fn may_have_lost_pages(&self) -> bool {
        self.source.markers.any(&self.source.clock)
    }

    /// The full pages of the history up to `last`, if this process knows without reading the database that
    /// the history has the item `last`.
    pub fn full_as_of(&self, owner: &OwnerId, last: Seq) -> Option<FullPages> {
        if self.may_have_lost_pages() {
            return None;
        }
        let full = || {
            let last = self.source.totals(Some(last)).last_full_page();
            FullPages { reader: self.clone(), owner: owner.clone(), last, tail: None }
        };
        self.high_water.held(owner, last).then(full)
    }

    /// A page by its number.
    ///
    /// # Errors
    /// The database does not answer in time, the page is deleted, or the bucket is corrupt.
    pub async fn page(
        &self,
        owner: &OwnerId,
        page: PageNumber,
        deadline: Deadline,
    ) -> Result<Option<Bucket>> {
        let (source, deadline) = (&self.source, deadline.or_within(COMMAND));
        let of = source.of(owner, deadline);
        let read = async {
            if let Some(mut full) = self.preferred(owner, &[page], deadline).await {
                return Ok(full.pop());
            }
            self.buckets.page(owner, page, None, deadline).await
        };
        if !source.markers.any(&source.clock) {
            return read.await;
        }
        // A page that is retired, or of an erased owner, stays stored for a while.
        let (found, is_there) = tokio::join!(read, marker::check(of, page));
        is_there.and(found)
    }

    /// Reads pages that must exist and be full by the invariants, in ascending or descending order.
    pub(crate) async fn read_full(
        &self,
        owner: &OwnerId,
        pages: &[PageNumber],
        tail: Option<Tail>,
        deadline: Deadline,
    ) -> Result<Vec<Bucket>> {
        let of = self.source.of(owner, deadline.or_within(COMMAND));
        let downwards = pages.is_sorted_by(|one, next| one > next);
        let mut full = Vec::with_capacity(pages.len());
        // All buckets of a command must fit into its reply.
        for pages in pages.chunks(of.source.most_buckets()) {
            let mut found = match self.preferred(owner, pages, of.deadline).await {
                Some(full) => full,
                None => match pages {
                    [page] => self.buckets.page(owner, *page, tail, of.deadline).await?.into_iter().collect(),
                    _ => find(of, find::pages(of, pages), None).await?,
                },
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
                // Several pages are found by their numbers: another number here means that the page is
                // missing.
                let Some(bucket) = found.next().filter(|bucket| bucket.page() == page) else {
                    marker::check(of, page).await?;
                    return Err(corrupt("is missing").into());
                };
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
    pub(crate) fn preferring(&self, preference: ReadPreference) -> Self {
        Self { preferred: criteria(preference), ..self.clone() }
    }

    /// These pages in ascending order, if another member than the primary is preferred and shows them full.
    /// `None` only means that the primary must be read.
    pub(crate) async fn preferred(
        &self,
        owner: &OwnerId,
        pages: &[PageNumber],
        deadline: Deadline,
    ) -> Option<Vec<Bucket>> {
        let criteria = self.preferred.clone()?;
        let mut expected = pages.to_vec();
        expected.sort_unstable();
        let of = self.source.of(owner, deadline.or_within(SOON));
        let found = find(of, find::pages(of, pages), Some(criteria)).await;
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
        self.reader.definition()
    }

    /// The owner whose history this is.
    pub fn owner(&self) -> &OwnerId {
        &self.owner
    }

    /// The history's totals: of all items that it ever had, if its beginning is deleted.
    pub fn totals(&self) -> Totals {
        let source = self.source();
        let before = || Some(source.page_size().last_seq(self.first.previous()?));
        source.totals(self.tail().map(Tail::last_seq).or_else(before))
    }

    /// The first page that is there, or that the next append opens: 1 unless pages were retired or the owner
    /// was erased.
    pub fn first_page(&self) -> PageNumber {
        self.first
    }

    /// A position from which the history can be read: the beginning is before the first item that is there.
    ///
    /// # Errors
    /// The item after the position is deleted.
    pub fn from(&self, position: Position) -> Result<Position, Gone> {
        match position {
            Position::BEGINNING => Ok(Position::before(self.first_seq())),
            position => self.after(position),
        }
    }

    /// The same position, from which a reader goes on that has everything before it.
    ///
    /// # Errors
    /// The item after the position is deleted.
    pub(crate) fn after(&self, position: Position) -> Result<Position, Gone> {
        match position < Position::before(self.first_seq()) {
            true => Err(self.retired()),
            false => Ok(position),
        }
    }

    /// Why an item before the first one is not there.
    pub(crate) fn retired(&self) -> Gone {
        Gone::Retired { first_page: self.first, first_seq: self.first_seq() }
    }

    /// The sequence number of the first item that is there, or that the next append stores.
    pub fn first_seq(&self) -> Seq {
        self.source().page_size().first_seq(self.first_page())
    }

    /// The history's last page, if there is one.
    pub fn last(&self) -> Option<&Bucket> {
        self.last.as_ref()
    }

    pub(crate) fn source(&self) -> &HistoryCollection {
        &self.reader.source
    }

    pub(crate) fn tail(&self) -> Option<Tail> {
        self.last.as_ref().map(Bucket::tail)
    }

    /// The history's full pages, except the last page of all, which [`History::last`] returns.
    pub fn full(&self) -> FullPages {
        let last = self.tail().and_then(|tail| tail.page.previous());
        FullPages { reader: self.reader.clone(), owner: self.owner.clone(), last, tail: self.tail() }
    }

    /// The pages from `first` to `last`, both included, as far as the history has them. All are full, except
    /// the last page of the history, which is returned as it was read and not read again.
    pub async fn pages(
        &self,
        first: PageNumber,
        last: PageNumber,
        deadline: Deadline,
    ) -> Result<Vec<Bucket>> {
        let mut pages = self.full().read(first, last, deadline).await?;
        pages.extend(self.last.iter().filter(|tail| (first..=last).contains(&tail.page())).cloned());
        Ok(pages)
    }

    /// The items of a window that are there, in order of their addresses, each with the bucket that holds it.
    pub async fn window(&self, window: Window, deadline: Deadline) -> Result<Vec<(Bucket, Seq)>> {
        let Some(SeqRange { first, last }) = window.span(self.totals()).seqs() else { return Ok(Vec::new()) };
        let (first, size) = (first.max(self.first_seq()), self.definition().page_size);
        if first > last {
            return Ok(Vec::new());
        }
        let pages = self.pages(size.page_of(first), size.page_of(last), deadline).await?;
        let items = pages.into_iter().flat_map(|bucket| {
            let of_bucket: Vec<_> = bucket.items().map(|item| item.seq).collect();
            of_bucket.into_iter().map(move |seq| (bucket.clone(), seq))
        });
        Ok(items.filter(|(_, seq)| (first..=last).contains(seq)).collect())
    }
}

impl FullPages {
    /// The definition of the history.
    pub fn definition(&self) -> &Arc<Definition> {
        self.reader.definition()
    }

    /// What reads them, for our own crates.
    #[doc(hidden)]
    pub fn reader(&self) -> &HistoryReader {
        &self.reader
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
    pub async fn read(&self, first: PageNumber, last: PageNumber, deadline: Deadline) -> Result<Vec<Bucket>> {
        let Some(last) = self.last.map(|end| end.min(last)).filter(|last| first <= *last) else {
            return Ok(Vec::new());
        };
        let pages: Vec<_> = first.up_to(last).collect();
        self.reader.read_full(&self.owner, &pages, self.tail, deadline).await
    }
}
