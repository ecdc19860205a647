//! The workloads, and what is expected of them.

use crate::harness::peers::Way;
use crate::harness::{Commands, Customers, Entry, History, Kind, Layout, Settings, Setup, Stage, Timing};
use crate::harness::{LATENCY, Metric, RATE, Work, Workload, compare, each};

/// Of most workloads.
const CUSTOMERS: u64 = 10_000;

/// In the order in which they run.
pub fn stages(settings: &Settings) -> [Stage; 4] {
    let (timing, long) = (settings.timing(1.0), settings.timing(2.0));
    [many_customers(timing), keys(timing), long_histories(long), arrays(long)]
}

fn ours(label: &'static str) -> Setup {
    Setup::new(label, Kind::Ours(|_| ()), Layout::Ours)
}

fn manual(label: &'static str) -> Setup {
    Setup::new(label, Kind::Peer(Way::Manual), Layout::Manual)
}

fn flat() -> Setup {
    Setup::new("flat", Kind::Peer(Way::Flat), Layout::Flat("date"))
}

fn time_series() -> Setup {
    Setup::new("timeseries", Kind::Peer(Way::Flat), Layout::TimeSeries)
}

/// Commands by `senders` with so many customers each, of so many statements with so many trades each.
fn limit(label: &'static str, [senders, customers, statements, trades]: [usize; 4]) -> Setup {
    let commands = Commands { senders, customers, statements, trades: trades as u64 };
    Setup::new(label, Kind::Limit(commands), Layout::Ours)
}

/// Appends of single trades. Its part is also its stage's name.
fn workload(
    part: &'static str,
    [name, about]: [&'static str; 2],
    (connections, timing): (usize, Timing),
    entries: Vec<Entry>,
    (metric, compared): (Metric, &str),
) -> Workload {
    let comparisons = compare(metric, compared);
    Workload { part, name, about, unit: "appends", connections, timing, entries, comparisons }
}

/// One trade in each request; all contenders have the same customers.
fn single(contenders: &[&'static str], customers: Customers) -> Vec<Entry> {
    each(contenders, &Work::Append { trades: 1, customers })
}

fn many_customers(timing: Timing) -> Stage {
    const ALL: [&str; 6] = ["ours", "ours again", "manual", "PostgreSQL", "flat", "timeseries"];
    let all_and = |limit: &'static str| [&ALL[..], &[limit]].concat();
    let fresh = |round| Customers::each((round + 1) * 1_000_000..=(round + 2) * 1_000_000 - 1);
    let uniform = Customers::Uniform(1..=CUSTOMERS);
    let setups = vec![
        ours("ours"),
        ours("ours again"),
        manual("manual"),
        flat(),
        time_series(),
        Setup::postgres(&[]),
        limit("limit: statements", [4, 2500, 500, 1]),
        limit("limit: one statement", [1, 250, 1, 1]),
        limit("limit: one customer's statements", [1, 1, 6, 10]),
    ];
    let workloads = vec![
        // First, while no history is longer than a bucket: the manual's at its best.
        workload(
            "customers",
            [
                "one connection, idle server",
                "One request at a time over 10,000 customers, each with a trade or two: no history is \
                 longer than a bucket.",
            ],
            (1, timing),
            single(&all_and("limit: one statement"), uniform.clone()),
            (
                LATENCY,
                "ours / manual ≤ 1.1; ours / PostgreSQL; ours / limit: one statement; ours again / ours",
            ),
        ),
        workload(
            "customers",
            [
                "one connection, new customers",
                "One request at a time, each for a customer without a history: ours has to find that out \
                 first.",
            ],
            (1, timing),
            single(&ALL[..4], Customers::InRound(fresh)),
            (LATENCY, "ours / manual; ours / PostgreSQL; ours again / ours"),
        ),
        workload(
            "customers",
            ["64 connections, uniform", "10,000 customers, all equally often."],
            (64, timing),
            single(&all_and("limit: statements"), uniform),
            (
                RATE,
                "ours / manual ≥ 2; ours / flat ≥ 1.3; ours / PostgreSQL ≥ 1; ours / timeseries; ours / limit: \
                 statements; ours again / ours",
            ),
        ),
        workload(
            "customers",
            [
                "64 connections, one customer",
                "All for one customer: the manual's stores ten a second and loses the rest. The limit sends \
                 commands of 60 trades, as many as 64 connections can have waiting, in 6 full buckets.",
            ],
            (64, timing),
            single(&all_and("limit: one customer's statements"), Customers::one(CUSTOMERS + 1)),
            (
                RATE,
                "ours / flat ≥ 5; ours / PostgreSQL ≥ 1; ours / limit: one customer's statements; ours again / \
                 ours",
            ),
        ),
    ];
    Stage { name: "customers", setups, seeded: CUSTOMERS, workloads }
}

/// The cost of repeatable requests: ours with and without keys, and flat with and without ids.
fn keys(timing: Timing) -> Stage {
    let with_ids = Setup::new("flat with trade ids", Kind::Peer(Way::FlatWithIds), Layout::FlatWithIds);
    let setups = vec![
        ours("ours"),
        ours("ours again"),
        Setup { keyed: true, ..ours("ours with keys") },
        flat(),
        Setup { keyed: true, ..with_ids },
    ];
    let labels: Vec<&str> = setups.iter().map(|setup| setup.label).collect();
    let keyed = |text, connections, customers, metric, expected| {
        let compared = format!(
            "ours with keys / ours{expected}; flat with trade ids / flat; ours with keys / flat with trade \
             ids; ours again / ours"
        );
        workload("keys", text, (connections, timing), single(&labels, customers), (metric, &compared))
    };
    let uniform = Customers::Uniform(1..=CUSTOMERS);
    let workloads = vec![
        keyed(
            [
                "keys: one connection",
                "One request at a time over 10,000 customers, with a fresh `Idempotency-Key` in each; flat \
                 keeps it as the trade's id, under a unique index.",
            ],
            1,
            uniform.clone(),
            LATENCY,
            "",
        ),
        keyed(
            [
                "keys: 64 connections, uniform",
                "10,000 customers, all equally often, a fresh key in each request.",
            ],
            64,
            uniform,
            RATE,
            " ≥ 0.6",
        ),
        keyed(
            ["keys: 64 connections, one customer", "All for one customer, a fresh key in each request."],
            64,
            Customers::one(CUSTOMERS + 1),
            RATE,
            " ≥ 0.6",
        ),
    ];
    Stage { name: "keys", setups, seeded: CUSTOMERS, workloads }
}

/// Of 32 customers: more would have to be written before the first block. With 10,000 pages they are 320,000
/// buckets a contender.
fn long_histories(timing: Timing) -> Stage {
    const PAGES_1000: &[History] = &[(1, 32, 1000)];
    const PAGES_10000: &[History] = &[(1, 32, 10_000)];
    let setups = vec![
        ours("ours, 0 pages"),
        ours("ours again, 0 pages"),
        Setup { histories: PAGES_1000, ..ours("ours, 1,000 pages") },
        Setup { histories: PAGES_10000, ..ours("ours, 10,000 pages") },
        manual("manual, 0 pages"),
        Setup { histories: PAGES_1000, ..manual("manual, 1,000 pages") },
        Setup { histories: PAGES_10000, ..manual("manual, 10,000 pages") },
        limit("limit: statements", [1, 32, 32, 2]),
    ];
    let entry = |setup: &Setup| {
        let customers = match setup.histories {
            [] => Customers::InRound(|round| Customers::Uniform(round * 32 + 1..=(round + 1) * 32)),
            _ => Customers::Uniform(1..=32),
        };
        let work = Work::Append { trades: 1, customers };
        Entry { label: setup.label.to_owned(), contender: setup.label, work }
    };
    let workload = workload(
        "history",
        [
            "64 connections, long histories",
            "32 customers with 0, 1,000 or 10,000 full pages each, written directly beforehand. Those with \
             0 pages are others in each round; the other histories grow by what is appended, by a few pages \
             in a hundred. With short histories the manual's is fast enough to reach its ten trades a \
             second and customer, and loses the rest. The limit sends commands of 64 trades, 2 for each \
             customer.",
        ],
        (64, timing),
        setups.iter().map(entry).collect(),
        (
            RATE,
            "ours, 10,000 pages / manual, 10,000 pages ≥ 20; ours, 10,000 pages / ours, 0 pages ≥ 0.95; \
             ours again, 0 pages / ours, 0 pages; ours, 1,000 pages / manual, 1,000 pages; \
             ours, 0 pages / manual, 0 pages",
        ),
    );
    Stage { name: "history", setups, seeded: 0, workloads: vec![workload] }
}

fn arrays(timing: Timing) -> Stage {
    let setups = vec![
        ours("ours"),
        ours("ours again"),
        flat(),
        time_series(),
        Setup::postgres(&[]),
        limit("limit: full buckets", [4, 250, 100, 10]),
    ];
    let labels: Vec<&str> = setups.iter().map(|setup| setup.label).collect();
    let workload = workload(
        "arrays",
        [
            "64 connections, arrays of 100",
            "Arrays of 100 trades over 1,000 customers: by one `insertMany` each in flat and timeseries, and one \
             statement in PostgreSQL.",
        ],
        (64, timing),
        each(&labels, &Work::Append { trades: 100, customers: Customers::Uniform(1..=1000) }),
        (
            RATE,
            "ours / flat ≥ 0.6; ours / PostgreSQL ≥ 1; ours / timeseries; ours / limit: full buckets; ours again \
             / ours",
        ),
    );
    let workload = Workload { unit: "trades", ..workload };
    Stage { name: "arrays", setups, seeded: 0, workloads: vec![workload] }
}
