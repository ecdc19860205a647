//! How much is counted and read at once, and what is refused beyond that.

use std::net::SocketAddr;

use mongodb::bson::Document;
use pagebucket_page_views::PageViews;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{PATH, count, counted, documents, view};
use crate::harness::{Answer, Client, Harm, PATIENCE, Proxy, Setup, Way, eventually, shared, spawn, trade};

/// Nothing was done, and the client may come again.
#[track_caller]
fn overloaded(answer: &Answer) {
    answer.problem(503, "overloaded");
    assert_eq!(answer.header("retry-after"), "1");
}

/// Counts a view of each of so many pages, as lines: an array is shorter than the shortest queue.
async fn count_pages(client: &Client, pages: u64) -> Answer {
    let lines = (0..pages).map(|n| format!("{}\n", view(&format!("/{n}"), "2014-01-01T10:01:02Z", 1)));
    let lines: String = lines.collect();
    let send =
        |request: reqwest::RequestBuilder| request.header("content-type", "application/x-ndjson").body(lines);
    client.send(Method::POST, &format!("{PATH}/upload"), send).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_never_fits_is_refused_for_good() {
    let proxy = Proxy::before(shared().await).await;
    let mut setup = Setup::at(&proxy.uri());
    setup.capacity.queued_bytes = 1_000 * PageViews::COUNTER;
    let service = setup.start().await;
    let client = &service.client;
    let refused = async || {
        let answer = count_pages(client, 1_001).await;
        let problem = answer.problem(413, "body-too-large");
        let detail = problem["detail"].as_str().expect("a text");
        assert!(detail.contains("1001 counters") && detail.contains("at most 1000"), "{detail}");
        assert!(
            detail.contains("`--max-queue-mib`") && detail.ends_with(" Nothing was counted."),
            "{detail}"
        );
        assert!(!answer.headers.contains_key("retry-after"), "{answer:?}");
    };
    refused().await;
    assert_eq!(documents(&service, Document::new()).await, 0);
    counted(&count_pages(client, 1_000).await);
    // Many views of few counters.
    let views = vec![view("/", "2014-01-01T10:01:02Z", 1); 1_000];
    counted(&count(client, &json!(views)).await);

    // What fits finds no room while others are under way, and some later.
    proxy.harm("update page_views", Way::There, Harm::Hold, 100);
    let other = client.clone();
    let first = spawn(async move { count_pages(&other, 600).await });
    proxy.struck(1).await;
    overloaded(&count_pages(client, 600).await);
    refused().await;
    proxy.relent();
    counted(&first.await.expect("no panic"));
    eventually("room again", PATIENCE, async || count_pages(client, 600).await.status == 204).await;

    // The longest array of trades fits into the shortest queue.
    let trades = json!((1..=1_000).map(trade).collect::<Vec<_>>());
    client.append(7, &trades).await.expect(201);
    let keyed = |request: reqwest::RequestBuilder| request.header("idempotency-key", "k").json(&trades);
    client.send(Method::POST, "/v1/customers/8/trades", keyed).await.expect(201);
}

/// Asks, and hangs up when told to; then returns once the server has closed the connection, too.
async fn ask_and_hang_up(server: SocketAddr, path: &str, told: tokio::sync::oneshot::Receiver<()>) {
    let mut connection = TcpStream::connect(server).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    connection.write_all(request.as_bytes()).await.expect("to send");
    told.await.expect("to be told");
    connection.shutdown().await.expect("to hang up");
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await.ok();
    assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn few_long_reads_at_once() {
    let proxy = Proxy::before(shared().await).await;
    let mut setup = Setup::at(&proxy.uri());
    // One client has a quarter.
    setup.config.api.max_scans = 8;
    let service = setup.start().await;
    let client = &service.client;
    counted(&count(client, &view("/", "2014-01-01T10:01:02Z", 1)).await);
    client.append(7, &trade(1)).await.expect(201);
    let day = "from=2014-01-01T00:00:00Z&to=2014-01-02T00:00:00Z";
    let month = "from=2014-01-01T00:00:00Z&to=2014-02-01T00:00:00Z";
    let top = format!("{PATH}/top?{day}");
    let long =
        [format!("{PATH}?path=/&resolution=day&{month}"), format!("{PATH}?path=/&resolution=hour&{month}")];

    proxy.harm("aggregate page_views", Way::There, Harm::Hold, 2);
    let (hang_up, told) = tokio::sync::oneshot::channel();
    let (address, path) = (service.address(), top.clone());
    let gone = spawn(async move { ask_and_hang_up(address, &path, told).await });
    let (other, path) = (client.clone(), long[0].clone());
    let stays = spawn(async move { other.get(&path).await });
    proxy.struck(2).await;
    let refused = async || {
        overloaded(&client.get(&top).await);
        for long in &long {
            overloaded(&client.get(long).await);
        }
    };
    refused().await;
    // Whatever else takes no place.
    for path in [
        format!("{PATH}?path=/&resolution=second&from=2014-01-01T10:00:00Z&to=2014-01-01T10:02:00Z"),
        format!("{PATH}?path=/&{day}"),
        format!("{PATH}?path=/&resolution=hour&{day}"),
        format!("{PATH}?path=/&resolution=day&{day}"),
        format!("{PATH}/buckets?path=/&timestamp=2014-01-01T10:01:00Z"),
        "/v1/customers/7/trades/pages/1".to_owned(),
    ] {
        client.get(&path).await.expect(200);
    }
    counted(&count(client, &view("/", "2014-01-01T10:01:02Z", 1)).await);
    client.at([127, 0, 0, 2]).get(&top).await.expect(200);
    // The database works on for a client that has gone.
    hang_up.send(()).expect("it waits");
    gone.await.expect("no panic");
    refused().await;
    proxy.relent();
    assert_eq!(stays.await.expect("no panic").expect(200)["totalViews"], 2);
    eventually("both places are free", PATIENCE, async || client.get(&top).await.status == 200).await;
}
