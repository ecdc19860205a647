//! Any interleaving of appends, through several instances that forget tails and hold stale ones.

use std::cell::Cell;

use futures_util::future::join_all;
use mongodb::Database;
use pagebucket::domain::{CustomerId, Instant, Quantity, Side, Ticker, Trade};
use pagebucket::store::Capacity;
use pagebucket::store::{COMMAND, Deadline, Store};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Handle;

use crate::harness::{History, Setup, history, shared, tests};

tests!["properties": any_interleaving_keeps_the_invariants];

/// Each on a real database: few.
const CASES: u32 = 24;

/// More than the catalogs hold, so that each evicts others.
const CUSTOMERS: u64 = 6;

/// One remembers hardly anybody, one next to nobody, and one holds tails that have long moved on.
const CATALOGS: [usize; 3] = [1, 2, 100];

#[derive(Debug, Clone)]
struct Append {
    instance: usize,
    /// Counted from 0, in its case.
    customer: u64,
    trades: u64,
    /// Seconds since 1970 of the first trade; the next are `step` apart.
    second: i64,
    step: i64,
}

fn append() -> impl Strategy<Value = Append> {
    let trades = prop_oneof![4 => 1_u64..=3, 4 => 1_u64..=30, 1 => 31_u64..=1_000, 1 => Just(1_000_u64)];
    let second =
        prop_oneof![Just(1_698_349_623), -100_000_i64..2_000_000_000, 4_000_000_000_i64..200_000_000_000];
    (0..CATALOGS.len(), 0..CUSTOMERS, trades, second, -2_i64..=2).prop_map(
        |(instance, customer, trades, second, step)| Append { instance, customer, trades, second, step },
    )
}

/// Rounds of appends, all those of a round at once.
fn rounds() -> impl Strategy<Value = Vec<Vec<Append>>> {
    prop::collection::vec(prop::collection::vec(append(), 1..=8), 1..=4)
}

async fn any_interleaving_keeps_the_invariants() {
    let setup = Setup::on(shared().await);
    let database = shared().await.client().await.database(&setup.connection.database);
    let instances = CATALOGS.map(|catalog_customers| {
        let capacity = Capacity { catalog_customers, ..setup.capacity };
        Store::connect(setup.connection.clone(), capacity, setup.clock.clone())
    });
    let instances: Vec<Store> =
        join_all(instances).await.into_iter().map(|store| store.expect("the test's mongod")).collect();
    instances[0].migrate().await.expect("the migrations");

    tokio::task::block_in_place(|| {
        let config =
            Config { cases: CASES, max_shrink_iters: 64, failure_persistence: None, ..Config::default() };
        let cases = Cell::new(0);
        let ran = TestRunner::new(config).run(&rounds(), |rounds| {
            // Customers of its own, also while a failure is being made smaller.
            let first = cases.replace(cases.get() + 1) * CUSTOMERS + 1;
            Handle::current().block_on(case(&instances, &database, first, rounds));
            Ok(())
        });
        ran.unwrap_or_else(|failure| panic!("{failure}"));
    });
}

async fn case(instances: &[Store], database: &Database, first: u64, rounds: Vec<Vec<Append>>) {
    let mut before: Vec<History> = Vec::new();
    // Quantities tell the trades of a case apart.
    let mut quantity = 0;
    let mut acknowledged = vec![Vec::new(); CUSTOMERS as usize];
    for round in rounds {
        let appends = round.into_iter().map(|append| {
            let from = quantity + 1;
            quantity += append.trades;
            let id = CustomerId::new(first + append.customer).expect("a customer");
            let trades = (0..append.trades).map(|index| Trade {
                side: Side::Sell,
                ticker: Ticker::parse("MDB").expect("a ticker"),
                qty: Quantity::new(from + index).expect("a quantity"),
                price: None,
                date: Instant::from_millis((append.second + append.step * index as i64) * 1000)
                    .expect("a date"),
            });
            let trades =
                instances[append.instance].trades().append(id, trades.collect(), Deadline::within(COMMAND));
            async move { (append.customer as usize, from, append.trades, trades.await) }
        });
        for (customer, from, count, appended) in join_all(appends).await {
            let appended = appended.expect("nothing is wrong with the database");
            let seqs = appended.ranges().iter().flat_map(|range| range.first.get()..=range.last.get());
            let placed: Vec<_> = seqs.zip(from..from + count).collect();
            assert_eq!(placed.len() as u64, count, "a place for each trade");
            assert_eq!(appended.totals().trades(), placed.last().expect("at least one").0);
            acknowledged[customer].extend(placed);
        }

        // Invariants 1 to 3 and 5.
        let after = join_all((0..CUSTOMERS).map(|customer| history(database, first + customer))).await;
        for (customer, history) in after.iter().enumerate() {
            // Invariant 4.
            if let Some(before) = before.get(customer) {
                assert!(history.quantities.starts_with(&before.quantities), "a stored trade never moves");
                assert!(history.ids.starts_with(&before.ids), "a bucket keeps its _id");
            }
            // Invariant 6.
            acknowledged[customer].sort_unstable();
            let stored = (1..).zip(history.quantities.iter().map(|quantity| *quantity as u64));
            assert_eq!(stored.collect::<Vec<_>>(), acknowledged[customer], "each once, at its seq");
        }
        before = after;
    }
}
