//! Properties that are filled in, and properties that may be `null`: what is answered, and what filters find.

use serde_json::{Value, json};

use crate::harness::differing::{Directory, instance};
use crate::harness::uploads::upload;
use crate::harness::{Client, History, test_over};

/// With this default of `level`.
fn leveled(history: &History, default: Value) -> Directory {
    Directory::changed(history, |definition| {
        let properties = &mut definition["item"]["properties"];
        properties["level"] = json!({ "type": "string", "maxLength": 10 });
        properties["topic"] = json!({ "type": ["string", "null"], "maxLength": 10 });
        if !default.is_null() {
            properties["level"]["default"] = default;
        }
        definition["filters"] = json!(["level", "topic"]);
    })
}

/// The sequence numbers of the items that a filter finds.
async fn found(client: &Client, filter: &str) -> Vec<u64> {
    let listing = client.get(&client.history.at(1, &format!("?{filter}&limit=100"))).await.expect(200);
    let items = listing["items"].as_array().expect("items");
    items.iter().map(|item| item["seq"].as_u64().expect("a number")).collect()
}

test_over!(a_default_is_stored_answered_and_found, NOTES);
async fn a_default_is_stored_answered_and_found(history: &'static History) {
    let (without, info, debug) =
        (leveled(history, Value::Null), leveled(history, json!("info")), leveled(history, json!("debug")));
    let before = instance(history, &without, None).await;
    let item = history.item(1);
    before.client.append_once(1, "before", &item).await.expect(201);

    let service = instance(history, &info, Some(&before)).await;
    let client = &service.client;
    let with = |name: &str, value: Value| {
        let mut item = item.clone();
        item[name] = value;
        item
    };
    // A repeat is recognised by what was sent, though it would be stored with more now.
    let again = client.append_once(1, "before", &item).await;
    assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (201, "true"));
    let items =
        json!([item, with("level", json!("warn")), with("topic", json!("a")), with("topic", json!(null))]);
    client.append_once(1, "k", &items).await.expect(201);
    let mut line = item.clone();
    line[history.owner_field] = history.owner(1);
    upload(client, &history.of_many(), line.to_string()).await.expect(200);
    let levels = async || {
        let listing = client.get(&history.at(1, "?after=0&limit=100")).await.expect(200);
        let items = listing["items"].as_array().expect("items").clone();
        items.iter().map(|item| item["level"].clone()).collect::<Vec<_>>()
    };
    let expected = [Value::Null, json!("info"), json!("warn"), json!("info"), json!("info"), json!("info")];
    assert_eq!(levels().await, expected);
    assert_eq!(found(client, "level=info").await, [2, 4, 5, 6]);
    assert_eq!(found(client, "level=warn").await, [3]);
    assert_eq!(found(client, "topic=a").await, [4]);
    assert_eq!(found(client, "topic=null").await, [0_u64; 0]);

    let after = instance(history, &debug, Some(&before)).await;
    let again = after.client.append_once(1, "k", &items).await;
    assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (201, "true"));
    assert_eq!(levels().await, expected);

    // Editors of definitions ask any server for their schema.
    let schema = client.get("/definition.schema.json").await.expect(200);
    assert_eq!(schema["title"], "The definition of a history");
}
