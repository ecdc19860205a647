//! A run under load, from its seed to its verdict.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use mongodb::Database;
use rand::rngs::StdRng;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::clients::{Desk, Load};
use super::judge::{Finding, Histories, Kind, judge};
use super::readers;
use super::record::{Item, Log, Reply};
use crate::harness::{Client, History, PATIENCE, stored};

const READERS: usize = 2;

/// The faults' source of chance comes after those of all clients and readers.
const OF_FAULTS: u64 = (1 << 16) - 1;

/// How long each scenario lasts: `FAULT_SECONDS`, 6 unless set, and 60 in a long run.
pub fn seconds() -> Duration {
    crate::harness::fault_seconds()
}

/// What chance comes from: `FAULT_SEED`, any unless set.
pub fn seed() -> u64 {
    static SEED: LazyLock<u64> = LazyLock::new(|| match std::env::var("FAULT_SEED") {
        Ok(seed) => seed.parse().expect("FAULT_SEED is a number"),
        Err(_) => u64::from(rand::random::<u32>()),
    });
    *SEED
}

/// Clients and readers at work.
pub struct Run {
    name: &'static str,
    desk: Arc<Desk>,
    clients: JoinSet<Vec<super::record::Wanted>>,
    readers: JoinSet<Vec<super::record::Seen>>,
    faults: Mutex<Vec<(Duration, String)>>,
}

impl Run {
    pub fn start(name: &'static str, load: Load, instances: Vec<Client>) -> Self {
        let seconds = seconds().as_secs();
        println!("{name}: FAULT_SEED={} FAULT_SECONDS={seconds}", load.seed);
        let desk = Arc::new(Desk {
            load,
            instances,
            began: Instant::now(),
            stop: AtomicBool::new(false),
            restarts: AtomicU32::new(0),
            acknowledged: watch::Sender::new(0),
        });
        let (mut clients, mut readers) = (JoinSet::new(), JoinSet::new());
        for number in 0..desk.load.clients {
            clients.spawn(Arc::clone(&desk).client(number));
        }
        for number in 0..READERS {
            readers.spawn(readers::read(Arc::clone(&desk), number));
        }
        Self { name, desk, clients, readers, faults: Mutex::default() }
    }

    /// Whether the scenario's time is not over.
    pub fn lasts(&self) -> bool {
        self.desk.began.elapsed() < seconds()
    }

    /// Until the scenario's time is over.
    pub async fn rest(&self) {
        tokio::time::sleep_until(self.desk.began + seconds()).await;
    }

    /// A source of chance for the faults.
    pub fn rng(&self) -> StdRng {
        self.desk.rng(OF_FAULTS)
    }

    /// Notes what is done to the servers.
    pub fn fault(&self, what: impl Into<String>) {
        let fault = (self.desk.began.elapsed(), what.into());
        self.faults.lock().expect("no test panics here").push(fault);
    }

    /// Notes that an instance was killed: what it shows when it is started again may be less.
    pub fn killed_an_instance(&self) {
        self.desk.restarts.fetch_add(1, Ordering::Relaxed);
    }

    /// Tells who runs it.
    pub fn say(&self, what: impl Display) {
        println!("{}: {what}", self.name);
    }

    /// Waits until so many more requests are acknowledged.
    pub async fn goes_on(&self, more: u64) {
        let mut acknowledged = self.desk.acknowledged.subscribe();
        let goal = *acknowledged.borrow() + more;
        let goes_on = timeout(PATIENCE, acknowledged.wait_for(|count| *count >= goal)).await;
        assert!(goes_on.is_ok(), "{}: no {more} more requests acknowledged within {PATIENCE:?}", self.name);
    }

    /// Lets everybody end what they have begun.
    pub async fn end(self) -> Log {
        let Self { name, desk, clients, readers, faults } = self;
        desk.stop.store(true, Ordering::Relaxed);
        let all = async { (clients.join_all().await.concat(), readers.join_all().await.concat()) };
        // A client gives up before.
        let all = timeout(2 * PATIENCE, all).await;
        let (wanted, seen) = all.unwrap_or_else(|_| panic!("{name}: clients do not end"));
        let faults = faults.into_inner().expect("no test panics here");
        Log { wanted, seen, faults }
    }
}

/// What is stored of the owners of a log, held against the log.
pub async fn verdict(name: &str, history: &'static History, database: &Database, log: &Log) -> Vec<Finding> {
    let mut owners: Vec<u64> = log.wanted.iter().map(|wanted| wanted.owner).collect();
    owners.sort_unstable();
    owners.dedup();
    let mut histories = Histories::new();
    for owner in owners {
        let stored = stored(database, history, owner).await;
        let items = stored.numbers.into_iter().zip(stored.dates);
        histories.insert(owner, items.map(|(number, date)| Item { number, date }).collect());
    }
    println!("{name}: {}", tally(log, &histories));
    for ((at, what), (from, to)) in log.faults.iter().zip(silences(log)) {
        println!(
            "{name}: {what} at {:.1} s: {:.2} s without an acknowledgement",
            at.as_secs_f64(),
            (to - from).as_secs_f64()
        );
    }
    judge(log, &histories, history.page_size)
}

/// Checks that nothing is wrong, and that everything was answered in the end.
pub async fn hold(name: &str, history: &'static History, database: &Database, log: &Log) {
    let findings = verdict(name, history, database, log).await;
    let mut by_kind = BTreeMap::<Kind, Vec<String>>::new();
    for finding in &findings {
        by_kind.entry(finding.kind).or_default().push(finding.to_string());
    }
    let counts: Vec<_> = by_kind.iter().map(|(kind, of_kind)| (kind, of_kind.len())).collect();
    let some: Vec<_> = by_kind.values().flat_map(|of_kind| of_kind.iter().take(5).cloned()).collect();
    assert!(findings.is_empty(), "{name}: seed {}: {counts:?}:\n{}", seed(), some.join("\n"));
    for wanted in &log.wanted {
        assert!(wanted.is_stored(), "{name}: seed {}: never acknowledged: {wanted:?}", seed());
    }
}

fn tally(log: &Log, histories: &Histories) -> String {
    let replies = || log.wanted.iter().flat_map(|wanted| &wanted.told).map(|told| &told.reply);
    let (mut stored, mut replayed, mut silent) = (0, 0, 0);
    let mut again = BTreeMap::<&str, u64>::new();
    for reply in replies() {
        match reply {
            Reply::Stored(answer) if answer.replayed => replayed += 1,
            Reply::Stored(_) => stored += 1,
            Reply::Silence => silent += 1,
            Reply::Again { slug, .. } => *again.entry(slug).or_default() += 1,
            Reply::Other(_) => {}
        }
    }
    format!(
        "{} requests of {} items: {stored} times stored, {replayed} replayed, {silent} without an answer, {again:?}; \
         {} items stored; {} pages and totals seen",
        log.wanted.len(),
        log.wanted.iter().map(|wanted| wanted.count).sum::<u64>(),
        histories.values().map(Vec::len).sum::<usize>(),
        log.seen.len(),
    )
}

/// After each fault, and before the next, the longest time between one acknowledgement and the next.
fn silences(log: &Log) -> Vec<(Duration, Duration)> {
    let mut heard: Vec<Duration> =
        log.wanted.iter().flat_map(|wanted| wanted.acknowledgements()).map(|(told, _)| told.heard).collect();
    heard.sort_unstable();
    let ends = log.faults.iter().skip(1).map(|(at, _)| *at).chain([Duration::MAX]);
    let longest = |(fault, end): (Duration, Duration)| {
        let pairs = heard.windows(2).map(|pair| (pair[0], pair[1]));
        let after = pairs.filter(|(from, to)| *to >= fault && *from < end);
        after.max_by_key(|(from, to)| *to - *from).unwrap_or_default()
    };
    log.faults.iter().map(|(at, _)| *at).zip(ends).map(longest).collect()
}
