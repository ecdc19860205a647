//! Uploads: an item a line, any number of lines, told exactly.

mod keyed;

use std::fmt::Write;

use mongodb::bson::DateTime;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::uploads::wire::Upload;
use crate::harness::uploads::*;
use crate::harness::{History, INVALID_ITEM, Service, test_over, trade};

test_over!(one_summary, NOTES);
async fn one_summary(history: &'static History) {
    let service = Service::of(history).await;
    let path = history.uploads(7);
    let answer = upload(&service.client, &path, history.lines(1..=2_345)).await;
    assert_eq!(
        answer.expect(200),
        json!({
            (history.owner_field): history.owner(7), "ranges": [{ "firstSeq": 1, "lastSeq": 2_345 }],
            "stored": 2_345, "refused": 0, "problems": []
        })
    );
    // The last line need not end; blank lines and CRLF are passed over; a type may have parameters.
    let dated = history.item_at(2_347, "2004-01-09T00:00:00Z");
    let body = format!("\n{}\r\n  \r\n{dated}", history.item(2_346));
    let with = |request: reqwest::RequestBuilder| {
        request.header("content-type", "Application/X-NDJSON; charset=utf-8").body(body)
    };
    let answer = service.client.send(Method::POST, &path, with).await;
    assert_eq!(answer.expect(200)["ranges"], json!([{ "firstSeq": 2_346, "lastSeq": 2_347 }]));
    assert_eq!(service.stored(7).await.numbers, (1..=2_347).collect::<Vec<_>>());
    let last = service.client.get(&history.at(7, "/2347")).await.expect(200);
    assert_eq!(last[history.date], "2004-01-09T00:00:00.000Z");
    let nothing = upload(&service.client, &path, "\n").await.expect(200);
    assert_eq!((&nothing["stored"], &nothing["ranges"]), (&json!(0), &json!([])));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_line_is_its_own_matter() {
    let service = Service::start().await;
    let long = json!({ "type": "buy", "ticker": "MDB", "qty": 1, "note": "x".repeat(64 * 1024) });
    let body = format!(
        "{}\n{{\"type\":\"hold\",\"qty\":0}}\nnot JSON\n\n{long}\n{}\n[]\n{}",
        trade(1),
        trade(6),
        json!({ "customerId": 7, "type": "buy", "ticker": "MDB", "qty": 8 })
    );
    let summary = upload(&service.client, "/v1/customers/7/trades/upload", body).await.expect(200);
    assert_eq!((&summary["stored"], &summary["refused"]), (&json!(2), &json!(5)), "{summary}");
    let problems = summary["problems"].as_array().expect("problems");
    let told = |problem: &Value| {
        let errors = problem["errors"].as_array().expect("errors").iter();
        let pointers = errors.map(|error| error["pointer"].as_str().expect("a pointer").to_owned());
        (problem["line"].as_u64().expect("a line"), pointers.collect::<Vec<_>>())
    };
    let expected: [(u64, &[&str]); 5] =
        [(2, &["/type", "/qty", "/ticker"]), (3, &[""]), (5, &[""]), (7, &[""]), (8, &["/customerId"])];
    let expected =
        expected.map(|(line, at)| (line, at.iter().map(|at| (*at).to_owned()).collect::<Vec<_>>()));
    assert_eq!(problems.iter().map(told).collect::<Vec<_>>(), expected);
    assert!(problems[1]["errors"][0]["detail"].as_str().unwrap().starts_with("is not JSON: "), "{summary}");
    assert_eq!(problems[2]["errors"][0]["detail"], "is longer than 65536 bytes");
    assert_eq!(service.stored(7).await.numbers, [1, 6]);
}

test_over!(an_outcome_for_each_line_as_it_commits, TRADES);
async fn an_outcome_for_each_line_as_it_commits(history: &'static History) {
    let service = Service::of(history).await;
    let mut upload = Upload::begin(service.address(), &history.outcomes(7), &[]).await;
    let head = upload.head().await;
    assert!(
        head.starts_with("HTTP/1.1 200 ") && head.contains("content-type: application/x-ndjson"),
        "{head}"
    );
    // Each is answered before the next is sent.
    for number in 1..=3_u64 {
        upload.send(&history.lines([number])).await;
        assert_eq!(upload.line().await, Some(json!({ "line": number, "seq": number })));
    }
    upload.send("\n{\"seq\":\"hold\"").await;
    upload.send("}\n{\n").await;
    let problem = upload.line().await.expect("an outcome");
    assert_eq!(
        (&problem["line"], &problem["problem"]["type"]),
        (&json!(5), &json!(format!("/problems#{INVALID_ITEM}")))
    );
    assert_eq!(problem["problem"]["status"], 422);
    let errors = problem["problem"]["errors"].as_array().expect("errors");
    assert!(errors.iter().all(|error| error["pointer"].is_string()), "{problem}");
    assert!(problem.get("seq").is_none() && problem["problem"].get("instance").is_none(), "{problem}");
    let problem = upload.line().await.expect("an outcome");
    assert_eq!(problem["problem"]["type"], "/problems#malformed-json", "{problem}");
    upload.send(&history.item(7).to_string()).await;
    upload.end().await;
    assert_eq!(upload.line().await, Some(json!({ "line": 7, "seq": 4 })));
    assert_eq!(upload.line().await, None);
    assert_eq!(service.stored(7).await.numbers, [1, 2, 3, 7]);
    // All at once.
    let body = history.lines(1..=5_000);
    let answer = self::upload(&service.client, &history.outcomes(8), body).await;
    let text = String::from_utf8(answer.body).expect("UTF-8");
    let outcomes: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let expected: Vec<_> = (1..=5_000).map(|line| json!({ "line": line, "seq": line })).collect();
    assert_eq!(outcomes, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn problems_beyond_the_first_are_counted() {
    let service = Service::start().await;
    let mut body = "{}\n".repeat(250);
    body += &lines([1]);
    let fields: Vec<_> = (0..50).map(|field| format!("\"f{field}\":0")).collect();
    writeln!(body, "{{{}}}", fields.join(",")).unwrap();
    let summary = upload(&service.client, "/v1/customers/7/trades/upload", body).await.expect(200);
    assert_eq!((&summary["stored"], &summary["refused"]), (&json!(1), &json!(251)));
    assert_eq!(summary["problems"].as_array().map(Vec::len), Some(100));
    assert_eq!(summary["problemsOmitted"], 151);
    let unknown = format!("{{{}}}", fields.join(","));
    let first = upload(&service.client, "/v1/customers/7/trades/upload", unknown).await;
    let problem = &first.expect(200)["problems"][0];
    assert_eq!(problem["errors"].as_array().map(Vec::len), Some(10));
    assert_eq!(problem["errorsOmitted"], 43, "50 unknown fields, and 3 that are not there");
}

test_over!(many_owners_at_once, SMALL);
async fn many_owners_at_once(history: &'static History) {
    let service = Service::of(history).await;
    let mut body = String::new();
    for number in 1..=30 {
        for owner in 1..=100 {
            body += &history.line_of(owner, number);
        }
    }
    body += &history.lines([1]);
    let summary = upload(&service.client, &history.of_many(), body).await.expect(200);
    assert_eq!((history.owners_of(&summary), &summary["stored"]), (&json!(100), &json!(3_000)), "{summary}");
    let pointer = format!("/{}", history.owner_field);
    assert_eq!(summary["problems"][0]["errors"][0]["pointer"], pointer);
    assert!(summary.get("ranges").is_none() && summary.get("moreCustomers").is_none(), "{summary}");
    for owner in 1..=100 {
        let expected: Vec<_> = (1..=30).collect();
        assert_eq!(service.stored(owner).await.numbers, expected, "their order is kept");
    }
    let lines = [(200, 1), (1, 31), (200, 2)];
    let body: String = lines.map(|(owner, number)| history.line_of(owner, number)).concat();
    let answer = upload(&service.client, &history.outcomes_of_many(), body).await;
    let outcome = |(line, (owner, seq)): (u64, (u64, u64))| {
        let (field, owner) = (history.owner_field, history.owner(owner));
        format!("{{\"line\":{line},\"{field}\":{owner},\"seq\":{seq}}}\n")
    };
    let expected: String = (1..).zip(lines).map(outcome).collect();
    assert_eq!(String::from_utf8_lossy(&answer.body), expected);
}

test_over!(others_may_append_meanwhile, TRADES);
async fn others_may_append_meanwhile(history: &'static History) {
    let service = Service::of(history).await;
    let others = async {
        for number in 1..=200 {
            service.client.append(7, &history.item(1_000_000 + number)).await.expect(201);
        }
    };
    let path = history.uploads(7);
    let (summary, ()) = tokio::join!(upload(&service.client, &path, history.lines(1..=20_000)), others);
    let summary = summary.expect(200);
    let stored = service.stored(7).await;
    stored.holds_exactly((1..=20_000).chain(1_000_001..=1_000_200));
    let ranges = summary["ranges"].as_array().expect("ranges").iter();
    let seqs =
        ranges.flat_map(|range| range["firstSeq"].as_u64().unwrap()..=range["lastSeq"].as_u64().unwrap());
    let told: Vec<_> = seqs.map(|seq| stored.numbers[seq as usize - 1]).collect();
    assert_eq!(told, (1..=20_000).collect::<Vec<_>>(), "each line is where the summary says");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_upload_is() {
    let service = Service::start().await;
    let client = &service.client;
    let post = async |path: &str, name: &'static str, value: &'static str| {
        let with = |request: reqwest::RequestBuilder| {
            let request =
                if name == "content-type" { request } else { request.header("content-type", NDJSON) };
            request.header(name, value).body(lines([1]))
        };
        client.send(Method::POST, path, with).await
    };
    for path in [
        "/v1/customers/7/trades/upload",
        "/v1/customers/7/trades/upload.ndjson",
        "/v1/trades/upload",
        "/v1/trades/upload.ndjson",
    ] {
        let refused = post(path, "content-type", "application/json").await;
        let problem = refused.problem(415, "unsupported-media-type");
        assert_eq!(problem["detail"], format!("The `Content-Type` must be `{NDJSON}`."));
        post(path, "content-encoding", "gzip").await.problem(415, "unsupported-media-type");
        post(path, "accept-encoding", "identity;q=0").await.problem(406, "not-acceptable");
        for accept in [NDJSON, "text/html"].iter().filter(|_| path.ends_with("/upload")) {
            let problem = post(path, "accept", accept).await.problem(406, "not-acceptable");
            assert_eq!(problem["detail"], "The answer is `application/json`, which `Accept` excludes.");
        }
        upload(client, &format!("{path}?strict=1"), lines([1])).await.problem(400, "invalid-parameter");
        let answer = client.get(path).await;
        answer.problem(405, "method-not-allowed");
        assert_eq!(answer.header("allow"), "POST");
    }
    upload(client, "/v1/customers/0/trades/upload", lines([1])).await.problem(400, "invalid-parameter");
    // As the document in OpenAPI 3.0 names a body of lines.
    let octets = post("/v1/customers/8/trades/upload", "content-type", "application/octet-stream").await;
    assert_eq!(octets.expect(200)["stored"], 1);
    // Lines are no JSON, and the problem says where they are taken.
    let refused = upload(client, "/v1/customers/7/trades", lines([1])).await;
    let detail = refused.problem(415, "unsupported-media-type")["detail"].clone();
    assert!(
        detail.as_str().is_some_and(|detail| detail.contains("`/v1/customers/7/trades/upload`")),
        "{detail}"
    );
    // JSON is not answered line by line.
    let lines_of_json = |request: reqwest::RequestBuilder| request.header("accept", NDJSON).json(&trade(1));
    let answer = client.send(Method::POST, "/v1/customers/7/trades", lines_of_json).await;
    answer.problem(406, "not-acceptable");
    // The address of a history without its owner.
    upload(client, "/v1/trades", lines([1])).await.problem(404, "not-found");
    assert_eq!(client.total(7).await, 0);
    // The ending of an address decides what is answered, whatever a client accepts.
    for accept in ["*/*", "application/*", "application/x-ndjson;q=0.1, text/html", "application/json"] {
        assert_eq!(
            post("/v1/customers/7/trades/upload.ndjson", "accept", accept).await.status,
            200,
            "{accept}"
        );
    }
    assert_eq!(client.total(7).await, 4);
}

test_over!(a_history_that_takes_no_more, NOTES);
async fn a_history_that_takes_no_more(history: &'static History) {
    let service = Service::of(history).await;
    // Its last page is full, and begins in the last second there is.
    let items: Vec<_> = (1..=history.page_size).map(|number| (number, DateTime::from_millis(0))).collect();
    let last = history.bucket(7, 9_999_999_999, 1, &items);
    service.database.collection(history.name).insert_one(last).await.expect("a valid bucket");
    let beyond = history.page_size + 1;
    let body = [(7, beyond), (8, 1), (7, beyond + 1)];
    let body: String = body.map(|(owner, number)| history.line_of(owner, number)).concat();
    for key in [None, Some("k")] {
        // One history's matter is its own lines', of many; with a key also when it is sent again.
        let answer = match key {
            None => upload(&service.client, &history.of_many(), body.clone()).await,
            Some(key) => upload_with(&service.client, &history.of_many(), key, &body).await,
        };
        let summary = answer.expect(200);
        assert_eq!((&summary["stored"], &summary["refused"]), (&json!(1), &json!(2)), "{summary}");
        let problems = summary["problems"].as_array().expect("problems").iter();
        let told = problems.map(|problem| (&problem["line"], &problem["errors"][0]["detail"]));
        let told: Vec<_> = told.collect();
        assert_eq!((told[0].0, told[1].0), (&json!(1), &json!(3)));
        for (_, detail) in told {
            assert!(
                detail.as_str().is_some_and(|detail| detail.ends_with("can take no more pages")),
                "{detail}"
            );
        }
    }
    let answer = upload(&service.client, &history.outcomes_of_many(), body).await;
    let outcomes = String::from_utf8(answer.body).expect("UTF-8");
    let outcomes: Vec<Value> =
        outcomes.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(outcomes.len(), 3);
    for (outcome, line) in [(&outcomes[0], 1), (&outcomes[2], 3)] {
        assert_eq!(outcome["line"], line);
        assert_eq!(outcome["problem"]["type"], "/problems#history-exhausted", "{outcome}");
        assert_eq!(outcome["problem"]["status"], 409, "{outcome}");
    }
    assert_eq!(outcomes[1]["seq"], 3, "{outcomes:?}");
    // Of an upload to it alone there is no more to be done.
    let answer = upload(&service.client, &history.uploads(7), history.lines([beyond])).await;
    let problem = answer.problem(409, "history-exhausted");
    assert_eq!(problem["notStoredLines"], json!([{ "first": 1 }]), "{problem}");
    assert_eq!(service.stored(8).await.numbers, [1, 1, 1]);
}
