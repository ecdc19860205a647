//! The workloads, and what is expected of them.

use pagebucket_service::ServiceConfig;

use super::depth::{self, DEEPEST};
use crate::harness::peers::Way;
use crate::harness::{Customers, Entry, Form, History, Kind, LATENCY, Layout, RATE, Settings, Setup, Stage};
use crate::harness::{Timing, Work, Workload, compare, each};

/// In the order in which they run.
pub fn stages(settings: &Settings) -> [Stage; 2] {
    [long_histories(settings), many_customers(settings)]
}

/// All contenders. "Ours again" has the database `again`.
fn setups(again: &'static str, histories: &'static [History]) -> Vec<Setup> {
    // Room for less than a hundredth of what is read: each page is looked for in the cache, put into it, and
    // gone before it is asked for again.
    const TINY: fn(&mut ServiceConfig) = |config| config.api.page_cache = 1024 * 1024;
    let setup = |label, kind| {
        let (layout, database) = match kind {
            Kind::Peer(Way::Manual) => (Layout::Manual, "manual"),
            // The index serves pages in the order of arrival, and their count.
            Kind::Peer(_) | Kind::Npm(_) => (Layout::Flat("_id"), "flat"),
            _ => (Layout::Ours, "ours"),
        };
        Setup { database, histories, ..Setup::new(label, kind, layout) }
    };
    vec![
        setup("ours", Kind::Ours(|_| ())),
        Setup { database: again, ..setup("ours again", Kind::Ours(|_| ())) },
        setup("ours, with tokens", Kind::Guarded),
        setup("ours, a process", Kind::Traced(None)),
        setup("ours again, a process", Kind::Traced(None)),
        setup("ours, traces of 1 %", Kind::Traced(Some("0.01"))),
        setup("ours, traces of all", Kind::Traced(Some("1"))),
        setup("ours, cache off", Kind::Ours(|config| config.api.page_cache = 0)),
        setup("ours, not in cache", Kind::Ours(TINY)),
        setup("ours again, not in cache", Kind::Ours(TINY)),
        setup("manual", Kind::Peer(Way::Manual)),
        setup("flat", Kind::Peer(Way::Flat)),
        Setup::postgres(histories),
        setup("flat, no totals", Kind::Peer(Way::Skipping)),
        setup("keyset", Kind::Peer(Way::Keyset)),
        setup("find by _id", Kind::ById { layers: false }),
        setup("find by _id, our layers", Kind::ById { layers: true }),
        setup("static", Kind::SameBytes { layers: false }),
        setup("static, our layers", Kind::SameBytes { layers: true }),
        setup("mongoose-paginate-v2", Kind::Npm("mongoose-paginate-v2")),
        setup("mongo-cursor-pagination", Kind::Npm("mongo-cursor-pagination")),
    ]
}

fn long_histories(settings: &Settings) -> Stage {
    let timing = settings.timing(1.0);
    let (customer, of) = DEEPEST;
    let stored =
        |customer, pages| Work::Read { customers: Customers::one(customer), pages, form: Form::Stored };
    let mut workloads: Vec<Workload> = depth::workloads(settings.timing(0.2)).collect();
    workloads.extend([
        walk(timing),
        not_cached(
            timing,
            [
                "pages not in cache",
                "32 connections, any of 100,000 pages as they are stored (`/pages/N`). \"Not in cache\": a \
             cache of 1 MiB, in which next to nothing is found again. A find by `_id` behind a handler that \
             does nothing else, without any layers, and with the same as ours.",
            ],
            &stored(customer, 1..=of),
        ),
        pages(
            timing,
            [
                "cached pages",
                "32 connections, any of 100 pages as they are stored. \"With tokens\": each request has a JWT of \
             827 bytes, which the server has verified before. The bytes of one page with the same headers for \
             caches from a handler that has them in memory, without any layers, and with the same as ours.",
            ],
            cached(),
            "ours / static ≥ 0.7; ours / static, our layers; ours, with tokens / ours ≥ 0.85; ours again / ours",
        ),
        unchanged(timing),
        traced(timing),
    ]);
    Stage { name: "histories", setups: setups("ours", depth::PAGES), seeded: 0, workloads }
}

fn walk(timing: Timing) -> Workload {
    let (customer, pages) = DEEPEST;
    let mut entries = each(
        &["ours", "ours again", "ours, cache off", "PostgreSQL"],
        &Work::Walk { customer, pages, by_id: false },
    );
    entries
        .extend(each(&["keyset", "mongo-cursor-pagination"], &Work::Walk { customer, pages, by_id: true }));
    Workload {
        part: "walk",
        name: "walk of 100 pages",
        about: "One connection follows the links to the next page 100 times, ten trades each, from anywhere \
                in a history of 100,000 pages: `?after=SEQ&limit=10` of ours and PostgreSQL, with totals, and \
                a cursor of the others, without. A latency is that of a whole walk.",
        unit: "walks",
        connections: 1,
        timing,
        entries,
        comparisons: compare(
            LATENCY,
            "keyset / ours ≥ 1.5; mongo-cursor-pagination / ours ≥ 1.5; keyset / ours, cache off; \
             mongo-cursor-pagination / ours, cache off; PostgreSQL / ours ≥ 1; PostgreSQL / ours, cache off; ours again / ours",
        ),
    }
}

/// Of stored pages, by 32 connections.
fn pages(timing: Timing, [name, about]: [&'static str; 2], entries: Vec<Entry>, compared: &str) -> Workload {
    let comparisons = compare(RATE, compared);
    Workload { part: "pages", name, about, unit: "requests", connections: 32, timing, entries, comparisons }
}

fn not_cached(timing: Timing, text: [&'static str; 2], work: &Work) -> Workload {
    let ours = ["ours, not in cache", "ours again, not in cache", "ours, cache off"];
    let entries =
        each(&[&ours[..], &["find by _id", "find by _id, our layers", "PostgreSQL"]].concat(), work);
    let compared = "ours, not in cache / find by _id ≥ 0.9; ours, cache off / find by _id; ours, not in \
                    cache / find by _id, our layers; ours, not in cache / PostgreSQL ≥ 1; ours again, not in cache / \
                    ours, not in cache";
    pages(timing, text, entries, compared)
}

/// Pages of customer 1: ours, without and with tokens, and the handlers with one answer.
fn cached() -> Vec<Entry> {
    let work = |pages, form| Work::Read { customers: Customers::one(1), pages, form };
    let mut ours = each(&["ours", "ours again"], &work(1..=100, Form::Stored));
    ours.extend(each(&["ours, with tokens"], &work(1..=100, Form::StoredWithToken)));
    both(ours, &work(1..=1, Form::Stored))
}

/// Ours, and the handlers with one answer, which have one page.
fn both(ours: Vec<Entry>, one_page: &Work) -> Vec<Entry> {
    ours.into_iter().chain(each(&["static", "static, our layers"], one_page)).collect()
}

fn unchanged(timing: Timing) -> Workload {
    let stored = |pages| Work::Again { pages, form: Form::Stored };
    let listed = Work::Again { pages: 1..=100, form: Form::Listed };
    let mut ours = each(&["ours", "ours again"], &stored(1..=100));
    ours.push(Entry { label: "ours, a listing".to_owned(), contender: "ours", work: listed });
    pages(
        timing,
        [
            "pages that the client has (304)",
            "32 connections, each asks for a page of its own again and again with `If-None-Match`. A \
             listing has totals, so that ours must look at the history's end.",
        ],
        both(ours, &stored(1..=1)),
        "ours / static ≥ 0.7; ours / static, our layers; ours, a listing / ours; ours again / ours",
    )
}

fn traced(timing: Timing) -> Workload {
    let work = Work::Read { customers: Customers::one(1), pages: 1..=100, form: Form::Stored };
    let entries = ["ours, a process", "ours again, a process", "ours, traces of 1 %", "ours, traces of all"];
    Workload {
        part: "traces",
        ..pages(
            timing,
            [
                "cached pages, with traces",
                "As \"cached pages\", of `pagebucket serve` in processes of their own, without \
                 `--otlp-endpoint` and with a collector in the benchmark's process that takes all.",
            ],
            each(&entries, &work),
            "ours, traces of 1 % / ours, a process ≥ 0.95; ours, traces of all / ours, a process; ours \
             again, a process / ours, a process",
        )
    }
}

/// The busiest customer has a tenth of all requests, except where all have as many.
fn many_customers(settings: &Settings) -> Stage {
    let histories: &'static [History] = if settings.quick { &[(1, 10_000, 2)] } else { &[(1, 10_000, 10)] };
    let (zipf, uniform) = (Customers::zipf(10_000, 0.99), Customers::Uniform(1..=10_000));
    let read = |customers, form| Work::Read { customers, pages: 1..=histories[0].2, form };
    let workload = |part, name, about, connections, work, contenders: &[&'static str]| Workload {
        part,
        name,
        about,
        unit: "requests",
        connections,
        timing: settings.timing(2.0),
        entries: each(contenders, &work),
        comparisons: compare(
            RATE,
            "ours / flat; ours / manual; ours / PostgreSQL ≥ 1; ours / mongoose-paginate-v2; ours again / ours",
        ),
    };
    let workloads = vec![
        not_cached(
            settings.timing(1.0),
            [
                "pages not in cache, 10,000 histories",
                "As \"pages not in cache\", but any page of any of 10,000 customers, each with 10 pages (2 \
                 in a quick run): two requests next to never ask for pages of one history at once.",
            ],
            &read(uniform, Form::Stored),
        ),
        workload(
            "zipf",
            "32 connections, Zipf 0.99",
            "Any page of a customer's history, by its number, with totals except for the manual's. 10,000 \
             customers, the busiest with a tenth of all requests; each has 10 pages (2 in a quick run), \
             together about twice what the cache holds.",
            32,
            read(zipf.clone(), Form::Listed),
            &[
                "ours",
                "ours again",
                "ours, cache off",
                "manual",
                "flat",
                "PostgreSQL",
                "mongoose-paginate-v2",
            ],
        ),
        workload(
            "mix",
            "64 connections, reads and appends",
            "The same customers: in nine requests of ten the newest page of a history, in one a trade is \
             appended.",
            64,
            Work::NewestAndAppends { customers: zipf },
            &["ours", "ours again", "manual", "flat", "PostgreSQL", "mongoose-paginate-v2"],
        ),
    ];
    // It appends too, so "ours again" has a database of its own.
    Stage { name: "customers", setups: setups("ours again", histories), seeded: 0, workloads }
}
