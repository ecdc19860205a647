//! Counting views, from a request to its answer; and creating the buckets of an hour before they are needed.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use bson::Document;
use futures_util::future::join_all;
use pagebucket_engine::internal::documents::{NoAnswer, Pending, Ticket, Verdict};
use pagebucket_engine::internal::{COMMAND, PAGE_VIEWS};
use pagebucket_engine::{Deadline, Error};

use crate::document;
use crate::engine::PageViews;
use crate::page_view::{PageView, Preallocation};
use crate::policy::{CountCause, CountOutcome, Name, Request};
use crate::resolution::Minute;

/// How far a failed count came, and why it failed.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct CountError {
    /// The number of views that are counted.
    pub counted: u64,
    /// The number of views that may or may not be counted.
    pub unknown: u64,
    /// The indexes, ascending, of the given views that are not counted.
    pub not_counted: Vec<usize>,
    /// Why not all views are known to be counted.
    #[source]
    pub cause: CountCause,
}

/// How many buckets of an hour were created or existed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Preallocated {
    /// The number of buckets that were created.
    pub created: u32,
    /// The number of buckets that existed, with views or without. They are unchanged.
    pub existing: u32,
}

const MINUTES: u32 = 60;

/// The views that a request adds to one bucket.
#[derive(Debug, Default)]
struct BucketViews {
    seconds: BTreeMap<u8, u64>,
    /// The indexes of these views in the request.
    items: Vec<usize>,
}

impl PageViews {
    /// Counts views. Views of one page and minute are merged, also with those of other requests.
    ///
    /// Counting goes on to its end even if the caller stops waiting. `deadline` is shortened to one
    /// command's.
    ///
    /// # Errors
    /// See [`CountError`]. If there is no room for all of the views, none is counted.
    pub async fn count(&self, views: Vec<PageView>, deadline: Deadline) -> Result<(), CountError> {
        let all = views.len();
        let refused = |cause| CountError { counted: 0, unknown: 0, not_counted: (0..all).collect(), cause };
        let mut parts: HashMap<Name, BucketViews> = HashMap::new();
        for (item, view) in views.into_iter().enumerate() {
            let name = Name { path: view.path, minute: Minute::of(view.at) };
            let part = parts.entry(name).or_default();
            *part.seconds.entry(Minute::second_of(view.at)).or_default() += u64::from(view.views);
            part.items.push(item);
        }
        let counters = parts.values().map(|part| part.seconds.len()).sum();
        let most = self.queue.size();
        if counters > most {
            return Err(refused(CountCause::TooManyCounters { counters, most }));
        }
        let mut requests = Vec::new();
        for (name, BucketViews { seconds, items }) in parts {
            // All parts get room before any part is sent.
            let room = self.queue.reserve(hash(&name), None, seconds.len(), self.queue.most_of_a_key());
            let room = room.map_err(|_full| refused(CountCause::Overloaded))?;
            let (ticket, pending) = Ticket::new(deadline, room);
            let views: u64 = seconds.values().sum();
            requests.push((Request { name, seconds, attempts: 0, ticket }, pending, views, items));
        }
        // Sends at once, so that all parts are sent before the first answer is awaited, even if the caller
        // stops waiting.
        let send = |(request, pending, views, items): (Request, Pending<CountOutcome>, u64, Vec<usize>)| {
            // A committer that has panicked drops the request; its answer is then an unknown outcome.
            let _ = self.committers.by_hash(hash(&request.name)).request(request);
            async move {
                let answer = pending.answer().await.unwrap_or_else(|no_answer| match no_answer {
                    NoAnswer::Withdrawn => Err(CountCause::Overloaded),
                    NoAnswer::Lost => Err(CountCause::OutcomeUnknown),
                });
                (views, items, answer)
            }
        };
        let answers = join_all(requests.into_iter().map(send)).await;
        let (mut counted, mut unknown, mut not_counted, mut failed) = (0, 0, Vec::new(), None);
        for (views, items, answer) in answers {
            match answer {
                Ok(()) => counted += views,
                Err(CountCause::OutcomeUnknown) => {
                    unknown += views;
                    failed = Some(CountCause::OutcomeUnknown);
                }
                Err(cause) => {
                    not_counted.extend(items);
                    failed = failed.or(Some(cause));
                }
            }
        }
        not_counted.sort_unstable();
        failed.map_or(Ok(()), |cause| Err(CountError { counted, unknown, not_counted, cause }))
    }

    /// Waits until no views are queued, including those of clients that have disconnected. New views are
    /// refused meanwhile.
    pub async fn drain(&self) {
        self.queue.drain().await;
    }

    /// Creates the missing buckets of an hour, without views. A repeat changes nothing.
    ///
    /// The work goes on to its end even if the caller stops waiting. `deadline` is shortened to one
    /// command's.
    ///
    /// # Errors
    /// The database does not answer, or gives no final answer in time. Some of the buckets may exist then,
    /// and the call may be repeated.
    pub async fn preallocate(
        &self,
        wanted: &Preallocation,
        deadline: Deadline,
    ) -> Result<Preallocated, CountCause> {
        let deadline = deadline.or_within(COMMAND);
        // Minutes after the year 9999 do not exist.
        let minutes = (0..MINUTES).filter_map(|minute| wanted.hour.plus(minute).ok());
        let documents: Vec<Document> = minutes.map(|minute| document::zeros(&wanted.path, minute)).collect();
        let verdicts = self.documents.insert(PAGE_VIEWS, documents, deadline).await?;
        let mut done = Preallocated::default();
        for verdict in verdicts {
            match verdict {
                Verdict::Stored => done.created += 1,
                Verdict::Refused => done.existing += 1,
                other => Err(Error::internal(format!("a bucket was not created: {other:?}")))?,
            }
        }
        Ok(done)
    }
}

fn hash(name: &Name) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(name)
}
