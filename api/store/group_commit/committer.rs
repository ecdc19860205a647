//! Committers: each drains what queued while its last commit was under way.
//!
//! There are a few, and a key always has the same one, so that one key's order is kept: at most one of
//! its commits is under way. There is no timer: an idle committer commits at once, a busy one what has
//! come meanwhile, and one journal flush serves them all. (The bucket catalog of MongoDB's own
//! time-series collections does the same.)
//!
//! A commit that takes long, above all one whose outcome is unknown and which is being replayed, is
//! *parked*: its keys wait for it, and the committer goes on with the others, in other sessions.
//!
//! A key whose requests were refused pauses for a short random time before they are committed again, so that
//! two instances that append to one customer do not refuse each other in step. Other keys go on meanwhile.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel};

/// Committers of one kind in a process. Each has one commit under way; a few of them keep the server's
/// journal busy while others wait for it.
const COMMITTERS: usize = 4;

/// How long a committer waits for a commit before it goes on with other keys. An ordinary one takes
/// milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest pause after a first refusal. It doubles with each of the next refusals, at most
/// [`MOST_DOUBLINGS`] times.
const PAUSE: Duration = Duration::from_millis(4);

/// See [`PAUSE`]: few, because a pause delays everything that waits for the key.
const MOST_DOUBLINGS: u32 = 3;

/// Keys in one commit.
const MOST_KEYS: usize = 1_000;

/// The weight of one commit, but for what the last key brings: enough that a journal flush is shared by
/// many, few enough that none waits long behind others.
const ENOUGH: usize = 10_000;

/// What a committer of one kind is told.
pub(in crate::store) trait Messages: 'static {
    /// Whose requests are committed together, in order, one commit after the other.
    type Key: Clone + Eq + Hash + Send + Sync + 'static;
    /// What a client wants.
    type Request: Send + 'static;
    /// What became of one key's part of a commit.
    type Settled: Send + 'static;
    /// What else a policy is told.
    type Message: Send + 'static;
}

/// What one committer remembers, and what it makes of requests.
pub(in crate::store) trait BatchPolicy<M: Messages>: Send + 'static {
    /// One key's part of a commit.
    type Batch: Send + 'static;

    fn key(request: &M::Request) -> M::Key;

    /// How often a request was refused.
    fn refusals(request: &M::Request) -> u32;

    /// Takes the first of a key's requests, as many as go into one commit, at least one of them; the last
    /// part is how much that weighs. `None` where none of those is to be committed: its client was told that
    /// it waited too long, or is told here that too little time is left.
    fn next_batch(
        &mut self,
        key: &M::Key,
        waiting: &mut VecDeque<M::Request>,
    ) -> Option<(Self::Batch, usize)>;

    /// Commits batches, at least one, and tells the committer of each as soon as it is settled.
    fn commit(
        &self,
        batches: Vec<Self::Batch>,
        committer: Handle<M>,
    ) -> impl Future<Output = ()> + Send + 'static;

    /// Learns what became of a batch. Returns whose it was, and the requests to be committed anew, before
    /// any other of the key.
    fn settle(&mut self, settled: M::Settled) -> (M::Key, Vec<M::Request>);

    /// A commit has ended without a word of this key.
    fn lost(&mut self, key: &M::Key);

    /// Is told something else.
    fn receive(&mut self, message: M::Message, busy: &Busy<M::Key>);

    /// Work besides the commits, if there is any now: one after the other, unless one takes long.
    fn background_task(&mut self, committer: &Handle<M>) -> Option<BoxFuture<'static, ()>>;
}

/// Keys with a commit under way, by the number of that commit.
pub(in crate::store) type Busy<K> = HashMap<K, u64>;

enum Event<M: Messages> {
    /// A new request.
    Request(M::Request),
    /// One that a commit has taken, and that was not committed.
    PutBack(M::Request),
    /// For the policy.
    Message(M::Message),
    /// What became of one key's part of a commit.
    Settled(M::Settled),
    /// A commit has ended; its keys are free, settled or not.
    Ended { number: u64, keys: Vec<M::Key> },
    /// A key has paused for long enough after a refusal.
    Paused(M::Key),
    /// The next may begin: one has ended, or takes long.
    Free(Lane),
}

/// What a committer does one after the other, unless one takes long.
#[derive(Debug, Clone, Copy)]
enum Lane {
    Commits,
    Background,
}

/// Where a committer gets its messages. It lives as long as somebody has its address.
pub(in crate::store) struct Handle<M: Messages>(UnboundedSender<Event<M>>);

impl<M: Messages> Handle<M> {
    /// A new request. False, and lost, if the committer has ended: by a panic.
    #[must_use]
    pub(in crate::store) fn request(&self, request: M::Request) -> bool {
        self.0.send(Event::Request(request)).is_ok()
    }

    /// A request that a commit has taken and was settled without. It is committed before those that wait.
    pub(in crate::store) fn put_back(&self, request: M::Request) {
        // The committer outlives its commits: they hold its address.
        let _ = self.0.send(Event::PutBack(request));
    }

    /// Something for the policy. False, and lost, if the committer has ended: by a panic.
    pub(in crate::store) fn send(&self, message: M::Message) -> bool {
        self.0.send(Event::Message(message)).is_ok()
    }

    /// What became of a batch.
    pub(in crate::store) fn settled(&self, settled: M::Settled) {
        // The committer outlives its commits: they hold its address.
        let _ = self.0.send(Event::Settled(settled));
    }
}

impl<M: Messages> Clone for Handle<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The committers of one kind.
pub(in crate::store) struct Committers<M: Messages>([Handle<M>; COMMITTERS]);

impl<M: Messages> Committers<M> {
    /// How many there are.
    pub(in crate::store) const COUNT: usize = COMMITTERS;

    /// Starts them, each with a policy of its own. They end when this is dropped, and what they do is done.
    pub(in crate::store) fn start<P: BatchPolicy<M>>(policy: impl Fn(usize) -> P) -> Self {
        Self(std::array::from_fn(|number| start(policy(number))))
    }

    /// The committer of a key with this hash, always the same.
    pub(in crate::store) fn by_hash(&self, hash: u64) -> &Handle<M> {
        &self.0[hash as usize % COMMITTERS]
    }
}

impl<M: Messages> std::fmt::Debug for Committers<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Committers")
    }
}

struct Committer<M: Messages, P: BatchPolicy<M>> {
    policy: P,
    /// Its own address, which does not keep it alive.
    own: WeakUnboundedSender<Event<M>>,
    waiting: HashMap<M::Key, VecDeque<M::Request>>,
    /// Keys with waiting requests and no commit under way, in order of arrival.
    ready: VecDeque<M::Key>,
    busy: Busy<M::Key>,
    commits: u64,
    /// Commits under way that are not parked: none or one.
    committing: usize,
    /// Background tasks under way that do not take long: none or one.
    in_background: usize,
}

/// Starts a committer. It ends when every address of it is dropped.
fn start<M: Messages, P: BatchPolicy<M>>(policy: P) -> Handle<M> {
    let (address, inbox) = unbounded_channel();
    let committer = Committer {
        policy,
        own: address.downgrade(),
        waiting: HashMap::new(),
        ready: VecDeque::new(),
        busy: HashMap::new(),
        commits: 0,
        committing: 0,
        in_background: 0,
    };
    tokio::spawn(committer.run(inbox));
    Handle(address)
}

impl<M: Messages, P: BatchPolicy<M>> Committer<M, P> {
    async fn run(mut self, mut inbox: UnboundedReceiver<Event<M>>) {
        while let Some(message) = inbox.recv().await {
            self.receive(message);
            while let Ok(message) = inbox.try_recv() {
                self.receive(message);
            }
            while self.committing == 0 && !self.ready.is_empty() {
                self.commit();
            }
            if self.in_background == 0 {
                self.run_background_task();
            }
        }
    }

    fn receive(&mut self, message: Event<M>) {
        match message {
            Event::Request(request) => self.queue(request, VecDeque::push_back),
            Event::PutBack(request) => self.queue(request, VecDeque::push_front),
            Event::Message(message) => self.policy.receive(message, &self.busy),
            Event::Settled(settled) => {
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
            Event::Paused(key) => self.release(key),
            Event::Ended { number, keys } => {
                for key in keys {
                    if self.busy.get(&key) == Some(&number) {
                        self.policy.lost(&key);
                        self.release(key);
                    }
                }
            }
            Event::Free(Lane::Commits) => self.committing -= 1,
            Event::Free(Lane::Background) => self.in_background -= 1,
        }
    }

    fn queue(&mut self, request: M::Request, push: impl FnOnce(&mut VecDeque<M::Request>, M::Request)) {
        let key = P::key(&request);
        // Room for one: most keys have no second request waiting.
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
        // Busy under a number of its own: the end of the commit that was refused does not release it.
        self.commits += 1;
        self.busy.insert(key.clone(), self.commits);
        tokio::spawn(async move {
            tokio::time::sleep(pause(refusals)).await;
            // The committer cannot be gone: we hold its address.
            let _ = own.send(Event::Paused(key));
        });
    }

    /// Commits what waits, as much as goes into one commit.
    fn commit(&mut self) {
        let Some(own) = self.own.upgrade().map(Handle) else {
            // Nothing holds an address: no client waits.
            self.ready.clear();
            return;
        };
        self.commits += 1;
        let mut batches = Vec::new();
        let mut keys = Vec::new();
        let mut weight = 0;
        while batches.len() < MOST_KEYS && weight < ENOUGH {
            let Some(key) = self.ready.pop_front() else { break };
            if let Some((batch, more)) = self.next_batch(&key) {
                weight += more;
                batches.push(batch);
                self.busy.insert(key.clone(), self.commits);
                keys.push(key);
            }
        }
        if batches.is_empty() {
            return;
        }
        self.committing += 1;
        let ending = Ending { number: self.commits, keys, address: own.clone() };
        let turn = Turn { lane: Lane::Commits, address: own.clone() };
        let commit = self.policy.commit(batches, own);
        tokio::spawn(patiently(turn, async move {
            let _ending = ending;
            commit.await;
        }));
    }

    /// The first of a key's requests for which somebody waits.
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

    fn run_background_task(&mut self) {
        let Some(own) = self.own.upgrade().map(Handle) else { return };
        if let Some(task) = self.policy.background_task(&own) {
            self.in_background += 1;
            tokio::spawn(patiently(Turn { lane: Lane::Background, address: own }, task));
        }
    }
}

/// A random time, from half of what is the longest after this many refusals, at least one.
fn pause(refusals: u32) -> Duration {
    let longest = PAUSE * 2_u32.pow((refusals - 1).min(MOST_DOUBLINGS));
    longest.mul_f64(rand::random_range(0.5..=1.0))
}

/// Runs `work` to its end, and gives up its turn when it takes long.
async fn patiently<M: Messages>(turn: Turn<M>, work: impl Future<Output = ()>) {
    let mut work = std::pin::pin!(work);
    if tokio::time::timeout(PATIENCE, &mut work).await.is_err() {
        drop(turn);
        work.await;
    }
}

/// Tells the committer that the next may begin, also when this one panicked.
struct Turn<M: Messages> {
    lane: Lane,
    address: Handle<M>,
}

impl<M: Messages> Drop for Turn<M> {
    fn drop(&mut self) {
        // The committer cannot be gone: we hold its address.
        let _ = self.address.0.send(Event::Free(self.lane));
    }
}

/// Tells the committer that a commit has ended, also when it panicked.
struct Ending<M: Messages> {
    number: u64,
    keys: Vec<M::Key>,
    address: Handle<M>,
}

impl<M: Messages> Drop for Ending<M> {
    fn drop(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        let _ = self.address.0.send(Event::Ended { number: self.number, keys });
    }
}
