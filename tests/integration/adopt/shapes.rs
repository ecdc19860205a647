//! The two shapes of the manual, whole and ruined.

use futures_util::TryStreamExt;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Document, doc};
use mongodb::options::{Collation, CollationStrength};
use tokio::task::JoinSet;

use super::{Moving, OLD, trade};
use crate::commands::program::Place;
use crate::harness::{NOTES, spawn};

fn date(text: &str) -> DateTime {
    DateTime::parse_rfc3339_str(text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manuals_insert_many() {
    let moving = Moving::new().await;
    let trades = [
        doc! { "ticker": "MDB", "customerId": 123, "type": "buy", "quantity": 419, "date": date("2023-10-26T15:47:03.434Z") },
        doc! { "ticker": "MDB", "customerId": 123, "type": "sell", "quantity": 29, "date": date("2023-10-30T09:32:57.765Z") },
        doc! { "ticker": "GOOG", "customerId": 456, "type": "buy", "quantity": 50, "date": date("2023-10-31T11:16:02.120Z") },
    ];
    moving.old().insert_many(trades).await.unwrap();
    let planned = moving.adopted(&["--dry-run"], 0).await;
    assert!(
        planned.out.starts_with("would store 3 trades of 2 customers\nwould refuse 0 trades\n"),
        "{planned:?}"
    );
    assert!(planned.out.contains("\n  customer 123: 2 trades\n  customer 456: 1 trade\n"), "{planned:?}");
    assert!(planned.out.contains("\na copy takes at least"), "{planned:?}");
    let collections = moving.database.list_collection_names().await.unwrap();
    assert_eq!(collections, ["old"], "a dry run writes nothing");

    let adopted = moving.adopted(&[], 0).await;
    assert!(adopted.out.starts_with("stored 3 trades of 2 customers in "), "{adopted:?}");
    assert_eq!(moving.stored(123).await.numbers, [419, 29]);
    assert_eq!(moving.stored(456).await.numbers, [50]);
    let checked = moving.is_clean(&[]).await;
    assert!(checked.out.starts_with("3 trades of 2 customers are the same"), "{checked:?}");
    // Again, nothing is stored twice.
    let again = moving.adopted(&[], 0).await;
    assert!(again.out.contains("in all: stored 0 trades, 3 were stored before"), "{again:?}");
    moving.is_clean(&[]).await;
}

/// With the manual's two names of a quantity, numbers of all types, out of order, one customer in several
/// buckets.
#[tokio::test(flavor = "multi_thread")]
async fn the_manuals_buckets() {
    let moving = Moving::new().await;
    let item = |name: &str, quantity: Bson, at: i64| {
        doc! { "type": "buy", "ticker": "MDB", name: quantity, "date": DateTime::from_millis(at) }
    };
    let over: Vec<Document> = (1..=13).map(|n| item("qty", Bson::Int64(n), 1_000 + n)).collect();
    let buckets = [
        doc! { "_id": "123_1698349623", "customerId": 123, "count": 3, "history": [
            item("quantity", Bson::Double(16.0), 4_000), item("qty", Bson::Int32(14), 2_000), item("qty", Bson::Int64(15), 3_000),
        ] },
        doc! { "_id": "123_1698765432", "customerId": 123_i64, "count": 11, "history": over },
        doc! { "_id": "456_1698765432", "customerId": 456.0, "count": 1, "history": [item("qty", Bson::Int32(1), 1)] },
        doc! { "_id": "456_1698765433", "customerId": 456, "count": 0, "history": [] },
    ];
    moving.old().insert_many(buckets).await.unwrap();
    let planned = moving.adopted(&["--dry-run"], 0).await;
    assert!(planned.out.contains("would store 17 trades of 2 customers\n"), "{planned:?}");
    let adopted = moving.adopted(&[], 0).await;
    let told = "_id \"123_1698765432\": `count` is 11, and the array has 13, which counts";
    assert!(adopted.err.contains(told) && adopted.out.contains("wrong `count`: 1 bucket"), "{adopted:?}");
    assert_eq!(moving.stored(123).await.numbers, (1..=16).collect::<Vec<_>>());
    moving.stored(456).await.holds_exactly([1]);
    moving.is_clean(&[]).await;
}

/// Nothing that the source has is left out in silence.
#[tokio::test(flavor = "multi_thread")]
async fn buckets_without_their_array() {
    let moving = Moving::new().await;
    let item = |n: i64| doc! { "type": "buy", "ticker": "MDB", "qty": n, "date": DateTime::from_millis(n) };
    let buckets = [
        doc! { "_id": "7_1", "customerId": 7, "count": 2, "measurements": [item(1), item(2)] },
        doc! { "_id": "7_2", "customerId": 7, "count": 2, "history": Bson::Null },
        doc! { "_id": "7_3", "customerId": 7, "count": 1, "history": [item(3)] },
        doc! { "_id": "7_4", "customerId": 7, "count": 0, "history": [] },
    ];
    moving.old().insert_many(buckets).await.unwrap();
    let shape = ["--shape", "buckets"];
    let planned = moving.adopted(&[&shape[..], &["--dry-run"]].concat(), 1).await;
    assert!(planned.out.contains("would refuse 2 trades\n"), "{planned:?}");
    let adopted = moving.adopted(&shape, 1).await;
    for told in ["_id \"7_1\": has no array `history`", "_id \"7_2\": `history` must be an array"] {
        assert!(adopted.err.contains(told), "{told}: {adopted:?}");
    }
    moving.stored(7).await.holds_exactly([3]);
    let checked = moving.adopted(&[&shape[..], &["--check"]].concat(), 1).await;
    assert!(checked.out.contains("\n2 differences\n"), "{checked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_manuals_upsert_has_ruined() {
    let moving = Moving::new().await;
    let mut writers = JoinSet::new();
    for writer in 0..16_i64 {
        let manual = moving.old();
        writers.spawn(async move {
            let mut stored = Vec::new();
            for turn in 0..20 {
                let number = writer * 20 + turn + 1;
                let date = DateTime::from_millis(1_698_349_623_000 + number * 7 % 1_000);
                let trade = doc! { "type": "buy", "ticker": "MDB", "qty": number, "date": date };
                let update = doc! {
                    "$push": { "history": trade },
                    "$inc": { "count": 1 },
                    "$setOnInsert": { "_id": format!("123_{}", 1_698_349_623 + number % 3), "customerId": 123 },
                };
                let filter = doc! { "_id": { "$regex": "^123_" }, "count": { "$lt": 10 } };
                if manual.update_one(filter, update).upsert(true).await.is_ok() {
                    stored.push(number);
                }
            }
            stored
        });
    }
    let stored: Vec<i64> = writers.join_all().await.into_iter().flatten().collect();
    assert!(stored.len() < 200, "the manual's statement loses trades: {}", stored.len());
    moving.adopted(&[], 0).await;
    let found = moving.stored(123).await;
    found.holds_exactly(stored);
    assert!(found.dates.is_sorted(), "in the order of their dates");
    moving.is_clean(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_names_and_another_order() {
    // One of the names of a quantity, but the user's for the price.
    let moving = Moving::new().await;
    let mut row = trade(7, 3, 5);
    row.remove("quantity");
    let price = Bson::Decimal128("15.00".parse().unwrap());
    row.extend(doc! { "qty": 3, "amount": price.clone() });
    moving.old().insert_one(row).await.unwrap();
    moving.adopted(&["--map", "price=amount"], 0).await;
    assert_eq!(moving.stored(7).await.numbers, [3]);
    let trades = moving.database.collection::<Document>("trades");
    let bucket = trades.find_one(doc! { "customerId": 7 }).await.unwrap().expect("a bucket");
    let stored = bucket.get_array("history").unwrap()[0].as_document().unwrap();
    assert_eq!(stored.get("price"), Some(&price), "with its zeros");

    let moving = Moving::new().await;
    let row = |n: i64, at: i64| {
        doc! { "_id": n, "who": 7, "side": "sell", "stock": "MDB", "units": n, "ts": DateTime::from_millis(at), "v": -n, "__v": 0 }
    };
    moving.old().insert_many([row(1, 5), row(2, 9), row(3, 7)]).await.unwrap();
    let flags = ["--map", "customerId=who,type=side,ticker=stock,qty=units,date=ts", "--order", "v"];
    // What the history has no property for is not lost in silence.
    let refused = moving.adopted(&flags, 1).await;
    assert!(
        refused.err.contains("refused: _id 1: \"v\" would be lost") && refused.err.contains("--ignore v"),
        "{refused:?}"
    );
    let flags = [&flags[..], &["--ignore", "v,__v"]].concat();
    moving.adopted(&flags, 0).await;
    assert_eq!(moving.stored(7).await.numbers, [3, 2, 1], "by v");
    let wrong = moving.adopted(&["--order", "$v"], 2).await;
    assert!(wrong.sentence(2).contains("--order $v names no field"), "{wrong:?}");
    let wrong = moving.adopted(&["--map", "customerId=meta.who"], 2).await;
    assert!(wrong.sentence(2).contains("--map customerId=meta.who is a path"), "{wrong:?}");
    let wrong = moving.adopted(&["--map", "units=qty"], 2).await;
    assert!(wrong.sentence(2).contains("--map units=… names no property of a trade"), "{wrong:?}");
}

/// Whether the items of an owner are sorted by `adopt`, or by the server, because they are too many, or have
/// values that it leaves to the server.
#[tokio::test(flavor = "multi_thread")]
async fn the_order_is_the_servers() {
    let binary = |bytes: &[u8]| Binary { subtype: BinarySubtype::Generic, bytes: bytes.to_vec() };
    let decimal = |text: &str| Bson::Decimal128(text.parse().unwrap());
    let oid = |n: u8| Bson::ObjectId(ObjectId::from_bytes([n; 12]));
    let sortable = [
        Bson::Null,
        Bson::Int32(7),
        Bson::Int64(-7),
        Bson::Double(3.0),
        decimal("5"),
        Bson::from("b"),
        Bson::from("ab"),
        Bson::from("ä"),
        Bson::from(binary(&[9])),
        Bson::from(binary(&[1, 2])),
        Bson::from(binary(&[1, 1])),
        oid(200),
        oid(1),
        Bson::from(DateTime::from_millis(-1)),
        Bson::from(DateTime::from_millis(5)),
    ];
    let others = [Bson::Double(2.5), Bson::Boolean(true), Bson::from(doc! { "a": 1 })];
    for (order, many) in [("n", 10), ("n", 10_500), ("at.n", 10)] {
        let moving = Moving::new().await;
        let mut quantity = 0;
        let mut row = |customer: i64, n: Option<&Bson>, id: Option<Bson>| {
            quantity += 1;
            let mut row = trade(customer, quantity, 1_000);
            if let Some(id) = id {
                row.insert("_id", id);
            }
            if let Some(n) = n {
                row.insert("n", n.clone());
                row.insert("at", doc! { "n": n.clone() });
            }
            row
        };
        let mut rows = vec![row(1, None, None)];
        for value in sortable.iter().rev() {
            rows.extend([3, 1, 2].map(|_| row(1, Some(value), None)));
            // Equal values, and ids of all types.
            rows.push(row(2, Some(&Bson::Null), Some(value.clone())));
            rows.push(row(4, Some(value), None));
        }
        rows.extend((0..many).map(|n| row(3, Some(&Bson::Int64(n * 7_919 % 5_003)), None)));
        rows.extend(others.iter().map(|value| row(4, Some(value), Some(value.clone()))));
        rows.extend([5, 3, 4].map(|n| row(5, Some(&Bson::Int64(n)), None)));
        for chunk in rows.chunks(5_000) {
            moving.old().insert_many(chunk).await.unwrap();
        }
        moving.adopted(&["--order", order, "--ignore", "n,at"], 0).await;
        for customer in 1..=5 {
            let mut sort = Document::new();
            sort.extend([(order.to_owned(), Bson::Int32(1)), ("_id".to_owned(), Bson::Int32(1))]);
            let old = moving.old();
            let found = old.find(doc! { "customerId": customer }).sort(sort).await.unwrap();
            let sorted: Vec<Document> = found.try_collect().await.unwrap();
            let expected: Vec<_> = sorted.iter().map(|row| row.get_i64("quantity").unwrap()).collect();
            let stored = moving.stored(customer as u64).await;
            assert_eq!(stored.numbers, expected, "customer {customer} by {order}");
        }
        moving.is_clean(&["--order", order, "--ignore", "n,at"]).await;
    }
}

/// A sort takes an array for its least element. Who has an `_id` of another type is sorted by the server, and
/// what was read before is not read again.
#[tokio::test(flavor = "multi_thread")]
async fn an_array_of_owners_comes_between() {
    let moving = Moving::new().await;
    let array = |owners: [i32; 2]| {
        let mut row = trade(0, 99, 1);
        row.insert("customerId", owners.map(Bson::from).to_vec());
        row
    };
    let mut other = trade(500, 9, 1);
    other.insert("_id", doc! { "a": 1 });
    let rows = [trade(5, 1, 30), array([5, 6]), trade(5, 2, 10), array([1, 2]), trade(5, 3, 20), other];
    moving.old().insert_many(rows).await.unwrap();
    let adopted = moving.adopted(&[], 1).await;
    assert_eq!(adopted.err.matches("refused: _id").count(), 2, "{adopted:?}");
    assert_eq!(moving.stored(5).await.numbers, [2, 3, 1]);
    assert_eq!(moving.stored(500).await.numbers, [9]);
    let checked = moving.adopted(&["--check"], 1).await;
    assert!(checked.out.contains("\n2 differences\n"), "{checked:?}");
}

/// Strings that a collation takes for equal are owners of their own.
#[tokio::test(flavor = "multi_thread")]
async fn a_collation_of_the_source_changes_no_order() {
    let moving = Moving::at(Place::of(NOTES).await).await;
    let collation = Collation::builder().locale("en").strength(CollationStrength::Secondary).build();
    moving.database.create_collection(OLD).collation(collation).await.unwrap();
    let room = |n: i64| if n % 2 == 0 { "a" } else { "A" };
    let note = |n: i64| {
        let date = DateTime::from_millis(100_000 - n * 7 % 61);
        doc! { "roomId": room(n), "writtenAt": date, "author": "Ada", "number": n }
    };
    moving.old().insert_many((1..=60).map(note)).await.unwrap();
    moving.adopted(&[], 0).await;
    for odd in [0, 1] {
        let mut expected: Vec<_> = (1..=60).filter(|n| n % 2 == odd).collect();
        expected.sort_by_key(|n| -(n * 7 % 61));
        let notes = moving.database.collection::<Document>("notes");
        let found = notes.find(doc! { "roomId": room(odd) }).sort(doc! { "_id": 1 }).await.unwrap();
        let buckets: Vec<Document> = found.try_collect().await.unwrap();
        let notes = buckets.iter().flat_map(|bucket| bucket.get_array("history").unwrap());
        let numbers: Vec<_> =
            notes.map(|note| note.as_document().unwrap().get_i64("number").unwrap()).collect();
        assert_eq!(numbers, expected);
    }
    moving.is_clean(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_at_once_do_no_harm() {
    const ITEMS: i64 = 4_000;
    let moving = Moving::new().await;
    moving.old().insert_many((1..=ITEMS).map(|n| trade(n % 20 + 1, n, n))).await.unwrap();
    let three = tokio::join!(moving.adopted(&[], 0), moving.adopted(&[], 0), moving.adopted(&[], 0));
    println!("{}{}{}", three.0.out, three.1.out, three.2.out);
    for customer in 1..=20 {
        let expected: Vec<_> = (1..=ITEMS).filter(|n| n % 20 + 1 == customer).collect();
        assert_eq!(moving.stored(customer as u64).await.numbers, expected);
    }
    moving.is_clean(&[]).await;
}

/// Other writers have stored items before, and do so meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn histories_that_have_items_go_on() {
    let moving = Moving::new().await;
    let place = Place {
        history: moving.place.history,
        uri: moving.place.uri.clone(),
        name: moving.place.name.clone(),
    };
    let serving = place.serve(&[]).await;
    serving.client.append_all(1, 1..=25).await;
    moving.old().insert_many((101..=3_100).map(|n| trade(1, n, n))).await.unwrap();
    let client = serving.client.clone();
    let writer = spawn(async move { client.append_all(1, 26..=60).await });
    moving.adopted(&[], 0).await;
    writer.await.unwrap();
    let numbers = moving.stored(1).await.numbers;
    let (old, own): (Vec<i64>, Vec<i64>) = numbers.iter().partition(|number| **number > 100);
    assert_eq!(old, (101..=3_100).collect::<Vec<_>>());
    assert_eq!(own, (1..=60).collect::<Vec<_>>());
    let checked = moving.is_clean(&[]).await;
    assert!(checked.out.contains("60 trades that others have appended"), "{checked:?}");
    serving.stop().await;
}
