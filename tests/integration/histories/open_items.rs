//! Whatever an open item holds comes back: from its page, a window, its `seq` and an export, and after an
//! import of that export it is stored as before, byte for byte.

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{RawDocumentBuf, doc};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use crate::commands::program::{Place, run};
use crate::harness::{History, Service, same, test_over};

/// Names without a dot or a leading dollar sign, which the database reads as something else.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-z]{1,8}", 1 => "[^.$\\x00]{1,8}", 1 => "[a-z][$ \"\\\\\u{e9}\u{1f600}]{1,4}"]
}

fn number() -> impl Strategy<Value = Value> {
    const MOST: i64 = (1 << 53) - 1;
    prop_oneof![
        3 => (-MOST..=MOST).prop_map(Value::from),
        1 => Just(json!(MOST)),
        1 => Just(json!(-MOST)),
        // `1.0` is stored as a double, and shown as `1`: its import stores an integer, which is the same
        // number.
        3 => prop::num::f64::NORMAL.prop_filter("no integer", |number| number.fract() != 0.0 || number.abs() > MOST as f64)
            .prop_map(Value::from),
        1 => prop_oneof![Just(json!(0.1)), Just(json!(1e300)), Just(json!(5e-324)), Just(json!(-0.5))],
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let plain = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        "\\PC{0,20}".prop_map(Value::from),
        // What looks like a date or a decimal is a text where no schema says otherwise.
        Just(json!("2004-01-09T00:00:00Z")),
        Just(json!("15.50")),
    ];
    plain.prop_recursive(6, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// The buckets of a collection, as bytes.
async fn buckets(database: &Database, history: &History) -> Vec<Vec<u8>> {
    let collection = database.collection::<RawDocumentBuf>(history.name);
    let buckets = collection.find(doc! {}).sort(doc! { "_id": 1 }).await.expect("buckets");
    let buckets: Vec<RawDocumentBuf> = buckets.try_collect().await.expect("buckets");
    buckets.into_iter().map(|bucket| bucket.as_bytes().to_vec()).collect()
}

test_over!(whatever_they_hold_comes_back, READINGS);
async fn whatever_they_hold_comes_back(history: &'static History) {
    let history = history.holding_any();
    let service = Service::of(history).await;
    let total = history.pages(1.5);
    let mut runner = TestRunner::default();
    let mut sent = Vec::new();
    for number in 1..=total {
        let mut item = history.item_at(number, "2004-01-09T00:00:00.000Z");
        item["anything"] = value().new_tree(&mut runner).expect("a value").current();
        service.client.append(1, &item).await.expect(201);
        sent.push(item);
    }
    service.stored(1).await.holds_exactly(1..=total as i64);
    let check = |path: &str, seq: u64, shown: &Value| {
        let mut shown = shown.clone();
        let members = shown.as_object_mut().expect("an item");
        for added in ["seq", "page", history.owner_field] {
            members.remove(added);
        }
        assert!(same(&shown, &sent[seq as usize - 1]), "{path}: {shown} of {}", sent[seq as usize - 1]);
    };
    let mut paths: Vec<String> = (1..=history.page_of(total)).map(|page| format!("/pages/{page}")).collect();
    paths.extend((0..total).step_by(60).map(|after| format!("?after={after}&limit=60")));
    for path in paths {
        let shown = service.client.get(&history.at(1, &path)).await.expect(200);
        for item in shown["items"].as_array().expect("items") {
            check(&path, item["seq"].as_u64().expect("a seq"), item);
        }
    }
    for seq in 1..=total {
        check("its seq", seq, &service.client.get(&history.at(1, &format!("/{seq}"))).await.expect(200));
    }
    let rows = service.client.get(&history.at(1, "/export.ndjson")).await.body;
    let lines = str::from_utf8(&rows).expect("UTF-8").lines();
    for (seq, line) in (1..).zip(lines) {
        check("export", seq, &serde_json::from_str(line).expect("JSON"));
    }

    let other = Service::of(history).await;
    let place = Place::of_service(&other).await;
    let file = std::env::temp_dir().join(format!("{}-open.ndjson", other.database.name()));
    std::fs::write(&file, rows).expect("to write");
    let imported = run(&mut place.pagebucket("import", &[&file.to_string_lossy()])).await;
    std::fs::remove_file(&file).expect("to remove");
    assert_eq!(imported.status, Some(0), "{imported:?}");
    assert!(buckets(&other.database, history).await == buckets(&service.database, history).await);
}
