//! Everything at once: two instances of the API, three mongods, wires that are cut, and chance.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use tokio::time::sleep;

use super::api_process::ApiProcess;
use super::clients::{Load, Repeats};
use super::replica_set::Fault;
use super::run::{Run, hold};
use crate::harness::{Harm, History, ReplicaSet, Setup, Way, Wires, test_over};

test_over!(everything_at_random, ALL);
async fn everything_at_random(history: &'static History) {
    const NAME: &str = "everything at random";
    let set = ReplicaSet::start(Wires::Harmable).await;
    let name = Setup::at(set.uri()).store.connection.database;
    let mut instances = [
        ApiProcess::start(history, set.uri(), &name).await,
        ApiProcess::start(history, set.uri(), &name).await,
    ];
    let clients = instances.iter().map(ApiProcess::client).collect();
    let run = Run::start(NAME, Load::keyed(history, 12, Repeats::AtRandom), clients);
    let mut rng = run.rng();
    while run.lasts() {
        run.goes_on(20).await;
        let of_the_set = Fault::ALL.choose(&mut rng).copied().filter(|_| rng.random_bool(0.6));
        let (mut rng_of_the_set, mut rng_of_the_rest) =
            (StdRng::from_rng(&mut rng), StdRng::from_rng(&mut rng));
        let strike = async {
            if let Some(fault) = of_the_set {
                fault.strike(&set, &run, &mut rng_of_the_set).await;
            }
        };
        tokio::join!(strike, lesser_faults(history, &set, &run, &mut instances, &mut rng_of_the_rest));
        relent(&set);
        run.goes_on(20).await;
    }
    let log = run.end().await;
    for instance in &mut instances {
        instance.kill().await;
    }
    set.until_well().await;
    hold(NAME, history, &set.client().await.database(&name), &log).await;
    set.remove().await;
}

fn relent(set: &ReplicaSet) {
    (0..3).for_each(|member| set.proxy(member).relent());
}

/// Wires cut or silent and instances killed, while the set is struck or is well.
async fn lesser_faults(
    history: &History,
    set: &ReplicaSet,
    run: &Run,
    instances: &mut [ApiProcess; 2],
    rng: &mut StdRng,
) {
    for _ in 0..rng.random_range(1..=3) {
        sleep(Duration::from_millis(rng.random_range(0..1500))).await;
        if rng.random_bool(0.3) {
            let instance = &mut instances[rng.random_range(0..2)];
            run.fault("kill -9 of an instance");
            instance.kill().await;
            run.killed_an_instance();
            // Each attempt to start would wait for what is held.
            relent(set);
            instance.restart().await;
        } else {
            let commands = [
                history.command("write"),
                "insert idempotency_keys".to_owned(),
                "update idempotency_keys".to_owned(),
                "find idempotency_keys".to_owned(),
                history.command("find"),
                "aggregate".to_owned(),
            ];
            let command = commands.choose(rng).expect("some");
            let way = if rng.random() { Way::There } else { Way::Back };
            // What is held goes on at the end of the round, perhaps to a server that is no primary any more.
            let harm = if rng.random_bool(0.7) { Harm::Cut } else { Harm::Hold };
            run.fault(format!("{command}: {harm:?} {way:?}"));
            let times = rng.random_range(1..=3);
            for member in 0..3 {
                set.proxy(member).harm(command.clone(), way, harm, times);
            }
        }
    }
}
