//! The read and write concerns of every command on our collections: what may be rolled back is not read,
//! and what is answered is durable.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use mongodb::bson::Document;
use pagebucket::store::ReadPreference;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Client, Service, Setup, shared, tests, trade};
use crate::uploads::{lines, of, upload, upload_with};

tests!["concerns": every_command_is_at_majority];

const COLLECTIONS: [&str; 3] = ["trades", "idempotency_keys", "page_views"];

type Seen = Arc<Mutex<Vec<(String, Document)>>>;

/// An instance on a database, whose commands are written down.
async fn instance(database: Option<&str>, preference: ReadPreference, seen: &Seen) -> Service {
    let watch = Arc::clone(seen);
    let mut setup = Setup::on(shared().await).observed(move |name, command| {
        if command.get_str(name).is_ok_and(|collection| COLLECTIONS.contains(&collection)) {
            watch.lock().expect("no test panics here").push((name.to_owned(), command.clone()));
        }
    });
    if let Some(database) = database {
        setup.connection.database = database.to_owned();
    }
    setup.read_preference = preference;
    setup.args.page_cache = 0;
    setup.start().await
}

async fn once(client: &Client, customer: u64, key: &str, trades: &Value) -> Answer {
    let body = trades.to_string();
    let with = |request: reqwest::RequestBuilder| {
        request.header("content-type", "application/json").header("idempotency-key", key).body(body)
    };
    client.send(Method::POST, &format!("/v1/customers/{customer}/trades"), with).await
}

fn many(count: u64) -> Value {
    (1..=count).map(trade).collect()
}

async fn every_command_is_at_majority() {
    let seen = Seen::default();
    let one = instance(None, ReadPreference::Primary, &seen).await;
    let other = instance(Some(one.database.name()), ReadPreference::Nearest, &seen).await;
    append(&one.client, &other.client).await;
    for service in [&one, &other] {
        read(&service.client).await;
    }
    view_pages(&one.client).await;

    let seen = seen.lock().expect("no test panics here");
    let mut kinds = BTreeSet::new();
    for (name, command) in seen.iter() {
        match name.as_str() {
            "find" | "aggregate" => {
                let concern = command.get_document("readConcern").unwrap_or_else(|_| panic!("{command}"));
                assert_eq!(concern.get_str("level").ok(), Some("majority"), "{command}");
                let others =
                    concern.keys().filter(|key| !["level", "afterClusterTime"].contains(&key.as_str()));
                assert_eq!(others.count(), 0, "{command}");
            }
            "update" | "insert" | "delete" | "findAndModify" => {
                let concern = command.get_document("writeConcern").unwrap_or_else(|_| panic!("{command}"));
                assert_eq!(
                    (concern.get_str("w").ok(), concern.get_bool("j").ok()),
                    (Some("majority"), Some(true)),
                    "{command}"
                );
            }
            // They make the collections, or look at no document.
            "create" | "collMod" | "createIndexes" | "listIndexes" => continue,
            other => panic!("{other}: {command}"),
        }
        kinds.insert(kind(name, command));
    }
    // All that there is was seen.
    let expected = BTreeSet::from([
        "a bucket",
        "a search for keys",
        "a search for lines",
        "customers",
        "insert idempotency_keys",
        "find idempotency_keys",
        "insert page_views",
        "pages of a span",
        "tails",
        "aggregate page_views",
        "find page_views",
        "update idempotency_keys: a beginning",
        "update idempotency_keys: a key",
        "update idempotency_keys: an outcome",
        "update page_views",
        "update trades",
    ]);
    assert_eq!(kinds.iter().map(String::as_str).collect::<BTreeSet<_>>(), expected);
}

/// What a command is for.
fn kind(name: &str, command: &Document) -> String {
    let collection = command.get_str(name).expect("a collection");
    let projected =
        |field: &str| command.get_document("projection").is_ok_and(|fields| fields.contains_key(field));
    let updates = |operator: &str| {
        let updates = command.get_array("updates").expect("updates");
        let update = updates[0].as_document().and_then(|update| update.get_document("u").ok());
        update.is_some_and(|update| update.contains_key(operator))
    };
    match (collection, name) {
        ("trades", "find") if projected("history.key") => "a search for keys".to_owned(),
        ("trades", "find") if projected("history") => "a search for lines".to_owned(),
        ("trades", "find") if projected("customerId") => "customers".to_owned(),
        ("trades", "find") if projected("page") => "pages of a span".to_owned(),
        ("trades", "find") => "a bucket".to_owned(),
        ("trades", "aggregate") => "tails".to_owned(),
        ("idempotency_keys", "update") if updates("$setOnInsert") => format!("{name} {collection}: a key"),
        ("idempotency_keys", "update") if updates("$max") => format!("{name} {collection}: a beginning"),
        ("idempotency_keys", "update") => format!("{name} {collection}: an outcome"),
        _ => format!("{name} {collection}"),
    }
}

/// With keys and without, cold and warm, first and again, alone and refused.
async fn append(one: &Client, other: &Client) {
    one.append(7, &trade(1)).await.expect(201);
    one.append(7, &many(75)).await.expect(201);
    // Behind a tail that has moved on since.
    other.append(7, &trade(1)).await.expect(201);
    one.append(7, &trade(1)).await.expect(201);
    for (client, customer) in [(one, 7), (one, 8), (other, 8)] {
        once(client, customer, "a-key", &many(12)).await.expect(201);
    }
    // Found, looked for, and told; then found told.
    for client in [other, one] {
        assert_eq!(once(client, 7, "a-key", &many(12)).await.header("idempotency-replayed"), "true");
    }
    once(one, 7, "a-key", &trade(1)).await.problem(422, "idempotency-key-reused");
    // With a tail that has moved on far since.
    upload(other, "/v1/customers/7/trades", lines(1..=6_000)).await.expect(200);
    once(one, 7, "behind", &trade(1)).await.expect(201);
    upload(one, "/v1/customers/7/trades", lines(1..=300)).await.expect(200);
    upload(other, "/v1/trades", (1..=50).map(|id| of(id, 1)).collect::<String>()).await.expect(200);
    for client in [one, other] {
        upload_with(client, "/v1/customers/7/trades", "an-upload", &lines(1..=300)).await.expect(200);
        let of_many = (1..=50).map(|id| of(id, 2)).collect::<String>();
        upload_with(client, "/v1/trades", "another", &of_many).await.expect(200);
    }
}

async fn read(client: &Client) {
    for path in [
        "",
        "/7",
        "/7/trades",
        "/7/trades?order=desc",
        "/7/trades?page=5",
        "/7/trades?page=40",
        "/7/trades/pages/2",
        "/7/trades/pages/40",
        "/7/trades/1",
        "/7/trades/400",
        "/7/trades?after=5&limit=100",
        "/7/trades?after=5&limit=20&asOf=100",
        "/7/trades?from=2004-01-01T00:00:00Z&to=2100-01-01T00:00:00Z",
    ] {
        client.get(&format!("/v1/customers{path}")).await.expect(200);
    }
    for export in ["", "?from=2004-01-01T00:00:00Z"] {
        assert_eq!(client.get(&format!("/v1/customers/7/trades/export{export}")).await.status, 200);
    }
}

async fn view_pages(client: &Client) {
    let view = json!({ "path": "/", "at": "2014-01-01T10:01:02Z" });
    assert_eq!(client.post_text("/v1/page-views", view.to_string()).await.status, 204);
    let hour = json!({ "path": "/", "hour": "2014-01-01T11:00:00Z" });
    client.post_text("/v1/page-views/preallocations", hour.to_string()).await.expect(201);
    let span = "from=2014-01-01T10:00:00Z&to=2014-01-01T11:00:00Z";
    for path in [
        "/buckets?path=/&timestamp=2014-01-01T10:01:00Z".to_owned(),
        format!("?path=/&resolution=minute&{span}"),
        format!("?path=/&resolution=hour&{span}"),
        format!("/top?{span}"),
    ] {
        client.get(&format!("/v1/page-views{path}")).await.expect(200);
    }
}
