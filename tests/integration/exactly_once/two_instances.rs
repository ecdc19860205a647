//! Two instances, one hot owner, and clients that repeat each request at random, at once.

use super::clients::{Load, Repeats};
use super::judge::Finding;
use super::run::{Run, hold, verdict};
use crate::harness::{History, Service, Setup, TRADES, shared, test_over};

const CLIENTS: u64 = 64;

test_over!(two_instances_and_a_hot_owner, NOTES);
async fn two_instances_and_a_hot_owner(history: &'static History) {
    const NAME: &str = "two instances, a hot owner";
    let (log, service) = run(NAME, Load::keyed(history, CLIENTS, Repeats::AtRandom)).await;
    hold(NAME, history, &service.database, &log).await;
}

/// The same without keys: what is wrong then.
pub async fn without_keys() -> Vec<Finding> {
    const NAME: &str = "two instances, a hot owner, no keys";
    let (log, service) = run(NAME, Load::keyed(TRADES, CLIENTS, Repeats::AtRandom).without_keys()).await;
    verdict(NAME, TRADES, &service.database, &log).await
}

async fn run(name: &'static str, load: Load) -> (super::record::Log, Service) {
    let mongod = shared().await;
    let one = Setup::on(mongod).of(load.history).start().await;
    let other = one.sibling(mongod).await;
    // A client waits for longer than the queue of a hot owner on a slow machine.
    let load = Load { owners: vec![1], timeout: std::time::Duration::from_secs(20), ..load };
    let run = Run::start(name, load, vec![one.client.clone(), other.client.clone()]);
    run.rest().await;
    let log = run.end().await;
    assert!(other.stop().await, "nothing is left under way");
    (log, one)
}
