//! What `export` writes, `import` reads: the same buckets, byte for byte, of any definition.

use futures_util::TryStreamExt;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use serde_json::{Value, json};

use super::export::Scratch;
use super::program::{Place, run};
use crate::harness::{History, NOTES, READINGS, Service, Setup, shared};

async fn service(history: &'static History) -> (Service, Place) {
    let service = Setup::on(shared().await).of(history).start().await;
    let place = Place::of_service(&service).await;
    (service, place)
}

/// All buckets as they are stored, without the times of their inserts.
async fn buckets(service: &Service) -> Vec<RawDocumentBuf> {
    let collection = service.database.collection::<RawDocumentBuf>(service.history.name);
    let found = collection.find(doc! {}).projection(doc! { "opened": 0, "openable": 0 });
    found.sort(doc! { "_id": 1 }).await.expect("buckets").try_collect().await.expect("buckets")
}

/// Exports what the service has, and imports it elsewhere: to a database, and through a server.
async fn comes_back(service: &Service, place: &Place, extension: &str) {
    let history = service.history;
    let expected = buckets(service).await;
    let file = Scratch::new(&format!("{}-round-trip.{extension}", history.name));
    let exported = run(&mut place.pagebucket("export", &["-o", file.path()])).await;
    assert_eq!(exported.status, Some(0), "{exported:?}");
    for through_a_server in [false, true] {
        let (other, there) = self::service(history).await;
        let url = format!("http://{}", other.address());
        let flags = if through_a_server { vec![file.path(), "--url", &url] } else { vec![file.path()] };
        let imported = run(&mut there.pagebucket("import", &flags)).await;
        assert_eq!(imported.status, Some(0), "{imported:?}");
        let found = buckets(&other).await;
        assert_eq!(found.len(), expected.len(), "{imported:?}");
        for (found, expected) in found.iter().zip(&expected) {
            assert!(found.as_bytes() == expected.as_bytes(), "{found:?}\n{expected:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flat_items_of_texts() {
    let (service, place) = service(NOTES.holding_any()).await;
    let texts = [
        None,
        Some(""),
        Some(" "),
        Some("a,b"),
        Some("\""),
        Some("say \"so\""),
        Some("\"\""),
        Some("two\nlines"),
        Some("two\r\nlines"),
        Some("\r"),
        Some("\n"),
        Some("a\r\n\n\rb\n"),
        Some("null"),
        Some("-5"),
        Some("\u{feff}Ä😀\0\t"),
    ];
    for owner in 1..=3 {
        let items = texts.iter().enumerate().map(|(index, text)| {
            let date = format!("2004-01-09T00:00:{:02}.{owner:03}Z", 59 - index);
            let mut item =
                json!({ "author": "\u{2028}'", "number": 9_007_199_254_740_991_u64, "writtenAt": date });
            if let Some(text) = text {
                item["text"] = json!(text);
            }
            item
        });
        service.client.append(owner, &items.collect::<Value>()).await.expect(201);
    }
    for extension in ["csv", "ndjson"] {
        comes_back(&service, &place, extension).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nested_items() {
    let (service, place) = service(READINGS.holding_any()).await;
    let item = |number: u64| {
        let mut item = json!({
            "sensor": "t1",
            "reading": { "number": number, "celsius": -273.15 + number as f64 / 7.0, "cost": format!("{number}.50") },
            "samples": (0..number % 20).collect::<Vec<_>>(),
            "checkedBy": if number.is_multiple_of(2) { Value::Null } else { json!("") },
            "takenAt": "2004-01-09T00:00:00.001Z",
        });
        // The schema allows more.
        match number % 3 {
            0 => item["more"] = json!({ "date": "2004-01-09", "n": [null, 1e300, [], {}] }),
            1 => item["a/b~c"] = json!("\n"),
            _ => {}
        }
        item
    };
    for owner in 1..=2 {
        for hundred in 0..3 {
            let items: Value = (1..=100).map(|number| item(hundred * 100 + number)).collect();
            service.client.append(owner, &items).await.expect(201);
        }
    }
    comes_back(&service, &place, "ndjson").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn items_that_no_table_holds() {
    let (_service, place) = service(READINGS).await;
    let refused = run(&mut place.pagebucket("export", &["--format", "csv"])).await;
    assert!(refused.sentence(2).contains("--format ndjson"), "{refused:?}");
    let file = Scratch::new("readings.csv");
    std::fs::write(file.path(), "deviceId,sensor,takenAt\n1,t1,2004-01-09\n").expect("to write");
    let refused = run(&mut place.pagebucket("import", &[file.path()])).await;
    assert!(refused.sentence(2).contains("give them as NDJSON"), "{refused:?}");
    let names = ["import", file.path(), "--histories", READINGS.definitions.expect("a directory")];
    let refused = run(&mut super::program::pagebucket(&names)).await;
    assert!(
        refused.sentence(2).contains("--history NAME (there are notes, readings, traces)"),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_of_a_database() {
    let (service, place) = service(NOTES).await;
    let other = doc! {
        "_id": "gone", "owner": { "collection": "teams", "field": "teamId", "type": "integer" },
        "pageSize": 7, "date": "at", "maxItemBytes": 100_i64, "ready": true,
    };
    service.database.collection::<Document>("histories").insert_one(other).await.expect("it takes it");
    let directory = NOTES.definitions.expect("a directory");
    let listed = run(&mut place.pagebucket("histories", &["--histories", directory])).await;
    assert_eq!(listed.status, Some(0), "{listed:?}");
    let lines: Vec<_> = listed.out.lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(
        lines[..2],
        [
            "gone: of teams by teamId (integer), 7 a page, each of at most 100 bytes, with the date at; not defined: it is \
             not served",
            "notes: of rooms by roomId (string), 2 a page, each of at most 16384 bytes, with the date writtenAt; defined",
        ]
    );
}
