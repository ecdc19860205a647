//! How fast an adoption is beside an import of the same items.

use std::io::Write;

use super::{Moving, OLD, trade};
use crate::commands::program::{Place, run};
use crate::harness::tests;

tests!["adopt": beside_an_import];

/// Prints the times of both, in turns. `ADOPT_SPEED` items, 2,000 unless set, of which a fortieth are customers; at 200,000
/// times mean something.
async fn beside_an_import() {
    let items: i64 = std::env::var("ADOPT_SPEED").map_or(2_000, |items| items.parse().expect("a number"));
    let moving = Moving::new().await;
    let customers = (items / 40).max(1);
    let rows = || (1..=items).map(|n| trade(n * 7_919 % customers + 1, n, n));
    for chunk in rows().collect::<Vec<_>>().chunks(10_000) {
        moving.old().insert_many(chunk).await.unwrap();
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
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..3 {
        let (one, other) = (Place::new().await, Place::new().await);
        let import = run(&mut one.pagebucket("import", &[file.to_str().unwrap()])).await;
        let from = ["--from", &moving.place.uri, "--from-database", &moving.place.name, "--collection", OLD];
        let adopt = run(&mut other.pagebucket("adopt", &from)).await;
        for (rates, ended) in rates.iter_mut().zip([&import, &adopt]) {
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
    let [import, adopt] = &mut rates;
    println!("adopt / import: {:.2}", median(adopt) / median(import));
    std::fs::remove_file(file).unwrap();
}
