//! `pagebucket export`, through the real binary.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mongodb::bson::doc;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use super::program::{Place, run};
use crate::harness::signal;
use crate::harness::{Mongod, PATIENCE, Service, Setup, TRADES, fill, shared, trade, trade_at};

/// A file name that nobody else has; the file is removed with this value.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        // Two tests at once may have files of one name.
        let (process, nth) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self(std::env::temp_dir().join(format!("pagebucket-{process}-{nth}-{name}")))
    }

    pub fn path(&self) -> &str {
        self.0.to_str().expect("text")
    }

    fn read(&self) -> Vec<u8> {
        std::fs::read(&self.0).expect("a file")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It need not have come to be.
        let _ = std::fs::remove_file(&self.0);
    }
}

async fn service() -> (Service, Place) {
    let service = Service::start().await;
    let place = Place {
        history: TRADES,
        uri: shared().await.uri().to_owned(),
        name: service.database.name().to_owned(),
    };
    (service, place)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_customer_as_over_http() {
    let (service, place) = service().await;
    fill(&service.database, TRADES, 7, 250, 3).await;
    for (flags, rest) in [
        (&[][..], ".ndjson"),
        (&["--format", "csv"], ".csv"),
        (&["--after", "2400"], ".ndjson?after=2400"),
        (
            &["--from", "2004-01-20T00:00:00Z", "--to", "2004-01-21T00:00:00+01:00"],
            ".ndjson?from=2004-01-20T00:00:00Z&to=2004-01-20T23:00:00Z",
        ),
        (&["--read-preference", "nearest"], ".ndjson"),
        (&["--fields", "qty,seq", "--format", "csv"], ".csv?fields=qty,seq"),
    ] {
        let over_http = service.client.get(&format!("/v1/customers/7/trades/export{rest}")).await.body;
        let exported = run(&mut place.pagebucket("export", &[&["--customer", "7"], flags].concat())).await;
        assert_eq!(exported.status, Some(0), "{exported:?}");
        assert!(exported.out.as_bytes() == over_http && over_http.len() > 500, "{flags:?}");
        let trades =
            exported.out.lines().filter(|line| !line.starts_with("customerId") && *line != "seq,qty").count();
        let trades =
            if trades > 999 { format!("{},{:03}", trades / 1000, trades % 1000) } else { trades.to_string() };
        assert!(
            exported.err.contains(&format!("exported {trades} trades of 1 customer in ")),
            "{}",
            exported.err
        );
    }
    let nobody = run(&mut place.pagebucket("export", &["--customer", "8", "--format", "csv"])).await;
    assert_eq!((nobody.status, nobody.out.lines().count()), (Some(0), 1), "{nobody:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_customers_can_be_imported() {
    let (service, place) = service().await;
    let mut expected = Vec::new();
    // More than are listed at once.
    for customer in (1..=130).rev() {
        let many: Vec<Value> =
            (0..customer % 23 + 1).map(|n| trade_at(n * 1000 + customer, "2004-01-09T00:00:00Z")).collect();
        service.client.append(customer, &json!(many)).await.expect(201);
        for page in 1..=(customer % 23 + 1).div_ceil(10) {
            let path = format!("/v1/customers/{customer}/trades/pages/{page}");
            let stored = service.client.get(&path).await;
            assert_eq!(stored.status, 200, "{path}");
            expected.push((path, stored.body));
        }
    }
    for name in ["all.csv", "all.ndjson"] {
        let file = Scratch::new(name);
        let exported = run(&mut place.pagebucket("export", &["-o", file.path()])).await;
        assert_eq!(exported.status, Some(0), "{exported:?}");
        assert!(exported.out.contains(" trades of 130 customers in "), "{}", exported.out);
        let other = Service::start().await;
        let there = Place { history: TRADES, uri: place.uri.clone(), name: other.database.name().to_owned() };
        let imported = run(&mut there.pagebucket("import", &[file.path()])).await;
        assert_eq!(imported.status, Some(0), "{imported:?}");
        for (path, page) in &expected {
            assert!(other.client.get(path).await.body == *page, "{name}: {path}");
        }
        let rest = run(&mut place.pagebucket("export", &["--all", "--after-customer", "129"])).await;
        assert!(rest.out.lines().all(|line| line.starts_with("{\"customerId\":130,")), "{rest:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_usage_leaves_no_file() {
    let (_, place) = service().await;
    let file = Scratch::new("there.csv");
    std::fs::write(&file.0, "mine").expect("to write");
    let refused = run(&mut place.pagebucket("export", &["-o", file.path()])).await;
    assert!(refused.sentence(2).contains("already"), "{refused:?}");
    assert_eq!(file.read(), b"mine");
    let nowhere = Scratch::new("none.csv");
    let gone = Place { history: TRADES, uri: "mongodb://127.0.0.1:1/".to_owned(), name: "x".to_owned() };
    let failed = run(&mut gone.pagebucket("export", &["--all", "-o", nowhere.path()])).await;
    assert!(failed.sentence(3).contains("no MongoDB server answers"), "{failed:?}");
    // A database without migrations is not touched, nor taken for an empty one.
    let empty = Place::new().await;
    let failed = run(&mut empty.pagebucket("export", &["--all", "-o", nowhere.path()])).await;
    assert_eq!(failed.status, Some(3), "{failed:?}");
    assert!(empty.database().await.list_collection_names().await.expect("names").is_empty());
    assert!(!nowhere.0.exists());
    let inside = Scratch::new("no/such/directory.csv");
    let failed = run(&mut place.pagebucket("export", &["--all", "-o", inside.path()])).await;
    assert!(failed.sentence(2).contains("No such file or directory"), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_waited_for() {
    let mongod = Mongod::failing().await;
    let service = Setup::on(&mongod).start().await;
    fill(&service.database, TRADES, 7, 1_000, 10).await;
    let place =
        Place { history: TRADES, uri: mongod.uri().to_owned(), name: service.database.name().to_owned() };
    // Far more often than one read tries within its five seconds.
    let data = doc! { "failCommands": ["find"], "closeConnection": true, "namespace": format!("{}.trades", place.name) };
    mongod.fail_point("failCommand", doc! { "times": 60 }, data).await;
    let exported = run(&mut place.pagebucket("export", &["--customer", "7"])).await;
    assert_eq!(exported.status, Some(0), "{}", exported.err);
    assert_eq!(exported.out.lines().count(), 10_000);
    assert!(exported.err.contains("waiting for the database"), "{}", exported.err);
    drop(service);
    mongod.remove().await;
}

/// Its reader is slow; the signal is heard all the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_says_where_to_go_on() {
    let (service, place) = service().await;
    fill(&service.database, TRADES, 7, 3_000, 10).await;
    service.client.append(8, &trade(1)).await.expect(201);
    let mut running = place.pagebucket("export", &["--all"]).spawn().expect("to run");
    let mut out = running.stdout.take().expect("a pipe");
    let mut read = vec![0; 4096];
    out.read_exact(&mut read).await.expect("rows");
    signal("INT", running.id().expect("it runs"));
    let mut err = String::new();
    let mut stderr = running.stderr.take().expect("a pipe");
    tokio::time::timeout(PATIENCE, stderr.read_to_string(&mut err)).await.expect("it ends").expect("UTF-8");
    assert_eq!(running.wait().await.expect("its end").code(), Some(130), "{err}");
    tokio::time::timeout(Duration::from_secs(60), out.read_to_end(&mut read)).await.expect("an end").ok();
    let last = err.lines().last().expect("a line");
    let after = last.split("--owner 7 --after ").nth(1).and_then(|rest| rest.split(',').next());
    let after: u64 = after.unwrap_or_else(|| panic!("{err}")).parse().expect("a seq");
    assert!(last.ends_with(", then --after-owner 7"), "{last}");
    // So much is there, whole; a piece of the next batch may be, too.
    let whole = String::from_utf8(read).expect("UTF-8").matches('\n').count() as u64;
    assert!(after <= whole && whole < after + 2_000 && after < 30_000, "{after} of {whole}");
}
