//! `serve` from its first line on.

use mongodb::bson::{Document, doc};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::program::{Place, Serving, pagebucket, run};
use crate::harness::Raw;
use crate::harness::uploads::lines;
use crate::harness::uploads::wire::Upload;
use crate::harness::{Mongod, PATIENCE, TOTAL, TRADES, eventually, migrations, trade};

#[tokio::test(flavor = "multi_thread")]
async fn serve_prints_the_address_it_bound() {
    let place = Place::new().await;
    let serving = place.serve(&[]).await;
    assert_ne!(serving.address.port(), 0);
    assert_eq!(serving.out(), format!("pagebucket listens on http://{}\n", serving.address));
    serving.client.get("/readyz").await.expect(200);
    serving.client.append(7, &trade(1)).await.expect(201);
    let erasure = serving.client.send(Method::DELETE, "/v1/customers/7", |request| request).await;
    let told = erasure.problem(403, "erasing-off");
    assert!(told["detail"].as_str().is_some_and(|detail| detail.contains("--allow-erase")), "{told}");
    let page = serving.client.get("/v1/customers/7/trades").await.expect(200);
    assert_eq!(page[TOTAL], 1, "{page}");

    let records = place.database().await.collection::<Document>("migrations");
    let record = records.find_one(doc! { "_id": 1 }).await.expect("an answer").expect("it is applied");
    assert_eq!(record.get_str("name").ok(), Some("0001_trades"));
    let ended = serving.stop().await;
    assert_eq!(ended.out.lines().count(), 1, "{}", ended.out);

    // Again on the same data; one that comes to a database that has them all applies nothing.
    let serving = place.serve(&[]).await;
    let page = serving.client.get("/v1/customers/7/trades").await.expect(200);
    assert_eq!(page[TOTAL], 1, "{page}");
    assert!(!serving.stop().await.err.contains("applied a migration"));

    let mut allowing = place.pagebucket("serve", &["--listen", "127.0.0.1:0"]);
    let serving = Serving::start(TRADES, allowing.env("PAGEBUCKET_ALLOW_ERASE", "1")).await;
    serving.client.send(Method::DELETE, "/v1/customers/7", |request| request).await.expect(200);
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_starting_together_all_serve() {
    let place = Place::new().await;
    let servers = futures_util::future::join_all((0..3).map(|_| place.serve(&[]))).await;
    for (customer, serving) in (1..).zip(&servers) {
        serving.client.append(customer, &trade(1)).await.expect(201);
    }
    let mut applied = 0;
    for serving in servers {
        applied += serving.stop().await.err.matches("applied a migration").count();
    }
    assert_eq!(applied, migrations().len(), "each by one of them");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_migrate_refuses_while_any_is_pending() {
    let place = Place::new().await;
    let ended = run(&mut place.pagebucket("serve", &["--no-migrate", "--listen", "127.0.0.1:0"])).await;
    assert_eq!(
        ended.sentence(3),
        format!("migrations are pending: {}; apply them with `pagebucket migrate`", migrations().join(", "))
    );
    assert_eq!(ended.out, "", "it never listened");
    let made = place.database().await.list_collection_names().await.expect("names");
    assert_eq!(made, [""; 0], "nothing is made by refusing");

    assert_eq!(run(&mut place.pagebucket("migrate", &[])).await.status, Some(0));
    let serving = place.serve(&["--no-migrate"]).await;
    serving.client.get("/readyz").await.expect(200);
    serving.client.append(7, &trade(1)).await.expect(201);
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_use_is_usage() {
    let place = Place::new().await;
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = taken.local_addr().expect("its address").to_string();
    let ended = run(&mut place.pagebucket("serve", &["--listen", &address])).await;
    let sentence = ended.sentence(2);
    assert!(
        sentence.starts_with(&format!("cannot listen on {address}: Address already in use")),
        "{ended:?}"
    );
    assert_eq!(ended.out, "");
    // Nothing was done yet: no migration, and no private mongod. A port alone is of this machine.
    let made = place.database().await.list_collection_names().await.expect("names");
    assert_eq!(made, [""; 0], "nothing is made by refusing");
    let data = std::env::temp_dir().join(format!("pagebucket-{}-never-made", std::process::id()));
    let port = taken.local_addr().expect("its address").port().to_string();
    let arguments = ["serve", "--listen", &port, "--data-dir", data.to_str().expect("a path")];
    let ended = run(&mut pagebucket(&arguments)).await;
    assert!(ended.sentence(2).starts_with(&format!("cannot listen on {address}: ")), "{ended:?}");
    assert!(!data.exists(), "{ended:?}");
}

/// People read what the server's error means, not its words.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told() {
    const OUT_OF_DISK_SPACE: i32 = 14031;
    let mongod = Mongod::failing().await;
    let place = Place { history: TRADES, uri: mongod.uri().to_owned(), name: "pagebucket".to_owned() };
    let full = async |commands: &[&str]| {
        let data = doc! { "failCommands": commands, "errorCode": OUT_OF_DISK_SPACE, "appName": "pagebucket" };
        mongod.fail_point("failCommand", "alwaysOn", data).await;
    };
    full(&["createIndexes"]).await;
    for (command, arguments) in [("migrate", &[][..]), ("serve", &["--listen", "0"])] {
        let ended = run(&mut place.pagebucket(command, arguments)).await;
        assert!(ended.sentence(3).ends_with(": the disk of the database is full"), "{ended:?}");
        assert!(!ended.err.contains("failCommand") && !ended.err.contains("Kind:"), "{ended:?}");
    }
    mongod.fail_point("failCommand", "off", doc! {}).await;
    let serving = place.serve(&[]).await;
    full(&["find"]).await;
    let answer = serving.client.get("/v1/customers/7/trades").await;
    let problem = answer.problem(503, "database-unavailable");
    assert_eq!(problem["detail"], "The disk of the database is full.", "{problem}");
    mongod.fail_point("failCommand", "off", doc! {}).await;
    let ended = serving.stop().await;
    assert!(
        ended.err.contains("ERROR") && ended.err.contains("the disk of the database is full"),
        "{ended:?}"
    );
    mongod.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_server_is_one_sentence() {
    // A port that nobody is given by chance.
    let place =
        Place { history: TRADES, uri: "mongodb://127.0.0.1:1/".to_owned(), name: "pagebucket".to_owned() };
    for (command, arguments) in [
        ("serve", &["--log", "warn", "--listen", "0"][..]),
        ("migrate", &["--log", "warn"]),
        ("migrate", &["--check", "--log", "warn"]),
    ] {
        let began = tokio::time::Instant::now();
        let ended = run(&mut place.pagebucket(command, arguments)).await;
        // It asks for 5 s; a driver's own default would be 30 s.
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
        let sentence = ended.sentence(3);
        assert!(sentence.starts_with("no MongoDB server answers at 127.0.0.1:1;"), "{ended:?}");
        assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_one_sentence() {
    // It accepts, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = silent.local_addr().expect("its address");
    let place =
        Place { history: TRADES, uri: format!("mongodb://{address}/"), name: "pagebucket".to_owned() };
    let began = tokio::time::Instant::now();
    let ended = run(&mut place.pagebucket("serve", &["--log", "warn", "--listen", "0"])).await;
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    let expected = format!("no MongoDB server answers at {address};");
    assert!(ended.sentence(3).starts_with(&expected), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_trades_are_refused() {
    let place = Place::new().await;
    place.database().await.create_collection("trades").await.expect("an ordinary collection");
    for (command, arguments) in [
        ("serve", &["--listen", "127.0.0.1:0"][..]),
        ("serve", &["--no-migrate", "--listen", "0"]),
        ("migrate", &[]),
        ("migrate", &["--check"]),
    ] {
        let ended = run(&mut place.pagebucket(command, arguments)).await;
        assert!(ended.sentence(3).contains("was not created by pagebucket"), "{ended:?}");
        assert_eq!(ended.out, "");
    }
    let made = place.database().await.list_collection_names().await.expect("names");
    assert_eq!(made, ["trades"], "nothing is made beside it");
}

#[tokio::test(flavor = "multi_thread")]
async fn trades_that_were_dropped_are_refused() {
    let place = Place::new().await;
    let serving = place.serve(&[]).await;
    serving.client.append(7, &trade(1)).await.expect(201);
    let database = place.database().await;
    database.collection::<Document>("trades").drop().await.expect("to drop it");
    let refused = async |part: &str| {
        for (command, arguments) in [
            ("serve", &["--listen", "127.0.0.1:0"][..]),
            ("serve", &["--no-migrate", "--listen", "127.0.0.1:0"]),
            ("migrate", &[]),
            ("migrate", &["--check"]),
        ] {
            let ended = run(&mut place.pagebucket(command, arguments)).await;
            assert!(ended.sentence(3).contains(part), "{command} {arguments:?}: {ended:?}");
            assert_eq!(ended.out, "", "{command} {arguments:?}");
        }
    };
    refused("the collection `trades` is missing from this database").await;
    let made = database.list_collection_names().await.expect("names");
    assert!(!made.contains(&"trades".to_owned()), "nothing is made by refusing: {made:?}");

    // A guard is gone.
    database.collection::<Document>("migrations").drop().await.expect("to drop it");
    assert_eq!(run(&mut place.pagebucket("migrate", &[])).await.status, Some(0));
    database.run_command(doc! { "collMod": "trades", "validator": {} }).await.expect("to harm it");
    refused("has no validator").await;
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_json_log_has_a_line_for_each_request() {
    let place = Place::new().await;
    let log = ["--log-format", "json", "--log", "info,pagebucket::access=debug"];
    let serving = place.serve(&log).await;
    let answers = [
        serving.client.get("/v1/customers/7/trades?page=1").await,
        serving.client.append(7, &trade(1)).await,
        serving.client.get("/nowhere").await,
        serving
            .client
            .send(reqwest::Method::GET, "/livez", |request| request.header("x-request-id", "mine"))
            .await,
    ];
    let ids: Vec<_> = answers.iter().map(|answer| answer.header("x-request-id").to_owned()).collect();
    // What a terminal obeys, or a reader of lines takes for the end of one.
    let hostile = "/\u{85}\u{9b}31m\u{2028}\u{202e}\u{1f600}";
    let mut raw = TcpStream::connect(serving.address).await.expect("a connection");
    let request = format!("GET {hostile} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    raw.write_all(request.as_bytes()).await.expect("to send");
    let mut answer = String::new();
    raw.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    let ended = serving.stop().await;
    assert!(ended.err.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)), "{:?}", ended.err);
    let events: Vec<Value> = ended
        .err
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    for event in &events {
        for member in ["timestamp", "level", "target", "message"] {
            assert!(event[member].is_string(), "{member} of {event}");
        }
    }
    let accesses: Vec<_> = events.iter().filter(|event| event["target"] == "pagebucket::access").collect();
    let seen: Vec<_> = accesses
        .iter()
        .map(|event| json!([event["level"], event["id"], event["method"], event["path"], event["status"]]))
        .collect();
    assert_eq!(
        seen,
        [
            json!(["INFO", ids[0], "GET", "/v1/customers/7/trades", 200]),
            json!(["INFO", ids[1], "POST", "/v1/customers/7/trades", 201]),
            json!(["INFO", ids[2], "GET", "/nowhere", 404]),
            json!(["DEBUG", ids[3], "GET", "/livez", 200]),
            json!(["INFO", accesses[4]["id"], "GET", hostile, 404]),
        ]
    );
    assert_eq!(ids[3], "mine");
    let told: Vec<_> = accesses
        .iter()
        .map(|event| json!([event["route"], event["problem"], event["items"], event["peer"]]))
        .collect();
    let history = "/v1/customers/{customerId}/trades";
    assert_eq!(
        told,
        [
            json!([history, null, 0, "127.0.0.1"]),
            json!([history, null, 1, "127.0.0.1"]),
            json!(["none", "not-found", null, "127.0.0.1"]),
            json!(["/livez", null, null, "127.0.0.1"]),
            json!(["none", "not-found", null, "127.0.0.1"]),
        ]
    );
    for (event, answer) in accesses.iter().zip(&answers) {
        assert_eq!(event["bytes_out"], answer.body.len(), "{event}");
        let milliseconds = event["milliseconds"].to_string();
        let (_, decimals) = milliseconds.split_once('.').expect("a fraction");
        assert!(decimals.len() <= 3, "{event}");
    }
    let bytes_in: Vec<_> = accesses.iter().map(|event| &event["bytes_in"]).collect();
    assert_eq!(bytes_in, [0, trade(1).to_string().len(), 0, 0, 0], "{accesses:?}");
    let serving = events.iter().find(|event| event["address"].is_string()).expect("a line of the start");
    assert_eq!(serving["level"], "INFO", "{serving}");
}

#[tokio::test(flavor = "multi_thread")]
async fn misspelt_variables_are_named() {
    let place = Place::new().await;
    let mut command = place.pagebucket("histories", &[]);
    command
        .env("PAGEBUCKET_RATE_LIMITS", "1/s")
        .env("PAGEBUCKET_POOL_SIZE", "7")
        .env("PAGEBUCKET_PORT", "tcp://10.0.0.1:80");
    let ended = run(&mut command).await;
    let named: Vec<_> = ended.err.lines().filter(|line| line.contains("sets nothing")).collect();
    let [line] = &named[..] else { panic!("{ended:?}") };
    assert!(
        line.contains("PAGEBUCKET_RATE_LIMITS sets nothing; the nearest name is PAGEBUCKET_RATE_LIMIT"),
        "{line}"
    );
}

/// Not when the head of its answer went out. It names the client behind a trusted proxy.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_logged_at_its_end() {
    let place = Place::new().await;
    let log = ["--log-format", "json", "--trusted-proxies", "127.0.0.1/32"];
    let serving = place.serve(&log).await;
    let logged = || {
        let err = serving.err();
        let events = err.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter(|event| event["target"] == "pagebucket::access").collect::<Vec<_>>()
    };
    let path = "/v1/customers/7/trades/upload.ndjson";
    let headers = [("X-Forwarded-For", "192.0.2.1"), ("Connection", "close")];
    let mut upload = Upload::begin(serving.address, path, &headers).await;
    upload.send(&lines([1])).await;
    assert_eq!(upload.line().await, Some(json!({ "line": 1, "seq": 1 })));
    serving.client.get("/v1/customers/7/trades").await.expect(200);
    eventually("the line of the read", PATIENCE, || async { !logged().is_empty() }).await;
    assert_eq!(logged().len(), 1, "that of the upload comes when it ends: {:?}", logged());
    upload.send(&format!("{}{{}}\n", lines([2, 3]))).await;
    upload.end().await;
    while upload.line().await.is_some() {}
    eventually("the line of the upload", PATIENCE, || async { logged().len() == 2 }).await;
    let line = logged().remove(1);
    let told =
        [&line["method"], &line["path"], &line["status"], &line["items"], &line["peer"], &line["bytes_in"]];
    let sent = lines([1, 2, 3]).len() + "{}\n".len();
    assert_eq!(
        told,
        [&json!("POST"), &json!(path), &json!(200), &json!(3), &json!("192.0.2.1"), &json!(sent)]
    );
    assert!(line["bytes_out"].as_u64().is_some_and(|bytes| bytes > 0), "{line}");

    // An export has its rows, and a request whose client leaves before the answer has a line, too.
    let export = serving.client.get("/v1/customers/7/trades/export.csv").await;
    eventually("the line of the export", PATIENCE, || async { logged().len() == 3 }).await;
    let line = logged().remove(2);
    assert_eq!((&line["items"], &line["bytes_out"]), (&json!(3), &json!(export.body.len())), "{line}");
    drop(Raw::begin_append(serving.address, 7, 100).await);
    eventually("the line of the one who left", PATIENCE, || async { logged().len() == 4 }).await;
    let line = logged().remove(3);
    let route = "/v1/customers/{customerId}/trades";
    assert_eq!((&line["method"], &line["route"]), (&json!("POST"), &json!(route)), "{line}");
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standalone_server_is_warned_of() {
    let mongod = Mongod::standalone().await;
    let place = Place { history: TRADES, uri: mongod.uri().to_owned(), name: "pagebucket".to_owned() };
    let serving: Serving = place.serve(&[]).await;
    eventually("the warning", PATIENCE, || async {
        let said = serving.err();
        said.lines().any(|line| line.contains("WARN") && line.contains("not a member of a replica set"))
    })
    .await;
    serving.client.get("/readyz").await.expect(200);
    let many: Vec<Value> = (1..=25).map(trade).collect();
    serving.client.append(7, &json!(many)).await.expect(201);
    serving.client.append(7, &trade(26)).await.expect(201);
    let page = serving.client.get("/v1/customers/7/trades?page=3").await.expect(200);
    assert_eq!((&page[TOTAL], &page["items"][5]["qty"]), (&json!(26), &json!(26)), "{page}");
    serving.stop().await;
    mongod.remove().await;
}
