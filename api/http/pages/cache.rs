//! The page cache: full pages with their JSON, bounded in bytes; the least useful are evicted first.
//!
//! Only full pages are kept. They never change, and an instance need not know of the appends of others. They
//! may be deleted: when another page of a history was, all of its pages are forgotten, and from then on they
//! are kept for a minute.
//!
//! When many requests miss a page at once, one reads the database and the others wait for it. They use its
//! result only if it is a full page: any other page may have grown since before they asked, by an append of
//! their own.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use ::metrics::Counter;
use futures_util::FutureExt;
use hashlink::DefaultHashBuilder;
use moka::future::Cache;
use pagebucket_engine::internal::Known;
use pagebucket_engine::internal::tasks::KeptTasks;
use pagebucket_engine::reads::FullPages;
use pagebucket_engine::reads::HistoryReader;
use pagebucket_engine::{Bucket, Engine, Error, History, Store};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{OwnerId, PageNumber, SeqRange};
use pagebucket_model::metric::{PAGE_BYTES, PAGE_LOOKUPS, PAGES_CACHED};

use super::item_view::{ItemView, Page};
use crate::caching::reading::Reading;

/// Bytes that a page takes besides its JSON and tag: keys and links of the table, reference counts, and
/// overhead of allocators.
const OVERHEAD: usize = 384;

/// Pages that are read ahead when a client turns one page after the other. Ten more buckets in a command cost
/// less than half of another command.
const READ_AHEAD: u64 = 10;

/// The page cache, for all histories.
#[derive(Clone)]
pub struct Pages {
    /// The most bytes of all pages. A page with more is not kept.
    bytes: u64,
    hits: Counter,
    misses: Counter,
    /// `None` if the cache is disabled.
    kept: Option<KeptPages>,
}

/// The pages that are kept. Their hash is seeded, and fast: pages are the hottest answer.
type KeptPages = Cache<PageKey, Kept, DefaultHashBuilder>;

/// A page, and since when it is known.
#[derive(Clone)]
struct Kept {
    page: Arc<Page>,
    known: Known,
}

/// The name of a history, its owner, and the number of a page.
type PageKey = (Arc<str>, OwnerId, PageNumber);

fn key(definition: &Definition, owner: &OwnerId, page: PageNumber) -> PageKey {
    (Arc::clone(&definition.name), owner.clone(), page)
}

/// Size of a page in memory, in bytes.
fn weight(page: &Page) -> u32 {
    let bytes = u32::try_from(OVERHEAD + page.size());
    bytes.expect("a page has at most 4 MiB of BSON, and its JSON less than 4 GiB")
}

/// Forgets the pages of a history whenever one was deleted, as long as there is the history.
fn forget_deleted(tasks: &KeptTasks, engine: &Engine, kept: KeptPages) {
    let (name, deletions) = (Arc::clone(&engine.definition().name), engine.reads().deletions());
    tasks
        .keep("page-cache", move || {
            let (name, mut deletions, kept) = (Arc::clone(&name), deletions.clone(), kept.clone());
            async move {
                while deletions.changed().await.is_ok() {
                    for (key, _) in kept.iter().filter(|(key, _)| key.0 == name) {
                        kept.invalidate(&*key).await;
                    }
                }
            }
        })
        .detach();
}

impl Pages {
    /// Keeps at most `bytes` bytes; 0 keeps nothing. Forgets the pages of each history of the store when one
    /// was deleted.
    pub fn new(bytes: u64, store: &Store) -> Self {
        let cache = || {
            let cache = Cache::builder().name("pages").max_capacity(bytes);
            cache
                .weigher(|_, kept: &Kept| weight(&kept.page))
                .build_with_hasher(DefaultHashBuilder::default())
        };
        let lookups = |result| metrics::counter!(PAGE_LOOKUPS, "result" => result);
        let kept = (bytes > 0).then(cache);
        for engine in store.histories() {
            kept.iter().for_each(|kept| forget_deleted(store.tasks(), engine, kept.clone()));
        }
        Self { bytes, hits: lookups("hit"), misses: lookups("miss"), kept }
    }

    /// A page by its number, if there is one yet: full, or the last page as it is now.
    ///
    /// # Errors
    /// The database is not available in time, or a bucket is corrupt.
    pub async fn page(
        &self,
        reader: &HistoryReader,
        owner: &OwnerId,
        page: PageNumber,
        reading: &mut Reading,
    ) -> Result<Option<Arc<Page>>, Error> {
        let deadline = reading.deadline;
        // In a box, as all that a page in memory does not need: its request would copy 5 KiB twice.
        let fetch = || Box::pin(reader.page(owner, page, deadline));
        self.find(reader, owner, page, reading, fetch).await
    }

    /// The items in `range`, which the history must have, in order of `seq`; none without a range.
    ///
    /// # Errors
    /// The database is not available in time, or a bucket is corrupt.
    pub async fn items(
        &self,
        history: &History,
        range: Option<SeqRange>,
        reading: &mut Reading,
    ) -> Result<Vec<ItemView>, Error> {
        let mut items = self.settled(&history.full(), range, reading).await?;
        if let Some((range, tail)) = range.zip(history.last())
            && tail.first_seq() <= range.last
        {
            let shown = tail.items().filter(|item| range.contains(item.seq));
            items.extend(shown.map(|item| ItemView::new(&item)));
        }
        Ok(items)
    }

    /// Like [`Pages::items`], but only the items that are on full pages.
    ///
    /// # Errors
    /// The database is not available in time, or a bucket is corrupt.
    pub async fn settled(
        &self,
        full: &FullPages,
        range: Option<SeqRange>,
        reading: &mut Reading,
    ) -> Result<Vec<ItemView>, Error> {
        let (Some(range), Some(end)) = (range, full.last()) else { return Ok(Vec::new()) };
        let (reader, owner, deadline) = (full.reader(), full.owner(), reading.deadline);
        let definition = reader.definition();
        let size = definition.page_size;
        let (first, last) = (size.page_of(range.first), size.page_of(range.last).min(end));
        if first > last {
            return Ok(Vec::new());
        }
        if first == last && self.turning(full, first, last).is_none() {
            let fetch = || Box::pin(async { Ok(full.read(first, last, deadline).await?.pop()) });
            let found = self.find(reader, owner, first, reading, fetch).await?;
            let page = found.expect("invariant 1: `FullPages::read` leaves no gap");
            return Ok(page.items(range).collect());
        }
        let mut pages = BTreeMap::new();
        for page in first.up_to(last) {
            let found = self.remembered(reader, owner, page, reading).await;
            pages.extend(found.map(|found| (page, found)));
        }
        let mut missing = first.up_to(last).filter(|page| !pages.contains_key(page));
        if let Some(from) = missing.next() {
            let to = missing.last().unwrap_or(from);
            // Cached pages in between are read again, so that one command suffices.
            let turning = self.turning(full, from, to);
            let (low, high) = turning.unwrap_or((from, to));
            let known = reader.known_now();
            let mut read = reading.database(full.read(low, high, deadline)).await;
            if turning.is_some() && matches!(read, Err(Error::Corrupt(_) | Error::Gone(_))) {
                // The page that is corrupt or deleted may be one that was only read ahead.
                read = reading.database(full.read(from, to, deadline)).await;
            }
            for bucket in read? {
                let Entry::Vacant(place) = pages.entry(bucket.page()) else { continue };
                let page = place.insert(Arc::new(Page::new(reading.epoch, definition, owner, &bucket)));
                if let Some(kept) = self.kept.as_ref().filter(|_| self.is_kept(page)) {
                    let page = Kept { page: Arc::clone(page), known };
                    kept.insert(key(definition, owner, bucket.page()), page).await;
                }
            }
        }
        // Without those that were only read ahead.
        Ok(pages.range(first..=last).flat_map(|(_, page)| page.items(range)).collect())
    }

    /// If a client turns one page after the other, the range of pages to read at once: the missing ones, and
    /// a few that it will want next. A cached neighbour of the missing pages shows that it does.
    fn turning(
        &self,
        full: &FullPages,
        from: PageNumber,
        to: PageNumber,
    ) -> Option<(PageNumber, PageNumber)> {
        let kept = self.kept.as_ref()?;
        // Does not count as a use.
        let remembered = |page| kept.contains_key(&key(full.definition(), full.owner(), page));
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

    /// The page, from the cache or by `fetch`, once for all requests that ask for it at once.
    async fn find<F: Future<Output = Result<Option<Bucket>, Error>>>(
        &self,
        reader: &HistoryReader,
        owner: &OwnerId,
        page: PageNumber,
        reading: &mut Reading,
        fetch: impl Fn() -> F,
    ) -> Result<Option<Arc<Page>>, Error> {
        let (definition, epoch) = (reader.definition(), reading.epoch);
        let fetch = || async {
            let bucket = fetch().await?;
            Ok::<_, Error>(bucket.map(|bucket| Arc::new(Page::new(epoch, definition, owner, &bucket))))
        };
        let Some(kept) = &self.kept else { return reading.database(fetch()).await };
        if let Some(page) = self.remembered(reader, owner, page, reading).await {
            return Ok(Some(page));
        }
        let mut asked = None;
        let ask = async {
            let known = reader.known_now();
            match fetch().await {
                Ok(Some(page)) if page.full && self.is_kept(&page) => Some(Kept { page, known }),
                other => {
                    asked = Some(other);
                    None
                }
            }
        };
        let asked_for = key(definition, owner, page);
        match reading.database(Box::pin(kept.optionally_get_with(asked_for, ask))).await {
            Some(kept) => Ok(Some(kept.page)),
            None => match asked {
                Some(own) => own,
                // Another request read the page, perhaps before this one began.
                None => reading.database(fetch()).await,
            },
        }
    }

    /// The page, if the cache has it. Counts and notes the lookup, and takes out a page that may have been
    /// deleted.
    async fn remembered(
        &self,
        reader: &HistoryReader,
        owner: &OwnerId,
        page: PageNumber,
        reading: &mut Reading,
    ) -> Option<Arc<Page>> {
        let (kept, key) = (self.kept.as_ref()?, key(reader.definition(), owner, page));
        let mut found = kept.get(&key).await;
        if found.as_ref().is_some_and(|found| !reader.still_holds(found.known)) {
            // It may have been deleted since it was read.
            Box::pin(kept.invalidate(&key)).await;
            found = None;
        }
        reading.note_lookup(found.is_some());
        if found.is_some() { &self.hits } else { &self.misses }.increment(1);
        found.map(|found| found.page)
    }

    /// The page, if the cache has it, without waiting. Only [`Pages::count_hit`] counts the lookup.
    pub(crate) fn at_once(
        &self,
        reader: &HistoryReader,
        owner: &OwnerId,
        page: PageNumber,
    ) -> Option<Arc<Page>> {
        let found = self.kept.as_ref()?.get(&key(reader.definition(), owner, page)).now_or_never()??;
        reader.still_holds(found.known).then_some(found.page)
    }

    /// Counts a page that was in the cache.
    pub(crate) fn count_hit(&self) {
        self.hits.increment(1);
    }

    /// Whether the cache may keep a full page.
    fn is_kept(&self, page: &Page) -> bool {
        u64::from(weight(page)) <= self.bytes
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A handler is copied with the futures that it holds, for each request, before it runs.
    #[test]
    fn looking_a_page_up_takes_little_memory() {
        fn size<'a, F: Future>(
            _: impl Fn(&'a Pages, &'a HistoryReader, &'a OwnerId, PageNumber, &'a mut Reading) -> F,
        ) -> usize {
            size_of::<F>()
        }
        let page = size(Pages::page);
        assert!(page <= 1536, "{page} bytes");
    }
}
