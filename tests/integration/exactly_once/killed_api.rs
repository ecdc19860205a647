//! `kill -9` of the API between the commit and the answer: clients repeat under their keys.
//!
//! Under load, at any moment; and at each command of a keyed append, which a proxy holds, before and
//! after the server applies it, while the API that sent it is killed.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::Rng;

use super::api_process::ApiProcess;
use super::clients::{Load, Repeats, attempt};
use super::judge::Finding;
use super::record::{Log, Reply, Told, Wanted};
use super::run::{Run, hold, verdict};
use crate::harness::{Client, Harm, History, Nth, Proxy, Service, Setup, TRADES, Way, shared, test_over};

test_over!(api_killed_under_load, TRADES, READINGS);
async fn api_killed_under_load(history: &'static History) {
    const NAME: &str = "the API, killed";
    let (log, database) = run(NAME, Load::keyed(history, 16, Repeats::UntilAnswered)).await;
    hold(NAME, history, &database, &log).await;
}

/// The same without keys: what is wrong then.
pub async fn without_keys() -> Vec<Finding> {
    const NAME: &str = "the API, killed, no keys";
    let (log, database) = run(NAME, Load::keyed(TRADES, 16, Repeats::UntilAnswered).without_keys()).await;
    verdict(NAME, TRADES, &database, &log).await
}

async fn run(name: &'static str, load: Load) -> (Log, mongodb::Database) {
    let connection = Setup::on(shared().await).store.connection;
    let mut api = ApiProcess::start(load.history, &connection.uri, &connection.database).await;
    let run = Run::start(name, load, vec![api.client()]);
    let mut rng = run.rng();
    while run.lasts() {
        run.goes_on(40).await;
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..300))).await;
        run.fault("kill -9 of the API");
        api.kill().await;
        run.killed_an_instance();
        api.restart().await;
        run.goes_on(40).await;
    }
    let log = run.end().await;
    api.kill().await;
    (log, shared().await.client().await.database(&connection.database))
}

test_over!(api_killed_at_each_command, TRADES, READINGS);
async fn api_killed_at_each_command(history: &'static History) {
    const NAME: &str = "the API, killed at each command";
    let mut stage = Stage::new(history).await;
    let mut met = BTreeSet::new();
    for count in [1, history.pages(2.5)] {
        for command in stage.case(count, None).await {
            for way in [Way::There, Way::Back] {
                // What it had sent reaches the server before the repeat, or after it was answered.
                for late in [false, true] {
                    stage.case(count, Some(Killed { command: command.clone(), way, late })).await;
                }
            }
            met.insert(command.to_string());
        }
    }
    println!("{NAME}: {met:?}");
    let [aggregate, update] = ["aggregate", "update"].map(|name| history.command(name));
    for command in ["insert idempotency_keys", "update idempotency_keys", &aggregate, &update] {
        assert!(met.contains(command), "{command} is not among {met:?}");
    }
    hold(NAME, history, &stage.plain.database, &stage.log).await;
}

/// What a repeat without a key does when the API was killed between the commit and the answer.
pub async fn between_commit_and_answer_without_a_key() -> Vec<Finding> {
    let mut stage = Stage::new(TRADES).await;
    stage.keys = false;
    let command = Nth(TRADES.command("update"), 0);
    stage.case(25, Some(Killed { command, way: Way::Back, late: false })).await;
    verdict("the API, killed after its commit, no key", TRADES, &stage.plain.database, &stage.log).await
}

/// When the API is killed.
#[derive(Debug, Clone)]
struct Killed {
    /// At which of its commands.
    command: Nth,
    way: Way,
    /// Whether the command goes on only when the repeat was answered.
    late: bool,
}

/// Longer than any append that is to be answered takes.
const LONG: Duration = Duration::from_secs(20);

/// Owners beside those of the cases.
const WARMED: u64 = 1_000_000;

/// One instance over a wire, which is killed, and one that is not.
struct Stage {
    plain: Service,
    api: ApiProcess,
    wire: Proxy,
    log: Log,
    next: u64,
    keys: bool,
}

impl Stage {
    async fn new(history: &'static History) -> Self {
        let mongod = shared().await;
        let plain = Setup::on(mongod).of(history).start().await;
        let wire = Proxy::before(mongod).await;
        let api = ApiProcess::start(history, &wire.uri(), plain.database.name()).await;
        Self { plain, api, wire, log: Log::default(), next: 1, keys: true }
    }

    /// One append, and its repeat if the API was killed; returns the commands of the first.
    async fn case(&mut self, count: u64, killed: Option<Killed>) -> Vec<Nth> {
        // An owner of its own, with room for one item and not for several.
        let owner = self.next;
        let mut before = self.wanted(owner, self.plain.history.pages(0.5));
        tell(&mut before, &self.plain.client).await;
        self.log.wanted.push(before);
        let mut wanted = self.wanted(owner, count);
        let client = self.api.client();
        if count > 1 {
            // An instance inserts records once an answer has told it the server's time.
            let mut first = self.wanted(owner + WARMED, 1);
            tell(&mut first, &client).await;
            self.log.wanted.push(first);
        } else {
            self.api.kill().await;
            self.api.restart().await;
        }
        if let Some(killed) = killed.clone() {
            let struck = self.wire.strikes();
            self.wire.harm_nth(killed.command.clone(), killed.way, Harm::Hold);
            tokio::select! {
                // A second tail read comes only of a request that overtakes what was learnt of its owner.
                () = tell(&mut wanted, &client) => {}
                () = self.wire.struck(struck + 1) => {}
            }
            self.api.kill().await;
            if !wanted.is_stored() {
                wanted.told.push(Told::nth(0, Reply::Silence));
            }
            if !killed.late {
                self.wire.relent();
            }
            self.api.restart().await;
            let maybe = killed.command == Nth(self.plain.history.command("aggregate"), 1);
            assert!(maybe || self.wire.strikes() == struck + 1, "{killed:?}: it was not met: {wanted:?}");
        }
        self.wire.forget();
        while !wanted.is_stored() {
            assert!(wanted.told.len() < 20, "{killed:?}: {wanted:?}");
            tell(&mut wanted, &client).await;
        }
        let commands = self.wire.commands();
        self.wire.relent();
        if self.keys {
            tell(&mut wanted, &client).await;
            tell(&mut wanted, &self.plain.client).await;
        }
        self.log.wanted.push(wanted);
        commands
    }

    /// Trades that no other append has.
    fn wanted(&mut self, owner: u64, count: u64) -> Wanted {
        let first = self.next;
        self.next += count;
        let key = self.keys.then(|| format!("key-of-{first}"));
        Wanted { owner, key, first, count, told: Vec::new() }
    }
}

/// Sends it once, and notes the answer.
async fn tell(wanted: &mut Wanted, client: &Client) {
    let reply = attempt(client, wanted, LONG).await;
    let told = Told::nth(wanted.told.len(), reply);
    wanted.told.push(told);
}
