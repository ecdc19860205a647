//! The wire is cut at each command of a keyed append, before and after the server applies it.
//!
//! Which commands there are is learnt from an append that nothing happens to, so that none is
//! forgotten; a case is an append of one item, or of several buckets, in one of the situations in
//! which a keyed append can find itself, with one cut. Its client repeats until it is answered.

use std::collections::BTreeSet;
use std::time::Duration;

use super::clients::attempt;
use super::record::{Log, Reply, Told, Wanted};
use super::run::hold;
use crate::harness::{Client, Harm, History, Nth, Proxy, Service, Setup, Way, shared, test_over};

// Long pages make these long, and meet the same code.
/// Longer than any append that is to be answered takes.
const LONG: Duration = Duration::from_secs(20);

/// What happened to the key before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Answered,
    /// An attempt by another instance, whose append is held on its way to the server, or whose answer
    /// is on its way back; then other items came. It goes on once the repeat is answered.
    CutOff(Way),
}

test_over!(a_first_attempt_is_cut, ALL);
async fn a_first_attempt_is_cut(history: &'static History) {
    every_command_is_cut(history, "cut: a first attempt", Before::Nothing).await;
}

test_over!(a_repeat_of_an_answered_one_is_cut, NOTES);
async fn a_repeat_of_an_answered_one_is_cut(history: &'static History) {
    every_command_is_cut(history, "cut: a repeat of an answered one", Before::Answered).await;
}

test_over!(a_repeat_of_one_that_was_lost_before_it_was_applied_is_cut, NOTES);
async fn a_repeat_of_one_that_was_lost_before_it_was_applied_is_cut(history: &'static History) {
    every_command_is_cut(history, "cut: a repeat, lost before", Before::CutOff(Way::There)).await;
}

test_over!(a_repeat_of_one_whose_answer_was_lost_is_cut, NOTES);
async fn a_repeat_of_one_whose_answer_was_lost_is_cut(history: &'static History) {
    every_command_is_cut(history, "cut: a repeat, lost after", Before::CutOff(Way::Back)).await;
}

async fn every_command_is_cut(history: &'static History, name: &str, before: Before) {
    let mut stage = Stage::new(history).await;
    let mut cut = BTreeSet::new();
    for count in [1, history.pages(2.5)] {
        for command in stage.case(before, count, None).await {
            for way in [Way::There, Way::Back] {
                stage.case(before, count, Some((command.clone(), way))).await;
            }
            cut.insert(command.to_string());
        }
    }
    println!("{name}: {cut:?}");
    let [aggregate, find, update] = ["aggregate", "find", "update"].map(|name| history.command(name));
    let expected: &[&str] = match before {
        // The record, the tail, the append.
        Before::Nothing => &["insert idempotency_keys", &aggregate, &update],
        // The record and its reading, the search, the outcome.
        Before::Answered | Before::CutOff(Way::Back) => &[
            "insert idempotency_keys",
            "update idempotency_keys",
            "find idempotency_keys",
            &find,
            "update idempotency_keys again",
        ],
        Before::CutOff(Way::There) => {
            &["insert idempotency_keys", "update idempotency_keys", "find idempotency_keys", &find, &update]
        }
    };
    for command in expected {
        assert!(cut.contains(*command), "{name}: {command} is not among {cut:?}");
    }
    hold(name, history, &stage.plain.database, &stage.log).await;
}

/// Three instances on one database, two of them over wires that can be cut.
struct Stage {
    plain: Service,
    first: Service,
    to_first: Proxy,
    cut: Service,
    to_cut: Proxy,
    log: Log,
    next: u64,
}

impl Stage {
    async fn new(history: &'static History) -> Self {
        let mongod = shared().await;
        let plain = Setup::on(mongod).of(history).start().await;
        let (to_first, to_cut) = (Proxy::before(mongod).await, Proxy::before(mongod).await);
        let over = async |proxy: &Proxy| {
            Setup::at(&proxy.uri()).of(history).in_database(&plain.database).start().await
        };
        let (first, cut) = (over(&to_first).await, over(&to_cut).await);
        let mut stage = Self { plain, first, to_first, cut, to_cut, log: Log::default(), next: 1 };
        // An instance inserts records once an answer has told it the server's time.
        for client in [stage.first.client.clone(), stage.cut.client.clone()] {
            let owner = stage.next;
            stage.appended(&client, owner, 1).await;
        }
        stage
    }

    /// Trades that no other append has.
    fn wanted(&mut self, owner: u64, count: u64) -> Wanted {
        let first = self.next;
        self.next += count;
        let key = Some(format!("key-of-{first}"));
        Wanted { owner, key, first, count, told: Vec::new() }
    }

    /// One append with one command cut, or none; returns the commands that it took.
    async fn case(&mut self, before: Before, count: u64, cut: Option<(Nth, Way)>) -> Vec<Nth> {
        // An owner of its own, with room for one item and not for several.
        let (history, owner) = (self.plain.history, self.next);
        self.appended(&self.plain.client.clone(), owner, history.pages(0.5)).await;
        let mut wanted = self.wanted(owner, count);
        match before {
            Before::Nothing => {}
            Before::Answered => tell(&mut wanted, &self.plain.client, LONG).await,
            Before::CutOff(way) => {
                let held = self.to_first.strikes() + 1;
                self.to_first.harm(history.command("update"), way, Harm::Hold, 1);
                tokio::select! {
                    () = tell(&mut wanted, &self.first.client, LONG) => {}
                    () = self.to_first.struck(held) => {}
                }
                assert!(wanted.told.is_empty(), "it was not held: {wanted:?}");
                wanted.told.push(Told::nth(0, Reply::Silence));
                self.appended(&self.plain.client.clone(), owner, history.pages(0.7)).await;
            }
        }
        let struck = self.to_cut.strikes();
        self.to_cut.forget();
        if let Some((command, way)) = cut.clone() {
            self.to_cut.harm_nth(command, way, Harm::Cut);
        }
        let answered = wanted.told.len();
        while !wanted.told[answered..].iter().any(|told| matches!(told.reply, Reply::Stored(_))) {
            assert!(wanted.told.len() < answered + 20, "{before:?}, {count} items, {cut:?}: {wanted:?}");
            tell(&mut wanted, &self.cut.client, LONG).await;
        }
        let commands = self.to_cut.commands();
        let strikes = self.to_cut.strikes() - struck;
        // An append that overtakes what was learnt of its owner reads the tail a second time.
        let maybe = cut.as_ref().is_some_and(|(command, _)| *command == Nth(history.command("aggregate"), 1));
        assert!(maybe || strikes == u32::from(cut.is_some()), "{before:?}, {cut:?} of {commands:?}");
        self.to_cut.relent();
        if matches!(before, Before::CutOff(_)) {
            self.to_first.relent();
            // It goes on by itself; what is appended behind it is answered after it.
            self.appended(&self.first.client.clone(), owner, 1).await;
        }
        tell(&mut wanted, &self.plain.client, LONG).await;
        tell(&mut wanted, &self.first.client, LONG).await;
        self.log.wanted.push(wanted);
        commands
    }

    /// Other items of the owner.
    async fn appended(&mut self, client: &Client, owner: u64, count: u64) {
        let mut wanted = self.wanted(owner, count);
        tell(&mut wanted, client, LONG).await;
        assert!(wanted.is_stored(), "{wanted:?}");
        self.log.wanted.push(wanted);
    }
}

/// Sends it once, and notes the answer.
async fn tell(wanted: &mut Wanted, client: &Client, timeout: Duration) {
    let reply = attempt(client, wanted, timeout).await;
    wanted.told.push(Told::nth(wanted.told.len(), reply));
}
