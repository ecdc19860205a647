//! The workloads, and what is expected of them.

use crate::contender::Kind;
use crate::depth::{self, DEEPEST, HISTORIES};
use crate::harness::comparison::Expected::{AtLeast, Nothing, Same};
use crate::harness::comparison::Metric::{Latency, Rate};
use crate::harness::comparison::{Comparison, compare};
use crate::harness::customers::Customers;
use crate::harness::settings::Settings;
use crate::histories::Data;
use crate::reading::{Cursors, Reading};
use crate::stage::{Entry, Stage, Workload};

pub const OURS: &str = "ours";
pub const AGAIN: &str = "ours again";
pub const UNCACHED: &str = "ours, cache off";
pub const MANUAL: &str = "manual";
pub const FLAT: &str = "flat";
pub const SKIPPING: &str = "flat, no totals";
pub const KEYSET: &str = "keyset";
pub const MONGOOSE: &str = "mongoose-paginate-v2";
pub const CURSORS: &str = "mongo-cursor-pagination";
const MISSES: &str = "ours, not in cache";
const MISSES_AGAIN: &str = "ours again, not in cache";
const BY_ID: &str = "find by _id";
const BY_ID_LAYERED: &str = "find by _id, our layers";
const STATIC: &str = "static";
const STATIC_LAYERED: &str = "static, our layers";

const OFF: &[&str] = &["--page-cache", "0"];
/// Room for less than a hundredth of what is read: each page is looked for in the cache, put into it, and gone
/// before it is asked for again.
const TINY: &[&str] = &["--page-cache", "1048576"];

/// In the order in which they run.
pub fn stages(settings: &Settings) -> [Stage; 2] {
    [long_histories(settings), many_customers(settings)]
}

/// A series for each contender, all asked in the same way.
fn each(contenders: &[&'static str], reading: &Reading) -> Vec<Entry> {
    let entry = |contender: &&'static str| Entry {
        label: (*contender).to_owned(),
        contender,
        reading: reading.clone(),
    };
    contenders.iter().map(entry).collect()
}

fn long_histories(settings: &Settings) -> Stage {
    let mut workloads: Vec<Workload> = (1..)
        .zip(HISTORIES)
        .map(|(customer, history)| depth::workload(customer, history, settings))
        .collect();
    workloads.extend([
        walk(settings),
        long_walk(settings),
        not_cached(settings),
        cached(settings),
        unchanged(settings),
    ]);
    Stage {
        name: "histories",
        histories: (1..)
            .zip(HISTORIES)
            .map(|(customer, history)| (customer..=customer, history.pages))
            .collect(),
        contenders: vec![
            (OURS, Kind::Ours(Data::Ours, &[])),
            (AGAIN, Kind::Ours(Data::Ours, &[])),
            (UNCACHED, Kind::Ours(Data::Ours, OFF)),
            (MISSES, Kind::Ours(Data::Ours, TINY)),
            (MISSES_AGAIN, Kind::Ours(Data::Ours, TINY)),
            (MANUAL, Kind::Manual),
            (FLAT, Kind::Flat),
            (SKIPPING, Kind::Skipping),
            (KEYSET, Kind::Keyset),
            (BY_ID, Kind::ById { layers: false }),
            (BY_ID_LAYERED, Kind::ById { layers: true }),
            (STATIC, Kind::SameBytes { layers: false }),
            (STATIC_LAYERED, Kind::SameBytes { layers: true }),
            (MONGOOSE, Kind::Npm(MONGOOSE)),
            (CURSORS, Kind::Npm(CURSORS)),
        ],
        workloads,
    }
}

/// Of 100 windows of so many pages each.
fn windows(pages: u64, cursors: Cursors) -> Reading {
    let (customer, of) = DEEPEST;
    Reading::Walk { customer, of, windows: 100, pages, cursors }
}

fn walk(settings: &Settings) -> Workload {
    let walk = |cursors| windows(1, cursors);
    let mut entries = each(&[OURS, AGAIN, UNCACHED], &walk(Cursors::Seq));
    entries.extend(each(&[KEYSET, CURSORS], &walk(Cursors::Id)));
    Workload {
        key: "walk",
        name: "walk of 100 pages",
        about: "One connection follows the links to the next page 100 times, ten trades each, from anywhere in a history \
                of 100,000 pages: `?after=SEQ&limit=10` of ours, with totals, and a cursor of the others, without. \
                A latency is that of a whole walk.",
        unit: "walks",
        connections: 1,
        timing: settings.timing(),
        entries,
        comparisons: vec![
            compare(KEYSET, Latency, OURS, AtLeast(1.5)),
            compare(CURSORS, Latency, OURS, AtLeast(1.5)),
            compare(KEYSET, Latency, UNCACHED, Nothing),
            compare(CURSORS, Latency, UNCACHED, Nothing),
            compare(AGAIN, Latency, OURS, Same),
        ],
    }
}

/// Ten pages in each window.
fn long_walk(settings: &Settings) -> Workload {
    let mut entries = each(&[OURS, AGAIN, UNCACHED], &windows(10, Cursors::Seq));
    entries.extend(each(&[KEYSET], &windows(10, Cursors::Id)));
    Workload {
        key: "walk",
        name: "walk of 100 windows of 100 trades",
        about: "The same with `limit=100`: 10,000 trades in 100 requests. A latency is that of a whole walk.",
        unit: "walks",
        connections: 1,
        timing: settings.long_timing(),
        entries,
        comparisons: vec![
            compare(KEYSET, Latency, OURS, Nothing),
            compare(KEYSET, Latency, UNCACHED, Nothing),
            compare(AGAIN, Latency, OURS, Same),
        ],
    }
}

/// Of a workload of stored pages.
fn pages(
    settings: &Settings,
    name: &'static str,
    about: &'static str,
    entries: Vec<Entry>,
    comparisons: Vec<Comparison>,
) -> Workload {
    let timing = settings.timing();
    Workload { key: "pages", name, about, unit: "requests", connections: 32, timing, entries, comparisons }
}

fn not_cached(settings: &Settings) -> Workload {
    let (customer, of) = DEEPEST;
    let reading = Reading::Stored { customers: Customers::one(customer), pages: 1..=of };
    pages(
        settings,
        "pages not in cache",
        "32 connections, any of 100,000 pages as they are stored (`/pages/N`). \"Not in cache\": a cache of 1 MiB, in \
         which next to nothing is found again. A find by `_id` behind a handler that does nothing else, without any \
         layers, and with the same as ours.",
        each(&[MISSES, MISSES_AGAIN, UNCACHED, BY_ID, BY_ID_LAYERED], &reading),
        vec![
            compare(MISSES, Rate, BY_ID, AtLeast(0.9)),
            compare(UNCACHED, Rate, BY_ID, Nothing),
            compare(MISSES, Rate, BY_ID_LAYERED, Nothing),
            compare(MISSES_AGAIN, Rate, MISSES, Same),
        ],
    )
}

fn not_cached_of_many(settings: &Settings, customers: u64, pages_each: u64) -> Workload {
    let reading = Reading::Stored { customers: Customers::Uniform(1..=customers), pages: 1..=pages_each };
    pages(
        settings,
        "pages not in cache, 10,000 histories",
        "As \"pages not in cache\", but any page of any of 10,000 customers, each with 10 pages (2 in a quick run): next to \
         never do two ask for pages of one history at once.",
        each(&[MISSES, MISSES_AGAIN, UNCACHED, BY_ID, BY_ID_LAYERED], &reading),
        vec![
            compare(MISSES, Rate, BY_ID, AtLeast(0.9)),
            compare(UNCACHED, Rate, BY_ID, Nothing),
            compare(MISSES, Rate, BY_ID_LAYERED, Nothing),
            compare(MISSES_AGAIN, Rate, MISSES, Same),
        ],
    )
}

fn cached(settings: &Settings) -> Workload {
    let stored = |pages| Reading::Stored { customers: Customers::one(1), pages };
    let mut entries = each(&[OURS, AGAIN], &stored(1..=100));
    // The handler with one answer has one page.
    entries.extend(each(&[STATIC, STATIC_LAYERED], &stored(1..=1)));
    pages(
        settings,
        "cached pages",
        "32 connections, any of 100 pages as they are stored. The bytes of one of them with the same headers for \
         caches from a handler that has them in memory, without any layers, and with the same as ours.",
        entries,
        vec![
            compare(OURS, Rate, STATIC, AtLeast(0.7)),
            compare(OURS, Rate, STATIC_LAYERED, Nothing),
            compare(AGAIN, Rate, OURS, Same),
        ],
    )
}

fn unchanged(settings: &Settings) -> Workload {
    const LISTED: &str = "ours, a listing";
    let again = |pages, listed| Reading::Again { customer: 1, pages, listed, known: None };
    let mut entries = each(&[OURS, AGAIN], &again(1..=100, false));
    entries.push(Entry { label: LISTED.to_owned(), contender: OURS, reading: again(1..=100, true) });
    entries.extend(each(&[STATIC, STATIC_LAYERED], &again(1..=1, false)));
    pages(
        settings,
        "pages that the client has (304)",
        "32 connections, each asks for a page of its own again and again with `If-None-Match`. A listing has totals, \
         so that ours must look at the history's end.",
        entries,
        vec![
            compare(OURS, Rate, STATIC, AtLeast(0.7)),
            compare(OURS, Rate, STATIC_LAYERED, Nothing),
            compare(LISTED, Rate, OURS, Nothing),
            compare(AGAIN, Rate, OURS, Same),
        ],
    )
}

/// The busiest customer has a tenth of all requests.
fn many_customers(settings: &Settings) -> Stage {
    const CUSTOMERS: u32 = 10_000;
    let pages = if settings.quick { 2 } else { 10 };
    let customers = Customers::zipf(CUSTOMERS, 0.99);
    let workload = |key, name, about, connections, reading, contenders: &[&'static str]| Workload {
        key,
        name,
        about,
        unit: "requests",
        connections,
        timing: settings.long_timing(),
        entries: each(contenders, &reading),
        comparisons: vec![
            compare(OURS, Rate, FLAT, Nothing),
            compare(OURS, Rate, MANUAL, Nothing),
            compare(OURS, Rate, MONGOOSE, Nothing),
            compare(AGAIN, Rate, OURS, Same),
        ],
    };
    Stage {
        name: "customers",
        histories: vec![(1..=u64::from(CUSTOMERS), pages)],
        contenders: vec![
            (OURS, Kind::Ours(Data::Ours, &[])),
            (AGAIN, Kind::Ours(Data::OursAgain, &[])),
            (UNCACHED, Kind::Ours(Data::Ours, OFF)),
            (MISSES, Kind::Ours(Data::Ours, TINY)),
            (MISSES_AGAIN, Kind::Ours(Data::Ours, TINY)),
            (MANUAL, Kind::Manual),
            (FLAT, Kind::Flat),
            (BY_ID, Kind::ById { layers: false }),
            (BY_ID_LAYERED, Kind::ById { layers: true }),
            (MONGOOSE, Kind::Npm(MONGOOSE)),
        ],
        workloads: vec![
            not_cached_of_many(settings, u64::from(CUSTOMERS), pages),
            workload(
                "zipf",
                "32 connections, Zipf 0.99",
                "Any page of a customer's history, by its number, with totals but for the manual's. 10,000 customers, \
                 the busiest with a tenth of all requests; each has 10 pages (2 in a quick run), together about \
                 twice what the cache holds.",
                32,
                Reading::Any { customers: customers.clone(), pages },
                &[OURS, AGAIN, UNCACHED, MANUAL, FLAT, MONGOOSE],
            ),
            workload(
                "mix",
                "64 connections, reads and appends",
                "The same customers: in nine requests of ten the newest page of a history, in one a trade is appended.",
                64,
                Reading::NewestAndAppends { customers },
                &[OURS, AGAIN, MANUAL, FLAT, MONGOOSE],
            ),
        ],
    }
}
