//! Full pages and exports from secondaries, in a set of three.

use mongodb::bson::{Bson, Document, doc};
use pagebucket_model::domain::ReadPreference;
use serde_json::json;

use crate::harness::{
    Harm, Mongod, PATIENCE, ReplicaSet, Service, Setup, TRADES, Way, Wires, eventually, fill, trade,
};

async fn start(set: &ReplicaSet, preference: ReadPreference) -> Service {
    let mut setup = Setup::at(set.uri());
    setup.read_preference = preference;
    setup.config.api.page_cache = 0;
    setup.start().await
}

async fn ask(mongod: &Mongod, command: Document) -> Document {
    mongod.client().await.database("admin").run_command(command).await.expect("a member that answers")
}

/// Queries that a member has been sent so far.
async fn queries(mongod: &Mongod) -> i64 {
    let status = ask(mongod, doc! { "serverStatus": 1 }).await;
    let counters = status.get_document("opcounters").expect("counters");
    counters.get_i64("query").expect("queries")
}

/// Waits until every member shows this customer's last page to everybody who reads at majority.
async fn until_everywhere(set: &ReplicaSet, service: &Service, customer: i64, page: i64) {
    until_all_show(set, service, "trades", doc! { "customerId": customer, "page": page }).await;
}

/// Waits until every member shows such a document to everybody who reads at majority.
async fn until_all_show(set: &ReplicaSet, service: &Service, collection: &str, filter: Document) {
    for member in 0..3 {
        let database = set.mongod(member).client().await.database(service.database.name());
        let there = || async {
            let found = database.run_command(doc! {
                "find": collection, "filter": &filter, "readConcern": { "level": "majority" },
            });
            let found = found.await.expect("an answer");
            let batch = found.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
            !batch.expect("a batch").is_empty()
        };
        eventually("it is replicated", PATIENCE, there).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_pages_are_theirs_and_need_no_primary() {
    const READS: i64 = 60;
    let set = ReplicaSet::start(Wires::Straight).await;
    set.hold_elections().await;
    let service = start(&set, ReadPreference::SecondaryPreferred).await;
    fill(&service.database, TRADES, 7, 2_000, 5).await;
    until_everywhere(&set, &service, 7, 2_000).await;
    let primary = set.primary().await;
    let [one, other] = [0, 1].map(|nth| set.others(primary).nth(nth).expect("three members"));

    let counted = || async {
        [
            queries(set.mongod(primary)).await,
            queries(set.mongod(one)).await + queries(set.mongod(other)).await,
        ]
    };
    let before = counted().await;
    for page in 1..=READS {
        let path = format!("/v1/customers/7/trades/pages/{}", page * 33);
        let body = service.client.get(&path).await.expect(200);
        assert_eq!((&body["full"], &body["items"][9]["qty"]), (&json!(true), &json!(page * 330)));
    }
    let [at_primary, at_secondaries] = [0, 1].map(|who| before[who]);
    let after = counted().await;
    println!(
        "{READS} pages: {} at the primary, {} at secondaries",
        after[0] - at_primary,
        after[1] - at_secondaries
    );
    assert!(after[1] - at_secondaries >= READS, "full pages are read from secondaries");
    assert!(after[0] - at_primary < READS / 2, "and not from the primary");

    // Exports, too: their batches, not their beginning.
    let before = counted().await;
    let rows = service.client.get("/v1/customers/7/trades/export.ndjson").await.body;
    assert_eq!(rows.iter().filter(|byte| **byte == b'\n').count(), 19_995);
    let after = counted().await;
    assert!(after[1] - before[1] >= 20 && after[0] - before[0] < 10, "{before:?} {after:?}");

    // What may change is the primary's: a page that is not full, a trade on it, the totals.
    let before = counted().await;
    for path in ["/trades/pages/2000", "/trades/19995", ""] {
        service.client.get(&format!("/v1/customers/7{path}")).await.expect(200);
    }
    assert!(counted().await[0] - before[0] >= 3, "tails and totals are the primary's");

    // Of two dead members one is the primary, and the third cannot be elected.
    set.mongod(primary).kill().await;
    set.mongod(one).kill().await;
    let no_primary = || async { set.primary_now().await.is_none() };
    eventually("there is no primary", PATIENCE, no_primary).await;
    for page in [1, 17, 18, 1_000, 1_999] {
        let path = format!("/v1/customers/7/trades/pages/{page}");
        let served = || async { service.client.get(&path).await.status == 200 };
        eventually("a full page without a primary", PATIENCE, served).await;
        let body = service.client.get(&path).await.expect(200);
        assert_eq!(body["items"][9]["seq"], page * 10);
    }
    service.client.get("/v1/customers/7/trades/pages/2000").await.problem(503, "database-unavailable");
    service.client.get("/v1/customers/7").await.problem(503, "database-unavailable");
    drop(service);
    set.remove().await;
}

/// Neither member that should be asked answers: one breaks its connections, the other keeps silent.
#[tokio::test(flavor = "multi_thread")]
async fn those_that_do_not_answer_are_passed_over() {
    let set = ReplicaSet::start(Wires::Harmable).await;
    set.hold_elections().await;
    let service = start(&set, ReadPreference::SecondaryPreferred).await;
    fill(&service.database, TRADES, 7, 50, 10).await;
    until_everywhere(&set, &service, 7, 50).await;
    let primary = set.primary().await;
    let [broken, silent] = [0, 1].map(|nth| set.others(primary).nth(nth).expect("three members"));
    set.proxy(broken).harm("find", Way::Back, Harm::Cut, u32::MAX);
    set.proxy(silent).harm("find", Way::Back, Harm::Hold, u32::MAX);
    for page in [1, 30, 50] {
        let body = service.client.get(&format!("/v1/customers/7/trades/pages/{page}")).await.expect(200);
        assert_eq!(body["items"][9]["seq"], page * 10);
    }
    assert!(set.proxy(broken).strikes() + set.proxy(silent).strikes() >= 3, "they were asked");
    set.proxy(silent).relent();
    drop(service);
    set.remove().await;
}

/// What a server behind the others does not show yet comes from the primary: a page that it has not, one
/// that is not full there, pages of a window and of an export.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_lags_is_passed_over() {
    let set = ReplicaSet::start(Wires::Straight).await;
    set.hold_elections().await;
    let service = start(&set, ReadPreference::SecondaryPreferred).await;
    fill(&service.database, TRADES, 7, 50, 5).await;
    until_everywhere(&set, &service, 7, 50).await;
    let primary = set.primary().await;
    let [lagging, other] = [0, 1].map(|nth| set.others(primary).nth(nth).expect("three members"));
    let status = async |member| ask(set.mongod(member), doc! { "replSetGetStatus": 1 }).await;
    let of_primary = status(primary).await;
    let mut members = of_primary.get_array("members").expect("members").iter().filter_map(Bson::as_document);
    let name = members.find(|member| member.get_bool("self").unwrap_or(false)).expect("itself");
    let name = name.get_str("name").expect("a name");
    // Otherwise there is no majority for as long as the other looks for another source.
    let follows = async || status(other).await.get_str("syncSourceHost").is_ok_and(|host| host == name);
    eventually("the other member follows the primary", PATIENCE, follows).await;
    // It answers, and takes nothing in. (A member that is late by its configuration is none that drivers
    // know of.)
    ask(set.mongod(lagging), doc! { "fsync": 1, "lock": true }).await;
    let appended: Vec<_> = (496..=995).map(trade).collect();
    service.client.append(7, &json!(appended)).await.expect(201);
    let before = queries(set.mongod(lagging)).await;
    for page in 41..=99 {
        let body = service.client.get(&format!("/v1/customers/7/trades/pages/{page}")).await.expect(200);
        assert_eq!(body["items"][9]["qty"], page * 10, "{body}");
        let path = format!("/v1/customers/7/trades?after={}&limit=25", page * 10 - 15);
        let body = service.client.get(&path).await.expect(200);
        assert_eq!(body["items"][9]["qty"], page * 10 - 5, "{body}");
    }
    for _ in 0..10 {
        let rows = service.client.get("/v1/customers/7/trades/export.ndjson?after=100").await.body;
        assert_eq!(rows.iter().filter(|byte| **byte == b'\n').count(), 895);
    }
    assert!(queries(set.mongod(lagging)).await > before, "the one that lags was asked");
    let measured = String::from_utf8(service.client.get("/metrics").await.body).expect("text");
    let behind =
        measured.lines().find(|line| line.starts_with("pagebucket_preferred_reads_total{result=\"behind\"}"));
    let behind = behind.filter(|line| !line.ends_with(" 0"));
    println!("{}", behind.expect("it was behind"));
    drop(service);
    set.remove().await;
}

/// Counted at the primary, read from secondaries; and from the primary where they do not answer.
#[tokio::test(flavor = "multi_thread")]
async fn page_views_are_theirs_or_the_primarys() {
    const READS: i64 = 20;
    let set = ReplicaSet::start(Wires::Harmable).await;
    set.hold_elections().await;
    let service = start(&set, ReadPreference::SecondaryPreferred).await;
    let views = json!({ "path": "/", "at": "2014-01-01T10:01:02Z", "views": 17 });
    let counted = service.client.post_text("/v1/page-views", views.to_string()).await;
    assert_eq!(counted.status, 204, "{counted:?}");
    let hour = "from=2014-01-01T10:00:00Z&to=2014-01-01T11:00:00Z";
    let addresses = [
        "/v1/page-views/buckets?path=/&timestamp=2014-01-01T10:01:00Z".to_owned(),
        format!("/v1/page-views?path=/&resolution=hour&{hour}"),
        format!("/v1/page-views?path=/&resolution=minute&{hour}"),
    ];
    let shown = async |address: &str| {
        let answer = service.client.get(address).await;
        answer.status == 200 && answer.json()["totalViews"] == 17
    };
    until_all_show(&set, &service, "page_views", doc! {}).await;
    let primary = set.primary().await;
    let [one, other] = [0, 1].map(|nth| set.others(primary).nth(nth).expect("three members"));
    let before = queries(set.mongod(one)).await + queries(set.mongod(other)).await;
    for _ in 0..READS {
        for address in &addresses {
            assert!(shown(address).await, "{address}");
        }
    }
    let asked = queries(set.mongod(one)).await + queries(set.mongod(other)).await - before;
    // Of two `find`s each; aggregations are counted as commands.
    assert!(asked >= READS, "page views are read from secondaries: {asked}");

    let strikes = || set.proxy(one).strikes() + set.proxy(other).strikes();
    for command in ["find", "aggregate"] {
        let before = strikes();
        set.proxy(one).harm(command, Way::Back, Harm::Cut, u32::MAX);
        set.proxy(other).harm(command, Way::Back, Harm::Cut, u32::MAX);
        // A driver that has just lost a server asks the primary at once, until it has found the server again.
        eventually("those that are cut off are asked", PATIENCE, async || {
            for address in &addresses {
                assert!(shown(address).await, "the primary shows what they do not: {address}");
            }
            strikes() > before
        })
        .await;
        set.proxy(one).relent();
        set.proxy(other).relent();
    }
    drop(service);
    set.remove().await;
}
