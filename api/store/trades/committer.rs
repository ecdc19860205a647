//! Committers: each drains what queued while its last commit was under way.
//!
//! There are a few, and a customer always has the same one, so that one customer's order is kept. A
//! committer merges what has queued by customer, and commits it as few `update` commands: one
//! unordered command of single statements, at most one a customer, and an ordered command for each
//! customer that needs more, so that a failed page never leaves a later one behind. There is no
//! timer: an idle committer commits at once, a busy one what has come meanwhile, and one journal
//! flush serves them all. (The bucket catalog of MongoDB's own time-series collections does the
//! same.)
//!
//! A commit that takes long, above all one whose outcome is unknown and which is being replayed, is
//! *parked*: its customers wait for it, and the committer goes on with the others, in other sessions.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel};

use super::append::Request;
use super::batch::{Known, MOST_TRADES, Settled, Share};
use super::catalog::Catalog;
use super::commit::{self, Connection};
use super::keyed::{self, MOST_REGISTRATIONS, Recent, Registration, Seeking};
use super::measure::{CATALOG, LOOKUPS};
use super::tail::Tail;
use crate::domain::CustomerId;

/// How long a committer waits for a commit before it goes on with other customers. An ordinary one
/// takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// Customers in one commit: at most one statement each in an unordered command.
const MOST_CUSTOMERS: usize = 1_000;

/// Trades in one commit, but for what the last customer brings: enough that a journal flush is shared
/// by many, few enough that none waits long behind others.
const ENOUGH_TRADES: usize = 10_000;

#[derive(Debug)]
pub(super) enum Message {
    /// A new request; one with a key is registered already.
    Append(Request),
    /// A new request with a key: that comes first.
    Register(Registration),
    /// Tails that were read for keys.
    Found(Vec<Tail>),
    /// What became of one customer's part of a commit.
    Settled(Settled),
    /// A commit has ended; its customers are free, settled or not.
    Ended { number: u64, customers: Vec<CustomerId> },
    /// The next may begin: one has ended, or takes long.
    Free(Lane),
}

/// What a committer does one after the other, unless one takes long.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lane {
    Commits,
    Registrations,
}

struct Committer {
    connection: Arc<Connection>,
    /// Its own address, which does not keep it alive.
    own: WeakUnboundedSender<Message>,
    catalog: Catalog,
    recent: Recent,
    remembered: metrics::Gauge,
    waiting: HashMap<CustomerId, VecDeque<Request>>,
    /// Customers with waiting requests and no commit under way, in order of arrival.
    ready: VecDeque<CustomerId>,
    /// Customers with a commit under way, by the number of that commit.
    busy: HashMap<CustomerId, u64>,
    commits: u64,
    /// Commits under way that are not parked: none or one.
    running: usize,
    /// Keys to be registered.
    keys: Vec<Registration>,
    /// Registrations under way that do not take long: none or one.
    registering: usize,
}

/// Starts a committer. It ends when every address of it is dropped.
/// `number` tells it from the others.
pub(super) fn start(
    connection: Arc<Connection>,
    catalog: Catalog,
    number: usize,
) -> UnboundedSender<Message> {
    let (address, inbox) = unbounded_channel();
    let committer = Committer {
        connection,
        own: address.downgrade(),
        catalog,
        recent: Recent::default(),
        remembered: metrics::gauge!(CATALOG, "committer" => number.to_string()),
        waiting: HashMap::new(),
        ready: VecDeque::new(),
        busy: HashMap::new(),
        commits: 0,
        running: 0,
        keys: Vec::new(),
        registering: 0,
    };
    tokio::spawn(committer.run(inbox));
    address
}

impl Committer {
    async fn run(mut self, mut inbox: UnboundedReceiver<Message>) {
        while let Some(message) = inbox.recv().await {
            self.receive(message);
            while let Ok(message) = inbox.try_recv() {
                self.receive(message);
            }
            while self.running == 0 && !self.ready.is_empty() {
                self.commit();
            }
            if self.registering == 0 && !self.keys.is_empty() {
                self.register();
            }
        }
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Append(request) => {
                let customer = request.customer;
                let waiting = self.waiting.entry(customer).or_default();
                waiting.push_back(request);
                if waiting.len() == 1 && !self.busy.contains_key(&customer) {
                    self.ready.push_back(customer);
                }
            }
            Message::Settled(Settled { customer, tail, again, run, .. }) => {
                if let Some(run) = run {
                    self.recent.put(customer, run);
                }
                match tail {
                    Some(tail) => self.catalog.put(tail),
                    None => self.catalog.forget(customer),
                }
                self.remembered.set(self.catalog.len() as f64);
                if !again.is_empty() {
                    let waiting = self.waiting.entry(customer).or_default();
                    again.into_iter().rev().for_each(|request| waiting.push_front(request));
                }
                self.release(customer);
            }
            Message::Register(registration) => self.keys.push(registration),
            Message::Found(tails) => {
                for tail in tails {
                    let customer = tail.id.customer;
                    // One that is being committed, or was since, is behind what the catalog will know.
                    if !self.busy.contains_key(&customer) && self.catalog.get(customer).is_none() {
                        self.catalog.put(tail);
                    }
                }
            }
            Message::Free(Lane::Commits) => self.running -= 1,
            Message::Free(Lane::Registrations) => self.registering -= 1,
            Message::Ended { number, customers } => {
                for customer in customers {
                    if self.busy.get(&customer) == Some(&number) {
                        // It ended without a word of this one: its tail may be anywhere.
                        self.catalog.forget(customer);
                        self.release(customer);
                    }
                }
            }
        }
    }

    fn release(&mut self, customer: CustomerId) {
        self.busy.remove(&customer);
        if self.waiting.contains_key(&customer) {
            self.ready.push_back(customer);
        }
    }

    /// Commits what waits, as much as goes into one commit.
    fn commit(&mut self) {
        let Some(own) = self.own.upgrade() else { return };
        self.commits += 1;
        let mut shares = Vec::new();
        let mut trades = 0;
        while shares.len() < MOST_CUSTOMERS && trades < ENOUGH_TRADES {
            let Some(customer) = self.ready.pop_front() else { break };
            let mut requests = self.take(customer);
            if requests.is_empty() {
                continue;
            }
            trades += requests.iter().map(|request| request.rest().len()).sum::<usize>();
            let refused_at = requests.iter().filter_map(|request| request.refused_at).max();
            let tail = match self.catalog.get(customer) {
                Some(tail) => {
                    metrics::counter!(LOOKUPS, "result" => "hit").increment(1);
                    Known::Tail(Some(tail))
                }
                None if requests.iter().all(Request::begins) => Known::Tail(None),
                None => {
                    metrics::counter!(LOOKUPS, "result" => "miss").increment(1);
                    Known::Nothing(refused_at)
                }
            };
            if let Known::Tail(Some(tail)) = tail {
                for (search, placed) in requests.iter_mut().filter_map(Request::searching) {
                    // A line of an upload is compared with the whole trade, which is not remembered.
                    if let Seeking::Request(search) = search {
                        self.recent.look(customer, search, placed, tail.last_seq().get());
                    }
                }
            }
            let keyed = self.recent.knows(customer) || requests.iter().any(|request| request.keyed.is_some());
            self.busy.insert(customer, self.commits);
            shares.push(Share { customer, tail, requests, statements: Vec::new(), keyed });
        }
        if shares.is_empty() {
            return;
        }
        self.running += 1;
        let customers = shares.iter().map(|share| share.customer).collect();
        let ending = Ending { number: self.commits, customers, address: own.clone() };
        let (connection, turn) = (Arc::clone(&self.connection), Turn::new(Lane::Commits, own.clone()));
        tokio::spawn(patiently(turn, async move {
            let _ending = ending;
            commit::run(&connection, shares, &own).await;
        }));
    }

    /// Registers the keys that wait, as many as go into one command.
    fn register(&mut self) {
        let Some(own) = self.own.upgrade() else { return };
        let rest = self.keys.split_off(self.keys.len().min(MOST_REGISTRATIONS));
        let keys = std::mem::replace(&mut self.keys, rest);
        let with_tail = |registration: Registration| {
            let tail = self.catalog.get(registration.customer);
            (registration, tail)
        };
        let keys = keys.into_iter().map(with_tail).collect();
        self.registering += 1;
        let (connection, turn) = (Arc::clone(&self.connection), Turn::new(Lane::Registrations, own.clone()));
        tokio::spawn(patiently(turn, async move {
            keyed::register(&connection, keys, &own).await;
        }));
    }

    /// The first requests of a customer, as many as go into one commit. Those whose clients were
    /// told that they waited too long are dropped.
    fn take(&mut self, customer: CustomerId) -> Vec<Request> {
        let mut taken: Vec<Request> = Vec::new();
        let mut trades = 0;
        let mut keys = HashSet::new();
        let Some(waiting) = self.waiting.get_mut(&customer) else { return taken };
        while let Some(next) = waiting.front() {
            let with_next = trades + next.rest().len();
            if !taken.is_empty() && (next.alone || with_next > MOST_TRADES) {
                break;
            }
            // Two attempts of one request never share a command: the second finds what the first has stored.
            if next.keyed.as_ref().is_some_and(|keyed| !keys.insert(keyed.id)) {
                break;
            }
            let Some(request) = waiting.pop_front() else { break };
            if request.take() {
                trades = with_next;
                let alone = request.alone;
                taken.push(request);
                if alone {
                    break;
                }
            }
        }
        if waiting.is_empty() {
            self.waiting.remove(&customer);
        }
        taken
    }
}

/// Runs `work` to its end, and gives up its turn when it takes long.
async fn patiently(turn: Turn, work: impl Future<Output = ()>) {
    let mut work = std::pin::pin!(work);
    if tokio::time::timeout(PATIENCE, &mut work).await.is_err() {
        drop(turn);
        work.await;
    }
}

/// Tells the committer that the next may begin, also when this one panicked.
struct Turn {
    lane: Lane,
    address: UnboundedSender<Message>,
}

impl Turn {
    fn new(lane: Lane, address: UnboundedSender<Message>) -> Self {
        Self { lane, address }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // The committer cannot be gone: we hold its address.
        let _ = self.address.send(Message::Free(self.lane));
    }
}

/// Tells the committer that a commit has ended, also when it panicked.
struct Ending {
    number: u64,
    customers: Vec<CustomerId>,
    address: UnboundedSender<Message>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let customers = std::mem::take(&mut self.customers);
        let _ = self.address.send(Message::Ended { number: self.number, customers });
    }
}
