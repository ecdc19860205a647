//! Readers share commands, as appends share commits.
//!
//! At most two commands that read single buckets of a collection are under way at once. What is asked
//! meanwhile waits; when one of them ends, one command reads all that waits. Nothing waits for a group to
//! grow: few readers have no added latency, and many a fraction of the work. A command never answers a
//! request that arrived after the command was sent, and one that hangs keeps the others for a second.
//!
//! The last buckets of many owners are a DISTINCT_SCAN, whatever the length of the histories
//! ([`tails`](crate::store::buckets::tails)). How a mongos runs that was not looked at: there each last
//! bucket is read alone. Pages are an OR over the index of owner and page: one key and one document a page.
//! A branch has one page and all owners whose page it is: a key in `$in` costs the server less than a branch.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Bson, Document, doc};
use pagebucket_model::domain::{OwnerId, PageNumber};
use pagebucket_model::trace::{self, TracedWait};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::Instrument;

use super::find::{self, find, find_page};
use crate::mongo::majority::at_most;
use crate::mongo::{Corruption, Deadline, Error, Result, Topology};
use crate::store::buckets::bucket_id::Tail;
use crate::store::buckets::document::Bucket;
use crate::store::buckets::marker;
use crate::store::buckets::tails::last_of_each;
use crate::store::collection::{HistoryCollection, NO_PAGE, owner_bson, owner_in, page_of};

/// The most commands of one collection under way at once. They are just enough to keep the server busy: each
/// further read waits and makes the next command larger. On two cores, with 4 to 64 connections, two were
/// 1.01 to 1.36 times as fast as four.
const MOST_UNDER_WAY: usize = 2;

/// The least buckets that may be under way at once, where so few fit into a reply that commands of one or two
/// would be no groups.
const LEAST_READ: usize = 16;

/// The longest time for which a command keeps others from being sent. One that hangs, because its server has
/// stopped, then keeps only its own readers.
const TURN: Duration = Duration::from_secs(1);

/// The most buckets in one command.
const MOST_READ: usize = 64;

/// The reads of single buckets of one collection. Clones share the state.
#[derive(Debug, Clone)]
pub(crate) struct GroupReads {
    source: Arc<HistoryCollection>,
    queue: Arc<Mutex<ReadQueue>>,
}

#[derive(Debug, Default)]
struct ReadQueue {
    under_way: usize,
    waiting: Vec<WaitingRead>,
}

#[derive(Debug)]
struct WaitingRead {
    wanted: WantedBucket,
    deadline: Deadline,
    answer: oneshot::Sender<Result<Option<Bucket>>>,
    /// If the request is traced.
    waiting: Option<Box<TracedWait>>,
}

/// The field in which a last bucket is found.
const BUCKET: &str = "bucket";

/// A bucket by its owner and its page; the owner's last bucket without a page.
type WantedBucket = (OwnerId, Option<PageNumber>);

impl GroupReads {
    pub(crate) fn of(source: Arc<HistoryCollection>) -> Self {
        Self { source, queue: Arc::default() }
    }

    /// Reads the last bucket of a history, from the primary.
    ///
    /// # Errors
    /// The database does not answer in time, or the bucket is corrupt or a marker.
    pub(crate) async fn last(&self, owner: &OwnerId, deadline: Deadline) -> Result<Option<Bucket>> {
        let wanted = (owner.clone(), None);
        match self.source.topology() {
            Topology::Sharded => self.alone(&wanted, deadline).await,
            _ => self.read(wanted.clone(), deadline, self.alone(&wanted, deadline)).await,
        }
    }

    /// Reads a page by its number, from the primary. `tail` is the tail of the history, if it is known.
    ///
    /// # Errors
    /// The database does not answer in time, the page is deleted, or the bucket is corrupt.
    pub(crate) async fn page(
        &self,
        owner: &OwnerId,
        page: PageNumber,
        tail: Option<Tail>,
        deadline: Deadline,
    ) -> Result<Option<Bucket>> {
        let of = self.source.of(owner, deadline);
        let alone = find_page(of, page, tail);
        match self.read((owner.clone(), Some(page)), deadline, alone).await? {
            None => marker::check_if_any(of, page).await.map(|()| None),
            found => Ok(found),
        }
    }

    /// Reads the bucket by `alone` at once, or with what else waits as soon as a command ends.
    async fn read(
        &self,
        wanted: WantedBucket,
        deadline: Deadline,
        alone: impl Future<Output = Result<Option<Bucket>>>,
    ) -> Result<Option<Bucket>> {
        let (answer, answered) = oneshot::channel();
        if let Some(turn) = self.turn_or_wait(WaitingRead { wanted, deadline, answer, waiting: None }) {
            return turn.during(alone).await;
        }
        let answered = deadline.wait_for(answered).await;
        answered.and_then(Result::ok).unwrap_or_else(|| Err(Error::no_answer()))
    }

    /// A turn to read at once. Without one, `read` waits.
    fn turn_or_wait(&self, mut read: WaitingRead) -> Option<Turn> {
        let most = MOST_UNDER_WAY.max(LEAST_READ / self.source.most_buckets());
        let mut queue = self.queue.lock();
        if queue.under_way < most {
            queue.under_way += 1;
            return Some(Turn(self.clone()));
        }
        read.waiting = TracedWait::begin(self.source.collection());
        queue.waiting.push(read);
        None
    }

    /// Answers requests that waited: pages by one command, last buckets by another.
    async fn answer(&self, waiting: Vec<WaitingRead>) {
        let (pages, tails): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|read| read.wanted.1.is_some());
        tokio::join!(self.answer_by_one(pages), self.answer_by_one(tails));
    }

    /// Answers requests by one command: all for pages, or all for last buckets.
    async fn answer_by_one(&self, waiting: Vec<WaitingRead>) {
        let mut wanted: Vec<_> = waiting.iter().map(|read| &read.wanted).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let deadline = Deadline::latest(waiting.iter().map(|read| read.deadline));
        // Sending fails if the reader is gone.
        if let [only] = wanted[..] {
            let found = self.alone(only, deadline).await;
            return waiting.into_iter().for_each(|read| drop(read.answer.send(found.clone())));
        }
        match self.find(&wanted, deadline).await {
            Ok(found) => waiting.into_iter().for_each(|WaitingRead { wanted, answer, .. }| {
                drop(answer.send(found.get(&wanted).cloned().transpose()));
            }),
            // It is not known whose bucket is corrupt.
            Err(Error::Corrupt(_)) => {
                let alone = |WaitingRead { wanted, deadline, answer, .. }| async move {
                    drop(answer.send(self.alone(&wanted, deadline).await));
                };
                stream::iter(waiting).for_each_concurrent(MOST_UNDER_WAY, alone).await;
            }
            Err(error) => waiting.into_iter().for_each(|read| drop(read.answer.send(Err(error.clone())))),
        }
    }

    /// Reads one bucket by a command of its own.
    async fn alone(&self, (owner, page): &WantedBucket, deadline: Deadline) -> Result<Option<Bucket>> {
        let of = self.source.of(owner, deadline);
        match page {
            Some(page) => find_page(of, *page, None).await,
            None => Ok(find(of, find::last(of), None).await?.pop()),
        }
    }

    /// These buckets, all pages or all last buckets, as far as they exist. A bucket that is corrupt, or a
    /// marker, is an error for its own readers only.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket has no readable owner or page.
    async fn find(
        &self,
        wanted: &[&WantedBucket],
        deadline: Deadline,
    ) -> Result<HashMap<WantedBucket, Result<Bucket>>> {
        let Some((_, page)) = wanted.first() else { return Ok(HashMap::new()) };
        let (definition, by_page) = (Arc::clone(&self.source.definition), page.is_some());
        let command = if by_page { pages_of_many } else { last_of_many };
        let read = move |found: &RawDocument| {
            let document = if by_page { found } else { found.get_document(BUCKET).unwrap_or(found) };
            let field = &definition.owner.field;
            let owner = owner_in(document, &definition.owner)
                .ok_or_else(|| Corruption::of(document, field, "is not an id of the right type"))?;
            let page = page_of(document).ok_or_else(|| Corruption::of(document, "page", NO_PAGE))?;
            let bucket = find::bucket(document, &owner, &definition);
            Ok(((owner, by_page.then_some(page)), bucket))
        };
        let found = self.source.reads.find(command(&self.source, wanted), deadline, read).await?;
        if found.iter().any(|(_, bucket)| matches!(bucket, Err(Error::Gone(_)))) {
            self.source.markers.met();
        }
        Ok(found.into_iter().collect())
    }
}

/// The right to have a command under way. At its end what waits is read by the next one, also after a panic
/// or when the reader has gone.
struct Turn(GroupReads);

impl Turn {
    /// Reads, and gives the turn to those who wait when that has ended or has taken [`TURN`].
    async fn during<T>(self, read: impl Future<Output = T>) -> T {
        let mut read = pin!(read);
        if let Ok(answer) = timeout(TURN, &mut read).await {
            return answer;
        }
        drop(self);
        read.await
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.waiting.retain(|read| !read.answer.is_closed());
        let most = MOST_READ.min(self.0.source.most_buckets()).min(queue.waiting.len());
        let mut next: Vec<_> = queue.waiting.drain(..most).collect();
        match Handle::try_current() {
            Ok(runtime) if most > 0 => {
                // A runtime that ends drops the task, and with it the turn, at once.
                drop(queue);
                let (turn, reads) = (Turn(self.0.clone()), self.0.clone());
                let requests = next.iter_mut().map(|read| &mut read.waiting);
                let span = trace::together("group read", self.0.source.collection(), requests);
                runtime.spawn(turn.during(async move { reads.answer(next).await }).instrument(span));
            }
            _ => queue.under_way -= 1,
        }
    }
}

/// The command that finds the last buckets of these owners.
fn last_of_many(source: &HistoryCollection, wanted: &[&WantedBucket]) -> Document {
    let owners = wanted.iter().map(|(owner, _)| owner_bson(owner)).collect();
    last_of_each(source, owners, doc! { BUCKET: { "$first": "$$ROOT" } })
}

/// The command that finds these pages.
fn pages_of_many(source: &HistoryCollection, wanted: &[&WantedBucket]) -> Document {
    let mut owners = BTreeMap::<_, Vec<Bson>>::new();
    for (owner, page) in wanted {
        owners.entry(page).or_default().push(owner_bson(owner));
    }
    let field = source.owner_field();
    let branches: Vec<_> =
        owners.into_iter().map(|(page, owners)| doc! { field: { "$in": owners }, "page": page }).collect();
    let mut command = at_most(source.collection(), doc! { "$or": branches }, wanted.len(), source.by_page());
    command.remove("sort");
    command
}
