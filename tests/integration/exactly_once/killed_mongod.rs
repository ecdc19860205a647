//! `kill -9` of a single mongod under load; it comes back on its data.

use std::time::Duration;

use rand::Rng;

use super::clients::{Load, Repeats};
use super::run::{Run, hold};
use crate::harness::{History, Mongod, Setup, test_over};

test_over!(mongod_killed_under_load, TRADES, READINGS);
async fn mongod_killed_under_load(history: &'static History) {
    const NAME: &str = "a single mongod, killed";
    let mongod = Mongod::own().await;
    let service = Setup::on(&mongod).of(history).start().await;
    let load = Load::keyed(history, 16, Repeats::UntilAnswered);
    let run = Run::start(NAME, load, vec![service.client.clone()]);
    let mut rng = run.rng();
    while run.lasts() {
        run.goes_on(40).await;
        // At any moment of a commit.
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..500))).await;
        run.fault("kill -9 of mongod");
        mongod.kill().await;
        mongod.start().await;
        run.goes_on(40).await;
    }
    let log = run.end().await;
    let database = service.database.clone();
    assert!(service.stop().await, "nothing is left under way");
    hold(NAME, history, &database, &log).await;
    mongod.remove().await;
}
