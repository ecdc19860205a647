//! `erase`, and what a server and its log say of erasures.

use mongodb::bson::{Document, doc};
use serde_json::{Value, json};

use super::keys::keys;
use super::program::{Place, Serving, run};
use crate::harness::signal;
use crate::harness::{NOTES, PATIENCE, eventually, trade};

/// Makes the tombstone of customer 7 so old that it may be swept.
async fn age(place: &Place) {
    let age = doc! { "$set": { "since": { "$subtract": ["$$NOW", 3_600_000_i64] } } };
    let tombstone = doc! { "customerId": 7_i64, "swept": false };
    let aged = place.database().await.collection::<Document>("trades").update_one(tombstone, vec![age]).await;
    assert_eq!(aged.expect("a tombstone").modified_count, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_erased_and_reopened() {
    let place = Place::new().await;
    let unmigrated = run(&mut place.pagebucket("erase", &["--owner", "7"])).await;
    assert!(unmigrated.sentence(3).contains("migrations are pending"), "{unmigrated:?}");
    let serving = place.serve(&[]).await;
    serving.client.append_all(7, 1..=25).await;
    let reopen = ["--customer", "customers=7", "--reopen"];
    let alive = run(&mut place.pagebucket("erase", &reopen)).await;
    assert_eq!(alive.sentence(1), "customers=7 is not erased");

    let mut erasing = place.pagebucket("erase", &["--owner", "7"]).spawn().expect("to run");
    let pid = erasing.id().expect("it runs");
    let out = erasing.stdout.take().expect("a pipe");
    let mut out = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(out));
    let mut said = String::new();
    while let Some(line) = out.next_line().await.expect("a line") {
        said.push_str(&line);
        if line.contains("waiting for the last sweep") {
            break;
        }
    }
    assert!(said.contains("trades: all pages and keys are deleted"), "{said}");
    eventually("the server has learnt of it", PATIENCE, async || {
        serving.client.get("/v1/customers/7/trades/pages/1").await.status == 410
    })
    .await;
    serving.client.append(7, &trade(1)).await.problem(410, "erased");
    signal("INT", pid);
    let ended = erasing.wait_with_output().await.expect("an end");
    let err = String::from_utf8(ended.stderr).expect("UTF-8");
    assert_eq!(ended.status.code(), Some(130), "{err}");
    assert!(err.contains("the last sweep is left to a running server"), "{err}");

    let early = run(&mut place.pagebucket("erase", &reopen)).await;
    assert!(early.sentence(1).contains("the last sweep is not done yet"), "{early:?}");
    age(&place).await;
    for _ in 0..2 {
        let swept = run(&mut place.pagebucket("erase", &["--owner", "7"])).await;
        assert_eq!(swept.status, Some(0), "{swept:?}");
        assert!(swept.out.ends_with("customers=7: erased; only a tombstone is left\n"), "{swept:?}");
    }
    let reopened = run(&mut place.pagebucket("erase", &reopen)).await;
    assert_eq!(
        (reopened.status, reopened.out.as_str()),
        (Some(0), "trades: reopened; page and sequence numbers go on\n")
    );
    let again = run(&mut place.pagebucket("erase", &reopen)).await;
    assert_eq!(again.sentence(1), "customers=7 is not erased");
    // Page 3 was not full, and is not used again.
    let appended = serving.client.append(7, &trade(1)).await.expect(201);
    assert_eq!(appended["ranges"][0]["firstSeq"], 31, "{appended}");
    let all = run(&mut place.pagebucket("export", &["--owner", "7"])).await;
    assert_eq!(all.out.lines().count(), 1, "{all:?}");
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_erases_is_in_the_audit_log() {
    let place = Place::new().await;
    let key = async |name: &str, scope: &str| {
        let key =
            run(&mut keys(&place, "create", &["--name", name, "--scope", scope, "--owners", "7"])).await;
        key.out.trim().to_owned()
    };
    let (operator, reader) =
        (key("operator", "admin").await, key("reader", "read,append,list,views,metrics").await);
    let serving: Serving =
        place.serve(&["--auth", "keys", "--open", "metrics", "--log-format", "json"]).await;
    let delete = async |key: &str, path: &str| {
        let client = serving.client.with_token(key);
        client.send(reqwest::Method::DELETE, path, |request| request).await
    };
    delete(&operator, "/v1/customers/7").await.expect(200);
    delete(&operator, "/v1/customers/8").await.problem(403, "forbidden");
    delete(&reader, "/v1/customers/7").await.problem(403, "forbidden");
    serving.client.with_token(&reader).get("/v1/customers/7").await.problem(410, "erased");
    let metrics = String::from_utf8(serving.client.get("/metrics").await.body).expect("text");
    assert!(metrics.contains("pagebucket_erasures_total{result=\"erased\"} 1"), "{metrics}");
    let ended = serving.stop().await;
    let lines = ended.err.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let of_audit = |line: &Value| {
        line["target"].as_str().is_some_and(|of| of.starts_with("pagebucket::audit")) && line["owner"] == "7"
    };
    let audit: Vec<Value> = lines.filter(of_audit).collect();
    let [line, erasure] = &audit[..] else { panic!("who erases, and what is erased: {audit:?}") };
    assert_eq!(
        (&line["principal"], &line["owners"]),
        (&"key:operator".into(), &"customers".into()),
        "{line}"
    );
    assert!(line["peer"].is_string(), "{line}");
    let numbers = (&erasure["event"], &erasure["history"], &erasure["first_page"], &erasure["second"]);
    assert_eq!(numbers, (&"owner-erased".into(), &"trades".into(), &1.into(), &0.into()), "{erasure}");
}

/// An append that was slow has opened a page behind the tombstone: its number is used.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_has_the_numbers_of_late_pages() {
    let place = Place::new().await;
    let serving = place.serve(&["--allow-erase", "--log-format", "json"]).await;
    let delete = async || {
        let deleted = serving.client.send(reqwest::Method::DELETE, "/v1/customers/7", |request| request);
        deleted.await.expect(200)
    };
    delete().await;
    serving.client.append(8, &trade(1)).await.expect(201);
    let trades = place.database().await.collection::<Document>("trades");
    let mut late = trades.find_one(doc! { "customerId": 8 }).await.expect("an answer").expect("a bucket");
    late.insert("_id", late.get_str("_id").expect("an id").replace("8_", "7_"));
    late.insert("customerId", 7_i64);
    trades.insert_one(late).await.expect("as an append writes it");
    delete().await;
    let ended = serving.stop().await;
    let lines = ended.err.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let pages: Vec<Value> =
        lines.filter(|line| line["event"] == "owner-erased").map(|line| line["first_page"].clone()).collect();
    assert_eq!(pages, [json!(1), json!(2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_of_retention_are_checked_at_the_start() {
    let place = Place::new().await;
    let serve = async |flags: &[&str]| {
        run(&mut place.pagebucket("serve", &[&["--listen", "127.0.0.1:0"], flags].concat())).await
    };
    let unknown = serve(&["--retain-pages", "trades=5,trade=100"]).await;
    assert_eq!(unknown.sentence(2), "--retain-pages trade: there is no such history (there are trades)");
    let twice = serve(&["--retain-days", "trades=1", "--retain-days", "trades=2"]).await;
    assert_eq!(twice.sentence(2), "--retain-days trades: is given more than once");
    for (names, sentence) in [
        ("trades,trade", "--keep-summaries trade: there is no such history (there are trades)"),
        ("trades,trades", "--keep-summaries trades: is given more than once"),
    ] {
        assert_eq!(serve(&["--keep-summaries", names]).await.sentence(2), sentence);
    }
    let notes = Place::of(NOTES).await;
    let without =
        run(&mut notes.pagebucket("serve", &["--listen", "127.0.0.1:0", "--keep-summaries", "notes"])).await;
    assert_eq!(without.sentence(2), "--keep-summaries notes: its definition has no summaries");
    let made = place.database().await.list_collection_names().await.expect("names");
    assert_eq!(made, [""; 0], "nothing is made by refusing");
    place
        .serve(&["--retain-pages", "trades=5", "--retain-days", "trades=1", "--keep-summaries", "trades"])
        .await
        .stop()
        .await;
}
