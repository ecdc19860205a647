//! Counting views, from a request to its answer.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use futures_util::future::join_all;

use super::engine::PageViews;
use super::outcome::{CountCause, CountError, Counted};
use super::policy::{Name, Request};
use crate::domain::{Minute, PageView};
use crate::store::Deadline;
use crate::store::group_commit::{NoAnswer, Pending, Ticket};

/// The views that a request adds to one bucket.
#[derive(Debug, Default)]
struct Part {
    seconds: BTreeMap<u8, u64>,
    /// The indexes of these views in the request.
    items: Vec<usize>,
}

impl PageViews {
    /// Counts views. Views of one page and minute are merged, also with those of other requests.
    ///
    /// Counting goes on to its end even if the caller stops waiting. `deadline` is shortened to one command's.
    ///
    /// # Errors
    /// See [`CountError`]. If there is no room for all of the views, none is counted.
    pub async fn count(&self, views: Vec<PageView>, deadline: Deadline) -> Result<(), CountError> {
        let all = views.len();
        let refused = |cause| CountError { counted: 0, unknown: 0, not_counted: (0..all).collect(), cause };
        let parts = merged(views);
        let (counters, most) =
            (parts.values().map(|part| part.seconds.len()).sum(), self.counting.queue.size());
        if counters > most {
            return Err(refused(CountCause::TooManyCounters { counters, most }));
        }
        let mut requests = Vec::new();
        for (name, Part { seconds, items }) in parts {
            // All parts get room before any part is sent.
            let queue = &self.counting.queue;
            let room = queue.room(hash(&name), seconds.len(), queue.most_of_a_key());
            let room = room.map_err(|_full| refused(CountCause::Overloaded))?;
            let (ticket, pending) = Ticket::new(deadline, room);
            let views: u64 = seconds.values().sum();
            requests.push((Request::new(name, seconds, ticket), pending, views, items));
        }
        // Sends at once, so that all parts are sent before the first answer is awaited, even if the caller stops waiting.
        let send = |(request, pending, views, items): (Request, Pending<Counted>, u64, Vec<usize>)| {
            // A committer that has panicked drops the request; its answer is then an unknown outcome.
            let _ = self.counting.committers.by_hash(hash(&request.name)).request(request);
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
        self.counting.queue.drain().await;
    }
}

fn hash(name: &Name) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(name)
}

/// Merges views by page and minute.
fn merged(views: Vec<PageView>) -> HashMap<Name, Part> {
    let mut parts: HashMap<Name, Part> = HashMap::new();
    for (item, view) in views.into_iter().enumerate() {
        let name = Name { path: view.path, minute: Minute::of(view.at) };
        let part = parts.entry(name).or_default();
        *part.seconds.entry(Minute::second_of(view.at)).or_default() += u64::from(view.views);
        part.items.push(item);
    }
    parts
}
