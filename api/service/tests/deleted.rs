//! What is answered about pages that are retired, and about owners that are erased.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::TryStreamExt;
use mongodb::bson::{Document, doc};
use pagebucket_engine::internal::Retention;
use pagebucket_http::Gate;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::deleted::{delete, keeping, retired, setup};
use crate::harness::{
    Answer, History, PATIENCE, Service, TOTAL, TRADES, engine, eventually, shared, test_over,
};

/// Checks a 410 for what is retired.
#[track_caller]
fn is_retired(history: &History, answer: &Answer) {
    let problem = answer.problem(410, "retired");
    assert_eq!(problem["firstPage"], 4, "{problem}");
    assert_eq!(problem["firstSeq"], history.pages(3.0) + 1, "{problem}");
    assert_eq!(answer.header("cache-control"), "no-cache");
    assert!(answer.headers.get("etag").is_none(), "{answer:?}");
}

test_over!(a_history_without_its_beginning_says_where_it_begins, TRADES, NOTES);
async fn a_history_without_its_beginning_says_where_it_begins(history: &'static History) {
    let service = retired(history).await;
    let client = &service.client;
    let (first, last) = (history.pages(3.0) + 1, history.pages(4.5));
    let owner = client.get(&history.owner_path(1)).await.expect(200);
    let summary = history.totals(&owner);
    for (member, expected) in [(TOTAL, last), ("totalPages", 5), ("firstPage", 4), ("firstSeq", first)] {
        assert_eq!(summary[member], expected, "{summary}");
    }
    assert_eq!((&summary["first"]["seq"], &summary["last"]["seq"]), (&json!(first), &json!(last)));

    let before = first - 1;
    for path in [
        history.at(1, "/pages/1"),
        history.at(1, "/pages/3"),
        history.at(1, "/1"),
        history.at(1, &format!("/{before}")),
        history.at(1, "?page=1"),
        history.at(1, "?page=3&order=desc"),
        history.at(1, "?after=1"),
        history.at(1, &format!("?after={}", before - 1)),
        history.at(1, &format!("?before={first}")),
        history.at(1, "?before=2&limit=1"),
        history.at(1, "?offset=0"),
        history.at(1, &format!("?offset={}&order=desc", last - before)),
        history.at(1, "?after=0&limit=5&asOf=3"),
        history.at(1, "?after=1&from=2004-01-01T00:00:00Z"),
        history.at(1, "/export.ndjson?after=1"),
    ] {
        let answer = client.get(&path).await;
        assert_eq!(answer.status, 410, "{path}");
        is_retired(history, &answer);
    }
    let part =
        client.send(Method::GET, &history.path(1), |request| request.header("range", "items=0-4")).await;
    is_retired(history, &part);

    if history.name == TRADES.name {
        // What is retired is in no sum, so an answer does not stay the same.
        let path = |query: &str| history.at(1, &format!("/summary?by=1M{query}"));
        is_retired(history, &client.get(&path(&format!("&asOf={before}"))).await);
        for (query, most) in [("".to_owned(), last), (format!("&asOf={}", last - 1), last - 1)] {
            let answer = client.get(&path(&query)).await;
            assert_eq!(answer.header("cache-control"), "no-cache");
            let body = answer.expect(200);
            let point = &body["points"][0];
            assert_eq!(
                (&body["firstSeq"], &point["firstSeq"], &point["lastSeq"]),
                (&json!(first), &json!(first), &json!(most))
            );
            assert_eq!((&point["count"], &body[TOTAL]), (&json!(most - before), &json!(most)));
        }
    }

    // What begins at the beginning begins there; what is read towards it ends there.
    let whole: Vec<u64> = (first..=last).collect();
    let page = client.get(&history.path(1)).await.expect(200);
    assert_eq!((&page["page"], &page["firstSeq"], &page[TOTAL]), (&json!(4), &json!(first), &json!(last)));
    for (query, seqs) in [
        ("?after=0&limit=2".to_owned(), &whole[..2]),
        ("?limit=2".to_owned(), &whole[..2]),
        (format!("?after={before}&limit=2"), &whole[..2]),
        (format!("?before={}&limit=5", first + 1), &whole[..1]),
        (format!("?before={}&limit=5&asOf={last}", first + 1), &whole[..1]),
        (format!("?offset={before}&limit=2"), &whole[..2]),
        (format!("?after=0&limit=2&asOf={last}"), &whole[..2]),
        ("?after=0&limit=2&from=2000-01-01T00:00:00Z".to_owned(), &whole[..2]),
        (format!("?after={last}"), &[]),
    ] {
        let listing = client.get(&history.at(1, &query)).await.expect(200);
        assert_eq!(history.seqs(&listing), seqs, "{query}");
        assert_eq!(listing["firstSeq"], first, "{query}");
    }
    let one = client.get(&history.at(1, &format!("/{first}"))).await.expect(200);
    assert_eq!((&one["seq"], &one["page"]), (&json!(first), &json!(4)));
    let rows = client.get(&history.at(1, "/export.ndjson")).await;
    let rows: Vec<Value> =
        rows.body.split(|byte| *byte == b'\n').filter_map(|row| serde_json::from_slice(row).ok()).collect();
    assert_eq!(rows.iter().map(|row| row["seq"].as_u64().expect("a seq")).collect::<Vec<_>>(), whole);

    // A client that kept a page is told that it is gone, and none is told that a page to come is.
    for page in [1, 3] {
        let tag =
            client.get(&history.at(1, "/pages/4")).await.header("etag").replace(".p4", &format!(".p{page}"));
        let known = |request: reqwest::RequestBuilder| request.header("if-none-match", tag);
        is_retired(
            history,
            &client.send(Method::GET, &history.at(1, &format!("/pages/{page}")), known).await,
        );
    }
    client.get(&history.at(1, "/pages/6")).await.problem(404, "page-not-found");
    client.get(&history.at(2, "/pages/1")).await.problem(404, "page-not-found");
    assert_eq!(client.get(&history.path(2)).await.expect(200)["firstSeq"], Value::Null);
}

test_over!(walks_begin_with_the_first_item_that_is_there, TRADES, NOTES);
async fn walks_begin_with_the_first_item_that_is_there(history: &'static History) {
    let service = retired(history).await;
    let expected: Vec<u64> = (history.pages(3.0) + 1..=history.pages(4.5)).collect();
    let last = history.pages(4.5);
    for start in [
        "?order=asc".to_owned(),
        "?order=desc".to_owned(),
        "?limit=3&order=asc".to_owned(),
        "?limit=3&order=desc".to_owned(),
        format!("?offset={}&limit=3", expected[0] - 1),
        "?offset=0&limit=3&order=desc".to_owned(),
        "?limit=3&from=2000-01-01T00:00:00Z&order=desc".to_owned(),
        format!("?before={}&limit=3&order=desc", last + 1),
    ] {
        let mut seqs = Vec::new();
        let mut next = Some(history.at(1, &start));
        while let Some(path) = next {
            let listing = service.client.get(&path).await.expect(200);
            seqs.extend(history.seqs(&listing));
            for link in ["first", "prev", "last"] {
                if let Some(link) = listing["links"][link].as_str() {
                    assert_eq!(service.client.get(link).await.status, 200, "{link} of {path}");
                }
            }
            next = listing["links"]["next"].as_str().map(str::to_owned);
        }
        if start.contains("desc") {
            seqs.reverse();
        }
        assert_eq!(seqs, expected, "{start}");
    }
}

test_over!(a_history_keeps_as_many_pages_as_its_flag_says, NOTES);
async fn a_history_keeps_as_many_pages_as_its_flag_says(history: &'static History) {
    let service = keeping(shared().await, history, 2).start().await;
    let kept = async || {
        let owner = service.client.get(&history.owner_path(1)).await.expect(200);
        let buckets = service.database.collection::<Document>(history.name);
        let owned = doc! { history.owner_field: history.owner_bson(1), "count": { "$gt": 0 } };
        let pages = buckets.distinct("page", owned).await.expect("pages").len();
        (history.totals(&owner)["firstPage"].as_u64().expect("a page"), pages)
    };
    for (items, first) in [(2.5, 1), (3.5, 2), (6.0, 4)] {
        let stored = service.client.total(1).await;
        service.client.append_all(1, stored + 1..=history.pages(items)).await;
        eventually("two full pages and the last are kept", PATIENCE, async || kept().await == (first, 3))
            .await;
    }
}

test_over!(a_history_keeps_pages_for_as_many_days_as_its_flag_says, NOTES);
async fn a_history_keeps_pages_for_as_many_days_as_its_flag_says(history: &'static History) {
    let mut setup = setup(shared().await, history);
    let most = NonZeroU32::new(365).expect("days");
    let retention = Retention { days: Some(most), ..Retention::default() };
    setup.config.retained = [(history.name.into(), retention)].into();
    let service = setup.start().await;
    let now = pagebucket_model::domain::Clock::system().now().to_string();
    let append = async |owner: u64, pages: f64, date: &str| {
        let numbers = 1..=history.pages(pages);
        let items: Vec<Value> = numbers.map(|number| history.item_at(number, date)).collect();
        service.client.append(owner, &json!(items)).await.expect(201);
    };
    // Owner 1 has one new page between old ones. All pages of owner 2 are old; the last one stays.
    append(1, 2.0, "2004-01-01T00:00:00Z").await;
    append(1, 1.0, &now).await;
    append(1, 1.5, "2004-01-01T00:00:00Z").await;
    append(2, 3.5, "2004-01-01T00:00:00Z").await;
    let first = async |owner: u64| {
        let owner = service.client.get(&history.owner_path(owner)).await.expect(200);
        history.totals(&owner)["firstPage"].clone()
    };
    eventually("what is old is retired", PATIENCE, async || {
        (first(1).await, first(2).await) == (json!(3), json!(4))
    })
    .await;
    let kept = async |owner: u64| service.stored(owner).await.numbers.len() as u64;
    let expected = (history.pages(2.5), history.pages(0.5));
    eventually("it is deleted", PATIENCE, async || (kept(1).await, kept(2).await) == expected).await;
}

/// Everything that may be asked about an owner.
async fn all_answers(service: &Service, owner: u64) -> Vec<(String, Answer)> {
    let (history, client) = (service.history, &service.client);
    let mut answers = Vec::new();
    for rest in ["", "?after=3", "?order=desc&limit=2", "/pages/1", "/1", "/999999", "/export.ndjson"] {
        let path = history.at(owner, rest);
        answers.push((format!("GET {path}"), client.get(&path).await));
    }
    answers.push(("summary".to_owned(), client.get(&history.owner_path(owner)).await));
    answers.push(("append".to_owned(), client.append(owner, &history.item(1)).await));
    let line = history.lines([1]);
    let upload =
        |request: reqwest::RequestBuilder| request.header("content-type", "application/x-ndjson").body(line);
    answers.push(("upload".to_owned(), client.send(Method::POST, &history.uploads(owner), upload).await));
    answers
}

/// What a plain driver finds of an owner, with the names of the collections.
async fn left_of(service: &Service, owner: u64) -> Vec<(String, Document)> {
    let mut left = Vec::new();
    for name in service.database.list_collection_names().await.expect("names") {
        let documents =
            service.database.collection::<Document>(&name).find(doc! {}).await.expect("documents");
        let documents: Vec<Document> = documents.try_collect().await.expect("documents");
        let id = service.history.owner_bson(owner);
        let is_owned = |document: &Document| document.get(service.history.owner_field) == Some(&id);
        left.extend(documents.into_iter().filter(is_owned).map(|document| (name.clone(), document)));
    }
    left
}

test_over!(an_erased_owner_is_410_on_every_instance, TRADES, NOTES);
async fn an_erased_owner_is_410_on_every_instance(history: &'static History) {
    let mongod = shared().await;
    let one = setup(mongod, history).start().await;
    let other = setup(mongod, history).in_database(&one.database).start().await;
    for owner in [1, 2] {
        one.client.append_all(owner, 1..=history.pages(2.5)).await;
    }
    one.client.append_once(1, "a-key", &history.item(7)).await.expect(201);
    // Both have pages in their caches, and know tails.
    for service in [&one, &other] {
        service.client.get(&history.at(1, "/pages/1")).await.expect(200);
        service.client.get(&history.at(1, "?after=0&limit=100")).await.expect(200);
    }
    let id = history.owner(1);
    let mut erased = delete(&one, 1).await;
    while erased.status == 202 {
        assert_eq!(erased.json(), json!({ history.owner_field: id, "status": "erasing" }));
        erased = delete(&other, 1).await;
    }
    let told = erased.expect(200);
    assert_eq!((&told[history.owner_field], &told["status"]), (&id, &json!("erased")), "{told}");
    assert!(told["swept"] == true || told["sweepAfter"].is_string(), "{told}");
    for service in [&one, &other] {
        eventually("all that is asked is answered with 410", PATIENCE, async || {
            all_answers(service, 1).await.iter().all(|(_, answer)| answer.status == 410)
        })
        .await;
        for (what, answer) in all_answers(service, 1).await {
            let problem = answer.problem(410, "erased");
            assert_eq!(problem.get("firstPage"), None, "{what}: {problem}");
            let at = problem["erasedAt"].as_str().expect("a date");
            assert!(at.len() == 24 && at.ends_with('Z'), "{what}: {problem}");
            assert_eq!(answer.header("cache-control"), "no-cache", "{what}");
        }
        let owners = service.client.get(&history.owners_path()).await.expect(200);
        let listed: Vec<_> = owners["items"]
            .as_array()
            .expect("owners")
            .iter()
            .map(|owner| &owner[history.owner_field])
            .collect();
        assert_eq!(listed, [&history.owner(2)]);
        assert_eq!(service.client.total(2).await, history.pages(2.5), "another's history");
    }
    eventually("an instance sweeps by itself", PATIENCE, async || {
        let unswept = doc! { history.owner_field: history.owner_bson(1), "swept": true };
        let found = one.database.collection::<Document>(history.name).find_one(unswept).await;
        found.expect("an answer").is_some()
    })
    .await;
    let again = delete(&other, 1).await.expect(200);
    assert_eq!(again, json!({ history.owner_field: id, "status": "erased", "swept": true }));
    let left = left_of(&one, 1).await;
    assert_eq!(left.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), [history.name], "{left:?}");
    assert!(!left_of(&one, 2).await.is_empty(), "the control finds nothing");
    one.stored(2).await;
}

test_over!(an_owner_is_erased_while_clients_write_and_read, NOTES);
/// On two instances. The neighbour, owner 2, notices nothing.
async fn an_owner_is_erased_while_clients_write_and_read(history: &'static History) {
    let mongod = shared().await;
    let one = setup(mongod, history).start().await;
    let other = setup(mongod, history).in_database(&one.database).start().await;
    let (stored, done) = (AtomicU64::new(0), AtomicBool::new(false));
    // Appends until `done`; returns what was acknowledged. Once an instance has said 410, it says nothing
    // else.
    let write = async |service: &Service, owner: u64, writer: u64| {
        let (mut numbers, mut gone, mut number) = (Vec::new(), false, writer * 1_000_000);
        while !done.load(Ordering::Relaxed) {
            number += 1;
            let answer = service.client.append(owner, &history.item(number)).await;
            gone |= answer.status == 410;
            if gone {
                answer.problem(410, "erased");
            } else {
                answer.expect(201);
                numbers.push(number as i64);
                stored.fetch_add(1, Ordering::Relaxed);
            }
        }
        assert_eq!(gone, owner == 1, "an erased owner is met by its writers");
        numbers
    };
    let read = async |service: &Service| {
        let (mut seen, mut gone) = (Vec::new(), false);
        while !done.load(Ordering::Relaxed) {
            let answer = service.client.get(&history.at(1, "/pages/1")).await;
            gone |= answer.status == 410;
            if gone {
                answer.problem(410, "erased");
            } else if answer.status != 404 {
                let now = answer.expect(200)["items"].as_array().expect("items").clone();
                assert!(now.starts_with(&seen), "{seen:?}, then {now:?}");
                seen = now;
            }
        }
        gone
    };
    let erasing = async {
        eventually("there are pages", PATIENCE, async || {
            stored.load(Ordering::Relaxed) > history.pages(10.0)
        })
        .await;
        eventually("it is erased and swept", PATIENCE, async || {
            delete(&one, 1).await.json()["swept"] == true
        })
        .await;
        let before = stored.load(Ordering::Relaxed);
        eventually("the neighbour goes on", PATIENCE, async || stored.load(Ordering::Relaxed) > before + 10)
            .await;
        done.store(true, Ordering::Relaxed);
    };
    let (_, _, _, _, neighbours, gone, gone_too, ()) = tokio::join!(
        write(&one, 1, 1),
        write(&one, 1, 2),
        write(&other, 1, 3),
        write(&other, 1, 4),
        write(&other, 2, 5),
        read(&one),
        read(&other),
        erasing,
    );
    assert!(gone && gone_too, "both instances have told their readers");
    assert_eq!(one.stored(2).await.numbers, neighbours);
    let left = left_of(&one, 1).await;
    assert_eq!(left.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), [history.name], "{left:?}");
}

test_over!(a_reopened_history_goes_on, TRADES, NOTES);
async fn a_reopened_history_goes_on(history: &'static History) {
    let setup = setup(shared().await, history);
    let store = setup.store().await;
    let service = setup.start().await;
    let client = &service.client;
    client.append_all(1, 1..=history.pages(2.5)).await;
    eventually("it is erased and swept", PATIENCE, async || {
        delete(&service, 1).await.json()["swept"] == true
    })
    .await;
    let owner = engine::owner(history, 1);
    let deadline = || pagebucket_engine::Deadline::within(PATIENCE);
    let reopened =
        engine::histories(&store, history).erasures().reopen(&owner, deadline()).await.expect("an answer");
    assert_eq!(reopened, pagebucket_engine::erasures::Reopening::Reopened);
    let (before, first) = (history.pages(3.0), history.pages(3.0) + 1);
    eventually("it is there again", PATIENCE, async || client.get(&history.path(1)).await.status == 200)
        .await;

    // Empty, and yet with the numbers of before.
    let summary = client.get(&history.owner_path(1)).await.expect(200);
    let summary = history.totals(&summary);
    assert_eq!(*summary, json!({ "totalItems": before, "totalPages": 3, "firstPage": 4, "firstSeq": first }));
    for query in
        ["", "?order=desc", "?page=4", "?limit=5", "?limit=5&order=desc", "?offset=0&order=desc", "?after=0"]
    {
        let listing = client.get(&history.at(1, query)).await.expect(200);
        assert_eq!(listing["items"], json!([]), "{query}");
        for link in ["first", "prev", "next", "last"] {
            assert_eq!(listing["links"].get(link), None, "{query} {link}");
        }
    }
    for path in
        [history.at(1, "/1"), history.at(1, "/pages/3"), history.at(1, "?page=3"), history.at(1, "?after=1")]
    {
        is_retired(history, &client.get(&path).await);
    }
    client.get(&history.at(1, "?page=5")).await.problem(404, "page-not-found");

    let appended = client.append(1, &history.items(first..=first + 1)).await.expect(201);
    assert_eq!(appended["ranges"], json!([{ "firstSeq": first, "lastSeq": first + 1 }]));
    let listing = client.get(&history.path(1)).await.expect(200);
    assert_eq!(history.seqs(&listing), [first, first + 1]);
    assert_eq!(client.get(&history.at(1, &format!("/{first}"))).await.expect(200)["page"], 4);
    let owners = client.get(&history.owners_path()).await.expect(200);
    assert_eq!(owners["items"].as_array().map(Vec::len), Some(1), "{owners}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_never_existed_is_erased_all_the_same() {
    let mut setup = setup(shared().await, TRADES);
    // On a busy machine the first of the two would be swept before it is answered.
    setup.capacity.ages.marker = PATIENCE;
    let service = setup.start().await;
    service.client.append_all(1, 1..=3).await;
    let mut answers = Vec::new();
    for owner in [1, 2] {
        let erased = delete(&service, owner).await;
        let mut told = erased.expect(200);
        assert_eq!(told["customerId"], owner);
        for member in ["customerId", "sweepAfter"] {
            told.as_object_mut().expect("an object").remove(member);
        }
        answers.push((erased.status, told));
    }
    assert_eq!(answers[0], answers[1], "an answer tells whether there was something");
    for (_, answer) in all_answers(&service, 2).await {
        answer.problem(410, "erased");
    }
    let wrong = service.client.send(Method::DELETE, "/v1/customers/0", |request| request).await;
    wrong.problem(400, "invalid-parameter");
}

/// Without authentication one request must not be enough: the owner would be gone until an operator reopens
/// it.
#[tokio::test(flavor = "multi_thread")]
async fn without_authentication_no_client_erases() {
    let mut setup = setup(shared().await, TRADES);
    setup.gate = Gate::unguarded();
    let service = setup.start().await;
    service.client.append_all(1, 1..=3).await;
    for owner in [1, 2] {
        let refused = delete(&service, owner).await.problem(403, "erasing-off");
        let detail = refused["detail"].as_str().expect("a text");
        assert!(
            ["--allow-erase", "--auth", "pagebucket erase"].iter().all(|way| detail.contains(way)),
            "{detail}"
        );
    }
    // Nothing is said of the owner, not even that there can be none with this id.
    let wrong = service.client.send(Method::DELETE, "/v1/customers/0", |request| request).await;
    wrong.problem(403, "erasing-off");
    let other = service.client.send(Method::PATCH, "/v1/customers/1", |request| request).await;
    other.problem(405, "method-not-allowed");
    assert_eq!(service.stored(1).await.numbers, [1, 2, 3]);
    assert_eq!(service.client.total(2).await, 0);
    // An operator erases all the same, and another server of the same database may let its clients.
    let allowing = service.sibling(shared().await).await;
    delete(&allowing, 1).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_for_many_leave_out_an_erased_owner() {
    let service = setup(shared().await, TRADES).start().await;
    service.client.append_all(1, 1..=3).await;
    delete(&service, 1).await.expect(200);
    let lines = [(1, 1), (2, 2), (1, 3)].map(|(owner, number)| TRADES.line_of(owner, number)).concat();
    let upload = async |path: &str| {
        let body = lines.clone();
        let with = |request: reqwest::RequestBuilder| {
            request.header("content-type", "application/x-ndjson").body(body)
        };
        service.client.send(Method::POST, path, with).await
    };
    let summary = upload(&TRADES.of_many()).await.expect(200);
    assert_eq!((&summary["stored"], &summary["refused"]), (&json!(1), &json!(2)), "{summary}");
    let outcomes = upload(&TRADES.outcomes_of_many()).await;
    let outcomes = String::from_utf8(outcomes.body).expect("text");
    let outcomes: Vec<Value> =
        outcomes.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let kinds: Vec<_> =
        outcomes.iter().map(|outcome| outcome["problem"]["type"].as_str().unwrap_or("stored")).collect();
    assert_eq!(kinds, ["/problems#erased", "stored", "/problems#erased"]);
}

/// Its page 1 is still there, and its tombstone already: the cursor must get past it.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_goes_on_after_an_owner_that_is_being_erased() {
    let service = Service::start().await;
    for owner in 1..=4 {
        service.client.append_all(owner, 1..=1).await;
    }
    let (nothing, now) = (mongodb::bson::DateTime::from_millis(0), mongodb::bson::DateTime::now());
    for owner in [1_i64, 3] {
        let tombstone = doc! {
            "_id": format!("{owner}_:"), "customerId": owner, "page": 9_007_199_254_740_991_i64, "count": 0,
            "first": nothing, "last": nothing, "history": [], "firstPage": 2_i64, "second": 0_i64, "since": now,
            "erased": now, "swept": false,
        };
        service.database.collection::<Document>("trades").insert_one(tombstone).await.expect("a tombstone");
    }
    for limit in 1..=5 {
        let (mut found, mut next) = (Vec::new(), Some(format!("/v1/customers?limit={limit}")));
        while let Some(path) = next {
            let list = service.client.get(&path).await.expect(200);
            let items = list["items"].as_array().expect("owners");
            found.extend(items.iter().map(|owner| owner["customerId"].as_u64().expect("an id")));
            next = list["links"]["next"].as_str().map(str::to_owned);
        }
        assert_eq!(found, [2, 4], "limit {limit}");
    }
}
