//! Two instances, one hot customer, and clients that repeat each request at random, at once.

use super::clients::{Load, Repeats};
use super::judge::Finding;
use super::run::{Run, hold, verdict};
use crate::harness::{Service, Setup, shared, tests};

tests!["exactly_once": two_instances_and_a_hot_customer];

const CLIENTS: u64 = 64;

async fn two_instances_and_a_hot_customer() {
    const NAME: &str = "two instances, a hot customer";
    let (log, service) = run(NAME, Load::keyed(CLIENTS, Repeats::AtRandom)).await;
    hold(NAME, &service.database, &log).await;
}

/// The same without keys: what is wrong then.
pub async fn without_keys() -> Vec<Finding> {
    const NAME: &str = "two instances, a hot customer, no keys";
    let (log, service) = run(NAME, Load::keyed(CLIENTS, Repeats::AtRandom).without_keys()).await;
    verdict(NAME, &service.database, &log).await
}

async fn run(name: &'static str, load: Load) -> (super::record::Log, Service) {
    let mongod = shared().await;
    let one = Setup::on(mongod).start().await;
    let other = one.sibling(mongod).await;
    // A client waits for longer than the queue of a hot customer on a slow machine.
    let load = Load { customers: vec![1], timeout: std::time::Duration::from_secs(20), ..load };
    let run = Run::start(name, load, vec![one.client.clone(), other.client.clone()]);
    run.rest().await;
    let log = run.end().await;
    assert!(other.stop().await, "nothing is left under way");
    (log, one)
}
