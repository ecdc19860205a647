//! A failover with two writers side by side: the API, and one that is content with `w: 1`.
//!
//! Both secondaries are killed, which the primary does not notice for an election timeout; what it
//! acknowledges alone meanwhile dies with it. (Killed, not frozen: what has reached a frozen one's
//! socket is not lost.)

use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{DateTime, Document, doc};
use rand::Rng;

use super::clients::{Load, Repeats};
use super::judge::Finding;
use super::record::{Log, Reply, Stored, Told, Wanted};
use super::run::{Run, hold, verdict};
use crate::harness::{ReplicaSet, Setup, TRADES, Wires, spawn};

/// How often the secondaries are killed, until the primary has acknowledged something alone.
const ATTEMPTS: usize = 5;

/// What is wrong with the writes at `w: 1`. Fails when anything is with the API's, in the same run.
pub async fn failover() -> Vec<Finding> {
    const NAME: &str = "a failover, w: majority";
    let set = ReplicaSet::start(Wires::Straight).await;
    let service = Setup::at(set.uri()).start().await;
    let run = Run::start(NAME, Load::keyed(TRADES, 8, Repeats::UntilAnswered), vec![service.client.clone()]);
    let careless = set.client().await.database(&format!("{}_w1", service.database.name()));
    let mut rng = run.rng();
    let mut log = Log::default();
    let mut alone = 0;
    for _ in 0..ATTEMPTS {
        run.goes_on(20).await;
        // A owner each time: after a loss its writer does not know the tail.
        let mut writer = Writer { owner: rng.random_range(1..1_000_000), stored: 0 };
        for _ in 0..rng.random_range(1..25) {
            log.wanted.extend(writer.append(&careless).await);
        }
        set.until_well().await;
        let primary = set.primary().await;
        run.fault("both secondaries killed, and then the primary");
        for other in set.others(primary) {
            set.mongod(other).kill().await;
        }
        while let Some(wanted) = writer.append(&careless).await {
            log.wanted.push(wanted);
            alone += 1;
            if alone == 20 {
                break;
            }
        }
        set.mongod(primary).kill().await;
        for other in set.others(primary) {
            set.mongod(other).start().await;
        }
        set.until_primary_is_not(primary).await;
        run.goes_on(20).await;
        set.mongod(primary).start().await;
        set.until_well().await;
        if alone > 0 {
            break;
        }
    }
    assert!(alone > 0, "the primary acknowledged nothing alone");
    let product = run.end().await;
    let database = service.database.clone();
    assert!(service.stop().await, "nothing is left under way");
    let findings = verdict("a failover, w: 1", TRADES, &careless, &log).await;
    hold(NAME, TRADES, &database, &product).await;
    set.remove().await;
    findings
}

/// The only writer of a owner, which therefore knows its tail; our own statement, at `w: 1`.
struct Writer {
    owner: i64,
    stored: i64,
}

impl Writer {
    /// Appends one trade; nothing when it was not acknowledged.
    async fn append(&mut self, database: &Database) -> Option<Wanted> {
        let (page, count) = (self.stored / 10 + 1, (self.stored % 10) as i32);
        let seq = self.stored + 1;
        let (first, date) = ((self.owner * 1000 + seq) as u64, DateTime::from_millis(1_698_349_623_000));
        let trade = doc! { "type": "buy", "ticker": "MDB", "qty": first as i64, "date": date };
        let append = doc! {
            "q": { "_id": format!("{}_{page:010}", self.owner), TRADES.owner_field: self.owner, "count": count },
            "u": { "$push": { "history": trade }, "$inc": { "count": 1 }, "$setOnInsert": { "page": page } },
            "upsert": true,
        };
        let command =
            doc! { "update": "trades", "updates": [append], "writeConcern": { "w": 1 }, "maxTimeMS": 1000 };
        let database = database.clone();
        let sent = spawn(async move { database.run_command(command).await });
        let reply = tokio::time::timeout(Duration::from_secs(2), sent).await.ok()?.ok()?.ok()?;
        let acknowledged =
            |reply: &Document| reply.get_i32("n").is_ok_and(|n| n == 1) && !reply.contains_key("writeErrors");
        if !acknowledged(&reply) {
            return None;
        }
        self.stored = seq;
        let (owner, seq) = (self.owner as u64, seq as u64);
        let stored = Stored {
            ranges: vec![(seq, seq)],
            date: date.timestamp_millis(),
            items: seq,
            pages: page as u64,
            replayed: false,
        };
        let told =
            Told { instance: 0, sent: Duration::ZERO, heard: Duration::ZERO, reply: Reply::Stored(stored) };
        Some(Wanted { owner, key: None, first, count: 1, told: vec![told] })
    }
}
