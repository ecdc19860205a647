//! Answers that their clients do not take: their places, and the memory that they hold.

use std::net::SocketAddr;

use axum::http::{Request, StatusCode};
use futures_util::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::wire::{Begun, Http2, plain};
use crate::commands::program::{Place, Serving};
use crate::harness::{PATIENCE, Setup, TRADES, eventually, fill, shared, test_over, trade};

/// Ten thousand points: the longest series, some 600 KB.
const SERIES: &str =
    "/v1/page-views?path=/x&resolution=minute&from=2014-01-01T00:00:00Z&to=2014-01-07T22:40:00Z";

/// A client of HTTP/2 from this address whose streams have windows of `window` bytes.
async fn narrow(from: [u8; 4], to: SocketAddr, window: u32) -> Http2 {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from((from, 0))).expect("an address of this machine");
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(window);
    Http2::with(&builder, socket.connect(to).await.expect("a connection")).await.expect("to begin")
}

/// The answer, of which nothing but the head is read.
async fn ask(client: &Http2, path: &str, encoding: &str) -> Begun {
    let request = Request::get(format!("http://localhost{path}")).header("accept-encoding", encoding);
    let mut send = client.send.clone().ready().await.expect("a connection");
    let sent = send.send_request(request.body(()).expect("a request"), true).expect("to send");
    let (head, body) = timeout(PATIENCE, sent.0).await.expect("a head in time").expect("a head").into_parts();
    Begun { status: head.status, headers: head.headers, body }
}

/// The memory of a process that no file is behind, in MiB.
fn anonymous_memory(serving: &Serving) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", serving.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line of it");
    line.trim_end_matches(" kB").trim().parse::<u64>().expect("kB") / 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_answers_take_little_memory() {
    const STREAMS: usize = 128;
    /// Of what they would hold, 290 MiB and more than 800 MiB.
    const MOST: u64 = 256;
    let place = Place::new().await;
    let serving = place.serve(&["--log", "error"]).await;
    serving.client.append(1, &trade(1)).await.expect(201);
    serving.client.get(SERIES).await.expect(200);
    let idle = anonymous_memory(&serving);
    // Three addresses have a quarter of the places each, of 1,024.
    for (encoding, connections, expected) in [("zstd", 1, STREAMS), ("identity", 12, 3 * 256)] {
        let mut clients = Vec::new();
        for number in 0..connections {
            clients.push(narrow([127, 0, 0, 2 + number % 3], serving.address, 1).await);
        }
        let asked =
            clients.iter().flat_map(|client| (0..STREAMS).map(move |_| ask(client, SERIES, encoding)));
        let answers: Vec<_> = join_all(asked).await;
        let begun = answers.iter().filter(|answer| answer.status == StatusCode::OK).count();
        let held = anonymous_memory(&serving);
        println!("{begun} answers of {}, {encoding}: {idle} MiB before, {held} MiB", answers.len());
        assert_eq!(begun, expected, "each begins, whatever the others hold");
        assert!(held <= idle + MOST, "{idle} MiB before, {held} MiB");
        // Others are served meanwhile.
        serving.client.get(SERIES).await.expect(200);
        serving.client.append(1, &trade(2)).await.expect(201);
    }
    serving.stop().await;
}

/// The refusal of a long address is short, and an address of no route has no place.
#[tokio::test(flavor = "multi_thread")]
async fn unread_refusals_take_little_memory() {
    const STREAMS: usize = 128;
    let place = Place::new().await;
    let serving = place.serve(&["--log", "error"]).await;
    let long = format!("/{}", "x".repeat(12_000));
    let problem = serving.client.get(&long).await.problem(404, "not-found");
    assert_eq!(problem["instance"].as_str().map(str::len), Some(1024), "{problem}");
    let idle = anonymous_memory(&serving);
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(narrow([127, 0, 0, 2], serving.address, 1).await);
    }
    let answers: Vec<_> = join_all(clients.iter().flat_map(|client| {
        let long = &long;
        (0..STREAMS).map(move |_| ask(client, long, "identity"))
    }))
    .await;
    assert!(answers.iter().all(|answer| answer.status == StatusCode::NOT_FOUND));
    let held = anonymous_memory(&serving);
    assert!(held <= idle + 32, "{idle} MiB before, {held} MiB with {} answers", answers.len());
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_unread_summary_of_an_upload_keeps_its_place() {
    const UPLOADS: &str = "/v1/customers/7/trades/upload";
    let mut setup = Setup::on(shared().await);
    setup.config.api.max_uploads = 1;
    let service = setup.start().await;
    let line = || format!("{}\n", trade(1));
    let unread = narrow([127, 0, 0, 1], service.address(), 0).await;
    let answer = unread.post(UPLOADS, "application/x-ndjson", line()).await;
    assert_eq!(answer.status, 200);
    let client = Http2::over(plain(service.address()).await).await;
    assert_eq!(client.post(UPLOADS, "application/x-ndjson", line()).await.status, 503);
    drop(answer);
    let free = || async { client.post(UPLOADS, "application/x-ndjson", line()).await.status == 200 };
    eventually("its place is free", PATIENCE, free).await;
}

/// A compressor is kept as long as there is memory for it. Further answers are sent as they are.
#[tokio::test(flavor = "multi_thread")]
async fn compressors_of_unread_answers_are_bounded() {
    const EXPORTS: usize = 14;
    let service = Setup::on(shared().await).start().await;
    fill(&service.database, TRADES, 7, 50, 10).await;
    let client = narrow([127, 0, 0, 1], service.address(), 1).await;
    let export = TRADES.at(7, "/export.ndjson");
    let answers = join_all((0..EXPORTS).map(|_| ask(&client, &export, "gzip"))).await;
    assert!(answers.iter().all(|answer| answer.status == StatusCode::OK));
    let compressed =
        answers.iter().filter(|answer| answer.header("content-encoding") == Some("gzip")).count();
    assert!((4..EXPORTS).contains(&compressed), "{compressed} of {EXPORTS} are compressed");
}

test_over!(unread_exports_take_little_memory, TRACES);
/// Without room for a batch an export reads a page, and its client gets all the same.
async fn unread_exports_take_little_memory(history: &'static crate::harness::History) {
    const EXPORTS: usize = 16;
    let place = Place::of(history).await;
    let serving = place.serve(&["--log", "error", "--max-body", "4194304"]).await;
    // Twelve items, with 1.1 MB of JSON each, on six pages: a batch.
    let trace = |number: u64| json!({ "number": number, "samples": vec![2_147_483_647; 100_000] });
    for number in 1..=12 {
        serving.client.append(7, &trace(number)).await.expect(201);
    }
    let export = history.at(7, "/export.ndjson");
    let whole = serving.client.get(&export).await.body;
    let idle = anonymous_memory(&serving);
    let mut clients = Vec::new();
    for _ in 0..EXPORTS {
        clients.push(narrow([127, 0, 0, 2], serving.address, 1).await);
    }
    let mut answers = join_all(clients.iter().map(|client| ask(client, &export, "identity"))).await;
    assert!(answers.iter().all(|answer| answer.status == StatusCode::OK));
    let held = anonymous_memory(&serving);
    println!("{EXPORTS} exports of {} bytes: {idle} MiB before, {held} MiB", whole.len());
    assert!(held <= idle + 160, "{idle} MiB before, {held} MiB");
    // Clients that take theirs get all of it.
    let client = Http2::over(plain(serving.address).await).await;
    let mut taken = ask(&client, &export, "identity").await;
    assert!(taken.rest().await == whole);
    answers.clear();
    serving.stop().await;
}

/// The end of a series that was begun over HTTP/1.1.
async fn end(mut wire: TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    timeout(PATIENCE, wire.read_to_end(&mut rest)).await.expect("an end in time").expect("all of it");
    rest
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unread_answer_keeps_its_place() {
    let mut setup = Setup::on(shared().await);
    setup.config.api.max_requests = 1;
    let service = setup.start().await;
    let (client, path) = (&service.client, TRADES.path(7));
    client.append_all(7, 1..=10).await;
    let freed = || async { client.get(&path).await.status == 200 };

    // However short: over HTTP/2 the client says how much it takes.
    for window in [0, 1] {
        let unread = narrow([127, 0, 0, 1], service.address(), window).await;
        let answer = ask(&unread, &path, "identity").await;
        assert_eq!(answer.status, 200);
        assert_eq!(unread.get("/livez").await.status, 200);
        client.get(&path).await.problem(503, "overloaded");
        drop(answer);
        eventually("a stream that was reset has no place", PATIENCE, freed).await;
    }

    let mut whole = ask(&Http2::over(plain(service.address()).await).await, &path, "identity").await;
    assert_eq!(whole.json().await["totalItems"], 10);
    client.get(&path).await.expect(200);

    // Over HTTP/1.1 some of it is on its way.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    let mut wire = socket.connect(service.address()).await.expect("a connection");
    let request = format!("GET {SERIES} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    wire.write_all(request.as_bytes()).await.expect("to send");
    let mut head = [0; 13];
    wire.read_exact(&mut head).await.expect("a head");
    assert_eq!(head, *b"HTTP/1.1 200 ");
    client.get(&path).await.problem(503, "overloaded");
    let rest = end(wire).await;
    assert!(rest.len() > 400_000, "{} bytes", rest.len());
    eventually("its place is free", PATIENCE, freed).await;
}

test_over!(large_unread_answers_of_a_connection_are_bounded, TRACES);
/// A client that takes nothing holds some of the memory for answers, and others have the rest.
async fn large_unread_answers_of_a_connection_are_bounded(history: &'static crate::harness::History) {
    const ASKED: usize = 16;
    let mut setup = Setup::on(shared().await).of(history);
    setup.config.api.max_body = 4 * 1024 * 1024;
    let service = setup.start().await;
    // Two items, with 1.1 MB of JSON each: a page.
    for number in 1..=2 {
        let trace = json!({ "number": number, "samples": vec![2_147_483_647; 100_000] });
        service.client.append(7, &trace).await.expect(201);
    }
    let page = history.at(7, "?page=1");
    let length = service.client.get(&page).await.body.len();
    let client = narrow([127, 0, 0, 1], service.address(), 1).await;
    let mut answers = join_all((0..ASKED).map(|_| ask(&client, &page, "identity"))).await;
    let (held, refused): (Vec<_>, Vec<_>) =
        answers.iter_mut().partition(|answer| answer.status == StatusCode::OK);
    assert!(!held.is_empty() && held.len() * length <= 20 * 1024 * 1024, "{} of {length} bytes", held.len());
    assert_eq!(held.len() + refused.len(), ASKED);
    for answer in refused {
        assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, Some("1")));
    }
    // Short answers of this connection need none of it, and others have room.
    assert_eq!(client.get("/livez").await.status, 200);
    let mut short = ask(&client, "/v1/page-views/top", "identity").await;
    let (status, top) = (short.status, short.json().await);
    assert_eq!(status, 200, "{top}");
    assert_eq!(service.client.get(&page).await.body.len(), length);
    // There is room again for a client that takes its answers, or lets them go.
    drop(answers);
    let again = || async { ask(&client, &page, "identity").await.status == 200 };
    eventually("there is room again", PATIENCE, again).await;
    let mut all = ask(&Http2::over(plain(service.address()).await).await, &page, "zstd").await;
    assert!(all.rest().await.len() < length / 10, "it is compressed");
}
