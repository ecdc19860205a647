//! A walk is a snapshot: windows with `asOf`, which never change and need no look at the database.

use std::sync::{Arc, Mutex};

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Client, Service, Setup, seqs, shared, tests, trade};

tests!["snapshots":
    a_walk_is_of_the_moment_it_began_at,
    only_what_is_in_full_pages_is_of_that_moment,
    a_walk_over_remembered_pages_asks_nobody,
    a_known_snapshot_asks_nobody,
    what_is_beyond_the_end_is_never_shown,
    another_instance_finds_out_once,
    many_customers_do_not_mix,
    nothing_remembered_is_needed,
];

const IMMUTABLE: &str = "private, max-age=31536000, immutable";

async fn append(client: &Client, customer: u64, from: u64, to: u64) {
    let many: Vec<Value> = (from..=to).map(trade).collect();
    for part in many.chunks(1000) {
        client.append(customer, &json!(part)).await.expect(201);
    }
}

fn trades(customer: u64, query: &str) -> String {
    format!("/v1/customers/{customer}/trades?{query}")
}

/// A service on a new database whose commands on `trades` are written down.
async fn observed(page_cache: u64) -> (Service, Arc<Mutex<Vec<String>>>) {
    let mut setup = Setup::on(shared().await);
    setup.args.page_cache = page_cache;
    let (setup, seen) = observe(setup);
    (setup.start().await, seen)
}

fn observe(setup: Setup) -> (Setup, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let watch = Arc::clone(&seen);
    let setup = setup.observed(move |name, command| {
        if command.get_str(name).is_ok_and(|collection| collection == "trades") {
            watch.lock().expect("no test panics here").push(name.to_owned());
        }
    });
    (setup, seen)
}

fn taken(seen: &Mutex<Vec<String>>) -> usize {
    std::mem::take(&mut *seen.lock().expect("no test panics here")).len()
}

const MIB: u64 = 1024 * 1024;

/// Whether it is a snapshot: its cache headers and its tag must agree on that.
#[track_caller]
fn is_snapshot(answer: &Answer) -> bool {
    let tag = answer.header("etag");
    match answer.header("cache-control") {
        IMMUTABLE => assert!(tag.contains(".a"), "{tag}"),
        other => assert!(other == "no-cache" && tag.contains(".s"), "{other} {tag}"),
    }
    tag.contains(".a")
}

/// The same totals in every window, either way, while the history grows; then on with what is newer.
async fn a_walk_is_of_the_moment_it_began_at() {
    let service = Service::start().await;
    append(&service.client, 1, 1, 203).await;
    let mut total = 203;
    for (order, limit) in [("asc", 10_usize), ("asc", 7), ("desc", 10), ("desc", 25)] {
        let began = total;
        let full = total / 10 * 10;
        let mut path = trades(1, &format!("limit={limit}&order={order}"));
        let (mut seen, mut newer, mut windows, mut snapshots) = (Vec::new(), String::new(), 0, 0);
        loop {
            let answer = service.client.get(&path).await;
            let body = answer.expect(200);
            let shown = seqs(&body);
            if path.contains("asOf=") && shown.iter().max().is_some_and(|last| *last <= full) {
                assert!(is_snapshot(&answer), "{path}");
                assert_eq!(
                    (&body["totalTrades"], &body["totalPages"]),
                    (&json!(began), &json!(began.div_ceil(10)))
                );
                snapshots += 1;
            } else {
                assert!(!is_snapshot(&answer), "{path}");
                assert_eq!(body["totalTrades"], total, "{path}");
            }
            let links = &body["links"];
            for name in ["newer", "first", "last"] {
                assert!(!links[name].as_str().expect("always there").contains("asOf"), "{links}");
            }
            let of = format!("&asOf={}", body["totalTrades"]);
            for name in ["next", "prev"] {
                assert!(links.get(name).is_none_or(|link| link.as_str().unwrap().contains(&of)), "{links}");
            }
            windows += 1;
            if order == "asc" || newer.is_empty() {
                newer = links["newer"].as_str().unwrap().to_owned();
            }
            seen.extend(shown);
            append(&service.client, 1, total + 1, total + 3).await;
            total += 3;
            // Upwards a walk would never end beside so eager a writer.
            match links["next"].as_str().filter(|_| windows < 1000 && seen.len() < 1000) {
                Some(next) if order == "desc" || body["totalTrades"] == began => path = next.to_owned(),
                _ => break,
            }
        }
        assert!(snapshots >= full as usize / limit - 1, "{snapshots} of {windows}");
        loop {
            let body = service.client.get(&newer).await.expect(200);
            let shown = seqs(&body);
            if shown.is_empty() {
                break;
            }
            seen.extend(shown);
            newer = body["links"]["newer"].as_str().unwrap().to_owned();
        }
        seen.sort_unstable();
        assert_eq!(seen, (1..=total).collect::<Vec<_>>(), "{order} {limit}");
    }
}

async fn only_what_is_in_full_pages_is_of_that_moment() {
    let service = Service::start().await;
    append(&service.client, 1, 1, 48).await;
    for (query, snapshot) in [
        ("after=0&limit=20&asOf=25", true),
        ("after=0&limit=21&asOf=25", false),
        ("after=19&limit=1&asOf=25", true),
        ("after=20&limit=1&asOf=25", false),
        ("before=21&limit=100&asOf=25", true),
        ("before=22&limit=1&asOf=25", false),
        ("before=1&asOf=25", true),
        ("after=25&asOf=25", false),
        ("after=0&limit=30&asOf=30", true),
        ("after=0&limit=31&asOf=30", false),
        ("after=0&limit=10&asOf=9", false),
        ("after=0&limit=10&asOf=10", true),
        ("after=0&limit=40&asOf=48", true),
        ("after=0&limit=41&asOf=48", false),
        ("after=0&limit=40&asOf=49", false),
        ("after=9007199254740991&asOf=9007199254740991", false),
        ("before=9007199254740991&asOf=9007199254740991", false),
    ] {
        let answer = service.client.get(&trades(1, query)).await;
        let body = answer.expect(200);
        assert_eq!(is_snapshot(&answer), snapshot, "{query}");
        let as_of: u64 = query.rsplit_once("asOf=").unwrap().1.parse().unwrap();
        let total = if snapshot { as_of } else { 48 };
        assert_eq!(
            (&body["totalTrades"], &body["totalPages"]),
            (&json!(total), &json!(total.div_ceil(10))),
            "{query}"
        );
        assert_eq!(body["links"]["self"], trades(1, query));
        // But for where it leads, it is the window that it would be without.
        let without = service.client.get(&trades(1, query.rsplit_once("&asOf").unwrap().0)).await.expect(200);
        assert_eq!(
            (&body["items"], &body["links"]["newer"]),
            (&without["items"], &without["links"]["newer"]),
            "{query}"
        );
    }
    // Where that moment ends, so does the walk; what came later is newer.
    let end = service.client.get(&trades(1, "after=20&limit=10&asOf=30")).await.expect(200);
    assert_eq!(end["links"].get("next"), None);
    let newer = service.client.get(end["links"]["newer"].as_str().unwrap()).await.expect(200);
    assert_eq!(seqs(&newer), (31..=40).collect::<Vec<_>>());
    let none = service.client.get(&trades(2, "after=0&limit=10&asOf=30")).await;
    assert_eq!((none.expect(200)["totalTrades"].as_u64(), is_snapshot(&none)), (Some(0), false));
}

async fn a_walk_over_remembered_pages_asks_nobody() {
    let (service, seen) = observed(MIB).await;
    append(&service.client, 1, 1, 305).await;
    for turn in ["first", "again"] {
        let mut path = trades(1, "after=0&limit=10");
        taken(&seen);
        for window in 0..30 {
            let answer = service.client.get(&path).await;
            let body = answer.expect(200);
            assert_eq!(seqs(&body), (window * 10 + 1..=window * 10 + 10).collect::<Vec<_>>());
            assert_eq!(is_snapshot(&answer), window > 0);
            if turn == "again" && window > 0 {
                assert_eq!(answer.header("server-timing"), "db;dur=0.000, cache;desc=hit", "{path}");
            }
            path = body["links"]["next"].as_str().expect("there are more").to_owned();
        }
        // The tail, the first page, and of the other 29 every eleventh; then the tail alone.
        assert_eq!(taken(&seen), if turn == "first" { 1 + 1 + 3 } else { 1 });
    }
    service.client.get(&trades(1, "after=300&limit=10&asOf=305")).await.expect(200);
    assert_eq!(taken(&seen), 1, "beyond the full pages the tail is looked at");
}

/// By whichever instance, also one that has seen nothing yet.
async fn a_known_snapshot_asks_nobody() {
    let (service, seen) = observed(0).await;
    append(&service.client, 1, 1, 55).await;
    let path = trades(1, "after=5&limit=25&asOf=55");
    let tag = service.client.get(&path).await.header("etag").to_owned();
    let mut setup = Setup::on(shared().await);
    setup.connection.database = service.database.name().to_owned();
    let (setup, also_seen) = observe(setup);
    let sibling = setup.start().await;
    append(&service.client, 1, 56, 77).await;
    for seen in [&seen, &also_seen] {
        taken(seen);
    }
    for client in [&service.client, &sibling.client] {
        let known = client.send(Method::GET, &path, |request| request.header("if-none-match", &tag)).await;
        assert_eq!((known.status.as_u16(), known.body.len()), (304, 0));
        assert_eq!((known.header("etag"), known.header("cache-control")), (tag.as_str(), IMMUTABLE));
    }
    assert_eq!((taken(&seen), taken(&also_seen)), (0, 0));
    let whole = service.client.get(&path).await;
    assert_eq!(whole.header("etag"), tag, "the history has grown, this has not");
    assert_eq!(sibling.client.get(&path).await.body, whole.body);
    // Another moment's.
    let other = service
        .client
        .send(Method::GET, &path, |request| request.header("if-none-match", tag.replace(".a55", ".a54")));
    assert_eq!(other.await.status, 200);
}

/// Totals beyond what there is are not believed, whoever had them.
async fn what_is_beyond_the_end_is_never_shown() {
    let (service, seen) = observed(MIB).await;
    append(&service.client, 1, 1, 1000).await;
    append(&service.client, 2, 1, 55).await;
    // What the one has had is known now. The other has not come so far.
    assert_eq!(service.client.get("/v1/customers/1").await.expect(200)["totalTrades"], 1000);
    let never = async |customer: u64, as_of: u64, total: u64| {
        taken(&seen);
        let path = trades(customer, &format!("after=10&limit=20&asOf={as_of}"));
        let answer = service.client.get(&path).await;
        let body = answer.expect(200);
        assert!(!is_snapshot(&answer) && taken(&seen) > 0, "{path}");
        assert_eq!(body["totalTrades"], total, "{path}");
        assert!(answer.header("etag").contains(&format!(".s{total}")), "{answer:?}");
        let next = body["links"]["next"].as_str().expect("there are more");
        assert!(next.ends_with(&format!("asOf={total}")), "a walk goes on with what was: {next}");
    };
    for as_of in [56_u64, 60, 999, 1000, 1001, 9_007_199_254_740_991] {
        never(2, as_of, 55).await;
    }
    never(1, 1001, 1000).await;
    // Now it has been.
    append(&service.client, 2, 56, 57).await;
    let path = trades(2, "after=10&limit=20&asOf=56");
    let answer = service.client.get(&path).await;
    assert_eq!((&answer.expect(200)["totalTrades"], is_snapshot(&answer)), (&json!(56), true));
    never(2, 58, 57).await;
}

/// A new process has seen nothing; one look at the tail tells it of all the moments before.
async fn another_instance_finds_out_once() {
    let service = Service::start().await;
    append(&service.client, 1, 1, 325).await;
    let first = service.client.get(&trades(1, "limit=10&order=desc")).await.expect(200);
    let next = first["links"]["next"].as_str().expect("there are more").to_owned();
    let mut setup = Setup::on(shared().await);
    setup.args.page_cache = 0;
    setup.connection.database = service.database.name().to_owned();
    service.stop().await;
    let (setup, seen) = observe(setup);
    let service = setup.start().await;
    taken(&seen);
    let (mut path, mut shown) = (next, seqs(&first));
    for expected in [2].into_iter().chain(std::iter::repeat(1)) {
        let answer = service.client.get(&path).await;
        let body = answer.expect(200);
        assert_eq!((is_snapshot(&answer), &body["totalTrades"]), (true, &json!(325)), "{path}");
        assert_eq!(taken(&seen), expected, "{path}");
        shown.extend(seqs(&body));
        match body["links"]["next"].as_str() {
            Some(next) => path = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(shown, (1..=325).rev().collect::<Vec<_>>());
}

/// Each is shown its own.
async fn many_customers_do_not_mix() {
    let service = Service::start().await;
    for customer in 1..=40 {
        append(&service.client, customer, 1, 20 + customer).await;
    }
    for turn in 0..2 {
        for customer in 1..=40_u64 {
            for as_of in [20 + customer, 21 + customer] {
                let path = trades(customer, &format!("after=0&limit=20&asOf={as_of}"));
                let answer = service.client.get(&path).await;
                assert_eq!(answer.expect(200)["totalTrades"], 20 + customer, "{path}, turn {turn}");
                assert_eq!(is_snapshot(&answer), as_of == 20 + customer, "{path}");
            }
        }
    }
}

/// With nothing in memory pages come from the database, by one command and without the tail.
async fn nothing_remembered_is_needed() {
    let (service, seen) = observed(0).await;
    append(&service.client, 1, 1, 405).await;
    service.client.get("/v1/customers/1").await.expect(200);
    for query in
        ["after=0&limit=10", "after=395&limit=5", "after=123&limit=100", "before=401&limit=100&order=desc"]
    {
        taken(&seen);
        let answer = service.client.get(&trades(1, &format!("{query}&asOf=405"))).await;
        let mut shown = seqs(&answer.expect(200));
        assert!(is_snapshot(&answer) && answer.header("server-timing").starts_with("db;dur="), "{answer:?}");
        let plain = service.client.get(&trades(1, query)).await.expect(200);
        assert_eq!(taken(&seen), 1 + 2, "{query}");
        assert_eq!(shown, seqs(&plain));
        shown.dedup();
        assert_eq!(shown.len(), plain["items"].as_array().map_or(0, Vec::len));
    }
}
