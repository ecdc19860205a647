//! Pages that instances and clients have in their caches, and that members of the set still show.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mongodb::bson::{Document, Timestamp, doc};
use pagebucket_engine::internal::Ages;
use pagebucket_model::domain::ReadPreference;
use serde_json::Value;

use super::{Place, SHORT, clock, engine_of, erase, keep, page, retire_to, soon};
use crate::harness::{Answer, Client, History, PATIENCE, Service, Setup, eventually, fill, test_over};

const PAGES: u64 = 30;

test_over!(a_cached_page_is_forgotten_when_it_is_deleted, NOTES);
async fn a_cached_page_is_forgotten_when_it_is_deleted(history: &'static History) {
    let place = Place::new(history).await;
    let service: Service = Setup::of_store(place.setup().await.aging(SHORT)).start().await;
    fill(&place.database, history, 1, PAGES, 1).await;
    fill(&place.database, history, 2, PAGES, 1).await;
    let client = &service.client;
    let path = |owner: u64, page: u64| history.at(owner, &format!("/pages/{page}"));
    let mut tags = Vec::new();
    for owner in [1, 2] {
        for page in 1..PAGES {
            let answer = client.get(&path(owner, page)).await;
            answer.expect(200);
            tags.push(((owner, page), answer.header("etag").to_owned()));
        }
    }
    let conditional = async |client: &Client, owner: u64, page: u64| -> Answer {
        let tag = &tags.iter().find(|(of, _)| *of == (owner, page)).expect("a page").1;
        let request = |request: reqwest::RequestBuilder| request.header("if-none-match", tag);
        client.send(reqwest::Method::GET, &path(owner, page), request).await
    };
    assert_eq!(conditional(client, 1, 2).await.status, 304);
    // Another instance deletes.
    let other = place.store().await;
    retire_to(&place, &other, 1, keep(9), PAGES - 9).await;
    erase(&place, &other, 2).await;
    for (owner, page) in [(1, 1), (1, 2), (1, 20), (2, 1), (2, 2), (2, PAGES - 1)] {
        eventually("a deleted page is answered by no cache", PATIENCE, async || {
            client.get(&path(owner, page)).await.status == 410
        })
        .await;
        assert_eq!(conditional(client, owner, page).await.status, 410, "its tag alone is no answer");
    }
    // What is there is cached and confirmed again.
    assert_eq!(conditional(client, 1, PAGES - 2).await.status, 304);
    let body: Value = client.get(&path(1, PAGES - 2)).await.expect(200);
    assert_eq!(body["page"], PAGES - 2);
    assert!(!engine_of(&other, &place).definition().name.is_empty());
}

test_over!(an_instance_that_hears_nothing_forgets_in_time, NOTES);
/// Whether or not the history had a marker when the instance asked for the last time.
async fn an_instance_that_hears_nothing_forgets_in_time(history: &'static History) {
    const AGE: Duration = Duration::from_secs(3600);
    for had_markers in [false, true] {
        let place = Place::new(history).await;
        let other = place.store().await;
        fill(&place.database, history, 1, 4, 1).await;
        fill(&place.database, history, 2, 4, 1).await;
        let erase =
            async |owner: u64| engine_of(&other, &place).erasures().erase(&place.owner(owner), soon()).await;
        if had_markers {
            erase(3).await.expect("a tombstone");
        }
        let (clock, later) = clock();
        let mut setup = place.setup().await.aging(Ages { poll: 10 * AGE, tail: AGE, ..SHORT });
        setup.clock = clock;
        let service = Setup::of_store(setup).start().await;
        let client = &service.client;
        let snapshot = format!("?after=0&limit=1&asOf={}", history.page_size);
        let paths = [1, 2].map(|owner| [history.at(owner, "/pages/1"), history.at(owner, &snapshot)]);
        let mut kept = Vec::new();
        for path in paths.as_flattened() {
            let answer = client.get(path).await;
            answer.expect(200);
            kept.push((path, answer.header("etag").to_owned()));
        }
        let by_tag = async |path: &str, tag: &str| {
            let with_tag = |request: reqwest::RequestBuilder| request.header("if-none-match", tag);
            client.send(reqwest::Method::GET, path, with_tag).await.status
        };
        engine_of(&other, &place).retirement().retire(keep(1), soon()).await.expect("an answer");
        erase(2).await.expect("a tombstone");
        // From memory. A snapshot of a history with markers is not.
        for (path, tag) in kept.iter().filter(|(path, _)| !had_markers || path.contains("/pages/")) {
            client.get(path).await.expect(200);
            assert_eq!(by_tag(path, tag).await, 304, "{path}");
        }
        later(i64::try_from(AGE.as_millis()).expect("an hour"));
        for (path, tag) in &kept {
            assert_eq!(by_tag(path, tag).await, 410, "{path}");
            assert_eq!(client.get(path).await.status, 410, "{path}");
        }
    }
}

test_over!(what_others_show_is_not_older_than_the_last_answer, NOTES);
/// A member that lags would show pages of an erased owner for as long as it lags.
async fn what_others_show_is_not_older_than_the_last_answer(history: &'static History) {
    let place = Place::new(history).await;
    fill(&place.database, history, 1, 40, 1).await;
    // What each read of page 30 asks for.
    let seen: Arc<Mutex<Vec<Option<Timestamp>>>> = Arc::default();
    let watch = Arc::clone(&seen);
    let mut setup = place.setup().await.aging(SHORT).observed(move |name, command: &Document| {
        let is_page =
            command.get_document("filter").is_ok_and(|filter| filter.get("page") == Some(&30_i64.into()));
        if name == "find" && is_page {
            let after = command
                .get_document("readConcern")
                .expect("a read concern")
                .get_timestamp("afterClusterTime");
            watch.lock().expect("no test panics here").push(after.ok());
        }
    });
    setup.read_preference = ReadPreference::Nearest;
    // A slow answer to the question for markers must not make the last one too old.
    setup.capacity.ages.tail = PATIENCE;
    let store = setup.store().await;
    let (items, owner) = (engine_of(&store, &place), place.owner(1));
    let asks_after = async || {
        items.reads().page(&owner, page(30), soon()).await.expect("an answer").expect("a page");
        std::mem::take(&mut *seen.lock().expect("no test panics here"))
    };
    assert_eq!(asks_after().await, [None], "as long as no page can have been deleted, any state will do");
    let now = doc! { "find": "histories", "readConcern": { "level": "majority" } };
    let now = place.database.run_command(now).await.expect("an answer");
    let before = now.get_timestamp("operationTime").expect("a replica set");
    engine_of(&place.store().await, &place)
        .erasures()
        .erase(&place.owner(2), soon())
        .await
        .expect("a tombstone");
    // Nothing but the question for markers has told the instance of a later time.
    eventually("the instance knows", PATIENCE, async || items.reads().may_have_lost_pages()).await;
    let [Some(after)] = asks_after().await[..] else { panic!("one read, of a state that is not older") };
    assert!(after > before, "{after:?} is not after {before:?}");
}
