//! `pagebucket import`, through the real binary.

mod addresses;
mod interrupted;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mongodb::bson::{Document, doc};
use pagebucket_http::OpenParts;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdin, Command};

use crate::harness::tokens::{Issuer, claims};
use crate::harness::{
    Mongod, Service, Setup, TOTAL, TRADES, eventually, free_port, leave_out, shared, spawn, stored,
};

#[tokio::test(flavor = "multi_thread")]
async fn the_example() {
    let service = Service::start().await;
    let example = path("examples/trades.csv");
    let output = import(&service, &[&example, "--customer", "7"]).await;
    let said = summary(&output, 0);
    assert!(said.starts_with("stored 25 trades of 1 customer in "), "{said}");
    assert!(said.ends_with("refused 0 rows\ncustomer 7 now has 25 trades on 3 pages\n"), "{said}");
    let page = service.client.get("/v1/customers/7/trades?page=3").await.expect(200);
    assert_eq!(
        page["items"][4],
        json!({
            "seq": 25, "type": "sell", "ticker": "BRK.B", "qty": 7, "price": "489.22",
            "date": "2025-09-04T20:30:11.000Z"
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_file() {
    let file = std::env::var_os("PAGEBUCKET_TRANSACTIONS")
        .map_or_else(|| path("../shared/data/transactions_2004_2009.csv").into(), PathBuf::from);
    if !file.exists() {
        return leave_out("the real file of transactions", &format!("there is no {}", file.display()));
    }
    let service = Service::start().await;
    let output = import(&service, &[&file.to_string_lossy(), "--customer", "7"]).await;
    let said = summary(&output, 0);
    assert!(said.starts_with("stored 9,367 trades of 1 customer in "), "{said}");
    assert!(said.ends_with("customer 7 now has 9,367 trades on 937 pages\n"), "{said}");
    let first = service.client.get("/v1/customers/7/trades").await.expect(200);
    assert_eq!((&first[TOTAL], &first["totalPages"]), (&json!(9_367), &json!(937)));
    assert_eq!(
        first["items"][0],
        json!({
            "seq": 1, "type": "buy", "ticker": "AMD", "qty": 448, "price": "15.54",
            "date": "2004-01-09T00:00:00.000Z"
        })
    );
    assert_eq!(first["items"][1]["price"], "4.82375000001");
    assert_eq!(first["items"][8]["type"], "sell");
    let last = service.client.get("/v1/customers/7/trades?page=937").await.expect(200);
    assert_eq!(last["items"].as_array().map(Vec::len), Some(7));
    assert_eq!(service.stored(7).await.numbers.len(), 9_367);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_rows_are_told_and_the_rest_is_stored() {
    let service = Service::start().await;
    let mut text = "\u{feff}date,symbol,amount,price\r\n".to_owned();
    text += "2004-01-09,AMD,1,15.54\r\n2004-01-09,AMD,0,15.54\r\n\r\n2004-01-09,\"AMD,2,\r\n";
    text += "1073606400000,AMD,3,\r\n2004-01-09 00:00:00+00:00,AMD,4,1e3\r\n2004-01-09,AMD,5\r\n";
    text += &format!("2004-01-09,AMD,6,{}\r\n2004-01-09T00:00:00Z,AMD,-7,1.50", "1".repeat(100_000));
    let output = import_text(&service, &text, &["--format", "csv", "--customer", "7"]).await;
    let said = summary(&output, 1);
    assert!(said.starts_with("stored 3 trades of 1 customer"), "{said}");
    assert!(said.contains("\nrefused 5 rows\n"), "{said}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let told: Vec<_> = told.lines().filter(|line| line.starts_with("line ")).collect();
    let expected = [
        "line 3: \"amount\" must be a whole number other than 0",
        "line 5: opens a quote that is not closed",
        "line 7: \"price\" must be a positive decimal number in plain notation",
        "line 8: has 3 fields, and the header has 4",
        "line 9: is longer than 65536 bytes",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told}");
    }
    service.stored(7).await.holds_exactly([1, 3, 7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_stops_at_the_first_bad_row() {
    let service = Service::start().await;
    let text = "customerId,type,ticker,qty,date\n1,buy,A,1,2004-01-09\n2,sell,B,2,2004-01-09\n1,hold,A,3,2004-01-09\n1,buy,A,4,2004-01-09\n";
    let flags = ["--format", "csv", "--strict"];
    let output = import_text(&service, text, &flags).await;
    let said = summary(&output, 1);
    assert!(said.starts_with("stored 2 trades of 2 customers"), "{said}");
    assert!(said.ends_with("what came before it is stored\nto go on: --from-line 4\n"), "{said}");
    // With that row mended, what it says helps.
    let mended = text.replace("hold", "buy");
    let output = import_text(&service, &mended, &[&flags[..], &["--from-line", "4"]].concat()).await;
    assert!(summary(&output, 0).starts_with("stored 2 trades of 1 customer"));
    service.stored(1).await.holds_exactly([1, 3, 4]);
    service.stored(2).await.holds_exactly([2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn extended_json() {
    let service = Service::start().await;
    let text = r#"
        {"_id":{"$oid":"6553e2b0c0ffee0000000000"},"customerId":{"$numberLong":"7"},"type":"buy","ticker":"MDB","qty":{"$numberInt":"419"},"price":{"$numberDecimal":"15.50"},"date":{"$date":{"$numberLong":"1073606400000"}}}
        {"customerId":7,"type":"sell","ticker":"MDB","qty":419,"price":4.82375000001,"date":{"$date":"2004-01-09T00:00:00.5Z"}}
        {"customerId":7,"ticker":"MDB","qty":{"$numberDouble":"-1.0"},"date":{"$date":0},"tags":[{"$date":"x"}]}
        {"customerId":7,"ticker":"MDB","qty":1.5,"date":{"$date":0}}
        not JSON"#;
    let output = import_text(&service, text, &["--format", "ndjson"]).await;
    let said = summary(&output, 1);
    assert!(said.starts_with("stored 3 trades") && said.contains("refused 2 rows"), "{said}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("line 5: \"qty\" must be a whole number") && told.contains("line 6: is not JSON"));
    let page = service.client.get("/v1/customers/7/trades").await.expect(200);
    assert_eq!(
        page["items"],
        json!([
            { "seq": 1, "type": "buy", "ticker": "MDB", "qty": 419, "price": "15.50", "date": "2004-01-09T00:00:00.000Z" },
            { "seq": 2, "type": "sell", "ticker": "MDB", "qty": 419, "price": "4.82375000001", "date": "2004-01-09T00:00:00.500Z" },
            { "seq": 3, "type": "sell", "ticker": "MDB", "qty": 1, "date": "1970-01-01T00:00:00.000Z" }
        ])
    );
}

/// Rows in which two columns may be one property, and lines that end with CR alone, are refused before
/// anything is stored.
#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_misread_is_refused() {
    let service = Service::start().await;
    let csv = "date,symbol,type,quantity,price,amount\n2024-01-15,AAPL,buy,10,150.00,1500\n";
    let ndjson =
        r#"{"customerId":7,"type":"buy","ticker":"AAPL","quantity":10,"amount":1500,"date":"2024-01-15"}"#;
    let lone_cr = "date,type,ticker,qty,price\r2024-01-15,buy,AAPL,5,150.00\r2024-01-16,sell,AAPL,5,151.00\r";
    let (names, cr) = ("\"amount\" and \"quantity\", each of which may be \"qty\"", "carriage return (CR)");
    for (text, format, part) in [(csv, "csv", names), (ndjson, "ndjson", names), (lone_cr, "csv", cr)] {
        let owner = if format == "csv" { &["--customer", "7"][..] } else { &[] };
        let output = import_text(&service, text, &[&["--format", format], owner].concat()).await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(part) && (part == cr || said.contains("--column qty=NAME")), "{said}");
    }
    let flags = ["--format", "csv", "--customer", "7"];
    let output = import_text(&service, csv, &[&flags[..], &["--column", "qty=quantity"]].concat()).await;
    assert!(summary(&output, 0).starts_with("stored 1 trade of 1 customer"), "{output:?}");
    service.stored(7).await.holds_exactly([10]);
    // Rows of commas alone are blank.
    let output = import_text(&service, "date,ticker,qty\n,,\n,,,,\n", &flags).await;
    let said = summary(&output, 0);
    assert!(said.ends_with("\nrefused 0 rows\nthere were no rows to import\n"), "{said}");
}

/// More customers than appends under way, some with several batches, some with few rows.
#[tokio::test(flavor = "multi_thread")]
async fn each_customer_keeps_its_order() {
    let service = Service::start().await;
    let customer_of = |n: i64| if n % 3 == 0 { 1 } else { n % 101 + 2 };
    let rows = (1..=9_000).map(|n| format!("{},A,{n},2004-01-09\n", customer_of(n)));
    let text = format!("customerId,ticker,qty,date\n{}", rows.collect::<String>());
    let output = import_text(&service, &text, &["--format", "csv"]).await;
    assert!(summary(&output, 0).starts_with("stored 9,000 trades of 102 customers"), "{output:?}");
    for customer in 1..=102 {
        let expected = (1..=9_000).filter(|&n| customer_of(n) == customer);
        service.stored(customer as u64).await.holds_exactly(expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_usage_needs_no_database() {
    let example = path("examples/trades.csv");
    for (flags, part) in [
        (&[&*example][..], "give --owner ID for all rows"),
        (&[&*example, "--customer", "7", "--column", "price=cost"], "there are \"type\", \"ticker\""),
        (&["nowhere.csv", "--customer", "7"], "No such file"),
        (&["-"], "--format"),
    ] {
        let uri = ["--mongodb-uri", "mongodb://127.0.0.1:1/"];
        let output = command(&[flags, &uri].concat()).output().await.expect("the binary runs");
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(output.stdout.is_empty());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(part), "{flags:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_fails_is_told() {
    let service = Service::start().await;
    // A tail that says nothing: no append can go on from it, now or later.
    let corrupt = doc! { "insert": "trades", "bypassDocumentValidation": true,
    "documents": [{ "_id": "7_0000000001", "customerId": 7_i64, "page": 1_i64, "count": 11, "history": [] }] };
    service.database.run_command(corrupt).await.expect("it takes anything");
    let output = import(&service, &[&path("examples/trades.csv"), "--customer", "7"]).await;
    let said = summary(&output, 3);
    assert!(said.starts_with("stored 0 trades in "), "{said}");
    assert!(said.contains("\nstopped: bucket 7_0000000001 is corrupt"), "{said}");
    assert!(said.ends_with("\nread but not stored: 25 rows\nto go on: --from-line 2\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_waited_for() {
    let mongod = Mongod::own().await;
    let service = Setup::on(&mongod).start().await;
    let mut running = start_on(&mongod, &service, &["-", "--format", "csv", "--customer", "7"]);
    let mut input = running.stdin.take().expect("it is piped");
    input.write_all(b"ticker,qty,date\nA,1,2004-01-09\n").await.expect("it reads");
    until_stored(&service, 1).await;

    mongod.stop().await;
    input.write_all(b"A,2,2004-01-09\nA,3,2004-01-09\n").await.expect("it reads");
    let mut said = BufReader::new(running.stderr.take().expect("it is piped")).lines();
    let waits = async {
        while !said.next_line().await.expect("text").expect("it goes on").contains("waiting for the database")
        {
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waits).await.expect("it says that it waits");
    spawn(async move { while let Ok(Some(_)) = said.next_line().await {} });
    mongod.start().await;
    mongod.until_primary().await;
    drop(input);
    let output = running.wait_with_output().await.expect("it ends");
    assert!(summary(&output, 0).starts_with("stored 3 trades of 1 customer"), "{output:?}");
    service.stored(7).await.holds_exactly([1, 2, 3]);
    drop(service);
    mongod.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_stores_what_was_read() {
    let service = Service::start().await;
    let mut running = start_on(shared().await, &service, &["-", "--format", "csv", "--customer", "7"]);
    let mut input = running.stdin.take().expect("it is piped");
    input.write_all(b"ticker,qty,date\nA,1,2004-01-09\nA,2,2004-01-09\nA,3,20").await.expect("it reads");
    // Rows do not wait for those that have not come yet.
    until_stored(&service, 2).await;
    let process = running.id().expect("it runs").to_string();
    Command::new("kill").args(["-INT", &process]).status().await.expect("there is a kill");
    let output = running.wait_with_output().await.expect("it ends");
    let said = summary(&output, 130);
    assert!(said.starts_with("stored 2 trades of 1 customer"), "{said}");
    assert!(said.ends_with("\ninterrupted\nto go on: --from-line 4\n"), "{said}");
    drop(input);
}

async fn until_stored(service: &Service, trades: usize) {
    eventually("the rows are stored", Duration::from_secs(30), || async {
        let buckets = service.database.collection::<Document>("trades");
        let first = buckets.find_one(doc! { "customerId": 7_i64 }).await.ok().flatten();
        first.is_some_and(|bucket| bucket.get_i32("count").ok() == Some(trades as i32))
    })
    .await;
}

/// Runs an import to the service's database.
async fn import(service: &Service, flags: &[&str]) -> Output {
    start_on(shared().await, service, flags).wait_with_output().await.expect("it ends")
}

/// The same of a text on standard input.
async fn import_text(service: &Service, text: &str, flags: &[&str]) -> Output {
    let mut running = start_on(shared().await, service, &[&["-"], flags].concat());
    let mut input = running.stdin.take().expect("it is piped");
    // With --strict it may stop before it has read all.
    let _ = input.write_all(text.as_bytes()).await;
    drop(input);
    running.wait_with_output().await.expect("it ends")
}

fn start_on(mongod: &Mongod, service: &Service, flags: &[&str]) -> Child {
    let database = ["--mongodb-uri", mongod.uri(), "--database", service.database.name()];
    command(&[flags, &database].concat()).spawn().expect("the binary runs")
}

/// The import, without anything from the environment of the tests.
fn command(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagebucket"));
    command.arg("import").args(flags).env_clear().kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The same through a running server.
async fn import_through(service: &Service, text: &str, flags: &[&str]) -> Output {
    import_at(service.address(), text, flags).await
}

async fn import_at(server: SocketAddr, text: &str, flags: &[&str]) -> Output {
    let url = format!("http://{server}");
    let mut running = command(&[&["-", "--url", &url], flags].concat()).spawn().expect("the binary runs");
    let mut input = running.stdin.take().expect("it is piped");
    let _ = input.write_all(text.as_bytes()).await;
    drop(input);
    running.wait_with_output().await.expect("it ends")
}

/// CSV of these quantities, with a header and two lines a row.
fn two_lines_each(quantities: impl Iterator<Item = u64>) -> String {
    let rows = quantities.map(|qty| format!("AMD,{qty},2004-01-09,\"a\nnote\"\n"));
    format!("ticker,qty,date,note\n{}", rows.collect::<String>())
}

#[tokio::test(flavor = "multi_thread")]
async fn through_a_server() {
    let service = Service::start().await;
    let url = format!("http://{}", service.address());
    let example = path("examples/trades.csv");
    let running = command(&[&example, "--customer", "7", "--url", &url]).spawn().expect("the binary runs");
    let said = summary(&running.wait_with_output().await.expect("it ends"), 0);
    assert!(said.starts_with("stored 25 trades of 1 customer in "), "{said}");
    assert!(said.ends_with("refused 0 rows\ncustomer 7 now has 25 trades on 3 pages\n"), "{said}");
    let page = service.client.get("/v1/customers/7/trades?page=3").await.expect(200);
    assert_eq!(
        (&page["items"][4]["ticker"], &page["items"][4]["price"]),
        (&json!("BRK.B"), &json!("489.22"))
    );
    // Many customers, more rows than wait at once, and bad ones.
    let row =
        |n: u64| format!("{},AMD,{},2004-01-09\n", n % 50 + 1, if n.is_multiple_of(10_000) { 0 } else { n });
    let text = format!("customerId,ticker,qty,date\n{}", (1..=150_000).map(row).collect::<String>());
    let output = import_through(&service, &text, &["--format", "csv"]).await;
    let said = summary(&output, 1);
    assert!(said.starts_with("stored 149,985 trades of 50 customers in "), "{said}");
    assert!(said.contains("refused 15 rows"), "{said}");
    let found = service.stored(2).await.numbers;
    assert_eq!(found, (1..=150_000).filter(|n| n % 50 == 1).collect::<Vec<_>>(), "their order is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_customer_keeps_no_other() {
    let service = Service::start().await;
    let url = service.client.url("/v1/customers/7");
    let erased = reqwest::Client::new().delete(url).header("content-type", "application/json");
    assert!(erased.send().await.expect("an answer").status().is_success());
    let text = "customerId,ticker,qty,date\n8,A,1,2004-01-09\n7,A,2,2004-01-09\n9,A,3,2004-01-09\n";
    for flags in [&["--format", "csv"][..], &["--format", "csv", "--key", "k"]] {
        let output = import_text(&service, text, flags).await;
        let said = summary(&output, 1);
        assert!(said.starts_with("stored 2 trades of 2 customers in "), "{said}");
        assert!(said.contains("refused 1 row\n"), "{said}");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("line 3: the owner is erased"), "{told}");
    }
    let all = &["--format", "csv", "--customer", "7"];
    let one = import_text(&service, "ticker,qty,date\nA,2,2004-01-09\n", all).await;
    assert!(summary(&one, 3).contains("stopped: the owner is erased"), "{one:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_keeps_silent_is_left_at_the_second_signal() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let mut running =
        command(&["-", "--format", "csv", "--customer", "7", "--url", &url]).spawn().expect("it runs");
    let mut input = running.stdin.take().expect("it is piped");
    input.write_all(two_lines_each(1..=3).as_bytes()).await.expect("it reads");
    let (mut wire, _) = silent.accept().await.expect("a connection");
    let (mut request, mut piece) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&request).contains("\"qty\":3") {
        let read = wire.read(&mut piece).await.expect("its request");
        assert!(read > 0, "it does not close");
        request.extend_from_slice(&piece[..read]);
    }
    let process = running.id().expect("it runs").to_string();
    let interrupt =
        async || Command::new("kill").args(["-INT", &process]).status().await.expect("there is a kill");
    interrupt().await;
    let mut told = BufReader::new(running.stderr.take().expect("it is piped")).lines();
    let stops = async {
        while !told.next_line().await.expect("text").expect("it says that it stops").starts_with(
            "stopping: rows that were read are not sent any more; waiting for 3 rows under way; a second Ctrl-C does not wait",
        ) {}
    };
    tokio::time::timeout(Duration::from_secs(60), stops).await.expect("at once");
    interrupt().await;
    let status = tokio::time::timeout(Duration::from_secs(60), running.wait()).await.expect("an end");
    assert_eq!(status.expect("its status").code(), Some(130));
    let mut said = String::new();
    running.stdout.take().expect("it is piped").read_to_string(&mut said).await.expect("text");
    assert!(said.starts_with("stored 0 trades") && said.contains("unknown"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_continues_an_import() {
    let service = Service::start().await;
    let flags = ["--format", "csv", "--customer", "7", "--key", "k"];
    for count in [1_500, 4_000, 4_000] {
        let said = summary(&import_text(&service, &two_lines_each(1..=count), &flags).await, 0);
        let stored = if count == 1_500 { "1,500" } else { "4,000" };
        assert!(said.starts_with(&format!("stored {stored} trades of 1 customer in ")), "{said}");
    }
    assert_eq!(service.stored(7).await.numbers, (1..=4_000).collect::<Vec<_>>());
    let changed = two_lines_each((1..=4_000).map(|qty| if qty == 2 { 9_999 } else { qty }));
    let output = import_text(&service, &changed, &flags).await;
    assert!(summary(&output, 1).contains("refused 1 row"), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("line 4: it differs from the line that an earlier upload"), "{told}");
    let bad = import_text(&service, "", &["--format", "csv", "--customer", "7", "--key", "a b"]).await;
    assert_eq!(bad.status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_continues_through_a_server() {
    let service = Service::start().await;
    let flags = ["--format", "csv", "--customer", "7", "--key", "k"];
    summary(&import_through(&service, &two_lines_each(1..=1_500), &flags).await, 0);
    // A row that has become bad does not shift the others; the next is known by its line.
    let spoilt = two_lines_each((1..=3_000).map(|qty| if qty == 500 { 0 } else { qty }));
    let said = summary(&import_through(&service, &spoilt, &flags).await, 1);
    assert!(said.starts_with("stored 2,999 trades") && said.contains("refused 1 row"), "{said}");
    // The same rows, in the same file, are the same to the database itself.
    summary(&import_text(&service, &two_lines_each(1..=3_100), &flags).await, 0);
    assert_eq!(service.stored(7).await.numbers, (1..=3_100).collect::<Vec<_>>());
}

/// An import through the service of two lines a row, with its input still open; the rows are stored.
async fn begun_through(service: &Service, rows: u64, flags: &[&str]) -> (Child, ChildStdin) {
    let url = format!("http://{}", service.address());
    let flags = [&["-", "--format", "csv", "--customer", "7", "--url", &url], flags].concat();
    let mut running = command(&flags).spawn().expect("the binary runs");
    let mut input = running.stdin.take().expect("it is piped");
    input.write_all(two_lines_each(1..=rows).as_bytes()).await.expect("it reads");
    eventually("they are stored", Duration::from_secs(60), async || service.client.total(7).await == rows)
        .await;
    (running, input)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_is_told() {
    // Without a key nothing is sent again.
    let service = Service::start().await;
    let (running, input) = begun_through(&service, 1_000, &[]).await;
    let database = service.database.clone();
    assert!(service.stop().await, "it ends in time");
    let output = running.wait_with_output().await.expect("it ends");
    drop(input);
    let said = summary(&output, 3);
    assert!(said.starts_with("stored 1,000 trades"), "{said}");
    assert!(said.contains("stopped: the server says: This instance is stopping."), "{said}");
    assert!(said.ends_with("to go on: --from-line 2001\n"), "{said}");
    assert_eq!(stored(&database, TRADES, 7).await.numbers.len(), 1_000);
    // With one, until it is interrupted.
    let service = Service::start().await;
    let (mut running, mut input) = begun_through(&service, 1_000, &["--key", "k"]).await;
    assert!(service.stop().await, "it ends in time");
    input.write_all(b"AMD,1001,2004-01-09,\n").await.expect("it reads");
    let mut told = BufReader::new(running.stderr.take().expect("it is piped")).lines();
    while let Some(line) = told.next_line().await.expect("text") {
        // Not the first time: by then there is nobody.
        if line.contains("does not answer: ") && line.ends_with("; trying again") {
            break;
        }
    }
    let process = running.id().expect("it runs").to_string();
    Command::new("kill").args(["-INT", &process]).status().await.expect("there is a kill");
    let said = summary(&running.wait_with_output().await.expect("it ends"), 130);
    assert!(said.starts_with("stored 1,000 trades") && said.contains("\ninterrupted\n"), "{said}");
    assert!(said.contains("read but not stored: 1 row\n") && !said.contains("unknown"), "{said}");
    assert!(said.ends_with("to go on: run it again with the same --key\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_is_gone_on_with() {
    let mut setup = Setup::on(shared().await);
    // A port that is still free when it comes back.
    setup.config.server.listen.set_port(free_port());
    let service = setup.start().await;
    let (running, mut input) = begun_through(&service, 1_000, &["--key", "k"]).await;
    let mut again = Setup::on(shared().await);
    again.config.server.listen = service.address();
    again.connection.database = service.database.name().to_owned();
    assert!(service.stop().await, "it ends in time");
    let service = again.start().await;
    let rest = two_lines_each(1_001..=2_000);
    let rest = rest.split_once('\n').expect("a header").1;
    input.write_all(rest.as_bytes()).await.expect("it reads");
    drop(input);
    let output = running.wait_with_output().await.expect("it ends");
    let said = summary(&output, 0);
    assert!(said.starts_with("stored 2,000 trades of 1 customer"), "{said}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("; trying again"), "{output:?}");
    assert_eq!(service.stored(7).await.numbers, (1..=2_000).collect::<Vec<_>>());
}

/// Leads to `server`; of the first connections it passes on so many bytes, and then cuts them.
async fn cutting(server: SocketAddr, cuts: u32, bytes: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    spawn(async move {
        let mut connection = 0;
        while let Ok((client, _)) = listener.accept().await {
            connection += 1;
            let most = if connection <= cuts { bytes } else { u64::MAX };
            spawn(async move {
                let (read, mut write) = client.into_split();
                let (back, mut there) = TcpStream::connect(server).await.expect("the server").into_split();
                let answer = spawn(async move {
                    let mut back = back;
                    tokio::io::copy(&mut back, &mut write).await.ok();
                });
                tokio::io::copy(&mut read.take(most), &mut there).await.ok();
                if most < u64::MAX {
                    answer.abort();
                } else {
                    // The client has sent all, and waits for the rest of the answer.
                    there.shutdown().await.ok();
                }
                answer.await.ok();
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_lost() {
    let service = Service::start().await;
    let row = |n: u64| format!("{},AMD,{n},2004-01-09\n", n % 5 + 1);
    let text = format!("customerId,ticker,qty,date\n{}", (1..=20_000).map(row).collect::<String>());
    let flags = ["--format", "csv", "--key", "k"];
    let through = cutting(service.address(), 3, 300_000).await;
    let output = import_at(through, &text, &flags).await;
    let said = summary(&output, 0);
    assert!(said.starts_with("stored 20,000 trades of 5 customers in "), "{said}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(told.matches("; trying again").count(), 3, "{told}");
    for customer in 1..=5 {
        let expected = (1..=20_000).filter(|n| n % 5 + 1 == customer);
        assert_eq!(service.stored(customer as u64).await.numbers, expected.collect::<Vec<_>>());
    }
    // Without a key nothing is sent again, and what may be stored is told.
    let through = cutting(service.address(), 1, 300_000).await;
    let text = text.replace(",AMD,", ",MDB,");
    let output = import_at(through, &text, &flags[..2]).await;
    let said = summary(&output, 3);
    assert!(
        said.contains("unknown whether stored: ") && said.contains("look into those histories"),
        "{said}"
    );
}

/// Leads to `server`. On the first connections it keeps the answers to itself, and once so many rows are
/// stored sends another, and goes on reading.
async fn answering_for(server: SocketAddr, connections: u32, rows: usize, answer: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    let used = Arc::new(AtomicU32::new(0));
    spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (answer, used) = (answer.clone(), used.clone());
            spawn(async move {
                // A client may open a connection that it then does not need.
                if client.peek(&mut [0]).await.is_ok_and(|bytes| bytes == 0) {
                    return;
                }
                let mut server = TcpStream::connect(server).await.expect("the server");
                if used.fetch_add(1, Ordering::Relaxed) >= connections {
                    tokio::io::copy_bidirectional(&mut client, &mut server).await.ok();
                    return;
                }
                let ((mut read, mut write), (mut back, mut there)) = (client.split(), server.split());
                let stored = async {
                    let mut told = Vec::new();
                    while told.windows(6).filter(|bytes| bytes == b"\"seq\":").count() < rows {
                        assert_ne!(back.read_buf(&mut told).await.expect("outcomes"), 0, "an early end");
                    }
                    write.write_all(answer.as_bytes()).await.ok();
                    write.shutdown().await.ok();
                };
                tokio::join!(tokio::io::copy(&mut read, &mut there), stored).0.ok();
            });
        }
    });
    address
}

/// Rows went through a proxy, and the proxy answers: only what says by itself that it is a server's own, and
/// that nothing was stored, is believed.
#[tokio::test(flavor = "multi_thread")]
async fn answers_of_others() {
    const ROWS: u64 = 300;
    let service = Service::start().await;
    let problem = |r#type: &str, status: u16| {
        json!({ "type": r#type, "title": "t", "status": status, "detail": "Nothing was stored." }).to_string()
    };
    let unknown = [
        (502, "text/plain", "bad gateway".to_owned()),
        (504, "text/html", "<html><h1>Gateway Timeout</h1></html>".to_owned()),
        (503, "application/problem+json", problem("about:blank", 503)),
        (503, "application/problem+json", problem("https://proxy.example/problems#overloaded", 503)),
        (502, "application/problem+json", problem("/problems#overloaded", 503)),
        (503, "application/json", problem("/problems#overloaded", 503)),
        (503, "application/problem+json", problem("/problems#timed-out", 503)),
        (200, "application/json", problem("/problems#overloaded", 503)),
        (200, "application/x-ndjson", format!("{}\n", problem("about:blank", 503))),
        (413, "text/html", "<html><h1>Request Entity Too Large</h1></html>".to_owned()),
    ];
    let head = |status: u16, media_type: &str, body: &str| {
        let length = body.len();
        format!(
            "HTTP/1.1 {status} Words\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    };
    let text = two_lines_each(1..=ROWS);
    let stored = async |customer: u64| service.stored(customer).await.numbers;
    let expected: Vec<_> = (1..=ROWS as i64).collect();
    for (customer, (status, media_type, body)) in (1..).zip(unknown) {
        let answer = head(status, media_type, &body);
        let through = answering_for(service.address(), 1, ROWS as usize, answer.clone()).await;
        let (name, keyed) = (customer.to_string(), (customer + 100).to_string());
        let output = import_at(through, &text, &["--format", "csv", "--customer", &name]).await;
        let said = summary(&output, 3);
        let told = format!("unknown whether stored: {ROWS} rows of customer {customer}, lines 2 to ");
        assert!(said.contains(&told) && said.contains("look into those histories"), "{answer}: {said}");
        assert!(!said.contains("read but not stored"), "{answer}: {said}");
        assert_eq!(stored(customer).await, expected);
        // With a key it goes on where that may help, and run again continues where it does not.
        let through = answering_for(service.address(), 1, ROWS as usize, answer.clone()).await;
        let flags = ["--format", "csv", "--customer", &keyed, "--key", "k"];
        let mut output = import_at(through, &text, &flags).await;
        if output.status.code() == Some(3) {
            assert!(status == 413 || media_type == "application/json", "{answer}: {output:?}");
            assert!(summary(&output, 3).ends_with("run it again with the same --key\n"), "{output:?}");
            output = import_at(through, &text, &flags).await;
        } else {
            assert!(String::from_utf8_lossy(&output.stderr).contains("; trying again"), "{output:?}");
        }
        assert!(summary(&output, 0).starts_with(&format!("stored {ROWS} trades")), "{answer}: {output:?}");
        assert_eq!(stored(customer + 100).await, expected, "{answer}");
    }
    // A server's own word passes through the proxy. (Here it is a lie: the rows are stored.)
    let answer = head(503, "application/problem+json", &problem("/problems#shutting-down", 503));
    let through = answering_for(service.address(), 1, ROWS as usize, answer).await;
    let said = summary(&import_at(through, &text, &["--format", "csv", "--customer", "99"]).await, 3);
    assert!(said.contains("read but not stored: 300 rows\n") && !said.contains("unknown"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_server() {
    let example = path("examples/trades.csv");
    let import = async |url: &str| {
        let running = command(&[&example, "--customer", "7", "--url", url]).spawn().expect("the binary runs");
        running.wait_with_output().await.expect("it ends")
    };
    let said = summary(&import("http://127.0.0.1:1").await, 3);
    assert!(said.contains("stopped: http://127.0.0.1:1 does not answer: "), "{said}");
    // The header, or the first row, whichever it had come to.
    assert!(said.contains("to go on: --from-line ") && !said.contains("unknown"), "{said}");
    let refused = import("ftp://127.0.0.1:1").await;
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("such as https://"), "{refused:?}");
    // A server that is none of ours.
    let service = Service::start().await;
    let said = summary(&import(&format!("http://{}/elsewhere", service.address())).await, 3);
    assert!(said.contains("stopped: the server answers 404 Not Found: "), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wants_a_token() {
    let issuer = Issuer::start().await;
    let mut setup = Setup::on(shared().await);
    setup.gate = issuer.gate(OpenParts::default()).await;
    let service = setup.start().await;
    let url = format!("http://{}", service.address());
    let (example, token) = (path("examples/trades.csv"), |scope: &str, customers| {
        issuer.signer.sign(&claims("backend", scope, customers))
    });
    let import = async |token: &str, status: i32| {
        let mut import = command(&[&example, "--customer", "7", "--key", "k", "--url", &url]);
        if !token.is_empty() {
            import.env("PAGEBUCKET_TOKEN", token);
        }
        let output = import.output().await.expect("the binary runs");
        let said = summary(&output, status) + &String::from_utf8_lossy(&output.stderr);
        assert!(token.is_empty() || !said.contains(token), "{said}");
        assert!(!said.contains("trying again"), "{said}");
        said
    };
    let said = import("", 3).await;
    assert!(
        said.contains("stopped: the server answers 401 Unauthorized: The request has no token"),
        "{said}"
    );
    assert!(said.contains("; a token is given with --token or PAGEBUCKET_TOKEN"), "{said}");
    assert!(said.contains("read but not stored: ") && !said.contains("unknown"), "{said}");
    assert!(import("sesame", 3).await.contains("the server answers 401 Unauthorized: "));
    for narrow in [token("read", json!("*")), token("append", json!([7]))] {
        let said = import(&narrow, 3).await;
        assert!(
            said.contains("stopped: the server answers 403 Forbidden: The token or key does not "),
            "{said}"
        );
        assert!(said.contains("an import needs a token with the scope `append`, for all owners"), "{said}");
    }
    assert!(import(&token("append", json!("*")), 0).await.starts_with("stored 25 trades of 1 customer"));
    assert_eq!(service.stored(7).await.numbers.len(), 25);
    let bad = command(&[&example, "--customer", "7", "--url", &url, "--token", "open sesame"]).output().await;
    let bad = bad.expect("the binary runs");
    let said = String::from_utf8_lossy(&bad.stderr);
    assert_eq!(bad.status.code(), Some(2), "{said}");
    assert!(said.contains("--token must be visible ASCII") && !said.contains("sesame"), "{said}");
}

/// Everyone on the way to another machine could read it. 0.0.0.0 leads to this machine, and does not say so.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_not_sent_in_plain_text() {
    let issuer = Issuer::start().await;
    let mut setup = Setup::on(shared().await);
    setup.gate = issuer.gate(OpenParts::default()).await;
    let service = setup.start().await;
    let (example, token) =
        (path("examples/trades.csv"), issuer.signer.sign(&claims("backend", "append", json!("*"))));
    let url = format!("http://0.0.0.0:{}", service.address().port());
    let import = async |url: &str, flags: &[&str]| {
        let mut import = command(&[&[&example, "--customer", "7", "--url", url], flags].concat());
        // It would be read by a proxy, too.
        import.env("PAGEBUCKET_TOKEN", &token).env("HTTP_PROXY", "http://192.0.2.1:1");
        let output = import.output().await.expect("the binary runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, said) = import(&url, &[]).await;
    assert!(status == Some(2) && said.contains("in plain text: use https"), "{said}");
    assert!(!said.contains(&token) && service.stored(7).await.numbers.is_empty(), "{said}");
    let (status, said) = import(&format!("http://{}", service.address()), &[]).await;
    assert_eq!(status, Some(0), "{said}");
    let unproxied = format!("http://localhost:{}", service.address().port());
    assert_eq!(import(&unproxied, &["--plain-text-token"]).await.0, Some(0));
}

/// An import waits, and continues, where it may send again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_limits() {
    let service = Service::start().await;
    let detail = "Too much.";
    let problem =
        json!({ "type": "/problems#too-many-requests", "title": "t", "status": 429, "detail": detail });
    let (problem, length) = (problem.to_string(), problem.to_string().len());
    let answer = format!(
        "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\n\
         Content-Length: {length}\r\n\r\n{problem}"
    );
    let through = answering_for(service.address(), 1, 20, answer).await;
    let flags = ["--format", "csv", "--customer", "7", "--key", "k"];
    let output = import_at(through, &two_lines_each(1..=20), &flags).await;
    assert!(summary(&output, 0).starts_with("stored 20 trades"), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let again = "the server answers 429 Too Many Requests: Too much; trying again";
    assert_eq!(told.matches(again).count(), 1, "{told}");
    assert_eq!(service.stored(7).await.numbers.len(), 20);
}

/// What it wrote to standard output.
fn summary(output: &Output, status: i32) -> String {
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("it writes text")
}

/// A file of the project.
fn path(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name).to_string_lossy().into_owned()
}
