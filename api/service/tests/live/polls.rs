//! Long polls: windows that wait for their first item.

use std::num::NonZeroU32;
use std::time::Duration;

use pagebucket_service::Rate;
use reqwest::Method;
use tokio::task::JoinHandle;

use crate::harness::{
    Answer, Client, History, PATIENCE, Service, Setup, TRADES, eventually, fill, shared, spawn, test_over,
};

/// Asks for the window after a position, and waits for far longer than the test.
fn poll(client: &Client, owner: u64, after: u64) -> JoinHandle<Answer> {
    let (client, path) = (client.clone(), client.history.at(owner, &format!("?after={after}&wait=60")));
    spawn(async move {
        loop {
            let answer = client.get(&path).await;
            // For a moment, `until_it_waits` has the place.
            if answer.status != 503 {
                return answer;
            }
        }
    })
}

/// Waits until the polls of the client have all of its places.
async fn until_it_waits(client: &Client) {
    // Without a place it is not looked at, and with one it is malformed.
    let path = client.history.at(1, "?after=0&wait=0");
    eventually("it has a place", PATIENCE, || async { client.get(&path).await.status == 503 }).await;
}

/// A service with `places` for the polls of one client.
async fn with_places(history: &'static History, places: usize) -> Service {
    let mut setup = Setup::on(shared().await).of(history);
    // One client has a quarter.
    (setup.config.api.max_live, setup.config.api.max_requests) = (4 * places, 4);
    setup.start().await
}

test_over!(a_window_comes_when_it_has_an_item, NOTES);
async fn a_window_comes_when_it_has_an_item(history: &'static History) {
    let one = with_places(history, 1).await;
    let other = one.sibling(shared().await).await;
    let end = history.pages(1.5);
    one.client.append_all(1, 1..=end).await;
    // What is there is shown at once, as without a wait.
    let [waited, plain] = ["&wait=60", ""].map(|wait| history.at(1, &format!("?after=1&limit=3{wait}")));
    let (waited, plain) = (one.client.get(&waited).await, one.client.get(&plain).await);
    for name in ["etag", "cache-control", "x-total-count", "content-range"] {
        assert_eq!(waited.header(name), plain.header(name), "{name}");
    }
    let (mut waited, mut plain) = (waited.expect(200), plain.expect(200));
    let own = waited["links"]["self"].take();
    assert_eq!(own, history.at(1, "?after=1&limit=3&wait=60"));
    plain["links"]["self"].take();
    assert_eq!(waited, plain);
    // Of this instance, of another one, and beyond the end.
    for (appends, after, numbers) in [
        (&one, end, end + 1..=end + 1),
        (&other, end + 1, end + 2..=end + 2),
        (&other, end + 3, end + 3..=end + 4),
    ] {
        let waits = poll(&one.client, 1, after);
        until_it_waits(&one.client).await;
        appends.client.append_all(1, numbers).await;
        let listing = waits.await.expect("no panic").expect(200);
        assert_eq!(history.seqs(&listing)[0], after + 1, "{listing}");
        assert!(history.shows_what_was_sent(&listing["items"][0]), "{listing}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_without_an_item() {
    let service = Service::filled(TRADES, 3).await;
    let path = TRADES.at(1, "?after=3&wait=1");
    let empty = service.client.get(&path).await;
    assert_eq!(empty.header("cache-control"), "no-cache");
    let tag = empty.header("etag").to_owned();
    let listing = empty.expect(200);
    assert_eq!((listing["items"].as_array().map(Vec::len), &listing["totalItems"]), (Some(0), &3.into()));
    assert_eq!(listing["links"]["newer"], TRADES.at(1, "?after=3&limit=10"));
    let known = |request: reqwest::RequestBuilder| request.header("if-none-match", &tag);
    assert_eq!(service.client.send(Method::GET, &path, known).await.status, 304);
    let head = service.client.send(Method::HEAD, &path, |request| request).await;
    assert_eq!(head.status, 400, "{head:?}");
    let range = |request: reqwest::RequestBuilder| request.header("range", "items=0-9");
    let refused = service.client.send(Method::GET, &path, range).await.problem(400, "invalid-parameter");
    assert_eq!(refused["errors"][0]["parameter"], "Range");
}

/// They keep no other requests out.
#[tokio::test(flavor = "multi_thread")]
async fn long_polls_have_places_of_live_streams() {
    let service = with_places(TRADES, 2).await;
    service.client.append_all(1, 1..=1).await;
    let polls = [poll(&service.client, 1, 1), poll(&service.client, 1, 1)];
    until_it_waits(&service.client).await;
    let refused = service.client.get(&TRADES.at(1, "?after=1&wait=5")).await.problem(503, "overloaded");
    assert_eq!(
        refused["detail"],
        "Too many live streams and long polls of this client are under way: it may have 2 at once."
    );
    // One client has one place of a request at a time.
    assert_eq!(service.client.total(1).await, 1);
    service.client.append_all(1, 2..=2).await;
    for poll in polls {
        assert_eq!(TRADES.seqs(&poll.await.expect("no panic").expect(200)), [2]);
    }
    service.client.get(&TRADES.at(1, "?after=1&wait=5")).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_when_the_service_stops() {
    let service = with_places(TRADES, 1).await;
    let poll = poll(&service.client, 1, 0);
    until_it_waits(&service.client).await;
    assert!(service.stop().await, "nothing is left under way");
    assert!(TRADES.seqs(&poll.await.expect("no panic").expect(200)).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_when_the_owner_is_erased() {
    let service = with_places(TRADES, 1).await;
    service.client.append_all(1, 1..=12).await;
    let poll = poll(&service.client, 1, 12);
    until_it_waits(&service.client).await;
    let erase = service.client.send(Method::DELETE, &TRADES.owner_path(1), |request| request).await;
    assert!(erase.status.is_success(), "{erase:?}");
    poll.await.expect("no panic").problem(410, "erased");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_when_the_database_gets_another_epoch() {
    let service = with_places(TRADES, 1).await;
    service.client.append_all(1, 1..=12).await;
    let poll = poll(&service.client, 1, 12);
    until_it_waits(&service.client).await;
    let store = Setup::on(shared().await).in_database(&service.database).store().await;
    store.renew_epoch().await.expect("to renew");
    assert!(TRADES.seqs(&poll.await.expect("no panic").expect(200)).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_poll_shows_is_charged() {
    let mut setup = Setup::on(shared().await);
    let rate = Rate { units: NonZeroU32::MIN, per: Duration::from_secs(3600), burst: NonZeroU32::new(5) };
    setup.config.api.rate = Some(rate);
    let service = setup.start().await;
    fill(&service.database, TRADES, 7, 5, 10).await;
    let listing = service.client.get(&TRADES.at(7, "?after=0&limit=50&wait=60")).await.expect(200);
    assert_eq!(listing["items"].as_array().map(Vec::len), Some(50));
    service.client.get(&TRADES.at(7, "?after=50&wait=60")).await.problem(429, "too-many-requests");
}
