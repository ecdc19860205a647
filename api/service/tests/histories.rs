//! What histories of definition files promise, beside what holds for trades as well: instances whose items
//! differ, limits by bytes, owners that are strings, items that are open.

mod before;
mod bytes;
pub mod differing;
mod filled_in;

use serde_json::json;

use crate::harness::{History, NOTES, Service, test_over};

test_over!(an_owner_is_a_short_plain_text, NOTES);
/// Letters, digits and hyphens, up to 64 of them; what separates, or means something in a path or a regular
/// expression, is refused.
async fn an_owner_is_a_short_plain_text(history: &'static History) {
    let service = Service::of(history).await;
    let longest = "a".repeat(64);
    for id in ["A", "a", "0", "-", "batch", "01JD8Z7TPK", "8c5e1d3a-6f0b-4a4e-9d53-0c1f3a2b4c5d", &longest] {
        let path = format!("{}/{id}/{}", history.owners_path(), history.name);
        service.client.post_text(&path, history.item(1).to_string()).await.expect(201);
        let listing = service.client.get(&path).await.expect(200);
        assert_eq!((&listing[history.owner_field], history.seqs(&listing)), (&json!(id), vec![1]));
    }
    let too_long = "a".repeat(65);
    for id in ["a_b", "a.b", "a%2Fb", "a%20b", "ann@example.com", "auth0%7Cx", "%C3%A9", "a%00", &too_long] {
        let path = format!("{}/{id}/{}", history.owners_path(), history.name);
        service.client.post_text(&path, history.item(1).to_string()).await.problem(400, "invalid-parameter");
        service.client.get(&path).await.problem(400, "invalid-parameter");
    }
    // In the lines of an upload of many owners, too.
    for id in [json!("a_b"), json!(""), json!(7), json!(null)] {
        let mut line = history.item(1);
        line[history.owner_field] = id;
        let answer =
            crate::harness::uploads::upload(&service.client, &history.of_many(), line.to_string()).await;
        let summary = answer.expect(200);
        let pointer = format!("/{}", history.owner_field);
        assert_eq!(summary["problems"][0]["errors"][0]["pointer"], pointer, "{summary}");
    }
}

test_over!(histories_of_one_directory_do_not_mix, READINGS);
/// Neither their items nor their keys.
async fn histories_of_one_directory_do_not_mix(history: &'static History) {
    let service = Service::of(history).await;
    let mut notes = service.client.clone();
    notes.history = NOTES;
    for client in [&service.client, &notes] {
        let items = client.history.items(1..=3);
        let first = client.append_once(1, "k", &items).await;
        assert!(!first.headers.contains_key("idempotency-replayed"), "{first:?}");
        assert_eq!(first.expect(201)["ranges"], json!([{ "firstSeq": 1, "lastSeq": 3 }]));
        let again = client.append_once(1, "k", &items).await;
        assert_eq!(again.header("idempotency-replayed"), "true");
        assert_eq!(client.total(1).await, 3);
        let owners = client.get(&client.history.owners_path()).await.expect(200);
        assert_eq!(owners["items"].as_array().map(Vec::len), Some(1), "{owners}");
    }
    // An owner of the one is none of the other.
    let owner = service.client.get(&history.owner_path(1)).await.expect(200);
    assert_eq!(owner.get(NOTES.name), None, "{owner}");
    let reading = service.client.get(&history.at(1, "/pages/1")).await;
    let note = notes.get(&NOTES.at(1, "/pages/1")).await;
    assert_ne!(reading.header("etag"), note.header("etag"));
}

test_over!(nested_items_have_no_csv, READINGS);
async fn nested_items_have_no_csv(history: &'static History) {
    let service = Service::of(history).await;
    service.client.append(1, &history.item(1)).await.expect(201);
    let problem = service.client.get(&history.at(1, "/export.csv")).await.problem(404, "not-found");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("export.ndjson")), "{problem}");
    let export = service.client.get(&history.at(1, "/export.ndjson")).await;
    assert_eq!(export.header("content-type"), "application/x-ndjson");
}
