//! Any interleaving of appends, through several instances that forget tails and hold stale ones.

use std::cell::Cell;

use futures_util::future::join_all;
use mongodb::Database;
use pagebucket_engine::internal::COMMAND;
use pagebucket_engine::{Deadline, Store};
use pagebucket_model::domain::Seq;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Handle;

use crate::harness::{History, Setup, Stored, amount, engine, shared, stored, test_over};

/// Each on a real database: few.
fn cases() -> u32 {
    amount(24, 240) as u32
}

/// More than the catalogs hold, so that each evicts others.
const OWNERS: u64 = 6;

/// One remembers hardly anybody, one next to nobody, and one holds tails that have long moved on.
const CATALOGS: [usize; 3] = [1, 2, 100];

#[derive(Debug, Clone)]
struct Append {
    instance: usize,
    /// Counted from 0, in its case.
    owner: u64,
    items: u64,
    /// Seconds since 1970 of the first item; the next are `step` apart.
    second: i64,
    step: i64,
}

fn append() -> impl Strategy<Value = Append> {
    let items = prop_oneof![4 => 1_u64..=3, 4 => 1_u64..=30, 1 => 31_u64..=1_000, 1 => Just(1_000_u64)];
    let second =
        prop_oneof![Just(1_698_349_623), -100_000_i64..2_000_000_000, 4_000_000_000_i64..200_000_000_000];
    (0..CATALOGS.len(), 0..OWNERS, items, second, -2_i64..=2)
        .prop_map(|(instance, owner, items, second, step)| Append { instance, owner, items, second, step })
}

/// Rounds of appends, all those of a round at once.
fn rounds() -> impl Strategy<Value = Vec<Vec<Append>>> {
    prop::collection::vec(prop::collection::vec(append(), 1..=8), 1..=4)
}

test_over!(any_interleaving_keeps_the_invariants, ALL);
async fn any_interleaving_keeps_the_invariants(history: &'static History) {
    let setup = Setup::on(shared().await).of(history);
    let mongod = shared().await;
    let database = mongod.client().await.database(&setup.connection.database);
    let instances = CATALOGS.map(|catalog_owners| {
        let mut setup = Setup::on(mongod).of(history).in_database(&database);
        setup.capacity.catalog_owners = catalog_owners;
        async move { setup.store().await }
    });
    let instances: Vec<Store> = join_all(instances).await;

    tokio::task::block_in_place(|| {
        let config =
            Config { cases: cases(), max_shrink_iters: 64, failure_persistence: None, ..Config::default() };
        let cases = Cell::new(0);
        let ran = TestRunner::new(config).run(&rounds(), |rounds| {
            // Owners of its own, also while a failure is being made smaller.
            let first = cases.replace(cases.get() + 1) * OWNERS + 1;
            Handle::current().block_on(case(history, &instances, &database, first, rounds));
            Ok(())
        });
        ran.unwrap_or_else(|failure| panic!("{failure}"));
    });
}

async fn case(
    history: &History,
    instances: &[Store],
    database: &Database,
    first: u64,
    rounds: Vec<Vec<Append>>,
) {
    let mut before: Vec<Stored> = Vec::new();
    // Numbers tell the items of a case apart.
    let mut number = 0;
    let mut acknowledged = vec![Vec::new(); OWNERS as usize];
    for round in rounds {
        let appends = round.into_iter().map(|append| {
            let from = number + 1;
            number += append.items;
            let id = engine::owner(history, first + append.owner);
            let items = (0..append.items).map(|index| {
                let second = append.second + append.step * index as i64;
                engine::dated(history, from + index, second * 1000)
            });
            let histories = engine::histories(&instances[append.instance], history);
            let items = engine::append(id, items.collect(), Deadline::within(COMMAND));
            let items = histories.appends().append(items);
            async move { (append.owner as usize, from, append.items, items.await) }
        });
        for (owner, from, count, appended) in join_all(appends).await {
            let appended = appended.expect("nothing is wrong with the database");
            let seqs = appended.ranges().iter().flat_map(|range| range.first.get()..=range.last.get());
            let placed: Vec<_> = seqs.zip(from..from + count).collect();
            assert_eq!(placed.len() as u64, count, "a place for each item");
            assert_eq!(appended.last_seq().map(Seq::get), placed.last().map(|(seq, _)| *seq));
            acknowledged[owner].extend(placed);
        }

        // Invariants 1 to 3 and 5.
        let after = join_all((0..OWNERS).map(|owner| stored(database, history, first + owner))).await;
        for (owner, stored) in after.iter().enumerate() {
            // Invariant 4.
            if let Some(before) = before.get(owner) {
                assert!(stored.numbers.starts_with(&before.numbers), "a stored item never moves");
                assert!(stored.ids.starts_with(&before.ids), "a bucket keeps its _id");
            }
            // Invariant 6.
            acknowledged[owner].sort_unstable();
            let found = (1..).zip(stored.numbers.iter().map(|number| *number as u64));
            assert_eq!(found.collect::<Vec<_>>(), acknowledged[owner], "each once, at its seq");
        }
        before = after;
    }
}
