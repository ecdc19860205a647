//! The read and write concerns of every command on our collections: what may be rolled back is not read,
//! and what is answered is durable.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use mongodb::bson::Document;
use pagebucket_model::domain::ReadPreference;
use serde_json::json;

use crate::harness::uploads::{upload, upload_with};
use crate::harness::{Client, History, Service, Setup, shared, test_over};

type Seen = Arc<Mutex<Vec<(String, Document)>>>;

/// An instance on a database, whose commands are written down.
async fn instance(
    history: &'static History,
    database: Option<&str>,
    preference: ReadPreference,
    seen: &Seen,
) -> Service {
    let watch = Arc::clone(seen);
    let mut setup = Setup::on(shared().await).of(history).observed(move |name, command| {
        let ours = [history.name, "idempotency_keys", "page_views"];
        if command.get_str(name).is_ok_and(|collection| ours.contains(&collection)) {
            watch.lock().expect("no test panics here").push((name.to_owned(), command.clone()));
        }
    });
    if let Some(database) = database {
        setup.connection.database = database.to_owned();
    }
    setup.read_preference = preference;
    setup.config.api.page_cache = 0;
    setup.start().await
}

test_over!(every_command_is_at_majority, TRADES);
async fn every_command_is_at_majority(history: &'static History) {
    let seen = Seen::default();
    let one = instance(history, None, ReadPreference::Primary, &seen).await;
    let other = instance(history, Some(one.database.name()), ReadPreference::Nearest, &seen).await;
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
        kinds.insert(kind(history, name, command));
    }
    // All that there is was seen.
    let expected = BTreeSet::from([
        "a bucket",
        "a search for keys",
        "a search for lines",
        "owners",
        "insert idempotency_keys",
        "insert items",
        "aggregate idempotency_keys",
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
        "update items",
    ]);
    assert_eq!(kinds.iter().map(String::as_str).collect::<BTreeSet<_>>(), expected);
}

/// What a command is for.
fn kind(history: &History, name: &str, command: &Document) -> String {
    let collection = command.get_str(name).expect("a collection");
    let projected =
        |field: &str| command.get_document("projection").is_ok_and(|fields| fields.contains_key(field));
    let updates = |operator: &str| {
        let updates = command.get_array("updates").expect("updates");
        let update = updates[0].as_document().and_then(|update| update.get_document("u").ok());
        update.is_some_and(|update| update.contains_key(operator))
    };
    let of_items = collection == history.name;
    match (collection, name) {
        (_, "find") if of_items && projected(&format!("history.{}", history.key)) => {
            "a search for keys".to_owned()
        }
        (_, "find") if of_items && projected("history") => "a search for lines".to_owned(),
        (_, "find") if of_items && projected(history.owner_field) => "owners".to_owned(),
        (_, "find") if of_items && projected("page") => "pages of a span".to_owned(),
        (_, "find") if of_items => "a bucket".to_owned(),
        (_, "aggregate") if of_items => "tails".to_owned(),
        (_, _) if of_items => format!("{name} items"),
        ("idempotency_keys", "update") if updates("$setOnInsert") => format!("{name} {collection}: a key"),
        ("idempotency_keys", "update") if updates("$max") => format!("{name} {collection}: a beginning"),
        ("idempotency_keys", "update") => format!("{name} {collection}: an outcome"),
        _ => format!("{name} {collection}"),
    }
}

/// With keys and without, cold and warm, first and again, alone and refused.
async fn append(one: &Client, other: &Client) {
    let history = one.history;
    let (path, of_many) = (history.uploads(7), history.of_many());
    let (item, several) = (history.item(1), history.items(1..=history.pages(1.2)));
    one.append(7, &item).await.expect(201);
    one.append_all(7, 1..=history.pages(7.5)).await;
    // Behind a tail that has moved on since.
    other.append(7, &item).await.expect(201);
    one.append(7, &item).await.expect(201);
    for (client, owner) in [(one, 7), (one, 8), (other, 8)] {
        client.append_once(owner, "a-key", &several).await.expect(201);
    }
    // Found, looked for, and told; then found told.
    for client in [other, one] {
        let again = client.append_once(7, "a-key", &several).await;
        assert_eq!(again.header("idempotency-replayed"), "true");
    }
    one.append_once(7, "a-key", &item).await.problem(422, "idempotency-key-reused");
    // With a tail that has moved on far since.
    upload(other, &path, history.lines(1..=6_000)).await.expect(200);
    one.append_once(7, "behind", &item).await.expect(201);
    upload(one, &path, history.lines(1..=300)).await.expect(200);
    let of_fifty = |number: u64| (1..=50).map(|owner| history.line_of(owner, number)).collect::<String>();
    upload(other, &of_many, of_fifty(1)).await.expect(200);
    for client in [one, other] {
        upload_with(client, &path, "an-upload", &history.lines(1..=300)).await.expect(200);
        upload_with(client, &of_many, "another", &of_fifty(2)).await.expect(200);
    }
}

async fn read(client: &Client) {
    let history = client.history;
    client.get(&history.owners_path()).await.expect(200);
    client.total(7).await;
    for path in [
        "",
        "?order=desc",
        "?page=5",
        "?page=40",
        "/pages/2",
        "/pages/40",
        "/1",
        "/400",
        "?after=5&limit=100",
        "?after=5&limit=20&asOf=100",
        "?from=2004-01-01T00:00:00Z&to=2100-01-01T00:00:00Z",
    ] {
        client.get(&history.at(7, path)).await.expect(200);
    }
    for export in ["", "?from=2004-01-01T00:00:00Z"] {
        assert_eq!(client.get(&history.at(7, &format!("/export.ndjson{export}"))).await.status, 200);
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
