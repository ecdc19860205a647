//! `serve` from its first line on.

use mongodb::bson::{Document, doc};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::program::{Place, Serving, pagebucket, run};
use crate::harness::{Mongod, TOTAL, TRADES, eventually, migrations, test, trade};

#[test]
async fn serve_prints_the_address_it_bound() {
    let place = Place::new().await;
    let serving = place.serve(&[]).await;
    assert_ne!(serving.address.port(), 0);
    assert_eq!(serving.out(), format!("pagebucket listens on http://{}\n", serving.address));
    serving.client.get("/readyz").await.expect(200);
    serving.client.append(7, &trade(1)).await.expect(201);
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
}

#[test]
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

#[test]
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

#[test]
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
#[test]
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

#[test]
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

#[test]
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

#[test]
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

#[test]
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

#[test]
async fn a_json_log_has_a_line_for_each_request() {
    let place = Place::new().await;
    let serving = place.serve(&["--log-format", "json"]).await;
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
        for member in ["timestamp", "level", "target"] {
            assert!(event[member].is_string(), "{member} of {event}");
        }
    }
    let accesses: Vec<_> = events.iter().filter(|event| event["target"] == "pagebucket::access").collect();
    let seen: Vec<_> = accesses
        .iter()
        .map(|event| json!([event["id"], event["method"], event["path"], event["status"]]))
        .collect();
    assert_eq!(
        seen,
        [
            json!([ids[0], "GET", "/v1/customers/7/trades", 200]),
            json!([ids[1], "POST", "/v1/customers/7/trades", 201]),
            json!([ids[2], "GET", "/nowhere", 404]),
            json!([ids[3], "GET", "/livez", 200]),
            json!([accesses[4]["id"], "GET", hostile, 404]),
        ]
    );
    assert_eq!(ids[3], "mine");
    assert!(accesses.iter().all(|event| event["milliseconds"].is_number()), "{accesses:?}");
    let serving = events.iter().find(|event| event["address"].is_string()).expect("a line of the start");
    assert_eq!(serving["level"], "INFO", "{serving}");
}

#[test]
async fn a_standalone_server_is_warned_of() {
    let mongod = Mongod::standalone().await;
    let place = Place { history: TRADES, uri: mongod.uri().to_owned(), name: "pagebucket".to_owned() };
    let serving: Serving = place.serve(&[]).await;
    eventually("the warning", super::program::PATIENCE, || async {
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
