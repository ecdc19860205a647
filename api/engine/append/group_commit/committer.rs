//! Committers: each commits the requests that queued during its last commit.
//!
//! There are a few committers. A key always has the same one, and at most one commit of a key is under way,
//! so the order of its requests is kept. (The bucket catalog of MongoDB's own time-series collections does
//! the same.)
//!
//! A commit that takes long is *parked*: its keys wait for it, and the committer goes on with other keys, in
//! other sessions. Most parked commits have an unknown outcome and are being replayed.
//!
//! A key whose requests were refused pauses for a short random time before they are committed again.
//! Otherwise two instances that append to one owner could refuse each other again and again. Other keys go on
//! meanwhile.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel};

use crate::tasks;

/// How long a committer waits for a commit before it goes on with other keys. An ordinary commit takes
/// milliseconds.
const TURN: Duration = Duration::from_secs(1);

/// The longest pause after a first refusal. It doubles with each further refusal, at most [`MOST_DOUBLINGS`]
/// times.
const PAUSE: Duration = Duration::from_millis(4);

/// See [`PAUSE`]. Few, because a pause delays all requests of the key.
const MOST_DOUBLINGS: u32 = 3;

const MOST_KEYS: usize = 1_000;

/// A commit takes no more keys once it has this weight, in bytes of memory: enough that many requests share a
/// journal flush (10,000 trades), and few enough that no request waits long.
const FULL_WEIGHT: usize = 1_280 * 1024;

/// The types of the messages that committers of one kind receive.
pub trait Messages: 'static {
    /// Requests with the same key are committed in order, one commit after the other.
    type Key: Clone + Eq + Hash + Send + Sync + 'static;
    /// A request of a client.
    type Request: Send + 'static;
    /// The outcome of a batch.
    type Settled: Send + 'static;
}

/// How one committer forms batches of requests, and what it remembers between commits.
pub trait BatchPolicy<M: Messages>: Send + 'static {
    /// One key's part of a commit.
    type Batch: Send + 'static;

    /// What a request is merged by.
    fn key(request: &M::Request) -> M::Key;

    /// How often a request was refused.
    fn refusals(request: &M::Request) -> u32;

    /// Takes the first of a key's waiting requests, at least one and as many as fit into one commit. Returns
    /// the batch and its weight. Returns `None` if none of the taken requests is to be committed. A request
    /// is not committed if its client was already answered that it waited too long, or is answered here that
    /// too little time is left.
    fn next_batch(
        &mut self,
        key: &M::Key,
        waiting: &mut VecDeque<M::Request>,
    ) -> Option<(Self::Batch, usize)>;

    /// Commits at least one batch, and reports each to the committer as soon as it is settled.
    fn commit(
        &self,
        batches: Vec<Self::Batch>,
        committer: Handle<M>,
    ) -> impl Future<Output = ()> + Send + 'static;

    /// Learns the outcome of a batch. Returns its key and the requests to commit again, before any other
    /// request of the key.
    fn settle(&mut self, settled: M::Settled) -> (M::Key, Vec<M::Request>);

    /// A commit has ended without an outcome for this key.
    fn lost(&mut self, _key: &M::Key) {}
}

enum CommitterEvent<M: Messages> {
    /// A new request.
    Request(M::Request),
    /// A request that a commit has taken and not committed.
    PutBack(M::Request),
    /// The outcome of a batch.
    Settled(M::Settled),
    /// A commit has ended; its keys are free, settled or not.
    Ended { number: u64, keys: Vec<M::Key> },
    /// The pause of a key after a refusal is over.
    Paused(M::Key),
    /// The next commit may begin: the previous one has ended or takes long.
    Free,
}

/// Sends messages to a committer. The committer lives as long as one of its handles.
pub struct Handle<M: Messages>(UnboundedSender<CommitterEvent<M>>);

impl<M: Messages> Handle<M> {
    /// Sends a new request. Returns false, and the request is lost, if the committer has ended.
    #[must_use]
    pub fn request(&self, request: M::Request) -> bool {
        self.0.send(CommitterEvent::Request(request)).is_ok()
    }

    /// Returns a request that a commit has taken and not committed. It is committed before the waiting
    /// requests.
    pub(crate) fn put_back(&self, request: M::Request) {
        // The committer outlives its commits, because they hold a handle.
        let _ = self.0.send(CommitterEvent::PutBack(request));
    }

    /// Reports the outcome of a batch.
    pub fn settled(&self, settled: M::Settled) {
        // The committer outlives its commits, because they hold a handle.
        let _ = self.0.send(CommitterEvent::Settled(settled));
    }
}

impl<M: Messages> Clone for Handle<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The committers of one kind.
#[derive(derive_more::Debug)]
#[debug("Committers")]
pub struct Committers<M: Messages>(Box<[Handle<M>]>);

impl<M: Messages> Committers<M> {
    /// Starts `count` committers, at least one, each with its own policy. Each has one commit under way; with
    /// a few of them, some keep the server's journal busy while others wait for it. After this value is
    /// dropped they finish their work and end.
    pub fn start<P: BatchPolicy<M>>(count: usize, policy: impl Fn(usize) -> P) -> Self {
        Self((0..count).map(|number| start(policy(number))).collect())
    }

    /// The committer of keys with this hash, always the same one.
    pub fn by_hash(&self, hash: u64) -> &Handle<M> {
        &self.0[hash as usize % self.0.len()]
    }
}

struct Committer<M: Messages, P: BatchPolicy<M>> {
    policy: P,
    /// Its own handle, which does not keep it alive.
    own: WeakUnboundedSender<CommitterEvent<M>>,
    waiting: HashMap<M::Key, VecDeque<M::Request>>,
    /// Keys with waiting requests and no commit under way, in order of arrival.
    ready: VecDeque<M::Key>,
    /// Keys with a commit under way, and the number of that commit.
    busy: HashMap<M::Key, u64>,
    commits: u64,
    /// Commits under way that are not parked: 0 or 1.
    committing: usize,
}

/// Starts a committer. It ends when all of its handles are dropped.
fn start<M: Messages, P: BatchPolicy<M>>(policy: P) -> Handle<M> {
    let (sender, inbox) = unbounded_channel();
    let own = sender.downgrade();
    let committer = Committer {
        policy,
        own,
        waiting: HashMap::new(),
        ready: VecDeque::new(),
        busy: HashMap::new(),
        commits: 0,
        committing: 0,
    };
    tasks::start("committer", committer.run(inbox));
    Handle(sender)
}

impl<M: Messages, P: BatchPolicy<M>> Committer<M, P> {
    async fn run(mut self, mut inbox: UnboundedReceiver<CommitterEvent<M>>) {
        while let Some(message) = inbox.recv().await {
            let panicked = tasks::step("committer", || {
                self.receive(message);
                while let Ok(message) = inbox.try_recv() {
                    self.receive(message);
                }
                while self.committing == 0 && !self.ready.is_empty() {
                    self.commit();
                }
            });
            if panicked {
                self.give_up();
            }
        }
    }

    /// After a panic: drops the requests that wait, so that their clients are told. Commits that are under
    /// way go on.
    fn give_up(&mut self) {
        self.waiting.clear();
        self.ready.clear();
        self.busy.keys().for_each(|key| self.policy.lost(key));
    }

    fn receive(&mut self, message: CommitterEvent<M>) {
        match message {
            CommitterEvent::Request(request) => self.queue(request, VecDeque::push_back),
            CommitterEvent::PutBack(request) => self.queue(request, VecDeque::push_front),
            CommitterEvent::Settled(settled) => {
                let (key, again) = self.policy.settle(settled);
                let refusals = again.iter().map(P::refusals).max().unwrap_or(0);
                if !again.is_empty() {
                    let waiting = self.waiting.entry(key.clone()).or_default();
                    again.into_iter().rev().for_each(|request| waiting.push_front(request));
                }
                match refusals {
                    0 => self.release(key),
                    _ => self.pause(key, refusals),
                }
            }
            CommitterEvent::Paused(key) => self.release(key),
            CommitterEvent::Ended { number, keys } => {
                for key in keys {
                    if self.busy.get(&key) == Some(&number) {
                        self.policy.lost(&key);
                        self.release(key);
                    }
                }
            }
            CommitterEvent::Free => self.committing -= 1,
        }
    }

    fn queue(&mut self, request: M::Request, push: impl FnOnce(&mut VecDeque<M::Request>, M::Request)) {
        let key = P::key(&request);
        // Capacity 1: most keys have no second request waiting.
        let waiting = self.waiting.entry(key.clone()).or_insert_with(|| VecDeque::with_capacity(1));
        push(waiting, request);
        if waiting.len() == 1 && !self.busy.contains_key(&key) {
            self.ready.push_back(key);
        }
    }

    fn release(&mut self, key: M::Key) {
        self.busy.remove(&key);
        if self.waiting.contains_key(&key) {
            self.ready.push_back(key);
        }
    }

    /// Releases a key after a random time.
    fn pause(&mut self, key: M::Key, refusals: u32) {
        let Some(own) = self.own.upgrade() else { return };
        // A new number, so that the end of the refused commit does not release the key.
        self.commits += 1;
        self.busy.insert(key.clone(), self.commits);
        tokio::spawn(async move {
            tokio::time::sleep(pause(refusals)).await;
            // The committer still exists, because this task holds a handle.
            let _ = own.send(CommitterEvent::Paused(key));
        });
    }

    /// Commits waiting requests, as many as fit into one commit.
    fn commit(&mut self) {
        let Some(own) = self.own.upgrade().map(Handle) else {
            // No handle exists, so no client waits.
            self.ready.clear();
            return;
        };
        self.commits += 1;
        let mut batches = Vec::new();
        let mut keys = Vec::new();
        let mut weight = 0;
        while batches.len() < MOST_KEYS && weight < FULL_WEIGHT {
            let Some(key) = self.ready.pop_front() else { break };
            if let Some((batch, more)) = self.next_batch(&key) {
                weight += more;
                batches.push(batch);
                keys.push(key);
            }
        }
        if batches.is_empty() {
            return;
        }
        self.committing += 1;
        self.busy.extend(keys.iter().map(|key| (key.clone(), self.commits)));
        let ending = AtEnd(Some(CommitterEvent::Ended { number: self.commits, keys }), own.clone());
        let turn = AtEnd(Some(CommitterEvent::Free), own.clone());
        let commit = self.policy.commit(batches, own);
        tasks::start(
            "committer",
            patiently(turn, async move {
                let _ending = ending;
                commit.await;
            }),
        );
    }

    /// The next batch of a key, if a client still waits for one of its requests.
    fn next_batch(&mut self, key: &M::Key) -> Option<(P::Batch, usize)> {
        let waiting = self.waiting.get_mut(key)?;
        let mut batch = None;
        while batch.is_none() && !waiting.is_empty() {
            batch = self.policy.next_batch(key, waiting);
        }
        if waiting.is_empty() {
            self.waiting.remove(key);
        }
        batch
    }
}

/// A random pause between half of the longest pause after this many refusals (at least one) and all of it.
fn pause(refusals: u32) -> Duration {
    let longest = PAUSE * 2_u32.pow((refusals - 1).min(MOST_DOUBLINGS));
    longest.mul_f64(rand::random_range(0.5..=1.0))
}

/// Runs `work` to its end, but gives up its turn after [`TURN`].
async fn patiently<M: Messages>(turn: AtEnd<M>, work: impl Future<Output = ()>) {
    let mut work = std::pin::pin!(work);
    if tokio::time::timeout(TURN, &mut work).await.is_err() {
        drop(turn);
        work.await;
    }
}

/// When dropped, also by a panic, sends an event to the committer.
struct AtEnd<M: Messages>(Option<CommitterEvent<M>>, Handle<M>);

impl<M: Messages> Drop for AtEnd<M> {
    fn drop(&mut self) {
        if let Some(event) = self.0.take() {
            // The committer still exists, because this value holds a handle.
            let _ = self.1.0.send(event);
        }
    }
}
