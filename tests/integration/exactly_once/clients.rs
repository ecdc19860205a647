//! Clients that append, and ask again when they are not answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use reqwest::Method;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::record::{Reply, Told, Wanted};
use super::run::seed;
use crate::harness::{Client, History};

/// A request has items for up to so many pages: one bucket, or several.
const MOST_PAGES: f64 = 2.5;

/// Quantities of one client, which no other uses.
const OF_A_CLIENT: u64 = 10_000_000;

/// A client gives a request up after so long; longer than any fault lasts.
const INSIST: Duration = Duration::from_secs(90);

/// What clients do.
#[derive(Debug, Clone)]
pub struct Load {
    pub history: &'static History,
    pub seed: u64,
    pub clients: u64,
    /// The first has half of all requests.
    pub owners: Vec<u64>,
    pub keys: bool,
    pub repeats: Repeats,
    /// A client waits so long for one answer, or less, at random.
    pub timeout: Duration,
}

/// When a client sends the same request again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// When no answer came, or one that says to: until there is a 201.
    UntilAnswered,
    /// Also at random, up to three times, at once and after an answer.
    AtRandom,
}

/// What clients share.
pub struct Desk {
    pub load: Load,
    pub instances: Vec<Client>,
    pub began: Instant,
    pub stop: AtomicBool,
    /// How often an instance was killed.
    pub restarts: AtomicU32,
    /// How many 201s there were.
    pub acknowledged: watch::Sender<u64>,
}

impl Desk {
    /// One client, until told to stop; and then to the answer of its last request.
    pub async fn client(self: Arc<Self>, number: u64) -> Vec<Wanted> {
        let mut rng = self.rng(number);
        let mut first = (number + 1) * OF_A_CLIENT;
        let most = self.load.history.pages(MOST_PAGES);
        let mut all = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let count = if rng.random() { 1 } else { rng.random_range(1..=most) };
            let key = self.load.keys.then(|| format!("{:x}/{first}~{count}!", self.load.seed));
            let owner = self.owner(&mut rng);
            let mut wanted = Wanted { owner, key, first, count, told: Vec::new() };
            self.append(&mut wanted, &mut rng).await;
            all.push(wanted);
            first += count;
            // Not all at the same pace.
            sleep(Duration::from_millis(rng.random_range(0..20))).await;
        }
        all
    }

    /// A source of chance of one client, or one reader.
    pub fn rng(&self, number: u64) -> StdRng {
        StdRng::seed_from_u64(self.load.seed.wrapping_mul(1 << 16).wrapping_add(number))
    }

    /// Half of the time the hot one.
    pub fn owner(&self, rng: &mut StdRng) -> u64 {
        let owners = &self.load.owners;
        if rng.random() { owners[0] } else { owners[rng.random_range(0..owners.len())] }
    }

    async fn append(&self, wanted: &mut Wanted, rng: &mut StdRng) {
        let at_random = self.load.repeats == Repeats::AtRandom;
        let at_once = if at_random { rng.random_range(1..=3) } else { 1 };
        let each: Vec<StdRng> = (0..at_once).map(|_| StdRng::from_rng(rng)).collect();
        let told = join_all(each.into_iter().map(|rng| self.insist(wanted, rng))).await;
        wanted.told = told.concat();
        if at_random && at_once < 3 && rng.random() {
            let told = self.insist(wanted, StdRng::from_rng(rng)).await;
            wanted.told.extend(told);
        }
    }

    /// Sends a request until it is answered for good, each time to any of the instances.
    async fn insist(&self, wanted: &Wanted, mut rng: StdRng) -> Vec<Told> {
        let until = Instant::now() + INSIST;
        let mut all = Vec::new();
        loop {
            let timeout = self.load.timeout.mul_f64(rng.random_range(0.1..1.0));
            let told = self.attempt(wanted, rng.random_range(0..self.instances.len()), timeout).await;
            let for_good = matches!(told.reply, Reply::Stored(_) | Reply::Other(_));
            if matches!(told.reply, Reply::Stored(_)) {
                self.acknowledged.send_modify(|count| *count += 1);
            }
            all.push(told);
            if for_good || Instant::now() > until {
                return all;
            }
            sleep(Duration::from_millis(rng.random_range(5..200))).await;
        }
    }

    async fn attempt(&self, wanted: &Wanted, instance: usize, timeout: Duration) -> Told {
        let sent = self.began.elapsed();
        let reply = attempt(&self.instances[instance], wanted, timeout).await;
        Told { instance, sent, heard: self.began.elapsed(), reply }
    }
}

/// Sends a request once.
pub async fn attempt(client: &Client, wanted: &Wanted, timeout: Duration) -> Reply {
    let items = client.history.items(wanted.first..=wanted.first + wanted.count - 1);
    let path = client.history.path(wanted.owner);
    let answer = client.try_send(Method::POST, &path, |request| {
        let request = match &wanted.key {
            Some(key) => request.header("idempotency-key", key),
            None => request,
        };
        request.timeout(timeout).json(&items)
    });
    match answer.await {
        Ok(answer) => Reply::of(&answer, wanted.count),
        Err(_) => Reply::Silence,
    }
}

impl Load {
    /// Under keys, to a hot owner and eleven others.
    pub fn keyed(history: &'static History, clients: u64, repeats: Repeats) -> Self {
        Self {
            history,
            seed: seed(),
            clients,
            owners: (1..=12).collect(),
            keys: true,
            repeats,
            timeout: Duration::from_secs(3),
        }
    }

    /// The same without keys.
    #[must_use]
    pub fn without_keys(self) -> Self {
        Self { keys: false, ..self }
    }
}
