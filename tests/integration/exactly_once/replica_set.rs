//! A replica set of three under load, whose primary is killed, frozen past an election, or told to
//! hand over. The time without acknowledgements is printed.

use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use tokio::time::Instant;

use super::clients::{Load, Repeats};
use super::run::{Run, hold, seconds};
use crate::harness::{History, READINGS, ReplicaSet, Setup, Wires, test_over};

/// What is done to the primary, and undone.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    Kill,
    Freeze,
    StepDown,
}

test_over!(a_primary_killed, TRADES, NOTES);
async fn a_primary_killed(history: &'static History) {
    under_load(history, "a primary killed", Fault::Kill).await;
}

test_over!(a_primary_frozen_past_an_election, READINGS);
async fn a_primary_frozen_past_an_election(history: &'static History) {
    under_load(history, "a primary frozen past an election", Fault::Freeze).await;
}

test_over!(a_primary_that_steps_down, TRADES);
async fn a_primary_that_steps_down(history: &'static History) {
    under_load(history, "a primary that steps down", Fault::StepDown).await;
}

async fn under_load(history: &'static History, name: &'static str, fault: Fault) {
    let set = ReplicaSet::start(Wires::Straight).await;
    // As operators are advised, and as MongoDB does it unless it is told.
    if history.name == READINGS.name {
        set.skip_catch_up().await;
    }
    let one = Setup::at(set.uri()).of(history).start().await;
    let other = Setup::at(set.uri()).of(history).in_database(&one.database).start().await;
    let instances = vec![one.client.clone(), other.client.clone()];
    let run = Run::start(name, Load::keyed(history, 12, Repeats::UntilAnswered), instances);
    let mut rng = run.rng();
    while run.lasts() {
        run.goes_on(30).await;
        // At any moment of a commit.
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..500))).await;
        fault.strike(&set, &run, &mut rng).await;
        run.goes_on(30).await;
    }
    let log = run.end().await;
    let database = one.database.clone();
    assert!(one.stop().await && other.stop().await, "nothing is left under way");
    set.until_well().await;
    hold(name, history, &database, &log).await;
    set.remove().await;
}

impl Fault {
    pub const ALL: [Self; 3] = [Self::Kill, Self::Freeze, Self::StepDown];

    /// Strikes the primary, waits for another, and makes the set whole again.
    pub async fn strike(self, set: &ReplicaSet, run: &Run, rng: &mut StdRng) {
        let primary = set.primary().await;
        let mongod = set.mongod(primary);
        let struck = Instant::now();
        let elected = || run.say(format!("another primary after {:.1} s", struck.elapsed().as_secs_f64()));
        match self {
            Self::Kill => {
                run.fault("kill -9 of the primary");
                mongod.kill().await;
                set.until_primary_is_not(primary).await;
                elected();
                mongod.start().await;
            }
            Self::Freeze => {
                run.fault("the primary frozen");
                mongod.freeze().await;
                set.until_primary_is_not(primary).await;
                elected();
                // The new primary takes writes meanwhile, of which the old one knows nothing. In a long
                // run until the API has given up what it had sent to the old one.
                tokio::time::sleep(seconds().mul_f64(rng.random_range(0.0..0.6))).await;
                run.fault("the former primary thawed");
                mongod.thaw().await;
            }
            Self::StepDown => {
                run.fault("a step-down");
                set.step_down().await;
                elected();
            }
        }
        set.until_well().await;
    }
}
