//! Clients that have seen the same total, and append at once, round after round, whatever fails meanwhile. In
//! each round one of them is stored, where it expects, and no other.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use mongodb::Database;
use reqwest::Method;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::{Client, PATIENCE, TOTAL, TRADES, eventually, spawn, stored, trade};

/// Clients that have seen the same total, and append at once.
pub const CLIENTS: u64 = 32;

/// What a client was told at last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// Its item is stored with this number.
    Stored(u64),
    /// Its item is not stored, because the history has this total.
    Refused(u64),
    /// Nothing that says whether its item is stored. It has no key, and so it does not ask again.
    Nothing,
}

/// One append.
#[derive(Debug)]
struct Asked {
    number: i64,
    expected: u64,
    told: Told,
}

/// Clients that append to one owner.
pub struct Race {
    owner: u64,
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    running: JoinHandle<Vec<Vec<Asked>>>,
}

impl Race {
    pub fn start(instances: [&Client; 2], owner: u64) -> Self {
        let (stop, rounds) = <(Arc<AtomicBool>, Arc<AtomicU64>)>::default();
        let (instances, stopped, ended) =
            (instances.map(Client::clone), Arc::clone(&stop), Arc::clone(&rounds));
        let running = spawn(async move {
            let mut all = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                all.push(round(&instances, owner, all.len() as u64).await);
                ended.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_millis(rand::random_range(10..200))).await;
            }
            all
        });
        Self { owner, stop, rounds, running }
    }

    /// Waits for so many more rounds.
    pub async fn goes_on(&self, more: u64) {
        let goal = self.rounds.load(Ordering::Relaxed) + more;
        let reached = || async { self.running.is_finished() || self.rounds.load(Ordering::Relaxed) >= goal };
        eventually("rounds go on", PATIENCE, reached).await;
    }

    /// Ends it, and judges what all were told by what is stored.
    pub async fn end(self, database: &Database) {
        self.stop.store(true, Ordering::Relaxed);
        let rounds = self.running.await.expect("no panic");
        let stored = stored(database, TRADES, self.owner).await.numbers;
        let total = stored.len() as u64;
        let seqs: HashMap<i64, u64> = stored.into_iter().zip(1..).collect();
        assert_eq!(seqs.len() as u64, total, "each item once");
        // What the rounds before have stored.
        let mut before = 0;
        for round in &rounds {
            let of_round = round.iter().filter_map(|asked| {
                let seq = seqs.get(&asked.number).copied();
                match asked.told {
                    Told::Stored(first) => assert_eq!(seq, Some(first), "{asked:?}"),
                    Told::Refused(told) => {
                        assert!(
                            seq.is_none() && (asked.expected + 1..=total).contains(&told),
                            "{asked:?}: {seq:?}"
                        );
                    }
                    Told::Nothing => {}
                }
                seq.map(|seq| assert_eq!(seq, asked.expected + 1, "{asked:?}"))
            });
            // An instance may show an old total when a frozen primary goes on: then all of them come too
            // late.
            let is_late = round.iter().any(|asked| asked.expected < before);
            assert_eq!(of_round.count(), usize::from(!is_late), "one of {round:?}");
            before += u64::from(!is_late);
        }
        assert_eq!(before, total, "nothing else is stored");
        assert!(before > rounds.len() as u64 / 2, "{before} of {}", rounds.len());
    }
}

/// All clients append after the same total, half of them under keys.
async fn round(instances: &[Client; 2], owner: u64, round: u64) -> Vec<Asked> {
    let expected = total(&instances[round as usize % 2], owner).await;
    join_all((0..CLIENTS).map(async |client| {
        let number = (round + 1) * 1_000 + client;
        let instance = (client + round) as usize % 2;
        let key = (client / 2).is_multiple_of(2).then(|| format!("race-{number}"));
        let told = append(instances, instance, owner, expected, key.as_deref(), number).await;
        Asked { number: number as i64, expected, told }
    }))
    .await
}

/// The total that an instance shows, once it does.
async fn total(client: &Client, owner: u64) -> u64 {
    loop {
        if let Ok(answer) = client.try_send(Method::GET, &TRADES.owner_path(owner), |request| request).await
            && answer.status == 200
        {
            return TRADES.totals(&answer.json())[TOTAL].as_u64().expect("a total");
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Appends a trade; under a key again and again, each time at the other instance, until the answer says what
/// became of it.
async fn append(
    instances: &[Client; 2],
    mut instance: usize,
    owner: u64,
    expected: u64,
    key: Option<&str>,
    number: u64,
) -> Told {
    let until = Instant::now() + PATIENCE;
    loop {
        let path = TRADES.at(owner, &format!("?expectedSeq={expected}"));
        let answer = instances[instance].try_send(Method::POST, &path, |request| {
            let request = request.timeout(Duration::from_secs(20)).json(&trade(number));
            key.into_iter().fold(request, |request, key| request.header("idempotency-key", key))
        });
        let answer = answer.await.ok();
        match answer.as_ref().map(|answer| (answer.status.as_u16(), answer.json())) {
            Some((201, body)) => {
                return Told::Stored(body["ranges"][0]["firstSeq"].as_u64().expect("a number"));
            }
            Some((412, body)) => return Told::Refused(body[TOTAL].as_u64().expect("a total")),
            Some((400..=499, body)) if body["status"] != 409 => panic!("{body}"),
            _ if key.is_none() => return Told::Nothing,
            answered => assert!(Instant::now() < until, "{answered:?}"),
        }
        instance = 1 - instance;
        sleep(Duration::from_millis(rand::random_range(20..200))).await;
    }
}
