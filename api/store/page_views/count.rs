//! Counting views, from a request to its answer.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use futures_util::future::join_all;

use super::PageViews;
use super::ledger::{Counted, Name, Request};
use crate::domain::{Minute, PageView};
use crate::store::group_commit::{NoAnswer, Pending, Ticket};
use crate::store::{Deadline, Error};

/// What a count that failed has counted. Of all its views, those that are neither counted nor unknown are not
/// counted.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct CountError {
    /// So many views are counted.
    pub counted: u64,
    /// So many may or may not be counted.
    pub unknown: u64,
    /// Why it went no further.
    #[source]
    pub cause: CountCause,
}

/// Why views are not counted, or may not be.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CountCause {
    /// The database gave no answer to trust before the deadline.
    #[error("the outcome of a command is unknown")]
    OutcomeUnknown,
    /// Too much is waiting to be counted, or this has waited for too long.
    #[error("too many views are waiting to be counted")]
    Overloaded,
    /// The database failed before anything more was sent to it, or refused it for good.
    #[error(transparent)]
    Database(#[from] Error),
}

/// Views of one page and minute that are on their way.
struct Sent {
    views: u64,
    pending: Pending<Counted>,
}

impl PageViews {
    /// Counts views, those of one page and minute together, also with those of other requests.
    ///
    /// It goes on to its end when the caller stops waiting. `deadline` is shortened to one command's.
    ///
    /// # Errors
    /// See [`CountError`]. Where there is no room for all of them, none is counted.
    pub async fn count(&self, views: Vec<PageView>, deadline: Deadline) -> Result<(), CountError> {
        let mut requests = Vec::new();
        for (name, seconds) in merged(views) {
            // Room for all before any is sent.
            let room =
                self.counting.queue.room(seconds.len()).ok_or_else(|| nothing(CountCause::Overloaded))?;
            let (ticket, pending) = Ticket::new(deadline, room);
            let sent = Sent { views: seconds.values().sum(), pending };
            requests.push((Request::new(name, seconds, ticket), sent));
        }
        let mut sent = Vec::with_capacity(requests.len());
        let mut failed = None;
        for (request, waiting) in requests {
            let committer = self.counting.committers.by_hash(hash(&request.name));
            match committer.request(request) {
                true => sent.push(waiting),
                false => failed = Some(Error::Internal("a committer has ended".to_owned()).into()),
            }
        }
        let (mut counted, mut unknown) = (0, 0);
        for (views, answer) in join_all(sent.into_iter().map(Sent::answer)).await {
            match answer {
                Ok(()) => counted += views,
                Err(CountCause::OutcomeUnknown) => {
                    unknown += views;
                    failed = Some(CountCause::OutcomeUnknown);
                }
                Err(cause) => failed = failed.or(Some(cause)),
            }
        }
        failed.map_or(Ok(()), |cause| Err(CountError { counted, unknown, cause }))
    }

    /// Waits until nothing is queued: what clients that have hung up left behind is settled, too. New
    /// views are refused meanwhile.
    pub async fn settled(&self) {
        self.counting.queue.settled().await;
    }
}

impl Sent {
    async fn answer(self) -> (u64, Counted) {
        let answer = match self.pending.answer().await {
            Ok(counted) => counted,
            Err(NoAnswer::Withdrawn) => Err(CountCause::Overloaded),
            Err(NoAnswer::Lost) => Err(CountCause::OutcomeUnknown),
        };
        (self.views, answer)
    }
}

fn nothing(cause: CountCause) -> CountError {
    CountError { counted: 0, unknown: 0, cause }
}

fn hash(name: &Name) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// By page and minute, the views of each second.
fn merged(views: Vec<PageView>) -> HashMap<Name, BTreeMap<u8, u64>> {
    let mut buckets: HashMap<Name, BTreeMap<u8, u64>> = HashMap::new();
    for view in views {
        let name = Name { path: view.path, minute: Minute::of(view.at) };
        let second = buckets.entry(name).or_default().entry(Minute::second_of(view.at)).or_default();
        *second += u64::from(view.views);
    }
    buckets
}
