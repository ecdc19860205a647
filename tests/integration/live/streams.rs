//! Live streams over HTTP.

use crate::commands::program::Place;
use crate::harness::events::Events;
use crate::harness::{PATIENCE, Setup, TRADES, eventually, shared, spawn};

/// The metrics of a process of its own, because others count in this one.
#[tokio::test(flavor = "multi_thread")]
async fn live_streams_are_measured() {
    let place = Place::new().await;
    let serving = place.serve(&["--log", "error"]).await;
    let metrics = async || String::from_utf8(serving.client.get("/metrics").await.body).expect("text");
    let value = async |series: &str| {
        let metrics = metrics().await;
        let value = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map(|value| value.parse::<f64>().expect("a number"))
    };
    serving.client.append_all(1, 1..=3).await;
    let mut events = Events::of(&serving.client, 1, "", &[("Last-Event-ID", "1")]).await;
    events.read(TRADES, 2, 3).await;
    serving.client.append_all(1, 4..=4).await;
    events.read(TRADES, 4, 4).await;
    let other = Setup::on(shared().await).in_database(&place.database().await).start().await;
    other.client.append_all(1, 5..=5).await;
    events.read(TRADES, 5, 5).await;
    for (series, expected) in [
        ("pagebucket_live_readers", 1.0),
        ("pagebucket_live_resumes_total", 1.0),
        ("pagebucket_live_events_total{collection=\"trades\"}", 3.0),
        // Not of the items that the client was behind, but of those that other instances have appended.
        ("pagebucket_live_lag_seconds_count", 2.0),
        ("pagebucket_live_change_streams_total{start=\"first\"}", 1.0),
    ] {
        assert_eq!(value(series).await, Some(expected), "{series}");
    }
    drop(events);
    let ended = async || value("pagebucket_live_ends_total{reason=\"abandoned\"}").await == Some(1.0);
    eventually("it has ended", PATIENCE, ended).await;
    assert_eq!(value("pagebucket_live_readers").await, Some(0.0));
    let of_live =
        |series: &str| format!("{series}{{method=\"GET\",route=\"/v1/customers/{{customerId}}/trades/live\"");
    let requests = format!("{},status=\"200\"}}", of_live("pagebucket_http_requests_total"));
    let timed = format!("{}}}", of_live("pagebucket_http_request_duration_seconds_count"));
    assert_eq!((value(&requests).await, value(&timed).await), (Some(1.0), Some(0.0)), "it has no time");
    // The same of a long poll.
    let (client, path) = (serving.client.clone(), TRADES.at(1, "?after=5&wait=60"));
    let poll = spawn(async move { client.get(&path).await.expect(200) });
    let waits = async || value("pagebucket_live_readers").await == Some(1.0);
    eventually("it waits", PATIENCE, waits).await;
    serving.client.append_all(1, 6..=6).await;
    assert_eq!(TRADES.seqs(&poll.await.expect("no panic")), [6]);
    assert_eq!(value("pagebucket_live_readers").await, Some(0.0));
    let [requests, timed] = [requests, timed].map(|series| series.replace("/live", ""));
    assert_eq!((value(&requests).await, value(&timed).await), (Some(1.0), Some(0.0)), "it has no time");
}
