//! Counting while things break: what is counted is what was acknowledged, and of what is unknown at most all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{Bson, DateTime, Document, doc};
use pagebucket_page_views::PageViews;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{bucket, count, counted, view};
use crate::harness::{Client, Harm, Mongod, Proxy, Service, Setup, Way, eventually, shared};

/// What clients were told, in views.
#[derive(Debug, Default, Clone, Copy)]
struct Told {
    counted: u64,
    unknown: u64,
    problems: u64,
}

impl Told {
    /// Learns what this answer says of so many views.
    #[track_caller]
    fn learn(&mut self, answer: &crate::harness::Answer, views: u64) {
        if answer.status == 204 {
            self.counted += views;
            return;
        }
        self.problems += 1;
        assert_eq!(answer.status, 503, "{}", String::from_utf8_lossy(&answer.body));
        let problem = answer.json();
        let told = |member: &str| problem[member].as_u64().unwrap_or(0);
        match problem["type"].as_str().expect("a type") {
            "/problems#outcome-unknown" => assert!(told("unknown") > 0, "{problem}"),
            "/problems#partly-stored" => assert!(told("counted") > 0, "{problem}"),
            "/problems#overloaded" | "/problems#database-unavailable" => {
                assert!(answer.headers.contains_key("retry-after"), "{problem}");
            }
            _ => panic!("{problem}"),
        }
        self.counted += told("counted");
        self.unknown += told("unknown");
    }

    fn all(told: impl IntoIterator<Item = Self>) -> Self {
        let sum = |a: Self, b: Self| Self {
            counted: a.counted + b.counted,
            unknown: a.unknown + b.unknown,
            problems: a.problems + b.problems,
        };
        told.into_iter().fold(Self::default(), sum)
    }
}

/// Four pages of one minute, one of which all clients share, and each client's view of two of them at once.
fn two_views(client: u64, turn: u64) -> Value {
    let at = |second: u64| format!("2014-01-01T10:01:{:02}Z", second % 60);
    json!([view("/hot", &at(turn), 1), view(&format!("/{}", client % 3), &at(client + turn), 2)])
}

/// Clients that count until told to stop.
fn counting(clients: &[Client], stop: &Arc<AtomicBool>) -> JoinSet<Told> {
    let mut counters = JoinSet::new();
    for number in 0..16_u64 {
        let client = clients[number as usize % clients.len()].clone();
        let stop = Arc::clone(stop);
        counters.spawn(async move {
            let mut told = Told::default();
            for turn in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                told.learn(&count(&client, &two_views(number, turn)).await, 3);
            }
            told
        });
    }
    counters
}

/// All views in the database, each page's minute in one document, whose total is the sum of its seconds.
async fn in_the_database(database: &Database) -> u64 {
    let collection = database.collection::<Document>("page_views");
    let mut found = collection.find(doc! {}).await.expect("an answer");
    let (mut all, mut names) = (0, Vec::new());
    while found.advance().await.expect("an answer") {
        let document = found.deserialize_current().expect("a document");
        let number = |value: &Bson| match value {
            Bson::Int32(number) => u64::try_from(*number).expect("no less than 0"),
            Bson::Int64(number) => u64::try_from(*number).expect("no less than 0"),
            other => panic!("{other} views"),
        };
        let total = number(&document["totalViews"]);
        let seconds = document.get_document("seconds").expect("seconds");
        assert_eq!(seconds.values().map(number).sum::<u64>(), total, "{document}");
        names.push((document["page"].to_string(), document["timestamp"].to_string()));
        all += total;
    }
    let documents = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), documents, "one document for each page and minute");
    all
}

/// None lost, none counted twice.
async fn check(database: &Database, told: Told) {
    let found = in_the_database(database).await;
    println!("{told:?}: {found} in the database");
    assert!(told.counted > 0 && (told.counted..=told.counted + told.unknown).contains(&found));
}

async fn until_more_are_counted(client: &Client, what: &str) {
    let total = async || {
        let hot = "/v1/page-views/buckets?path=/hot&timestamp=2014-01-01T10:01:00Z";
        let answer = client.get(hot).await;
        if answer.status == 200 { answer.json()["totalViews"].as_u64().expect("a number") } else { 0 }
    };
    let before = total().await;
    eventually(what, Duration::from_secs(60), || async { total().await > before + 20 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_under_load() {
    let mongod = Mongod::own().await;
    let service = Setup::on(&mongod).start().await;
    let stop = Arc::new(AtomicBool::new(false));
    let counters = counting(std::slice::from_ref(&service.client), &stop);
    for _ in 0..3 {
        until_more_are_counted(&service.client, "counts under way").await;
        mongod.kill().await;
        mongod.start().await;
    }
    until_more_are_counted(&service.client, "counts after the last time").await;
    stop.store(true, Ordering::Relaxed);
    check(&service.database, Told::all(counters.join_all().await)).await;
    mongod.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_instances() {
    let service = Service::start().await;
    let sibling = service.sibling(shared().await).await;
    let clients = [service.client.clone(), sibling.client.clone()];
    // Each minute is a new race for who makes its document.
    for minute in 0..30 {
        let at = format!("2014-01-01T11:{minute:02}:05Z");
        let race =
            futures_util::future::join_all((0..16).map(|turn| (turn, at.clone())).map(async |(turn, at)| {
                counted(&count(&clients[turn % 2], &view("/race", &at, 1)).await);
            }));
        race.await;
        assert_eq!(bucket(&service, "/race", &at.replace(":05Z", ":00Z")).await["totalViews"], 16);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let counters = counting(&clients, &stop);
    for _ in 0..3 {
        until_more_are_counted(&service.client, "counts by both").await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut told = Told::all(counters.join_all().await);
    assert_eq!((told.problems, told.unknown), (0, 0));
    told.counted += 30 * 16;
    assert_eq!(in_the_database(&service.database).await, told.counted);
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_wires() {
    let mongod = Mongod::own().await;
    let proxy = Proxy::before(&mongod).await;
    let service = Setup::at(&proxy.uri()).start().await;
    let mut acknowledged = 0;
    for way in [Way::There, Way::Back] {
        for times in [1, 3] {
            let struck = proxy.strikes();
            proxy.harm("update page_views", way, Harm::Cut, times);
            for turn in 0..8 {
                counted(&count(&service.client, &two_views(turn, turn)).await);
                acknowledged += 3;
            }
            assert_eq!(proxy.strikes(), struck + times, "{way:?}");
            assert_eq!(in_the_database(&service.database).await, acknowledged, "{way:?}, {times} times");
        }
    }
    // The same of an hour that is made beforehand: what was made by the attempt whose answer was lost is its
    // own.
    proxy.harm("insert page_views", Way::Back, Harm::Cut, 1);
    let hour = json!({ "path": "/made", "hour": "2014-01-01T10:00:00Z" }).to_string();
    let made = service.client.post_text("/v1/page-views/preallocations", hour).await;
    let made = made.json();
    assert_eq!((&made["created"], &made["existing"]), (&json!(60), &json!(0)), "{made}");
    mongod.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wire_that_stays_cut() {
    let mongod = Mongod::own().await;
    let proxy = Proxy::before(&mongod).await;
    let service = Setup::at(&proxy.uri()).start().await;
    counted(&count(&service.client, &two_views(0, 0)).await);
    proxy.harm("update page_views", Way::Back, Harm::Cut, u32::MAX);
    let mut told = Told { counted: 3, ..Told::default() };
    let answer = count(&service.client, &two_views(0, 1)).await;
    answer.problem(503, "outcome-unknown");
    told.learn(&answer, 3);
    assert_eq!(told.unknown, 3, "{told:?}");
    // The answer does not wait for that.
    eventually("a session is given up", Duration::from_secs(60), async || {
        let exposition = service.client.get("/metrics").await;
        let abandoned = String::from_utf8_lossy(&exposition.body).lines().find_map(|line| {
            let series = "pagebucket_sessions_abandoned_total{collection=\"page_views\"} ";
            line.strip_prefix(series)?.parse::<f64>().ok()
        });
        abandoned.is_some_and(|sessions| sessions >= 1.0)
    })
    .await;
    proxy.relent();
    let again = || async { count(&service.client, &two_views(0, 2)).await.status == 204 };
    eventually("counts again", Duration::from_secs(60), again).await;
    told.counted += 3;
    check(&service.database, told).await;
    mongod.remove().await;
}

/// Who hangs up is not told, but counted once or not at all; the others are not disturbed.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_hang_up() {
    let service = Service::start().await;
    let mut counters = JoinSet::new();
    for number in 0..32_u64 {
        let client = service.client.clone();
        counters.spawn(async move {
            let mut told = Told::default();
            for turn in 0..20 {
                let views = two_views(number, turn);
                let sent = count(&client, &views);
                if number % 2 == 0 {
                    // Long enough to be sent, most of the time, and too short to be answered.
                    match tokio::time::timeout(Duration::from_micros(700), sent).await {
                        Ok(answer) => told.learn(&answer, 3),
                        Err(_elapsed) => told.unknown += 3,
                    }
                } else {
                    told.learn(&sent.await, 3);
                }
            }
            told
        });
    }
    let told = Told::all(counters.join_all().await);
    let database = service.database.clone();
    assert!(service.stop().await, "what was left behind is settled");
    check(&database, told).await;
    assert_eq!(told.problems, 0);
}

/// More than one commit brings: while one is under way, all that comes for the same minute becomes one
/// statement.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_one_statement() {
    let mongod = Mongod::own().await;
    let proxy = Proxy::before(&mongod).await;
    let seen = Arc::new(std::sync::Mutex::new(Vec::<usize>::new()));
    let watch = Arc::clone(&seen);
    let setup = Setup::at(&proxy.uri()).observed(move |name, command| {
        if name == "update" && command.get_str("update").is_ok_and(|collection| collection == "page_views") {
            watch
                .lock()
                .expect("no test panics here")
                .push(command.get_array("updates").expect("updates").len());
        }
    });
    let service = setup.start().await;
    let hot = |second: u64| view("/hot", &format!("2014-01-01T10:01:{:02}Z", second % 60), 1);
    proxy.harm("update page_views", Way::There, Harm::Hold, 1);
    let mut clients = JoinSet::new();
    let first = (service.client.clone(), hot(0));
    clients.spawn(async move { count(&first.0, &first.1).await });
    proxy.struck(1).await;
    for second in 1..=200 {
        let (client, hot) = (service.client.clone(), hot(second));
        clients.spawn(async move { count(&client, &hot).await });
    }
    let waiting = || async {
        let exposition = service.client.get("/metrics").await;
        let exposition = String::from_utf8_lossy(&exposition.body).into_owned();
        let mut queued = exposition.lines().filter(|line| line.starts_with("pagebucket_page_view_queue "));
        queued.any(|line| {
            line.split(' ').nth(1).and_then(|n| n.parse::<f64>().ok()).is_some_and(|n| n >= 201.0)
        })
    };
    eventually("all of them wait", Duration::from_secs(60), waiting).await;
    proxy.relent();
    while let Some(answer) = clients.join_next().await {
        counted(&answer.expect("no panic"));
    }
    assert_eq!(bucket(&service, "/hot", "2014-01-01T10:01:00Z").await["totalViews"], 201);
    let seen = seen.lock().expect("no test panics here").clone();
    // The gauge is of all services in this process, so that some may come after what waits has gone.
    assert!(seen.iter().all(|statements| *statements == 1), "one page and minute: {seen:?}");
    assert!((2..=100).contains(&seen.len()), "201 requests share statements: {seen:?}");
    mongod.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minute_that_takes_long_leaves_room_for_others() {
    let proxy = Proxy::before(shared().await).await;
    let mut setup = Setup::at(&proxy.uri());
    setup.capacity.queued_bytes = 100 * PageViews::COUNTER;
    let service = setup.start().await;
    let hot = || view("/hot", "2014-01-01T10:01:05Z", 1);
    proxy.harm("update page_views", Way::There, Harm::Hold, 1);
    let mut clients = JoinSet::new();
    let mut begin = || {
        let (client, hot) = (service.client.clone(), hot());
        clients.spawn(async move { count(&client, &hot).await });
    };
    begin();
    proxy.struck(1).await;
    (0..40).for_each(|_| begin());
    for _ in 0..16 {
        clients.join_next().await.expect("some").expect("no panic").problem(503, "overloaded");
    }
    // At once: before those that wait are told that they have waited too long.
    let others = (0..75).map(|number| view(&format!("/{number}"), "2014-01-01T10:01:05Z", 1));
    let others = others.map(async |view| counted(&count(&service.client, &view).await));
    futures_util::future::join_all(others).await;
    proxy.relent();
    clients.join_all().await.iter().for_each(counted);
    assert_eq!(bucket(&service, "/hot", "2014-01-01T10:01:00Z").await["totalViews"], 25);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrupt_minute_concerns_its_page_alone() {
    let service = Service::start().await;
    let command = doc! {
        "insert": "page_views",
        "documents": [{ "page": "/corrupt", "timestamp": DateTime::from_millis(1_388_570_460_000), "totalViews": "many", "seconds": 7 }],
        "bypassDocumentValidation": true,
    };
    service.database.run_command(command).await.expect("a corrupt document");
    let at = "2014-01-01T10:01:02Z";
    let both = json!([view("/corrupt", at, 2), view("/sound", at, 3)]);
    let beside = view("/beside", at, 1);
    let (corrupt, beside) = tokio::join!(count(&service.client, &both), count(&service.client, &beside));
    counted(&beside);
    let problem = corrupt.problem(503, "partly-stored");
    assert_eq!((&problem["counted"], &problem["notCountedItems"]), (&json!(3), &json!([0])), "{problem}");
    assert_eq!(bucket(&service, "/sound", "2014-01-01T10:01:00Z").await["totalViews"], 3);
}
