//! Sources whose server does not see to it that each document has an `_id` of its own.

use mongodb::bson::{DateTime, Document, doc};
use mongodb::options::TimeseriesOptions;

use super::{Moving, OLD, trade};

/// What a view or a time-series collection whose documents share `_id`s is answered, by each way to read it.
async fn is_refused(moving: &Moving, sentence: &str) {
    for flags in [&[][..], &["--dry-run"], &["--check"]] {
        let refused = moving.adopted(flags, 2).await;
        assert!(refused.sentence(2).contains(sentence), "{flags:?}: {refused:?}");
    }
    let trades = moving.database.collection::<Document>("trades");
    assert_eq!(trades.count_documents(doc! {}).await.unwrap(), 0, "nothing is stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_is_adopted_if_each_document_has_an_id_of_its_own() {
    const ORDERS: i64 = 3;
    const FILLS: i64 = 10;
    let moving = Moving::new().await;
    let orders = moving.database.collection::<Document>("orders");
    let fill = |n: i64| doc! { "quantity": n, "date": DateTime::from_millis(n) };
    let order = |order: i64| {
        let fills: Vec<_> = (1..=FILLS).map(|n| fill((order - 1) * FILLS + n)).collect();
        doc! { "_id": order, "customerId": [7, 8], "ticker": "MDB", "type": "buy", "fills": fills }
    };
    orders.insert_many((1..=ORDERS).map(order)).await.unwrap();
    let view = async |stages: &[Document]| {
        moving.old().drop().await.unwrap();
        let mut pipeline = vec![
            doc! { "$unwind": "$customerId" },
            doc! { "$unwind": { "path": "$fills", "includeArrayIndex": "n" } },
            doc! { "$set": { "quantity": "$fills.quantity", "date": "$fills.date" } },
        ];
        pipeline.extend_from_slice(stages);
        pipeline.push(doc! { "$unset": ["fills", "n"] });
        moving.database.create_collection(OLD).view_on("orders").pipeline(pipeline).await.unwrap();
    };
    // Found by what is behind it in the order, too: the last order of the last customer.
    view(&[doc! { "$match": { "$or": [
        { "fills.quantity": { "$mod": [FILLS, 1] } }, { "customerId": 8, "_id": ORDERS },
    ] } }])
    .await;
    is_refused(&moving, "customer 8 has several with _id 3").await;
    view(&[doc! { "$match": { "fills.quantity": 1 } }, doc! { "$unset": "_id" }]).await;
    is_refused(&moving, "customer 7 has one without it").await;

    let own = doc! { "$set": { "_id": { "order": "$_id", "fill": "$n" } } };
    view(&[own]).await;
    let planned = moving.adopted(&["--dry-run"], 0).await;
    assert!(planned.out.starts_with("would store 60 trades of 2 customers\n"), "{planned:?}");
    let followed = moving.adopted(&["--follow"], 2).await;
    assert!(followed.sentence(2).contains("only a collection can be followed"), "{followed:?}");
    for counts in ["stored 60 trades, 0 were stored before", "stored 0 trades, 60 were stored before"] {
        let adopted = moving.adopted(&[], 0).await;
        assert!(adopted.out.contains(counts), "{adopted:?}");
    }
    moving.stored(8).await.holds_exactly(1..=ORDERS * FILLS);
    moving.is_clean(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_series_is_adopted_if_each_document_has_an_id_of_its_own() {
    let moving = Moving::new().await;
    let series = async |ids: [i32; 3]| {
        let _ = moving.old().drop().await;
        let options = TimeseriesOptions::builder().time_field("date").meta_field("customerId".to_owned());
        moving.database.create_collection(OLD).timeseries(options.build()).await.unwrap();
        let row = |(id, n): (i32, i64)| {
            let mut row = trade(7, n, n * 1_000);
            row.insert("_id", id);
            row
        };
        moving.old().insert_many(ids.into_iter().zip(1..).map(row)).await.unwrap();
    };
    series([5, 6, 5]).await;
    is_refused(&moving, "customer 7 has several with _id 5").await;
    series([5, 6, 7]).await;
    let adopted = moving.adopted(&[], 0).await;
    assert!(adopted.out.contains("stored 3 trades, 0 were stored before"), "{adopted:?}");
    assert_eq!(moving.stored(7).await.numbers, [1, 2, 3]);
    moving.is_clean(&[]).await;
    let followed = moving.adopted(&["--follow"], 2).await;
    assert!(followed.sentence(2).contains("only a collection can be followed"), "{followed:?}");
}
