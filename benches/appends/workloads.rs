//! The workloads, and what is expected of them.

use crate::contender::{self, Kind};
use crate::harness::comparison::Expected::{AtLeast, AtMost, Nothing, Same};
use crate::harness::comparison::Metric::{Latency, Rate};
use crate::harness::comparison::compare;
use crate::harness::customers::Customers;
use crate::harness::settings::Settings;
use crate::limits::{Commands, Statements};
use crate::stage::{Stage, Workload};

const OURS: &str = "ours";
const AGAIN: &str = "ours again";
const MANUAL: &str = "manual";
const FLAT: &str = "flat";
const TIME_SERIES: &str = "timeseries";
const STATEMENTS: &str = "limit: statements";
const INSERTS: &str = "limit: insertMany";
const PING: &str = "limit: ping";

/// Of most workloads.
const CUSTOMERS: u64 = 10_000;

/// In the order in which they run.
pub fn stages(settings: &Settings) -> [Stage; 4] {
    [many_customers(settings), keys(settings), long_histories(settings), arrays(settings)]
}

fn statements(senders: usize, customers: usize, statements: usize, trades: u64) -> Kind {
    Kind::Limit(Commands::Statements(Statements { senders, customers, statements, trades }))
}

fn many_customers(settings: &Settings) -> Stage {
    const ONE_STATEMENT: &str = "limit: one statement";
    const ONE_PING: &str = "limit: one ping";
    const ONE_CUSTOMER: &str = "limit: one customer's statements";
    let of_64 = |name, about, customers: Customers, also: &[&'static str], comparisons| Workload {
        name,
        about,
        connections: 64,
        trades: 1,
        customers: Box::new(move |_, _| customers.clone()),
        timing: settings.timing(),
        contenders: [&[OURS, AGAIN, MANUAL, FLAT, TIME_SERIES], also].concat(),
        comparisons,
    };
    Stage {
        name: "customers",
        contenders: vec![
            (OURS, Kind::Ours { pages: 0 }),
            (AGAIN, Kind::Ours { pages: 0 }),
            (MANUAL, Kind::Manual { pages: 0 }),
            (FLAT, Kind::Flat),
            (TIME_SERIES, Kind::TimeSeries),
            (STATEMENTS, statements(4, 2500, 500, 1)),
            (INSERTS, Kind::Limit(Commands::Inserts { senders: 4, batch: 500 })),
            (PING, Kind::Limit(Commands::Ping { senders: 64 })),
            (ONE_STATEMENT, statements(1, 250, 1, 1)),
            (ONE_PING, Kind::Limit(Commands::Ping { senders: 1 })),
            (ONE_CUSTOMER, statements(1, 1, 6, 10)),
        ],
        seeded: CUSTOMERS,
        workloads: vec![
            // First, while no history is longer than a bucket: the manual's at its best.
            Workload {
                name: "one connection, idle server",
                about: "One request at a time over 10,000 customers, each with a trade or two: nobody's history is \
                        longer than a bucket.",
                connections: 1,
                trades: 1,
                customers: Box::new(|_, _| Customers::Uniform(1..=CUSTOMERS)),
                timing: settings.timing(),
                contenders: vec![OURS, AGAIN, MANUAL, FLAT, TIME_SERIES, ONE_STATEMENT, ONE_PING],
                comparisons: vec![
                    compare(OURS, Latency, MANUAL, AtMost(1.1)),
                    compare(OURS, Latency, ONE_STATEMENT, Nothing),
                    compare(AGAIN, Latency, OURS, Same),
                ],
            },
            Workload {
                name: "one connection, new customers",
                about: "One request at a time, each for a customer that has no history: ours has to find that out first.",
                connections: 1,
                trades: 1,
                customers: Box::new(|_, round| {
                    let first = (round + 1) * 1_000_000;
                    Customers::each(first..=first + 999_999)
                }),
                timing: settings.timing(),
                contenders: vec![OURS, AGAIN, MANUAL],
                comparisons: vec![
                    compare(OURS, Latency, MANUAL, Nothing),
                    compare(AGAIN, Latency, OURS, Same),
                ],
            },
            of_64(
                "64 connections, uniform",
                "10,000 customers, all equally often.",
                Customers::Uniform(1..=CUSTOMERS),
                &[STATEMENTS, INSERTS, PING],
                vec![
                    compare(OURS, Rate, MANUAL, AtLeast(2.0)),
                    compare(OURS, Rate, FLAT, AtLeast(1.3)),
                    compare(OURS, Rate, TIME_SERIES, Nothing),
                    compare(OURS, Rate, STATEMENTS, Nothing),
                    compare(AGAIN, Rate, OURS, Same),
                ],
            ),
            of_64(
                "64 connections, Zipf 0.99",
                "10,000 customers, the busiest with a tenth of all trades. The manual's busiest customers get more \
                 than ten trades a second, and lose the rest. The limits are those of the uniform load.",
                Customers::zipf(CUSTOMERS as u32, 0.99),
                &[],
                vec![
                    compare(OURS, Rate, MANUAL, Nothing),
                    compare(OURS, Rate, FLAT, Nothing),
                    compare(AGAIN, Rate, OURS, Same),
                ],
            ),
            of_64(
                "64 connections, one customer",
                "All for one customer: the manual's stores ten a second and loses the rest. The limit sends \
                 commands of 60 trades, as many as 64 connections can have waiting, in 6 full buckets.",
                Customers::one(CUSTOMERS + 1),
                &[ONE_CUSTOMER],
                vec![
                    compare(OURS, Rate, FLAT, AtLeast(5.0)),
                    compare(OURS, Rate, ONE_CUSTOMER, Nothing),
                    compare(AGAIN, Rate, OURS, Same),
                ],
            ),
        ],
    }
}

/// What it costs that a request may be repeated: ours with and without keys, and flat with and without ids.
fn keys(settings: &Settings) -> Stage {
    const KEYED: &str = "ours with keys";
    const WITH_IDS: &str = "flat with trade ids";
    let contenders = vec![
        (OURS, Kind::Ours { pages: 0 }),
        (AGAIN, Kind::Ours { pages: 0 }),
        (KEYED, Kind::OursKeyed),
        (FLAT, Kind::Flat),
        (WITH_IDS, Kind::FlatKeyed),
    ];
    let labels: Vec<_> = contenders.iter().map(|(label, _)| *label).collect();
    let workload = |name, about, connections, customers: Customers, metric, expected| Workload {
        name,
        about,
        connections,
        trades: 1,
        customers: Box::new(move |_, _| customers.clone()),
        timing: settings.timing(),
        contenders: labels.clone(),
        comparisons: vec![
            compare(KEYED, metric, OURS, expected),
            compare(WITH_IDS, metric, FLAT, Nothing),
            compare(KEYED, metric, WITH_IDS, Nothing),
            compare(AGAIN, metric, OURS, Same),
        ],
    };
    let workloads = vec![
        workload(
            "keys: one connection",
            "One request at a time over 10,000 customers, with a fresh `Idempotency-Key` in each; flat keeps it as \
             the trade's id, under a unique index.",
            1,
            Customers::Uniform(1..=CUSTOMERS),
            Latency,
            Nothing,
        ),
        workload(
            "keys: 64 connections, uniform",
            "10,000 customers, all equally often, a fresh key in each request.",
            64,
            Customers::Uniform(1..=CUSTOMERS),
            Rate,
            AtLeast(0.6),
        ),
        workload(
            "keys: 64 connections, one customer",
            "All for one customer, a fresh key in each request.",
            64,
            Customers::one(CUSTOMERS + 1),
            Rate,
            AtLeast(0.6),
        ),
    ];
    Stage { name: "keys", contenders, seeded: CUSTOMERS, workloads }
}

fn long_histories(settings: &Settings) -> Stage {
    const OURS_0: &str = "ours, 0 pages";
    const AGAIN_0: &str = "ours again, 0 pages";
    const OURS_1000: &str = "ours, 1,000 pages";
    const OURS_10000: &str = "ours, 10,000 pages";
    const MANUAL_0: &str = "manual, 0 pages";
    const MANUAL_1000: &str = "manual, 1,000 pages";
    const MANUAL_10000: &str = "manual, 10,000 pages";
    let contenders = vec![
        (OURS_0, Kind::Ours { pages: 0 }),
        (AGAIN_0, Kind::Ours { pages: 0 }),
        (OURS_1000, Kind::Ours { pages: 1000 }),
        (OURS_10000, Kind::Ours { pages: 10_000 }),
        (MANUAL_0, Kind::Manual { pages: 0 }),
        (MANUAL_1000, Kind::Manual { pages: 1000 }),
        (MANUAL_10000, Kind::Manual { pages: 10_000 }),
        (STATEMENTS, statements(1, contender::CUSTOMERS as usize, contender::CUSTOMERS as usize, 2)),
    ];
    let workload = Workload {
        name: "64 connections, long histories",
        about: "32 customers with 0, 1,000 or 10,000 full pages each, written directly beforehand. Those with 0 pages \
                are others in each round; the other histories grow by what is appended, by a few pages in a hundred. \
                With short histories the manual's is fast enough to reach its ten trades a second and customer, and \
                loses the rest. The limit sends commands of 64 trades, 2 for each customer.",
        connections: 64,
        trades: 1,
        customers: Box::new(|kind, round| {
            let first = match kind {
                Kind::Ours { pages: 0 } | Kind::Manual { pages: 0 } => round * contender::CUSTOMERS,
                _ => 0,
            };
            Customers::Uniform(first + 1..=first + contender::CUSTOMERS)
        }),
        timing: settings.long_timing(),
        contenders: contenders.iter().map(|(label, _)| *label).collect(),
        comparisons: vec![
            compare(OURS_10000, Rate, MANUAL_10000, AtLeast(20.0)),
            compare(OURS_10000, Rate, OURS_0, AtLeast(0.95)),
            compare(AGAIN_0, Rate, OURS_0, Same),
            compare(OURS_1000, Rate, MANUAL_1000, Nothing),
            compare(OURS_0, Rate, MANUAL_0, Nothing),
        ],
    };
    Stage { name: "history", contenders, seeded: 0, workloads: vec![workload] }
}

fn arrays(settings: &Settings) -> Stage {
    const BUCKETS: &str = "limit: full buckets";
    let contenders = vec![
        (OURS, Kind::Ours { pages: 0 }),
        (AGAIN, Kind::Ours { pages: 0 }),
        (FLAT, Kind::Flat),
        (TIME_SERIES, Kind::TimeSeries),
        (BUCKETS, statements(4, 250, 100, 10)),
        (INSERTS, Kind::Limit(Commands::Inserts { senders: 4, batch: 500 })),
    ];
    let workload = Workload {
        name: "64 connections, arrays of 100",
        about: "Arrays of 100 trades over 1,000 customers: by one `insertMany` each in flat and timeseries.",
        connections: 64,
        trades: 100,
        customers: Box::new(|_, _| Customers::Uniform(1..=1000)),
        timing: settings.long_timing(),
        contenders: contenders.iter().map(|(label, _)| *label).collect(),
        comparisons: vec![
            compare(OURS, Rate, FLAT, AtLeast(0.6)),
            compare(OURS, Rate, TIME_SERIES, Nothing),
            compare(OURS, Rate, BUCKETS, Nothing),
            compare(AGAIN, Rate, OURS, Same),
        ],
    };
    Stage { name: "arrays", contenders, seeded: 0, workloads: vec![workload] }
}
