//! `GET …/export`: whole, resumable, and never silently cut short.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mongodb::bson::{Document, doc};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::harness::{
    Answer, Harm, History, Mongod, PATIENCE, Proxy, Service, Setup, TRADES, Way, eventually, fill, shared,
    spawn, test_over, trade,
};

fn path(query: &str) -> String {
    of_7(TRADES, query)
}

/// The address of the export of owner 7, with a query.
fn of_7(history: &History, query: &str) -> String {
    history.at(7, &format!("/export.ndjson{query}"))
}

/// Writes a history of 200,000 items, without the last `but` of them.
async fn fill_200_000(service: &Service, but: u64) -> u64 {
    let history = service.history;
    let pages = 200_000 / history.page_size;
    fill(&service.database, history, 7, pages, history.page_size - but).await;
    pages * history.page_size - but
}

#[track_caller]
fn lines(body: &[u8]) -> Vec<Value> {
    let text = str::from_utf8(body).expect("UTF-8");
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is whole");
    text.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect()
}

fn seqs(rows: &[Value]) -> Vec<u64> {
    rows.iter().map(|row| row["seq"].as_u64().expect("a seq")).collect()
}

/// Those of a listing, followed to its end, as rows.
async fn listed(service: &Service, query: &str) -> Vec<Value> {
    let history = service.history;
    let mut rows = Vec::new();
    let mut next = Some(history.at(7, &format!("?limit=100{query}")));
    while let Some(path) = next {
        let listing = service.client.get(&path).await.expect(200);
        next = listing["links"].get("next").map(|next| next.as_str().expect("a link").to_owned());
        rows.extend(listing["items"].as_array().expect("items").iter().map(|item| {
            let mut row = json!({ (history.owner_field): history.owner(7) });
            row.as_object_mut().unwrap().extend(item.as_object().expect("an item").clone());
            row
        }));
    }
    rows
}

test_over!(rows_are_the_items_of_listings, ALL);
async fn rows_are_the_items_of_listings(history: &'static History) {
    let service = Service::of(history).await;
    // Not in order of date; a span of time is on few pages or on all.
    let day = |n: u64| format!("2004-01-{:02}T12:00:00Z", n * 7 % 31 + 1);
    let mut many: Vec<Value> = (1..=2_345).map(|n| history.item_at(n, &day(n))).collect();
    if history.name == TRADES.name {
        // With and without a price.
        many.iter_mut().step_by(3).for_each(|trade| trade["price"] = json!("15.50"));
    }
    for part in many.chunks(1000) {
        service.client.append(7, &json!(part)).await.expect(201);
    }
    fill(&service.database, history, 70, 3, 1).await;
    let columns = [&[history.owner_field, "seq"], history.columns].concat();
    let header = columns.join(",");
    for query in [
        "",
        "&after=0",
        "&after=5",
        "&after=10",
        "&after=999",
        "&after=2339",
        "&after=2344",
        "&after=2345",
        "&after=9007199254740991",
        "&from=2004-01-30T00:00:00Z",
        "&from=2004-01-10T12:00:00Z&to=2004-01-12T12:00:00.001Z",
        "&to=2004-01-05T00:00:00Z&after=1500",
        "&from=2005-01-01T00:00:00Z",
        "&from=2004-01-10T12:00:00Z&to=2004-01-10T12:00:00Z",
    ] {
        let expected = listed(&service, query).await;
        let answer = service.client.get(&of_7(history, &query.replacen('&', "?", 1))).await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/x-ndjson"));
        assert!(lines(&answer.body) == expected, "{query}: {} rows", expected.len());
        if history.columns.is_empty() {
            continue;
        }
        let csv = history.at(7, &format!("/export.csv{}", query.replacen('&', "?", 1)));
        let answer = service.client.get(&csv).await;
        assert_eq!(answer.header("content-type"), "text/csv; charset=utf-8; header=present");
        let text = String::from_utf8(answer.body).expect("UTF-8");
        let mut records = text.split_terminator("\r\n");
        assert_eq!(records.next(), Some(header.as_str()), "{query}");
        let field = |row: &Value, name: &str| match row.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(number) => number.to_string(),
            None => String::new(),
        };
        let record = |row: &Value| columns.iter().map(|name| field(row, name)).collect::<Vec<_>>().join(",");
        let expected: Vec<String> = expected.iter().map(record).collect();
        assert!(records.eq(expected), "{query}");
    }
    // A history that ends with a full page, and one of one item.
    fill(&service.database, history, 8, 200, history.page_size).await;
    service.client.append(9, &history.item(1)).await.expect(201);
    for (owner, total) in [(8, history.pages(200.0)), (9, 1), (70, history.pages(2.0) + 1), (404, 0)] {
        let answer = service.client.get(&history.at(owner, "/export.ndjson")).await;
        assert_eq!(seqs(&lines(&answer.body)), (1..=total).collect::<Vec<_>>());
    }
    if !history.columns.is_empty() {
        let unknown = service.client.get(&history.at(404, "/export.csv")).await;
        assert_eq!(String::from_utf8_lossy(&unknown.body), format!("{header}\r\n"));
    }
}

test_over!(fields_leave_out_the_others, ALL);
async fn fields_leave_out_the_others(history: &'static History) {
    let service = Service::of(history).await;
    let items: Vec<Value> = (1..=history.pages(1.5)).map(|n| history.item(n)).collect();
    service.client.append(7, &json!(items)).await.expect(201);
    let whole = listed(&service, "").await;
    // What the definition does not declare is stored, and has no name here.
    let row = whole[0].as_object().expect("a row");
    let names: Vec<_> = row.keys().filter(|name| *name != "battery").cloned().collect();
    if row.contains_key("battery") {
        let undeclared = service.client.get(&of_7(history, "?fields=battery")).await;
        undeclared.problem(400, "invalid-parameter");
    }
    // Each alone, and of all the first, the third, and so on.
    let every_second: Vec<_> = names.iter().step_by(2).cloned().collect();
    let alone = names.iter().map(|name| vec![name.clone()]);
    for fields in alone.chain([every_second]) {
        let expected = whole.iter().map(|row| {
            let members = row.as_object().expect("a row").iter();
            let named = members.filter(|(name, _)| fields.contains(name));
            Value::Object(named.map(|(name, value)| (name.clone(), value.clone())).collect())
        });
        // Also repeated, which is what clients send that know no lists.
        for between in [",", "%2C", "&fields="] {
            let query = format!("?after=0&fields={}", fields.join(between));
            let rows = service.client.get(&of_7(history, &query)).await.body;
            assert!(lines(&rows).into_iter().eq(expected.clone()), "{query}");
        }
    }
}

/// They keep the order of columns, and what an item has not is left out.
#[tokio::test(flavor = "multi_thread")]
async fn fields_as_they_are_written() {
    let service = Service::start().await;
    let mut priced = trade(2);
    priced["price"] = json!("15.50");
    service.client.append(7, &json!([trade(1), priced])).await.expect(201);
    for (rest, expected) in [
        ("ndjson?fields=price,seq", "{\"seq\":1}\n{\"seq\":2,\"price\":\"15.50\"}\n"),
        ("ndjson?fields=price", "{}\n{\"price\":\"15.50\"}\n"),
        ("ndjson?fields=qty,customerId", "{\"customerId\":7,\"qty\":1}\n{\"customerId\":7,\"qty\":2}\n"),
        ("csv?fields=price,qty,seq", "seq,qty,price\r\n1,1,\r\n2,2,15.50\r\n"),
        ("csv?fields=customerId,ticker", "customerId,ticker\r\n7,MDB\r\n7,MDB\r\n"),
        ("csv?fields=seq&after=1", "seq\r\n2\r\n"),
    ] {
        let answer = service.client.get(&TRADES.at(7, &format!("/export.{rest}"))).await;
        assert_eq!(
            (answer.status.as_u16(), &*String::from_utf8_lossy(&answer.body)),
            (200, expected),
            "{rest}"
        );
    }
    let described = service.client.get("/openapi.json").await.expect(200);
    let parameters = &described["paths"]["/v1/customers/{customerId}/trades/export.csv"]["get"]["parameters"];
    let fields = parameters.as_array().expect("parameters").iter().find(|one| one["name"] == "fields");
    let names = json!(["customerId", "seq", "type", "ticker", "qty", "price", "date"]);
    assert_eq!(fields.expect("the parameter")["schema"]["items"]["enum"], names);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_format_has_an_address() {
    let service = Service::start().await;
    service.client.append(7, &trade(1)).await.expect(201);
    for (format, media_type) in [("ndjson", "application/x-ndjson"), ("csv", "text/csv")] {
        let path = TRADES.at(7, &format!("/export.{format}"));
        // The ending decides, whatever a client accepts: generated ones ask for JSON everywhere.
        let without = format!("*/*, {media_type};q=0");
        for accept in ["*/*", media_type, "application/json", "text/html", &without] {
            let answer = accepting(&service, &path, accept).await;
            assert_eq!(answer.status, 200, "{path} {accept}");
            assert!(answer.header("content-type").starts_with(media_type), "{path} {accept}");
        }
        let with = |request: reqwest::RequestBuilder| request.header("accept-encoding", "identity;q=0");
        service.client.send(reqwest::Method::GET, &path, with).await.problem(406, "not-acceptable");
        service.client.append_to(&path).await.problem(405, "method-not-allowed");
    }
    // Elsewhere there is nothing but JSON all the same.
    accepting(&service, "/v1/customers/7/trades", "text/csv").await.problem(406, "not-acceptable");
    // What is no number is no item.
    let problem = service.client.get("/v1/customers/7/trades/export").await.problem(400, "invalid-parameter");
    assert_eq!(problem["errors"][0]["parameter"], "seq");
}

async fn accepting(service: &Service, path: &str, accept: &str) -> Answer {
    service.client.send(reqwest::Method::GET, path, |request| request.header("accept", accept)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_parameters() {
    let service = Service::start().await;
    for (query, parameter) in [
        ("format=csv", "format"),
        ("after=-1", "after"),
        ("from=yesterday", "from"),
        ("from=2004-01-02T00:00:00Z&to=2004-01-01T00:00:00Z", "to"),
        ("limit=5", "limit"),
        ("fields=", "fields"),
        ("fields=size", "fields"),
        ("fields=page", "fields"),
        ("fields=qty,qty", "fields"),
        ("fields=qty&fields=qty", "fields"),
        ("fields=ticker,,qty", "fields"),
        ("fields=Ticker", "fields"),
    ] {
        let problem = service.client.get(&path(&format!("?{query}"))).await.problem(400, "invalid-parameter");
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{query}");
    }
    service.client.get("/v1/customers/0/trades/export.csv").await.problem(400, "invalid-parameter");
}

test_over!(it_is_of_the_moment_it_began, TRADES);
async fn it_is_of_the_moment_it_began(history: &'static History) {
    let service = Service::of(history).await;
    // Far more than what is under way between the two sides.
    let total = fill_200_000(&service, history.page_size / 2).await;
    let mut response = reqwest::get(service.client.url(&of_7(history, ""))).await.expect("an answer");
    let mut body = response.chunk().await.expect("rows").expect("rows").to_vec();
    service.client.append_all(7, 1..=history.pages(3.0)).await;
    while let Some(chunk) = response.chunk().await.expect("the rest") {
        body.extend_from_slice(&chunk);
    }
    let seqs = seqs(&lines(&body));
    assert!(seqs.iter().copied().eq(1..=total), "{} rows", seqs.len());
}

/// What came so far, decompressed as far as that goes.
async fn decompressed(bytes: &[u8]) -> String {
    let mut gzip = Command::new("gzip")
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("there is a gzip");
    let (mut input, bytes) = (gzip.stdin.take().expect("a pipe"), bytes.to_vec());
    let writing = spawn(async move { input.write_all(&bytes).await.ok() });
    let output = gzip.wait_with_output().await.expect("it ends");
    writing.await.expect("no panic");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_it_does_not_wait_to_fill_a_block() {
    let mongod = Mongod::own().await;
    let proxy = Proxy::before(&mongod).await;
    let mut setup = Setup::on(&mongod);
    setup.connection.uri = proxy.uri();
    let service = setup.start().await;
    fill(&service.database, TRADES, 7, 250, 10).await;
    service.client.get("/v1/customers/7").await.expect(200);
    proxy.harm("find", Way::There, Harm::Hold, 1);
    let request = reqwest::Client::new().get(service.client.url(&path(""))).header("accept-encoding", "gzip");
    let asked = spawn(request.send());
    proxy.struck(1).await;
    // The tail may pass, and then the first batch; the second one is held.
    proxy.relent_but("find", Way::There, Harm::Hold, 1);
    let mut response = asked.await.expect("no panic").expect("an answer");
    assert_eq!(response.headers()["content-encoding"], "gzip");
    proxy.struck(2).await;
    proxy.relent_but("find", Way::There, Harm::Hold, 1);
    let mut body = Vec::new();
    let mut struck = false;
    while decompressed(&body).await.lines().count() < 1000 {
        if !struck {
            proxy.struck(3).await;
            struck = true;
        }
        let chunk = tokio::time::timeout(PATIENCE, response.chunk()).await.expect("what is there is sent");
        body.extend_from_slice(&chunk.expect("rows").expect("rows"));
    }
    proxy.relent();
    while let Some(chunk) = response.chunk().await.expect("the rest") {
        body.extend_from_slice(&chunk);
    }
    assert_eq!(seqs(&lines(decompressed(&body).await.as_bytes())).len(), 2500);
    drop(service);
    mongod.remove().await;
}

test_over!(a_short_outage_is_waited_for, TRADES);
async fn a_short_outage_is_waited_for(history: &'static History) {
    let mongod = Mongod::failing().await;
    let service = Setup::on(&mongod).of(history).start().await;
    let total = fill_200_000(&service, 0).await;
    let mut response = reqwest::get(service.client.url(&of_7(history, ""))).await.expect("an answer");
    let mut rows = response.chunk().await.expect("rows").expect("rows").len();
    let data = doc! { "failCommands": ["find"], "closeConnection": true };
    mongod.fail_point("failCommand", doc! { "times": 4 }, data).await;
    let mut last = Vec::new();
    while let Some(chunk) = response.chunk().await.expect("the rest") {
        rows += chunk.len();
        last = chunk.to_vec();
    }
    assert!(last.ends_with(b"\n") && rows as u64 > total * 50, "{rows} bytes");
    assert!(String::from_utf8_lossy(&last).contains(&format!("\"seq\":{total},")), "the last of all came");
    drop(service);
    mongod.remove().await;
}

test_over!(it_breaks_off_with_an_error_and_can_go_on, TRADES);
/// Whatever came is whole up to some row; then there is an error, not an end; behind that row it goes on.
async fn it_breaks_off_with_an_error_and_can_go_on(history: &'static History) {
    let mongod = Mongod::failing().await;
    let service = Setup::on(&mongod).of(history).start().await;
    let total = fill_200_000(&service, history.page_size / 2).await;
    for encoding in ["identity", "gzip", "zstd"] {
        let request = reqwest::Client::new().get(service.client.url(&of_7(history, "")));
        let mut response = request.header("accept-encoding", encoding).send().await.expect("an answer");
        let mut body = response.chunk().await.expect("rows").expect("rows").to_vec();
        let data = doc! { "failCommands": ["find"], "closeConnection": true };
        mongod.fail_point("failCommand", "alwaysOn", data).await;
        let error = loop {
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => panic!("it just ended, {encoding}"),
                Err(error) => break error,
            }
        };
        mongod.fail_point("failCommand", "off", doc! {}).await;
        println!("{encoding}: {error}");
        if encoding != "identity" {
            continue;
        }
        let whole = body.iter().rposition(|byte| *byte == b'\n').expect("a row") + 1;
        let mut rows = lines(&body[..whole]);
        let last = rows.last().expect("a row")["seq"].clone();
        assert!(last.as_u64() < Some(total), "it was not all there yet");
        let rest = service.client.get(&of_7(history, &format!("?after={last}"))).await;
        rows.extend(lines(&rest.body));
        assert!(seqs(&rows).into_iter().eq(1..=total), "every row once");
    }
    // Before the first byte it is a problem like any other.
    let data = doc! { "failCommands": ["find"], "closeConnection": true };
    mongod.fail_point("failCommand", "alwaysOn", data).await;
    service.client.get(&of_7(history, "")).await.problem(503, "database-unavailable");
    drop(service);
    mongod.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_cut_off() {
    let mongod = Mongod::own().await;
    let finds = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&finds);
    let mut setup = Setup::on(&mongod).observed(move |name, _| {
        if name == "find" || name == "getMore" {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (setup.config.api.max_exports, setup.config.server.write_timeout) = (1, Duration::from_secs(3));
    let service = setup.start().await;
    fill(&service.database, TRADES, 7, 40_000, 10).await;
    let mut client = TcpStream::connect(service.address()).await.expect("a connection");
    let request = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", path(""));
    client.write_all(request.as_bytes()).await.expect("to send");
    // Before it has its place, a request after it could take that.
    let mut status = [0; b"HTTP/1.1 200".len()];
    client.read_exact(&mut status).await.expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 200");
    // It has its place, and asks the database no more than the client reads.
    let refused = || async { service.client.get(&path("?after=399990")).await.status == 503 };
    eventually("the only place is taken", PATIENCE, refused).await;
    service.client.get(&path("")).await.problem(503, "overloaded");
    let asked = AtomicU32::new(0);
    let stalled = || async {
        let before = asked.swap(finds.load(Ordering::SeqCst), Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(300)).await;
        before > 0 && before == finds.load(Ordering::SeqCst)
    };
    eventually("it waits for the client", PATIENCE, stalled).await;
    assert!(finds.load(Ordering::SeqCst) < 200, "of 400 batches: {finds:?}");
    let status = mongod.client().await.database("admin").run_command(doc! { "serverStatus": 1 }).await;
    let status: Document = status.expect("a status");
    let open = status.get_document("metrics").and_then(|metrics| metrics.get_document("cursor"));
    let open = open.and_then(|cursor| cursor.get_document("open")).expect("counts of cursors").clone();
    assert_eq!(open.get_i64("total").ok(), Some(0), "{open}");
    let freed = || async { service.client.get(&path("?after=399990")).await.status == 200 };
    eventually("it is cut off", PATIENCE, freed).await;
    // What had been sent before can still be read; the end never comes.
    let mut sent = Vec::new();
    client.read_to_end(&mut sent).await.ok();
    assert!(!sent.ends_with(b"\r\n0\r\n\r\n") && sent.len() < 30_000_000, "{} bytes", sent.len());
    assert_eq!(lines(&service.client.get(&path("?after=399990")).await.body).len(), 10);
    drop(service);
    mongod.remove().await;
}

/// A connection that keeps little on the way, with an export that has begun.
async fn narrow(service: &Service, query: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    socket2::SockRef::from(&socket).set_tcp_mss(536).expect("short segments");
    let mut stream = socket.connect(service.address()).await.expect("a connection");
    let request = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", path(query));
    stream.write_all(request.as_bytes()).await.expect("to send");
    let mut head = [0; 13];
    stream.read_exact(&mut head).await.expect("a head");
    assert_eq!(head, *b"HTTP/1.1 200 ");
    stream
}

/// Reads so many bytes at a time, with a pause between; all that came, and how it ended.
async fn read_slowly(mut stream: TcpStream, bytes: usize, pause: Duration) -> (Vec<u8>, std::io::Result<()>) {
    let mut all = Vec::new();
    let mut piece = vec![0; bytes];
    let mut read = async || -> std::io::Result<()> {
        while !all.ends_with(b"\r\n0\r\n\r\n") {
            let mut there = 0;
            while there < bytes && !piece[..there].ends_with(b"\r\n0\r\n\r\n") {
                let more = stream.read(&mut piece[there..]).await?;
                if more == 0 {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                there += more;
            }
            all.extend_from_slice(&piece[..there]);
            tokio::time::sleep(pause).await;
        }
        Ok(())
    };
    let ended = read().await;
    (all, ended)
}

/// The body of an answer from whose head something was left out. Rows may be cut anywhere between two chunks.
fn unchunked(answer: &[u8]) -> Vec<u8> {
    let after =
        |bytes: &[u8], end: &[u8]| bytes.windows(end.len()).position(|part| part == end).expect("an end");
    let mut chunks = &answer[after(answer, b"\r\n\r\n") + 4..];
    let mut body = Vec::new();
    loop {
        let (size, rest) = chunks.split_at(after(chunks, b"\r\n"));
        let size = usize::from_str_radix(str::from_utf8(size).expect("a size"), 16).expect("a size");
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&rest[2..2 + size]);
        chunks = &rest[2 + size + 2..];
    }
}

/// They take something all the time, and so are never without progress for as long as they may.
#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_lose_their_places() {
    const SLOW: usize = 3;
    let mut setup = Setup::on(shared().await);
    // One client has a quarter.
    (setup.config.api.max_exports, setup.config.server.write_timeout) =
        (4 * (SLOW + 1), Duration::from_secs(4));
    let service = setup.start().await;
    fill(&service.database, TRADES, 7, 20_000, 10).await;
    let pause = Duration::from_millis(250);
    // Some 12 KiB/s, three quarters of what they must take.
    let mut slow = JoinSet::new();
    for _ in 0..SLOW {
        let stream = narrow(&service, "").await;
        slow.spawn(tokio::time::timeout(PATIENCE / 2, read_slowly(stream, 3 * 1024, pause)));
    }
    // Some 80 KiB/s, for longer than a client may stand still.
    let fair = spawn(read_slowly(narrow(&service, "?after=195000").await, 20 * 1024, pause));
    service.client.get(&path("?after=199990")).await.problem(503, "overloaded");
    let (body, ended) = fair.await.expect("no panic");
    ended.expect("all of it");
    assert_eq!(lines(&unchunked(&body)).len(), 5_000);
    while let Some(ended) = slow.join_next().await {
        let (body, ended) = ended.expect("no panic").expect("it is cut off");
        let error = ended.expect_err("it is not all there").kind();
        assert_eq!(error, std::io::ErrorKind::ConnectionReset, "after {} bytes", body.len());
    }
    // All places are there again, for clients that read as fast as they can.
    let mut whole = JoinSet::new();
    for encoding in ["gzip", "identity"].into_iter().cycle().take(SLOW + 1) {
        let (http, url) = (reqwest::Client::new(), service.client.url(&path("?after=180000")));
        let ask = || http.get(&url).header("accept-encoding", encoding).send();
        let deadline = Instant::now() + PATIENCE;
        let mut response = ask().await.expect("an answer");
        while response.status() != 200 {
            assert!(Instant::now() < deadline, "{response:?}");
            response = ask().await.expect("an answer");
        }
        whole.spawn(async move { while response.chunk().await.expect("the rest").is_some() {} });
    }
    whole.join_all().await;
}
