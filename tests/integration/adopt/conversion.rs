//! Which values of the source become values of a trade, and which are refused.

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Document, doc};

use super::{Moving, trade};
use crate::commands::program::run;

/// A member of the source, its value, and what the trade then has; nothing where it is refused.
type Row = (&'static str, Bson, Option<(&'static str, Bson)>);

fn decimal(text: &str) -> Bson {
    Bson::Decimal128(text.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_converted_where_nothing_is_lost() {
    let moving = Moving::new().await;
    let date = DateTime::from_millis(1_698_335_223_434);
    let stored = |member: &'static str, value: Bson| Some((member, value));
    let seven = || stored("qty", Bson::Int64(7));
    let table: Vec<Row> = vec![
        ("quantity", 7_i32.into(), seven()),
        ("quantity", 7_i64.into(), seven()),
        ("quantity", 7.0.into(), seven()),
        ("quantity", decimal("7"), seven()),
        ("quantity", decimal("7.00"), seven()),
        ("quantity", decimal("0.7E1"), seven()),
        ("quantity", "7".into(), seven()),
        ("quantity", 7.5.into(), None),
        ("quantity", decimal("7.5"), None),
        ("quantity", decimal("NaN"), None),
        ("quantity", f64::INFINITY.into(), None),
        ("quantity", (-7).into(), None),
        ("quantity", 9_007_199_254_740_992_i64.into(), None),
        ("quantity", 9e15.into(), stored("qty", Bson::Int64(9_000_000_000_000_000))),
        ("quantity", "7 units".into(), None),
        ("quantity", Bson::Null, None),
        ("quantity", Bson::Boolean(true), None),
        ("quantity", 1e3.into(), stored("qty", Bson::Int64(1_000))),
        ("quantity", "7.0".into(), None),
        ("amount", 3.into(), None),
        ("price", decimal("15.50"), stored("price", decimal("15.50"))),
        ("price", 15.54.into(), stored("price", decimal("15.54"))),
        ("price", 15.into(), stored("price", decimal("15"))),
        ("price", "15.50".into(), stored("price", decimal("15.50"))),
        ("price", Bson::Null, stored("date", date.into())),
        ("price", decimal("-1"), None),
        ("price", 1e-7.into(), stored("price", decimal("0.0000001"))),
        ("price", 1e21.into(), stored("price", decimal("1000000000000000000000"))),
        ("price", 1e34.into(), None),
        ("price", decimal("1E-7"), stored("price", decimal("0.0000001"))),
        ("price", decimal("1E+3"), stored("price", decimal("1000"))),
        ("price", decimal("0E-8"), None),
        ("price", "1e3".into(), None),
        ("price", f64::NAN.into(), None),
        ("date", date.into(), stored("date", date.into())),
        ("date", "2023-10-26T15:47:03.434Z".into(), stored("date", date.into())),
        ("date", 1_698_335_223_434_i64.into(), stored("date", date.into())),
        ("date", 1_698_335_223_i64.into(), None),
        ("date", "yesterday".into(), None),
        ("date", Bson::Null, None),
        ("ticker", "BRK.B".into(), stored("ticker", "BRK.B".into())),
        ("ticker", "mdb".into(), None),
        ("ticker", 5.into(), None),
        ("type", "hold".into(), None),
        ("customerId", 0.into(), None),
        ("customerId", 1.5.into(), None),
        ("customerId", 9_007_199_254_740_992.0.into(), None),
        ("customerId", "7".into(), None),
        ("customerId", decimal("77"), stored("customerId", Bson::Int64(77))),
        ("customerId", decimal("78.0"), stored("customerId", Bson::Int64(78))),
        ("customerId", decimal("0.8E2"), stored("customerId", Bson::Int64(80))),
        ("customerId", 81.0.into(), stored("customerId", Bson::Int64(81))),
        ("customerId", 9e15.into(), stored("customerId", Bson::Int64(9_000_000_000_000_000))),
        (
            "customerId",
            9_007_199_254_740_991.0.into(),
            stored("customerId", Bson::Int64(9_007_199_254_740_991)),
        ),
        ("ref", ObjectId::new().into(), None),
        ("qty", 3.into(), None),
    ];
    // Each is the trade of a customer of its own.
    let mut files = [String::new(), String::new()];
    for (index, (member, value, _)) in table.iter().enumerate() {
        let mut row = trade(1_000 + index as i64, 1, date.timestamp_millis());
        row.insert("_id", index as i64);
        row.insert(*member, value.clone());
        moving.old().insert_one(&row).await.unwrap();
        let row = Bson::Document(row);
        let forms = [row.clone().into_canonical_extjson(), row.into_relaxed_extjson()];
        files.iter_mut().zip(forms).for_each(|(file, form)| *file += &format!("{form}\n"));
    }
    let adopted = moving.adopted(&[], 1).await;
    let trades = moving.database.collection::<Document>("trades");
    for (index, (member, value, expected)) in table.iter().enumerate() {
        let customer = match expected {
            Some(("customerId", customer)) => customer.clone(),
            _ => Bson::Int64(1_000 + index as i64),
        };
        let bucket = trades.find_one(doc! { "customerId": &customer }).await.unwrap();
        let item = bucket.map(|bucket| {
            let mut item = bucket.get_array("history").unwrap()[0].as_document().unwrap().clone();
            item.insert("customerId", customer);
            item
        });
        let told = adopted.err.contains(&format!("refused: _id {index}: "));
        assert_eq!(told, expected.is_none(), "{member} {value}: {}", adopted.err);
        match expected {
            Some((name, expected)) => {
                assert_eq!(item.unwrap_or_default().get(name), Some(expected), "{member} {value}");
            }
            None => assert_eq!(item, None, "{member} {value}"),
        }
    }
    for file in files {
        import_takes_the_same(&table, &file).await;
    }
}

/// Extended JSON is read by the rules of the values that it writes, an owner and what is no property aside.
async fn import_takes_the_same(table: &[Row], file: &str) {
    let moving = Moving::new().await;
    let path = std::env::temp_dir().join(format!("conversion-{}.ndjson", ObjectId::new()));
    std::fs::write(&path, file).unwrap();
    let imported = run(&mut moving.place.pagebucket("import", &[path.to_str().unwrap()])).await;
    std::fs::remove_file(&path).unwrap();
    assert_eq!(imported.status, Some(1), "{imported:?}");
    let trades = moving.database.collection::<Document>("trades");
    for (index, (member, value, expected)) in table.iter().enumerate() {
        if ["customerId", "ref"].contains(member) {
            continue;
        }
        let bucket = trades.find_one(doc! { "customerId": 1_000 + index as i64 }).await.unwrap();
        let item =
            bucket.map(|bucket| bucket.get_array("history").unwrap()[0].as_document().unwrap().clone());
        let told = imported.err.contains(&format!("line {}: ", index + 1));
        assert_eq!(
            (told, item.is_none()),
            (expected.is_none(), expected.is_none()),
            "{member} {value}: {}",
            imported.err
        );
        if let Some((name, expected)) = expected {
            assert_eq!(item.unwrap().get(name), Some(expected), "{member} {value}");
        }
    }
}
