//! How `serve` ends when it is told to.

use std::process::Stdio;

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{DateTime, Document, doc};
use serde_json::json;
use tokio::process::Command;

use super::program::{Place, Serving};
use super::terminal::on_terminal;
use crate::harness::{PATIENCE, TOTAL, TRADES, eventually, skip, stored, trade};
use crate::harness::{Raw, signal};

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_lets_a_request_under_way_end() {
    a_request_under_way_ends("TERM").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sigint_lets_a_request_under_way_end() {
    a_request_under_way_ends("INT").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_terminal_lets_a_request_under_way_end() {
    if Command::new("script").arg("--version").output().await.is_err() {
        return skip("the end of a terminal", "there is no script");
    }
    let place = Place::new().await;
    let command = place.pagebucket("serve", &["--listen", "127.0.0.1:0"]);
    let serving = Serving::start(TRADES, &mut on_terminal(&command)).await;
    let body = json!([trade(1), trade(2)]).to_string();
    let (half, rest) = body.split_at(body.len() / 2);
    let mut request = Raw::begin_append(serving.address, 7, body.len()).await;
    request.send(half).await;
    // It holds the other end of the terminal.
    serving.signal("KILL");
    serving.is_stopping().await;
    request.send(rest).await;
    let answer = request.rest().await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    stored(&place.database().await, TRADES, 7).await.holds_exactly([1, 2]);
}

/// Supervisors send it, and shells that end.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_sighup_is_ignored() {
    let place = Place::new().await;
    let command = place.pagebucket("serve", &["--listen", "127.0.0.1:0"]);
    let mut detached = Command::new("setsid");
    detached
        .args(["env", "--default-signal=HUP"])
        .arg(command.as_std().get_program())
        .args(command.as_std().get_args());
    detached.env_clear().env("PATH", "/usr/bin:/bin").kill_on_drop(true);
    detached.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let serving = Serving::start(TRADES, &mut detached).await;
    serving.signal("HUP");
    serving.client.append(7, &trade(1)).await.expect(201);
    serving.client.get("/readyz").await.expect(200);
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_need_read_the_log() {
    let place = Place::new().await;
    let mut serving = place.serve(&[]).await;
    serving.stop_listening().await;
    for number in 1..=3 {
        serving.client.append(7, &trade(number)).await.expect(201);
        serving.client.get("/livez").await.expect(200);
    }
    serving.stop().await;
    stored(&place.database().await, TRADES, 7).await.holds_exactly([1, 2, 3]);
}

async fn a_request_under_way_ends(name: &str) {
    let place = Place::new().await;
    let serving = place.serve(&[]).await;
    let body = json!([trade(1), trade(2)]).to_string();
    let (half, rest) = body.split_at(body.len() / 2);
    let mut request = Raw::begin_append(serving.address, 7, body.len()).await;
    request.send(half).await;
    serving.signal(name);
    serving.is_stopping().await;
    request.send(rest).await;
    let answer = request.rest().await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    assert!(answer.contains(&format!("\"{TOTAL}\":2")), "{answer}");
    assert!(answer.to_ascii_lowercase().contains("connection: close"), "nothing more is served: {answer}");
    let ended = serving.ended().await;
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(!ended.err.contains("still under way"), "{ended:?}");
    stored(&place.database().await, TRADES, 7).await.holds_exactly([1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_at_once() {
    for (first, second) in [("TERM", "TERM"), ("TERM", "INT"), ("INT", "INT")] {
        let place = Place::new().await;
        let serving = place.serve(&["--body-timeout", "20"]).await;
        let request = Raw::begin_append(serving.address, 7, 1000).await;
        serving.signal(first);
        serving.is_stopping().await;
        serving.signal(second);
        let ended = serving.ended().await;
        assert_eq!(ended.status, Some(0), "{ended:?}");
        assert!(ended.err.contains("after a second signal"), "{ended:?}");
        // Had it waited for the body, the request would have been answered with 408.
        assert_eq!(request.rest().await, "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_instance_serves_until_load_balancers_have_noticed() {
    let place = Place::new().await;
    let serving = place.serve(&["--drain-delay", "3"]).await;
    let client = &serving.client;
    client.get("/readyz").await.expect(200);
    let mut stream = Raw::connect(serving.address).await;
    stream.send("GET /v1/customers/7/trades/live HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    stream.read_until("event: position").await;
    let began = tokio::time::Instant::now();
    serving.signal("TERM");
    serving.is_stopping().await;
    // A client that connects and says nothing does not hold the exit.
    let unused = Raw::connect(serving.address).await;
    let mut count = 0;
    while began.elapsed() < std::time::Duration::from_secs(2) {
        count += 1;
        let appended = client.append(7, &trade(count)).await.expect(201);
        assert_eq!(appended["totalItems"], count);
        for path in ["/livez", "/v1/customers/7/trades", "/v1/customers/7/trades/1"] {
            let answer = client.get(path).await;
            assert_eq!((answer.status.as_u16(), answer.header("connection")), (200, "close"), "{path}");
        }
        let ready = client.get("/readyz").await;
        ready.problem(503, "shutting-down");
        assert_eq!((ready.header("connection"), ready.header("retry-after")), ("close", "2"));
    }
    stream.read_until(&format!("\"seq\":{count},")).await;
    // Then it is served no more: proxies ask another instance.
    eventually("connections are refused", PATIENCE, async || {
        tokio::net::TcpStream::connect(serving.address).await.is_err()
    })
    .await;
    let took = began.elapsed();
    assert!((3..20).contains(&took.as_secs()), "{took:?}");
    stream.read_until("\"reason\":\"stopping\"").await;
    let ended = serving.ended().await;
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(!ended.err.contains("still under way"), "{ended:?}");
    assert_eq!(unused.rest().await, String::new());
    stored(&place.database().await, TRADES, 7).await.holds_exactly(1..=count as i64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_is_late_is_told_so() {
    let place = Place::new().await;
    let serving = place.serve(&[]).await;
    let mut request = Raw::connect(serving.address).await;
    request.send("GET /v1/customers/7 HTTP/1.1\r\nHost: local").await;
    let mut stream = Raw::connect(serving.address).await;
    stream.send("GET /v1/customers/7/trades/live HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    stream.read_until("event: position").await;
    serving.signal("TERM");
    serving.is_stopping().await;
    // Streams end when no more requests are served.
    stream.read_until("\"reason\":\"stopping\"").await;
    request.send("host\r\n\r\n").await;
    let answer = request.rest().await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("/problems#shutting-down"), "{answer}");
    assert_eq!(serving.ended().await.status, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_head_does_not_hold_the_exit() {
    let place = Place::new().await;
    let serving = place.serve(&["--header-timeout", "2"]).await;
    let mut request = Raw::connect(serving.address).await;
    request.send("POST /v1/customers/7/trades HTTP/1.1\r\nHost: local").await;
    serving.client.get("/readyz").await.expect(200);
    let began = tokio::time::Instant::now();
    let ended = serving.stop().await;
    // Far more than 2 s, and less than the drain's 40 s.
    assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(!ended.err.contains("still under way"), "{ended:?}");
    drop(request);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_do_not_hold_the_exit() {
    let place = Place::new().await;
    let serving = place.serve(&["--header-timeout", "300"]).await;
    let unused = Raw::connect(serving.address).await;
    let mut used = Raw::connect(serving.address).await;
    used.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    used.read_until("{\"status\":\"ok\"}").await;
    let ended = serving.stop().await;
    assert!(!ended.err.contains("still under way"), "{ended:?}");
    assert_eq!((unused.rest().await, used.rest().await), (String::new(), String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_the_wait_for_the_lock() {
    for (command, arguments, status) in
        [("serve", &["--listen", "127.0.0.1:0"][..], 0), ("migrate", &[], 130)]
    {
        let place = Place::new().await;
        let database = place.database().await;
        let locks = database.collection::<Document>("migrations");
        // Another instance, which is at it for longer than anybody waits.
        let until = DateTime::from_millis(DateTime::MAX.timestamp_millis() / 2);
        let held = doc! { "_id": "lock", "owner": ObjectId::new(), "until": until };
        locks.insert_one(held).await.expect("to hold the lock");
        database.run_command(doc! { "profile": 2 }).await.expect("the profiler");
        let mut child = place.pagebucket(command, arguments).spawn().expect("to run");
        let profile = database.collection::<Document>("system.profile");
        eventually("it asks for the lock", PATIENCE, || async {
            let asked = doc! { "op": "update", "ns": format!("{}.migrations", place.name) };
            profile.find_one(asked).await.expect("an answer").is_some()
        })
        .await;
        signal("TERM", child.id().expect("it runs"));
        let ended = tokio::time::timeout(PATIENCE, child.wait()).await.expect("its end");
        assert_eq!(ended.expect("its status").code(), Some(status), "{command}");
        database.run_command(doc! { "profile": 0 }).await.expect("the profiler");
    }
}
