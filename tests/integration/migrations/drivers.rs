//! The collections of a database, as drivers for other languages see them.

use std::path::PathBuf;

use tokio::process::Command;

use crate::commands::program::run;
use crate::harness::{SERIES, Setup, shared, skip};

#[tokio::test(flavor = "multi_thread")]
async fn pymongo_and_the_driver_for_node_open_every_collection() {
    let setup = Setup::on(shared().await).of(SERIES);
    let connection = setup.connection.clone();
    let service = setup.start().await;
    service.client.append_all(1, 1..=25).await;
    let mut names = service.database.list_collection_names().await.expect("names");
    names.sort();
    assert!(["api_keys", "page_views", "trades_series"].iter().all(|name| names.iter().any(|it| it == name)));
    let drivers = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/drivers"));
    let arguments = [&*connection.uri, &*connection.database];
    let python = std::env::var_os("PYMONGO").map(|python| {
        let mut command = Command::new(python);
        command.arg(drivers.join("open.py")).args(arguments);
        command
    });
    let node = std::env::var_os("NODE_DRIVER").map(|packages| {
        let mut command = Command::new("node");
        command.arg(drivers.join("open.mjs")).arg(packages).args(arguments);
        command
    });
    for (name, driver) in [("PYMONGO", python), ("NODE_DRIVER", node)] {
        let Some(mut driver) = driver else {
            skip("drivers for other languages", &format!("{name} names no driver"));
            continue;
        };
        let opened = run(&mut driver).await;
        assert_eq!(opened.status, Some(0), "{opened:?}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&opened.out).expect("names"), names);
    }
}
