//! Uploads with an `Idempotency-Key`, sent again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use mongodb::bson::Bson;
use pagebucket_engine::Deadline;
use pagebucket_engine::appends::{Append, LineRefusal, Once};
use pagebucket_engine::internal::COMMAND;
use pagebucket_model::domain::{Clock, IdempotencyKey, Seq};
use reqwest::Method;
use serde_json::{Value, json};

use super::{NDJSON, upload_with};
use crate::harness::uploads::wire::Upload;
use crate::harness::{
    Client, History, Mongod, PATIENCE, Service, Setup, TOTAL, engine, eventually, shared, spawn, test_over,
};

/// The outcomes of an upload, line by line: a `seq`, or the kind of the problem.
async fn outcomes(client: &Client, path: &str, key: &str, body: &str) -> Vec<Value> {
    let body = body.to_owned();
    let with = |request: reqwest::RequestBuilder| {
        request.header("content-type", NDJSON).header("idempotency-key", key).body(body)
    };
    let answer = client.send(Method::POST, path, with).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = String::from_utf8(answer.body).expect("UTF-8");
    let outcome = |line: &str| {
        let outcome: Value = serde_json::from_str(line).expect("JSON");
        outcome.get("seq").unwrap_or(&outcome["problem"]["type"]).clone()
    };
    text.lines().map(outcome).collect()
}

test_over!(sent_again_it_is_answered_the_same, TRADES, READINGS);
async fn sent_again_it_is_answered_the_same(history: &'static History) {
    let service = Service::of(history).await;
    service.client.append(7, &history.item(1_000_000)).await.expect(201);
    let body = history.lines(1..=3_210);
    let first = upload_with(&service.client, &history.uploads(7), "k", &body).await.expect(200);
    assert_eq!(first["ranges"], json!([{ "firstSeq": 2, "lastSeq": 3_211 }]));
    let date =
        async |client: &Client| client.get(&history.at(7, "/2")).await.expect(200)[history.date].clone();
    let then = date(&service.client).await;
    service.client.append(7, &history.item(1_000_001)).await.expect(201);
    // Through another instance, after it: nothing is in a memory only.
    let other = service.sibling(shared().await).await;
    for client in [&other.client, &service.client] {
        assert_eq!(upload_with(client, &history.uploads(7), "k", &body).await.expect(200), first);
    }
    let expected: Vec<_> = [1_000_000].into_iter().chain(1..=3_210).chain([1_000_001]).collect();
    assert_eq!(service.stored(7).await.numbers, expected);
    assert_eq!(date(&service.client).await, then);
    // More lines behind those.
    let more =
        upload_with(&service.client, &history.uploads(7), "k", &history.lines(1..=3_220)).await.expect(200);
    let ranges = json!([{ "firstSeq": 2, "lastSeq": 3_211 }, { "firstSeq": 3_213, "lastSeq": 3_222 }]);
    assert_eq!((&more["ranges"], &more["stored"]), (&ranges, &json!(3_220)));
    // Another key is another upload.
    upload_with(&service.client, &history.uploads(7), "other", &history.lines([5])).await.expect(200);
    assert_eq!(service.stored(7).await.numbers.len(), 3_223);
}

test_over!(cut_off_it_continues, TRADES, READINGS);
async fn cut_off_it_continues(history: &'static History) {
    let service = Service::of(history).await;
    let mut expected = Vec::new();
    for cut in [1, 9, 1_000, 1_001, 1_777] {
        let key = format!("cut-{cut}");
        let body: Vec<_> = (1..=2_500).map(|line| cut * 10_000 + line).collect();
        let upload =
            Upload::begin(service.address(), &history.uploads(7), &[("Idempotency-Key", &key)]).await;
        let mut read = upload.cut(&history.lines(body[..cut as usize].iter().copied())).await;
        let problem = read.line().await.expect("a problem");
        assert_eq!(problem["stored"], cut, "{problem}");
        // Somebody else comes between.
        service.client.append(7, &history.item(9_000_000 + cut)).await.expect(201);
        let summary =
            upload_with(&service.client, &history.uploads(7), &key, &history.lines(body.iter().copied()))
                .await
                .expect(200);
        assert_eq!((&summary["stored"], &summary["refused"]), (&json!(2_500), &json!(0)), "{summary}");
        assert_eq!(summary["ranges"].as_array().map(Vec::len), Some(2), "{summary}");
        let (first, second) = body.split_at(cut as usize);
        expected.extend(first.iter().chain([&(9_000_000 + cut)]).chain(second).map(|number| *number as i64));
        assert_eq!(service.stored(7).await.numbers, expected);
    }
}

test_over!(a_changed_line_is_that_lines_problem, ALL);
async fn a_changed_line_is_that_lines_problem(history: &'static History) {
    let service = Service::of(history).await;
    upload_with(&service.client, &history.uploads(7), "k", &history.lines(1..=1_500)).await.expect(200);
    let changed = (1..=1_500).map(|number| if number % 500 == 3 { 7_000 + number } else { number });
    let again = upload_with(&service.client, &history.uploads(7), "k", &history.lines(changed.clone()))
        .await
        .expect(200);
    assert_eq!((&again["stored"], &again["refused"]), (&json!(1_497), &json!(3)), "{again}");
    let problem = &again["problems"][1];
    assert_eq!(problem["line"], 503);
    assert!(
        problem["errors"][0]["detail"].as_str().unwrap().starts_with("it differs from the line"),
        "{again}"
    );
    let told = outcomes(&service.client, &history.outcomes(7), "k", &history.lines(changed)).await;
    for (line, outcome) in (1..).zip(told) {
        let expected = if line % 500 == 3 { json!("/problems#line-differs") } else { json!(line) };
        assert_eq!(outcome, expected, "line {line}");
    }
    // A date that was not there makes another item, too.
    let mut dated = history.item(1);
    dated[history.date] = json!("2004-01-09T00:00:00Z");
    let told =
        outcomes(&service.client, &history.outcomes(7), "k", &format!("{dated}\n{}", history.lines([2])))
            .await;
    assert_eq!(told, [json!("/problems#line-differs"), json!(2)]);
    assert_eq!(service.stored(7).await.numbers, (1..=1_500).collect::<Vec<_>>());
}

test_over!(a_line_mended_the_second_time_is_passed_by, TRADES);
async fn a_line_mended_the_second_time_is_passed_by(history: &'static History) {
    let service = Service::of(history).await;
    // At the ends of parts and inside of them; the last one is mended in time.
    let bad = [1, 500, 1_000, 1_001, 2_000, 2_300];
    let line = |number: u64| if bad.contains(&number) { "{}\n".to_owned() } else { history.lines([number]) };
    let spoilt: String = (1..=2_300).map(line).collect();
    upload_with(&service.client, &history.uploads(7), "k", &spoilt).await.expect(200);
    let told = outcomes(&service.client, &history.outcomes(7), "k", &history.lines(1..=2_305)).await;
    for (line, outcome) in (1..).zip(told) {
        if bad[..5].contains(&line) {
            assert_eq!(outcome, "/problems#line-out-of-order", "line {line}");
        } else {
            let before = bad[..5].iter().filter(|bad| **bad < line).count() as u64;
            assert_eq!(outcome, line - before, "line {line}");
        }
    }
    let expected: Vec<_> =
        (1..=2_305).filter(|number| !bad[..5].contains(number)).map(|number| number as i64).collect();
    assert_eq!(service.stored(7).await.numbers, expected);
}

test_over!(a_line_spoilt_the_second_time_stays, TRADES);
async fn a_line_spoilt_the_second_time_stays(history: &'static History) {
    let service = Service::of(history).await;
    upload_with(&service.client, &history.uploads(7), "k", &history.lines(1..=1_200)).await.expect(200);
    // The last of a part, and the last of all.
    let line = |number: u64| {
        if [1_000, 1_200].contains(&number) { "{}\n".to_owned() } else { history.lines([number]) }
    };
    let spoilt: String = (1..=1_200).map(line).collect();
    let again = upload_with(&service.client, &history.uploads(7), "k", &spoilt).await.expect(200);
    assert_eq!((&again["stored"], &again["refused"]), (&json!(1_198), &json!(2)), "{again}");
    assert_eq!(service.stored(7).await.numbers, (1..=1_200).collect::<Vec<_>>());
}

test_over!(a_key_is_of_one_kind_of_request, TRADES);
async fn a_key_is_of_one_kind_of_request(history: &'static History) {
    let service = Service::of(history).await;
    let json = async |key: &str, owner: u64| {
        let with =
            |request: reqwest::RequestBuilder| request.header("idempotency-key", key).json(&history.item(1));
        service.client.send(Method::POST, &history.path(owner), with).await
    };
    json("json", 7).await.expect(201);
    let problem = upload_with(&service.client, &history.uploads(7), "json", &history.lines([1])).await;
    let problem = problem.problem(422, "idempotency-key-reused");
    assert!(problem["detail"].as_str().unwrap().contains("stored nothing"), "{problem}");
    upload_with(&service.client, &history.uploads(7), "lines", &history.lines([2])).await.expect(200);
    json("lines", 7).await.problem(422, "idempotency-key-reused");
    // Among many owners it is the matter of one.
    let body = format!("{}{}", history.line_of(7, 3), history.line_of(8, 3));
    let told = outcomes(&service.client, &history.outcomes_of_many(), "json", &body).await;
    assert_eq!(told, [json!("/problems#idempotency-key-reused"), json!(1)]);
    assert_eq!(service.stored(7).await.numbers, [1, 2]);
}

test_over!(many_owners_continue_each, SMALL);
async fn many_owners_continue_each(history: &'static History) {
    let service = Service::of(history).await;
    let whose = |line: u64| line * 7 % 23 + 1;
    let body = |count: u64| (1..=count).map(|line| history.line_of(whose(line), line)).collect::<String>();
    let upload = Upload::begin(service.address(), &history.of_many(), &[("Idempotency-Key", "k")]).await;
    let mut read = upload.cut(&body(3_000)).await;
    assert_eq!(read.line().await.expect("a problem")["stored"], 3_000);
    for _ in 0..2 {
        let summary = upload_with(&service.client, &history.of_many(), "k", &body(5_000)).await.expect(200);
        assert_eq!(
            (&summary["stored"], history.owners_of(&summary)),
            (&json!(5_000), &json!(23)),
            "{summary}"
        );
    }
    let mut expected = BTreeMap::<u64, Vec<i64>>::new();
    (1..=5_000).for_each(|line| expected.entry(whose(line)).or_default().push(line as i64));
    for (owner, numbers) in expected {
        assert_eq!(service.stored(owner).await.numbers, numbers);
    }
}

test_over!(two_at_once_store_each_line_once, TRADES);
async fn two_at_once_store_each_line_once(history: &'static History) {
    let service = Service::of(history).await;
    let sibling = service.sibling(shared().await).await;
    let path = history.uploads(7);
    for round in 1..=5_u64 {
        let key = format!("round-{round}");
        let body = history.lines(round * 100_000 + 1..=round * 100_000 + 4_000);
        let attempts = (0..4).map(|attempt| {
            let client = if attempt % 2 == 0 { &service.client } else { &sibling.client };
            upload_with(client, &path, &key, &body)
        });
        // Beside a writer without a key.
        let beside = async {
            for number in 0..20 {
                service.client.append(7, &history.item(round * 100_000 + 90_000 + number)).await.expect(201);
            }
        };
        let (answers, ()) = tokio::join!(join_all(attempts), beside);
        let answers: Vec<Value> = answers.iter().map(|answer| answer.expect(200)).collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        assert_eq!(answers[0]["stored"], 4_000);
    }
    let found = service.stored(7).await;
    let round = |round: i64| {
        (round * 100_000 + 1..=round * 100_000 + 4_000)
            .chain(round * 100_000 + 90_000..round * 100_000 + 90_020)
    };
    found.holds_exactly((1..=5).flat_map(round));
    for round in 1..=5 {
        let range = round * 100_000 + 1..=round * 100_000 + 4_000;
        let stored: Vec<_> = found.numbers.iter().copied().filter(|number| range.contains(number)).collect();
        assert!(stored.is_sorted(), "in their order");
    }
}

test_over!(a_database_that_dies_and_comes_back, TRADES);
async fn a_database_that_dies_and_comes_back(history: &'static History) {
    let mongod = Mongod::own().await;
    let service = Setup::on(&mongod).of(history).start().await;
    let body = history.lines(1..=60_000);
    let uploading = {
        let (client, body) = (service.client.clone(), body.clone());
        spawn(async move { upload_with(&client, &history.uploads(7), "k", &body).await })
    };
    for count in [1_000, 20_000] {
        eventually("some are stored", PATIENCE, async || {
            let answer = service.client.get(&history.owner_path(7)).await;
            answer.status == 200 && history.totals(&answer.json())[TOTAL].as_u64() >= Some(count)
        })
        .await;
        mongod.kill().await;
        mongod.start().await;
        mongod.until_primary().await;
    }
    // It may have waited for the database, or have given up; sent again it is whole.
    let first = uploading.await.expect("no panic");
    assert!([200, 503].contains(&first.status.as_u16()), "{first:?}");
    let summary = upload_with(&service.client, &history.uploads(7), "k", &body).await.expect(200);
    assert_eq!(summary["stored"], 60_000, "{summary}");
    assert_eq!(service.stored(7).await.numbers, (1..=60_000).collect::<Vec<_>>());
    drop(service);
    mongod.remove().await;
}

test_over!(what_a_key_costs, TRADES, READINGS);
async fn what_a_key_costs(history: &'static History) {
    let seen = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
    let watch = Arc::clone(&seen);
    let setup = Setup::on(shared().await).of(history).observed(move |name, command| {
        if let Some(Bson::String(collection)) = command.get(name) {
            *watch.lock().expect("no test panics here").entry(format!("{name} {collection}")).or_default() +=
                1;
        }
    });
    let service = setup.start().await;
    service.client.append(7, &history.item(1)).await.expect(201);
    let take = || std::mem::take(&mut *seen.lock().expect("no test panics here"));
    take();
    let body = history.lines(1..=10_000);
    upload_with(&service.client, &history.uploads(7), "k", &body).await.expect(200);
    let first = take();
    // A record, and no look at what it has stored itself.
    assert_eq!(
        (first.get("insert idempotency_keys"), first.get(&history.command("find"))),
        (Some(&1), None),
        "{first:?}"
    );
    upload_with(&service.client, &history.uploads(7), "k", &body).await.expect(200);
    let again = take();
    // It is read once: a part of up to 1,000 lines costs one look or two, or as many as its pages take.
    let most = if history.page_size > 10 { 10_000 / history.page_size as usize + 10 } else { 40 };
    for write in ["update", "insert"] {
        assert_eq!(again.get(&history.command(write)), None, "{again:?}");
    }
    assert!(again[&history.command("find")] <= most, "{again:?}");
}

test_over!(lines_beyond_the_last_number, NOTES);
/// A key tells a line's number in 32 bits: nobody sends so many here, so that the store is asked itself.
async fn lines_beyond_the_last_number(history: &'static History) {
    const LAST: u64 = u32::MAX as u64;
    let store = Setup::on(shared().await).of(history).store().await;
    let (items, owner) = (engine::histories(&store, history), engine::owner(history, 7));
    let key = IdempotencyKey::parse(b"k").expect("a key");
    let draft = engine::draft(history, 1);
    let (seq, beyond) = (Ok(1), Err(LineRefusal::BeyondNumbers));
    for (numbers, expected) in [
        (&[LAST, LAST + 1, LAST + 2][..], &[seq, beyond, beyond][..]),
        // Sent again, it is found.
        (&[LAST, LAST + 1], &[seq, beyond]),
        (&[LAST + 1], &[beyond]),
    ] {
        let lines = vec![draft.clone(); numbers.len()];
        let append = Append::new(owner.clone(), lines, Clock::system().now(), Deadline::within(COMMAND));
        let once = Once::Lines { key: &key, numbers: numbers.to_vec(), so_far: &mut None };
        let appended = items.appends().append(Append { once: Some(once), ..append }).await;
        let progress = appended.expect("all is dealt with");
        let ends = progress.ends().map(|end| end.map(Seq::get));
        assert_eq!(ends.collect::<Vec<_>>(), expected);
    }
}
