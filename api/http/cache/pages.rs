//! The page cache: full pages with their JSON, bounded in bytes; the least useful are evicted first.
//!
//! Only full pages are kept. They never change, so nothing is invalidated, and an instance need not know of the appends
//! of others. When many requests miss a page at once, one reads the database and the others wait for it. They use its
//! result only if it is a full page: any other page may have grown since before they asked, by an append of their own.

use std::sync::Arc;

use ::metrics::Counter;
use moka::future::Cache;

use super::control::Caching;
use super::timing::Timing;
use crate::definition::Definition;
use crate::domain::{OwnerId, PageNumber, SeqRange};
use crate::http::history::item_view::{ItemView, PageJson};
use crate::metric::{PAGE_BYTES, PAGE_LOOKUPS, PAGES_CACHED};
use crate::store::history::{Bucket, Engine, FullPages, History};
use crate::store::{Deadline, Epoch, Error};

/// Bytes that a page takes besides its JSON and tag: keys and links of the table, reference counts, and
/// overhead of allocators.
const OVERHEAD: usize = 384;

/// Pages that are read ahead when a client turns one page after the other. Ten more buckets in a command cost less than
/// half of another command.
const READ_AHEAD: u64 = 10;

/// The page cache, for all histories.
#[derive(Clone)]
pub struct Pages {
    /// The most bytes of all pages. A page with more is not kept.
    bytes: u64,
    hits: Counter,
    misses: Counter,
    /// `None` if the cache is disabled.
    kept: Option<Cache<Key, Arc<FullPage>>>,
}

/// The name of a history, its owner, and the number of a page.
type Key = (Arc<str>, OwnerId, PageNumber);

/// A full page.
#[derive(Debug)]
pub struct FullPage {
    page: PageNumber,
    /// Its JSON.
    pub json: PageJson,
    /// How its JSON may be cached.
    pub caching: Caching,
}

impl FullPage {
    fn new(epoch: Epoch, definition: &Arc<Definition>, owner: &OwnerId, bucket: &Bucket) -> Arc<Self> {
        let (page, json) = (bucket.page(), PageJson::new(definition, owner, bucket));
        let caching = Caching::of_full(epoch, definition, owner, page);
        Arc::new(Self { page, json, caching })
    }

    /// Size in memory, in bytes.
    fn weight(&self) -> u32 {
        let bytes = OVERHEAD + self.json.size() + self.caching.tag.len();
        u32::try_from(bytes).expect("a page has at most 4 MiB of BSON, and its JSON less than 4 GiB")
    }
}

/// The result of looking up a page number.
pub enum Found {
    /// A full page.
    Full(Arc<FullPage>),
    /// The last page, as it is now.
    Tail(Bucket),
    /// No such page yet.
    Nothing,
}

impl Found {
    fn new(epoch: Epoch, definition: &Arc<Definition>, owner: &OwnerId, bucket: Option<Bucket>) -> Self {
        match bucket {
            Some(bucket) if bucket.full() => Self::Full(FullPage::new(epoch, definition, owner, &bucket)),
            Some(bucket) => Self::Tail(bucket),
            None => Self::Nothing,
        }
    }
}

impl Pages {
    /// Keeps at most `bytes` bytes; 0 keeps nothing.
    pub fn new(bytes: u64) -> Self {
        let kept = (bytes > 0).then(|| {
            Cache::builder()
                .name("pages")
                .max_capacity(bytes)
                .weigher(|_, page: &Arc<FullPage>| page.weight())
                .build()
        });
        let lookups = |result| metrics::counter!(PAGE_LOOKUPS, "result" => result);
        Self { bytes, hits: lookups("hit"), misses: lookups("miss"), kept }
    }

    /// A page by its number.
    ///
    /// # Errors
    /// The database is not available in time, or a bucket is corrupt.
    pub async fn page(
        &self,
        engine: &Engine,
        owner: &OwnerId,
        page: PageNumber,
        epoch: Epoch,
        deadline: Deadline,
    ) -> Result<(Found, Timing), Error> {
        let fetch = || engine.page(owner, page, deadline);
        self.find(engine.definition(), owner, page, epoch, fetch).await
    }

    /// The items in `range`, which the history must have, in order of `seq`; none without a range.
    ///
    /// # Errors
    /// The database is not available in time, or a bucket is corrupt.
    pub async fn items(
        &self,
        history: &History,
        range: Option<SeqRange>,
        epoch: Epoch,
        deadline: Deadline,
    ) -> Result<(Vec<ItemView>, Timing), Error> {
        let (mut items, timing) = self.settled(&history.full(), range, epoch, deadline).await?;
        if let Some((range, tail)) = range.zip(history.last())
            && tail.first_seq() <= range.last
        {
            let shown = tail.items().filter(|item| range.contains(item.seq));
            items.extend(shown.map(|item| ItemView::new(&item)));
        }
        Ok((items, timing))
    }

    /// Like [`Pages::items`], but only the items that are on full pages.
    ///
    /// # Errors
    /// The database is not available in time, or a bucket is corrupt.
    pub async fn settled(
        &self,
        full: &FullPages,
        range: Option<SeqRange>,
        epoch: Epoch,
        deadline: Deadline,
    ) -> Result<(Vec<ItemView>, Timing), Error> {
        let Some(range) = range else { return Ok(Default::default()) };
        let mut items = Vec::with_capacity(range.count() as usize);
        let size = full.definition().page_size;
        let (first, last) = (size.page_of(range.first), size.page_of(range.last));
        let (pages, timing) = self.full(full, first, last, epoch, deadline).await?;
        for page in pages {
            items.extend(page.json.items().filter(|item| range.contains(item.seq())));
        }
        Ok((items, timing))
    }

    /// The full pages from `first` to `last`.
    async fn full(
        &self,
        full: &FullPages,
        first: PageNumber,
        last: PageNumber,
        epoch: Epoch,
        deadline: Deadline,
    ) -> Result<(Vec<Arc<FullPage>>, Timing), Error> {
        let Some(last) = full.last().map(|end| end.min(last)).filter(|last| first <= *last) else {
            return Ok(Default::default());
        };
        let (definition, owner) = (full.definition(), full.owner());
        if first == last
            && (self.remembers(definition, owner, first) || self.turning(full, first, last).is_none())
        {
            let fetch = || async { Ok(full.read(first, last, deadline).await?.pop()) };
            let (found, timing) = self.find(definition, owner, first, epoch, fetch).await?;
            let pages = match found {
                Found::Full(page) => vec![page],
                Found::Tail(_) | Found::Nothing => {
                    unreachable!("invariant 2: `FullPages::read` gives full pages")
                }
            };
            return Ok((pages, timing));
        }
        let mut timing = Timing::default();
        let mut pages = Vec::new();
        let mut missing: Option<(PageNumber, PageNumber)> = None;
        for page in first.up_to(last) {
            let found = self.remembered(definition, owner, page, &mut timing).await;
            if found.is_none() {
                missing = Some((missing.map_or(page, |(first, _)| first), page));
            }
            pages.push(found);
        }
        if let Some((from, to)) = missing {
            // Cached pages in between are read again, so that one command suffices.
            let turning = self.turning(full, from, to);
            let (low, high) = turning.unwrap_or((from, to));
            let mut read = timing.database(full.read(low, high, deadline)).await;
            if turning.is_some() && matches!(read, Err(Error::Corrupt(_))) {
                // The corrupt page may be one that was only read ahead.
                read = timing.database(full.read(from, to, deadline)).await;
            }
            for bucket in read? {
                let place = bucket.page().get().checked_sub(first.get());
                let place = place.and_then(|place| pages.get_mut(place as usize));
                if place.as_ref().is_some_and(|place| place.is_some()) {
                    continue;
                }
                let page = FullPage::new(epoch, definition, owner, &bucket);
                self.remember(definition, owner, &page).await;
                if let Some(place) = place {
                    *place = Some(page);
                }
            }
        }
        let there = |page: Option<_>| page.expect("invariant 1: `FullPages::read` leaves no gap");
        Ok((pages.into_iter().map(there).collect(), timing))
    }

    /// If a client turns one page after the other, the range of pages to read at once: the missing ones, and a few that
    /// it will want next. A cached neighbour of the missing pages shows that it does.
    fn turning(
        &self,
        full: &FullPages,
        from: PageNumber,
        to: PageNumber,
    ) -> Option<(PageNumber, PageNumber)> {
        let remembered = |page| self.remembers(full.definition(), full.owner(), page);
        if from.previous().is_some_and(remembered) {
            let ahead = PageNumber::new(to.get() + READ_AHEAD).ok()?.min(full.last()?);
            return Some((from, ahead)).filter(|_| ahead > to);
        }
        if remembered(to.next()) {
            let ahead = from.get().saturating_sub(READ_AHEAD).max(1);
            return Some((PageNumber::new(ahead).ok()?, to)).filter(|(ahead, _)| *ahead < from);
        }
        None
    }

    /// Whether the page is cached. Does not count as a use.
    fn remembers(&self, definition: &Definition, owner: &OwnerId, page: PageNumber) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.contains_key(&key(definition, owner, page)))
    }

    async fn find<F: Future<Output = Result<Option<Bucket>, Error>>>(
        &self,
        definition: &Arc<Definition>,
        owner: &OwnerId,
        page: PageNumber,
        epoch: Epoch,
        fetch: impl Fn() -> F,
    ) -> Result<(Found, Timing), Error> {
        let mut timing = Timing::default();
        let found = |bucket| Found::new(epoch, definition, owner, bucket);
        let Some(kept) = &self.kept else {
            let bucket = timing.database(fetch()).await?;
            return Ok((found(bucket), timing));
        };
        if let Some(page) = self.remembered(definition, owner, page, &mut timing).await {
            return Ok((Found::Full(page), timing));
        }
        let mut asked = None;
        let ask = async {
            match fetch().await.map(found) {
                Ok(Found::Full(page)) if u64::from(page.weight()) <= self.bytes => Some(page),
                other => {
                    asked = Some(other);
                    None
                }
            }
        };
        let asked_for = key(definition, owner, page);
        let found = match timing.database(kept.optionally_get_with(asked_for, ask)).await {
            Some(page) => Found::Full(page),
            None => match asked {
                Some(own) => own?,
                // Another request read the page, perhaps before this one began.
                None => found(timing.database(fetch()).await?),
            },
        };
        Ok((found, timing))
    }

    /// Looks up the page in the cache alone.
    async fn remembered(
        &self,
        definition: &Definition,
        owner: &OwnerId,
        page: PageNumber,
        timing: &mut Timing,
    ) -> Option<Arc<FullPage>> {
        let found = self.kept.as_ref()?.get(&key(definition, owner, page)).await;
        timing.cached(found.is_some());
        if found.is_some() { &self.hits } else { &self.misses }.increment(1);
        found
    }

    async fn remember(&self, definition: &Definition, owner: &OwnerId, page: &Arc<FullPage>) {
        if let Some(kept) = self.kept.as_ref().filter(|_| u64::from(page.weight()) <= self.bytes) {
            kept.insert(key(definition, owner, page.page), Arc::clone(page)).await;
        }
    }

    /// Updates the gauges.
    pub async fn measure(&self) {
        if let Some(kept) = &self.kept {
            kept.run_pending_tasks().await;
            metrics::gauge!(PAGE_BYTES).set(kept.weighted_size() as f64);
            metrics::gauge!(PAGES_CACHED).set(kept.entry_count() as f64);
        }
    }
}

fn key(definition: &Definition, owner: &OwnerId, page: PageNumber) -> Key {
    (Arc::clone(&definition.name), owner.clone(), page)
}
