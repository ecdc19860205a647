//! The role that docs/how-to/mongodb.md has for the user of the database, on a mongod that checks users.

use std::num::NonZeroU64;

use mongodb::Database;
use mongodb::bson::{Document, doc};
use pagebucket_engine::internal::Retention;
use reqwest::Method;
use serde_json::json;

use crate::commands::program::{Place, Serving, pagebucket, run};
use crate::embedded;
use crate::harness::events::Events;
use crate::harness::series::SHORT;
use crate::harness::{PATIENCE, SERIES, Setup, TRADES, eventually};

const PAGE: &str = include_str!("../../docs/how-to/mongodb.md");

/// A user of this name who has the documented privileges on the database, but none on a collection that has
/// `without` in its name; the URI of this user.
async fn user(database: &Database, place: &embedded::Place, name: &str, without: Option<&str>) -> String {
    let (_, text) = PAGE.split_once("```js\n{ role: \"pagebucket\"").expect("a role");
    let (text, _) = text.split_once("```").expect("its end");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut text = format!("{{ role: \"\"{}", lines.collect::<String>());
    for member in ["role", "privileges", "resource", "db", "collection", "actions", "roles"] {
        text = text.replace(&format!("{member}: "), &format!("\"{member}\": "));
    }
    let text = text.replace("\"db\": \"pagebucket\"", &format!("\"db\": \"{}\"", database.name()));
    let mut role: Document = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    role.get_array_mut("privileges").expect("privileges").retain(|privilege| {
        let collection = privilege
            .as_document()
            .and_then(|it| it.get_document("resource").ok()?.get_str("collection").ok());
        without.is_none_or(|without| !collection.expect("a collection").contains(without))
    });
    let role = doc! { "createRole": name, "privileges": role.get_array("privileges").expect("privileges"), "roles": [] };
    database.run_command(role).await.expect("a role");
    let user = doc! { "createUser": name, "pwd": "sesame", "roles": [name] };
    database.run_command(user).await.expect("a user");
    let uri = place.open_uri().replace("mongodb://", &format!("mongodb://{name}:sesame@"));
    format!("{uri}&authSource={}", database.name())
}

/// A migrated database, as its administrator sees it.
async fn migrated(uri: &str) -> Database {
    let setup = Setup::at(uri).of(SERIES);
    let store = setup.store().await;
    let week = std::time::Duration::from_secs(7 * 24 * 3_600);
    store.keep_keys_for(week).await.expect("an index");
    store.keep_views_for(None).await.expect("an index");
    let client = mongodb::Client::with_uri_str(uri).await.expect("a connection string");
    client.database(&setup.connection.database)
}

/// Whether the mongod of a place has refused something.
fn refusals(place: &embedded::Place) -> Vec<String> {
    let log = std::fs::read_to_string(place.path().join("mongod.log")).expect("a log");
    log.lines().filter(|line| line.contains("Checking authorization failed")).map(str::to_owned).collect()
}

/// Runs a command on the database of a place.
async fn succeeds(place: &Place, words: &[&str]) {
    let on = ["--mongodb-uri", &place.uri, "--database", &place.name];
    let histories = ["--histories", SERIES.definitions.expect("a directory")];
    let ended = run(&mut pagebucket(&[words, &on, &histories].concat())).await;
    assert_eq!(ended.status, Some(0), "{words:?}: {ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_role_suffices_for_every_feature() {
    let Some(here) = embedded::Place::new() else { return };
    let mongod = here.serve().await;
    let database = migrated(mongod.uri()).await;
    let uri = user(&database, &here, "limited", None).await;
    let limited = || Setup::at(&uri).of(SERIES).in_database(&database).aging(SHORT);
    let service = limited().start().await;
    let mut setup = limited();
    let retention = Retention { pages: Some(NonZeroU64::MIN), days: None, keep_summaries: true };
    setup.config.retained = [("trades".into(), retention)].into();
    setup.config.house_every = std::time::Duration::from_millis(100);
    let client = &service.client;

    // Appends, keys, reads, live streams, summaries, tiles, page views.
    let mut live = Events::of(client, 1, "?after=0", &[]).await;
    let item = json!({ "type": "buy", "ticker": "MDB", "qty": 1, "date": "2024-02-01T00:00:00Z" });
    client.append(1, &item).await.expect(201);
    client.append_once(1, "a-key", &item).await.expect(201);
    client.append_once(1, "a-key", &item).await.expect(201);
    client.append_after(1, 2, None, &item).await.expect(201);
    let lines = |request: reqwest::RequestBuilder| {
        let line = format!("{item}\n");
        request.header("content-type", "application/x-ndjson").body(line.repeat(1_500))
    };
    client.send(Method::POST, &TRADES.uploads(1), lines).await.expect(200);
    assert_eq!(live.next().await.data["items"][0]["seq"], 1);
    let several = Events::at(client, "/v1/live?watch=customers/1/trades", &[]).await;
    drop(several);
    drop(Events::at(client, "/v1/trades/live", &[]).await);
    const DAY: &str = "by=1d&from=2024-02-01T00:00:00Z&to=2024-02-02T00:00:00Z";
    for path in [
        "/readyz",
        "/v1/customers",
        "/v1/customers/1",
        "/v1/customers/1/trades",
        "/v1/customers/1/trades?limit=5&ticker=MDB",
        "/v1/customers/1/trades?from=2024-02-01T00:00:00Z",
        "/v1/customers/1/trades/1503",
        "/v1/customers/1/trades/export.csv",
    ] {
        let answer = client.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    let summary = format!("/v1/customers/1/trades/summary?{DAY}");
    assert_eq!(client.get(&summary).await.expect(200)["points"][0]["count"], 1_503);
    let views = json!([{ "path": "/index.htm" }]);
    let counted = client.send(Method::POST, "/v1/page-views", |request| request.json(&views)).await;
    assert_eq!(counted.status, 204, "{counted:?}");
    client.get("/v1/page-views/top").await.expect(200);

    // The time series.
    let all = format!("/v1/trades/summary?{DAY}");
    let is_measured = async || client.get(&all).await.expect(200)["points"][0]["count"] == 1_503;
    eventually("all is measured", PATIENCE, is_measured).await;

    assert!(service.stop().await);
    let service = setup.start().await;
    let client = &service.client;

    // Retention, whose summaries are kept; erasure, and its sweep.
    let is_retired = async || client.get("/v1/customers/1/trades/pages/64").await.status == 410;
    eventually("pages are retired", PATIENCE, is_retired).await;
    assert_eq!(client.get(&summary).await.expect(200)["points"][0]["count"], 1_503);
    client.append(2, &item).await.expect(201);
    let is_swept = async || {
        let erased = client.send(Method::DELETE, "/v1/customers/2", |request| request).await;
        assert!(erased.status.is_success(), "{erased:?}");
        erased.status == 200
    };
    eventually("the erasure ends", PATIENCE, is_swept).await;
    assert!(service.stop().await);

    // Commands, and a rebuild, which another user does.
    let limited = Place { history: SERIES, uri: uri.clone(), name: database.name().to_owned() };
    let administrator = Place { history: SERIES, uri: mongod.uri().to_owned(), name: limited.name.clone() };
    succeeds(&limited, &["migrate", "--check"]).await;
    let serving = limited.serve(&["--no-migrate", "--allow-erase"]).await;
    succeeds(&administrator, &["series", "rebuild"]).await;
    // A rebuild has what the pages have, not what was retired.
    let other = json!({ "type": "buy", "ticker": "AMD", "qty": 1, "date": "2024-02-01T00:00:00Z" });
    serving.client.append(3, &other).await.expect(201);
    let of_other = format!("{all}&ticker=AMD");
    let is_measured = async || serving.client.get(&of_other).await.expect(200)["points"][0]["count"] == 1;
    eventually("what follows is measured", PATIENCE, is_measured).await;
    succeeds(&limited, &["keys", "create", "--name", "one", "--scope", "read"]).await;
    succeeds(&limited, &["keys", "list"]).await;
    succeeds(&limited, &["keys", "revoke", "one"]).await;
    succeeds(&limited, &["preallocate", "--path", "/index.htm", "--hour", "2026-01-01T00:00:00Z"]).await;
    succeeds(&limited, &["verify"]).await;
    succeeds(&limited, &["export", "--owner", "3"]).await;
    let old = doc! { "customerId": 4_i64, "type": "buy", "ticker": "MDB", "qty": 1_i64, "date": mongodb::bson::DateTime::now() };
    database.collection::<Document>("old").insert_one(old).await.expect("an old item");
    let from = [
        "adopt",
        "--from",
        &*uri,
        "--from-database",
        &*limited.name,
        "--collection",
        "old",
        "--into",
        "trades",
    ];
    succeeds(&limited, &from).await;
    assert_eq!(serving.client.total(4).await, 1);
    serving.stop().await;
    assert_eq!(refusals(&here), [""; 0]);
    mongod.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feeder_that_lacks_a_privilege_says_so_and_waits() {
    let Some(here) = embedded::Place::new() else { return };
    let mongod = here.serve().await;
    let database = migrated(mongod.uri()).await;
    let uri = user(&database, &here, "without_series", Some("series")).await;
    let limited = Place { history: SERIES, uri, name: database.name().to_owned() };
    let serving: Serving = limited.serve(&["--no-migrate", "--allow-erase"]).await;
    serving.client.append(1, &json!({ "type": "buy", "ticker": "MDB", "qty": 1 })).await.expect(201);
    let sentence = "the time series is not fed; this is tried again history=\"trades\" error=the user of the database lacks the privilege \
                    for `findAndModify` on series: docs/how-to/mongodb.md has the role";
    let lag = async || {
        let answer = serving.client.get("/metrics").await;
        let text = String::from_utf8(answer.body).expect("UTF-8");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("pagebucket_series_lag_seconds{collection=\"trades\"} "));
        line.map_or(0.0, |seconds| seconds.parse::<f64>().expect("a number"))
    };
    eventually("the lag tells", PATIENCE, async || lag().await >= 5.0).await;
    // Twice a second there would be ten lines.
    let lines = serving.err().matches(sentence).count();
    assert!((1..=5).contains(&lines), "{lines}: {}", serving.err());
    let erased = serving.client.send(Method::DELETE, "/v1/customers/1", |request| request).await;
    erased.problem(500, "internal");
    let ended = serving.stop().await;
    assert!(
        ended.err.contains("lacks the privilege for `findAndModify` on series_generations"),
        "{}",
        ended.err
    );
    assert_ne!(refusals(&here), [""; 0]);
    mongod.stop().await;
}
