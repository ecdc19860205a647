//! Many writers and many readers over two instances. Readers are disconnected at random, and resume by
//! `Last-Event-ID`, by `after` or by long polls. Each gets 1, 2, 3 … without a gap, a repeat or disorder, and
//! in the end exactly what an export has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use mongodb::Database;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use reqwest::Method;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::harness::events::{Event, Events};
use crate::harness::{Client, PATIENCE, TRADES, eventually, spawn, stored};

/// Histories, each of which has four writers and four readers.
pub const OWNERS: u64 = 16;
const WRITERS: u64 = 64;
const READERS: u64 = 64;

/// A writer has its own numbers, so that no two items are the same.
const OF_A_WRITER: u64 = 100_000;

/// What a reader has.
#[derive(Default)]
struct Got {
    /// The number before its first item: 0, unless what came before was retired.
    before: u64,
    items: Vec<Value>,
    /// How often the next items were retired.
    retired: u64,
    erased: bool,
}

impl Got {
    /// The number of its last item.
    fn position(&self) -> u64 {
        self.before + self.items.len() as u64
    }

    /// Takes the next items: none is missing, none comes twice.
    fn take(&mut self, items: &[Value]) {
        for item in items {
            assert_eq!(item["seq"], self.position() + 1, "after {:?}: {item}", self.items.last());
            self.items.push(item.clone());
        }
    }

    /// Whether it has exactly the rows of an export, except those that were retired before one of the two was
    /// read.
    fn has_all(&self, rows: &[Value]) -> bool {
        let first = rows.first().and_then(|row| row["seq"].as_u64()).expect("items");
        let begin = first.max(self.before + 1);
        let of_both =
            rows.get((begin - first) as usize..).zip(self.items.get((begin - self.before - 1) as usize..));
        of_both.is_some_and(|(rows, items)| rows == items)
    }

    /// Goes on after what was deleted.
    fn lose(&mut self, problem: &Value) {
        match problem["type"].as_str() {
            Some("/problems#erased") => self.erased = true,
            Some("/problems#retired") => {
                let first = problem["firstSeq"].as_u64().expect("where the history begins");
                assert!(first > self.position() + 1, "item {} is there: {problem}", self.position() + 1);
                (self.before, self.retired) = (first - 1, self.retired + 1);
                self.items.clear();
            }
            _ => panic!("{problem}"),
        }
    }
}

/// One reader: the reader of this number.
struct Reader {
    owner: u64,
    got: Mutex<Got>,
    /// Whether it has no connection now.
    is_offline: AtomicBool,
}

/// Writers and readers over two instances.
pub struct Crowd {
    clients: [Client; 2],
    database: Database,
    readers: Vec<Reader>,
    /// Set when writers are to stop.
    stop: AtomicBool,
    /// Appends that were acknowledged.
    appends: AtomicU64,
    /// An owner whose readers connect to nothing; 0 for none.
    offline: AtomicU64,
}

/// The readers of a crowd, which end with this.
pub struct Reading {
    crowd: Arc<Crowd>,
    tasks: Vec<JoinHandle<()>>,
}

/// Begins to read. Nothing is appended yet.
pub fn begin(clients: [&Client; 2], database: &Database) -> Reading {
    let reader = |number: u64| Reader {
        owner: 1 + number % OWNERS,
        got: Mutex::default(),
        is_offline: AtomicBool::new(true),
    };
    let crowd = Arc::new(Crowd {
        clients: clients.map(Client::clone),
        database: database.clone(),
        readers: (0..READERS).map(reader).collect(),
        stop: AtomicBool::default(),
        appends: AtomicU64::default(),
        offline: AtomicU64::default(),
    });
    let tasks = (0..READERS).map(|number| spawn(Arc::clone(&crowd).read(number))).collect();
    Reading { crowd, tasks }
}

impl Reading {
    /// Appends, and does harm meanwhile. Then waits until each reader has what an export has, and checks the
    /// invariants.
    pub async fn through(&self, harm: impl AsyncFnOnce(&Crowd)) {
        let crowd = &self.crowd;
        crowd.stop.store(false, Ordering::Relaxed);
        let writers = (0..WRITERS).map(|number| spawn(Arc::clone(crowd).write(number)));
        let writers: Vec<_> = writers.collect();
        crowd.goes_on(100).await;
        harm(crowd).await;
        crowd.goes_on(100).await;
        crowd.stop.store(true, Ordering::Relaxed);
        join_all(writers).await.into_iter().for_each(|writer| writer.expect("no panic"));
        for owner in 1..=OWNERS {
            self.have_all(owner).await;
        }
        assert!(!self.tasks.iter().any(JoinHandle::is_finished), "a reader has ended");
    }

    /// Waits until all readers of an owner have what an export has, whatever is stored meanwhile by commands
    /// that were given up.
    async fn have_all(&self, owner: u64) {
        let crowd = &self.crowd;
        let readers: Vec<_> = crowd.readers.iter().filter(|reader| reader.owner == owner).collect();
        let have_all = async || {
            let positions = || readers.iter().map(|reader| reader.got.lock().position());
            // An export takes time: only once they may have all.
            if positions().min() != positions().max()
                && !readers.iter().any(|reader| reader.got.lock().erased)
            {
                return false;
            }
            let export = crowd.export(owner).await;
            readers.iter().all(|reader| {
                let got = reader.got.lock();
                export.as_ref().map_or(got.erased, |rows| got.has_all(rows))
            })
        };
        eventually("readers have all", PATIENCE, have_all).await;
        let erased = readers.iter().any(|reader| reader.got.lock().erased);
        if !erased {
            stored(&crowd.database, TRADES, owner).await;
        }
    }

    /// How often readers of an owner were told that their next items were retired.
    pub fn retired(&self, owner: u64) -> u64 {
        let readers = self.crowd.readers.iter().filter(|reader| reader.owner == owner);
        readers.map(|reader| reader.got.lock().retired).sum()
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Crowd {
    /// Waits until so many more appends are acknowledged.
    pub async fn goes_on(&self, more: u64) {
        let goal = self.appends.load(Ordering::Relaxed) + more;
        let reached = || async { self.appends.load(Ordering::Relaxed) >= goal };
        eventually("writers go on", PATIENCE, reached).await;
    }

    /// Waits until no reader of an owner has a connection. None connects until [`Crowd::online`].
    pub async fn offline(&self, owner: u64) {
        self.offline.store(owner, Ordering::SeqCst);
        let of_owner: Vec<_> = self.readers.iter().filter(|reader| reader.owner == owner).collect();
        let are_offline = async || of_owner.iter().all(|reader| reader.is_offline.load(Ordering::SeqCst));
        eventually("readers are disconnected", PATIENCE, are_offline).await;
    }

    /// Waits until each reader has the beginning of its history.
    pub async fn have_begun(&self) {
        let have_begun = async || self.readers.iter().all(|reader| !reader.got.lock().items.is_empty());
        eventually("readers have begun", PATIENCE, have_begun).await;
    }

    /// Lets all readers connect.
    pub fn online(&self) {
        self.offline.store(0, Ordering::SeqCst);
    }

    /// Appends until the end. What fails may be stored or not: readers get what is stored.
    async fn write(self: Arc<Self>, number: u64) {
        let before = self.appends.load(Ordering::Relaxed);
        let mut rng = StdRng::seed_from_u64(number.wrapping_add(before << 16));
        let mut next = (number + 1) * OF_A_WRITER;
        while !self.stop.load(Ordering::Relaxed) {
            let count = rng.random_range(1..=13);
            let client = &self.clients[rng.random_range(0..2)];
            let body = TRADES.items(next..=next + count - 1).to_string();
            next += count;
            let with = |request: reqwest::RequestBuilder| {
                let request = request.timeout(Duration::from_secs(20));
                request.header("content-type", "application/json").body(body)
            };
            let path = TRADES.path(1 + number % OWNERS);
            match client.try_send(Method::POST, &path, with).await {
                Ok(answer) if answer.status == 201 => {
                    self.appends.fetch_add(1, Ordering::Relaxed);
                }
                Ok(answer) if answer.status == 410 => return,
                _ => {}
            }
            sleep(Duration::from_millis(rng.random_range(100..400))).await;
        }
    }

    /// Reads until the test ends, or until the owner is erased.
    async fn read(self: Arc<Self>, number: u64) {
        let mut rng = StdRng::seed_from_u64(1_000_000 + number);
        let reader = &self.readers[number as usize];
        loop {
            reader.is_offline.store(true, Ordering::SeqCst);
            sleep(Duration::from_millis(rng.random_range(1..50))).await;
            reader.is_offline.store(false, Ordering::SeqCst);
            if self.offline.load(Ordering::SeqCst) == reader.owner {
                continue;
            }
            if reader.got.lock().erased {
                // It has what it gets.
                std::future::pending::<()>().await;
            }
            let client = &self.clients[rng.random_range(0..2)];
            let connected = Duration::from_millis(rng.random_range(20..3_000));
            let polls = rng.random_ratio(1, 3);
            let mode = rng.random();
            // Whatever is under way is dropped where it is.
            timeout(connected, async {
                if polls { reader.poll(client).await } else { reader.stream(client, mode).await }
            })
            .await
            .ok();
        }
    }

    /// The rows of an export without their owner; `None` if the owner is erased.
    async fn export(&self, owner: u64) -> Option<Vec<Value>> {
        let path = TRADES.at(owner, "/export.ndjson");
        let row = |line: &str| {
            let mut row: Value = serde_json::from_str(line).expect("JSON");
            row.as_object_mut().expect("an object").remove(TRADES.owner_field);
            row
        };
        loop {
            match self.clients[0].try_send(Method::GET, &path, |request| request).await {
                Ok(answer) if answer.status == 200 => {
                    let rows = String::from_utf8(answer.body).expect("text");
                    return Some(rows.lines().map(row).collect());
                }
                Ok(answer) if answer.status == 410 => return None,
                _ => sleep(Duration::from_millis(50)).await,
            }
        }
    }
}

impl Reader {
    /// Takes what a stream has, until it ends.
    async fn stream(&self, client: &Client, by_id: bool) {
        let position = self.got.lock().position();
        let after = if by_id { 0 } else { position };
        let path = TRADES.at(self.owner, &format!("/live?after={after}"));
        let with = |request: reqwest::RequestBuilder| match by_id && position > 0 {
            // It counts instead of `after`.
            true => request.header("Last-Event-ID", position),
            false => request,
        };
        let Ok(answer) = client.begin(Method::GET, &path, with).await else { return };
        if answer.status() == 410 {
            let problem = answer.json().await.expect("a problem");
            return self.got.lock().lose(&problem);
        }
        if answer.status() != 200 {
            return;
        }
        let mut events = Events::from(answer);
        while let Ok(Some(Event { name, data })) = events.try_next().await {
            let mut got = self.got.lock();
            match name.as_str() {
                "message" => {
                    got.take(data["items"].as_array().expect("items"));
                    assert_eq!(events.id, Some(got.position().to_string()));
                }
                "gone" => return got.lose(&data),
                "end" => return,
                _ => panic!("{name}: {data}"),
            }
        }
    }

    /// Takes what windows have that wait.
    async fn poll(&self, client: &Client) {
        loop {
            let position = self.got.lock().position();
            let path = TRADES.at(self.owner, &format!("?after={position}&limit=50&wait=60"));
            match client.try_send(Method::GET, &path, |request| request).await {
                Ok(answer) if answer.status == 200 => {
                    let listing = answer.json();
                    self.got.lock().take(listing["items"].as_array().expect("items"));
                }
                Ok(answer) if answer.status == 410 => return self.got.lock().lose(&answer.json()),
                _ => return,
            }
        }
    }
}
