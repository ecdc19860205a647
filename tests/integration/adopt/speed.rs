//! How fast an adoption is beside an import of the same items.

use std::io::Write;

use mongodb::bson::{Document, doc};

use super::{Moving, OLD, trade};
use crate::commands::program::{Place, run};

/// Prints the times of an import and of both shapes, in turns. `ADOPT_SPEED` items, 2,000 unless set, of
/// which a fortieth are customers; at 200,000 times mean something.
#[tokio::test(flavor = "multi_thread")]
async fn beside_an_import() {
    let items: i64 = std::env::var("ADOPT_SPEED").map_or(2_000, |items| items.parse().expect("a number"));
    let moving = Moving::new().await;
    let customers = (items / 40).max(1);
    let rows = || (1..=items).map(|n| trade(n * 7_919 % customers + 1, n, n));
    for chunk in rows().collect::<Vec<_>>().chunks(10_000) {
        moving.old().insert_many(chunk).await.unwrap();
    }
    let buckets = moving.database.collection::<Document>("buckets");
    let mut histories = vec![Vec::new(); customers as usize];
    for mut row in rows() {
        let customer = row.get_i64("customerId").unwrap();
        row.remove("customerId");
        histories[customer as usize - 1].push(row);
    }
    for (customer, history) in (1_i64..).zip(&histories) {
        let bucket = |(nth, items): (usize, &[Document])| {
            let id = format!("{customer}_{}", 1_700_000_000 + nth);
            doc! { "_id": id, "customerId": customer, "count": items.len() as i32, "history": items }
        };
        buckets.insert_many(history.chunks(10).enumerate().map(bucket)).await.unwrap();
    }
    let file = std::env::temp_dir().join(format!("adopt-speed-{}.ndjson", std::process::id()));
    let mut lines = std::io::BufWriter::new(std::fs::File::create(&file).unwrap());
    for row in rows() {
        let date = row.get_datetime("date").unwrap().timestamp_millis();
        writeln!(
            lines,
            r#"{{"ticker":"MDB","customerId":{},"type":"buy","quantity":{},"date":{{"$date":{{"$numberLong":"{date}"}}}}}}"#,
            row.get_i64("customerId").unwrap(),
            row.get_i64("quantity").unwrap()
        )
        .unwrap();
    }
    drop(lines);
    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..3 {
        let adopt = async |from: &'static str| {
            let place = Place::new().await;
            let flags =
                ["--from", &moving.place.uri, "--from-database", &moving.place.name, "--collection", from];
            run(&mut place.pagebucket("adopt", &flags)).await
        };
        let import = run(&mut Place::new().await.pagebucket("import", &[file.to_str().unwrap()])).await;
        let (documents, buckets) = (adopt(OLD).await, adopt("buckets").await);
        for (rates, ended) in rates.iter_mut().zip([&import, &documents, &buckets]) {
            assert_eq!(ended.status, Some(0), "{ended:?}");
            let first = ended.out.lines().next().unwrap_or_default();
            println!("{first}");
            let rate = first.rsplit_once('(').and_then(|(_, rate)| rate.strip_suffix("/s)")).expect("a rate");
            rates.push(rate.replace(',', "").parse::<f64>().unwrap());
        }
    }
    let median = |rates: &mut Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[1]
    };
    let [import, documents, buckets] = rates.each_mut().map(median);
    println!("adopt / import: {:.2} of documents, {:.2} of buckets", documents / import, buckets / import);
    std::fs::remove_file(file).unwrap();
}
