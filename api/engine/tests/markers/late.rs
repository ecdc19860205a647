//! What the commands that open pages and write markers carry against being late: the age of what justifies
//! them, the fence, and a limit of their time. Each test fails if one of these is left out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mongodb::bson::{Bson, DateTime, Document, Timestamp, doc};
use pagebucket_engine::appends::{Append, Once};
use pagebucket_engine::erasures::Reopening;
use pagebucket_engine::internal::Ages;
use pagebucket_engine::{Deadline, Error};
use pagebucket_model::domain::{IdempotencyKey, Instant};

use super::fence::{LATE, delayed, held, hold, leap};
use super::{Place, SHORT, append, clock, engine_of, erase, seqs, soon};
use crate::harness::{
    Harm, History, Mongod, Nth, PATIENCE, Proxy, Setup, Way, engine, eventually, shared, stored, test_over,
};

/// The time that the database shows now.
async fn shown(place: &Place) -> Timestamp {
    let ping = place.database.run_command(doc! { "ping": 1 }).await.expect("an answer");
    ping.get_timestamp("operationTime").expect("the time of a set")
}

test_over!(a_replay_after_the_deadline_of_what_was_stored_stores_it_once, NOTES);
/// The statement was applied in time. Its answer is lost after its deadline.
async fn a_replay_after_the_deadline_of_what_was_stored_stores_it_once(history: &'static History) {
    let place = Place::new(history).await;
    let (proxy, late) = delayed(&place, LATE).await;
    append(&place, &late, 1, 1, history.page_size).await.expect("stored");
    proxy.harm(format!("update {}", history.name), Way::Back, Harm::HoldAndCut, 1);
    let meanwhile = async {
        proxy.struck(1).await;
        let applied = shown(&place).await.time;
        eventually("the fence is closed", PATIENCE, async || shown(&place).await.time > applied + 5).await;
        proxy.relent();
    };
    let told = tokio::join!(held(&place, &late, 1, 1_000), meanwhile).0.expect("stored");
    assert_eq!(seqs(&told), [history.page_size + 1]);
    assert_eq!(stored(&place.database, history, 1).await.numbers.len() as u64, history.page_size + 1);
}

test_over!(a_late_marker_of_a_reopening_is_refused, NOTES);
/// The marker of page 1 arrives after the owner was reopened, erased again, and swept. No client waits for
/// it.
async fn a_late_marker_of_a_reopening_is_refused(history: &'static History) {
    let place = Place::new(history).await;
    let (proxy, late) = delayed(&place, LATE).await;
    let other = place.store_with(LATE).await;
    append(&place, &other, 1, 1, history.page_size).await.expect("stored");
    erase(&place, &other, 1).await;
    hold(&place, &proxy);
    let owner = place.owner(1);
    let meanwhile = async {
        proxy.struck(1).await;
        let reopened = engine_of(&other, &place).erasures().reopen(&owner, soon()).await;
        assert_eq!(reopened.expect("an answer"), Reopening::Reopened);
        append(&place, &other, 1, 1_000, 1).await.expect("stored");
        erase(&place, &other, 1).await;
    };
    let late = engine_of(&late, &place);
    let (given_up, ()) =
        tokio::join!(late.erasures().reopen(&owner, Deadline::within(PATIENCE / 6)), meanwhile);
    assert!(matches!(given_up, Err(Error::Unavailable(_))), "{given_up:?}");
    // It has arrived when it is answered.
    proxy.relent_but(format!("update {}", history.name), Way::Back, Harm::Hold, 1);
    proxy.struck(2).await;
    place.is_erased(1).await;
    proxy.relent();
}

/// Of each kind of command that must not be late: the limits of their time, in milliseconds.
type Limits = BTreeMap<&'static str, Vec<Option<i64>>>;

test_over!(commands_that_open_pages_and_write_markers_have_a_time_limit, NOTES);
async fn commands_that_open_pages_and_write_markers_have_a_time_limit(history: &'static History) {
    let place = Place::new(history).await;
    let limits = Arc::new(Mutex::new(Limits::new()));
    let seen = Arc::clone(&limits);
    let setup = place.setup().await.aging(SHORT).observed(move |command, body| {
        let updates = body.get_array("updates").map_or(&[][..], Vec::as_slice);
        let Some(first) = updates.first().and_then(Bson::as_document).filter(|_| command == "update") else {
            return;
        };
        if !(first.get_bool("upsert").unwrap_or(false) && first.get_array("u").is_ok()) {
            return;
        }
        let q = first.get_document("q").expect("a condition");
        let kind = match (q.get_str("_id"), q.get_i64("page")) {
            (Ok(id), _) if id.ends_with("_:") => "tombstone",
            (_, Ok(1)) => "marker of the beginning",
            _ => "page",
        };
        let limit = body.get("maxTimeMS").and_then(Bson::as_i64);
        seen.lock().unwrap().entry(kind).or_default().push(limit);
    });
    let store = setup.store().await;
    append(&place, &store, 1, 1, 1).await.expect("stored");
    erase(&place, &store, 1).await;
    let reopened = engine_of(&store, &place).erasures().reopen(&place.owner(1), soon()).await;
    assert_eq!(reopened.expect("an answer"), Reopening::Reopened);
    let limits = limits.lock().unwrap();
    assert_eq!(limits.keys().copied().collect::<Vec<_>>(), ["marker of the beginning", "page", "tombstone"]);
    let command = SHORT.command.as_millis() as i64;
    let is_limited = |limit: &Option<i64>| limit.is_some_and(|limit| (1..=command).contains(&limit));
    assert!(limits.values().flatten().all(is_limited), "{limits:?}");
}

test_over!(a_tail_that_ages_during_a_search_is_read_before_a_page_is_opened, NOTES);
/// The age of a tail is looked at when a commit is formed. The search for keys comes after that, and takes
/// time.
async fn a_tail_that_ages_during_a_search_is_read_before_a_page_is_opened(history: &'static History) {
    let place = Place::new(history).await;
    let proxy = Proxy::before(shared().await).await;
    let (clock, later) = clock();
    let ages = Ages { poll: Duration::from_secs(3600), tail: Duration::from_secs(60), ..SHORT };
    let mut setup = Setup::at(&proxy.uri()).of(history).in_database(&place.database).aging(ages);
    setup.clock = clock;
    let slow = setup.store().await;
    let append_once = async |key: &str| {
        let key = IdempotencyKey::parse(key.as_bytes()).expect("a key");
        let (owner, now) = (place.owner(1), Instant::from_millis(super::DATE).expect("a date"));
        let drafts = vec![engine::draft(history, 1)];
        let once = Some(Once::Request { key, canonical: &[vec![1]] });
        let append = Append { once, ..Append::new(owner, drafts, now, soon()) };
        seqs(&engine_of(&slow, &place).appends().append(append).await.expect("stored"))
    };
    append(&place, &slow, 2, 1, 1).await.expect("an answer tells the server's time");
    // It knows the tail, and another instance fills the page.
    assert_eq!(append_once("first").await, [1]);
    append(&place, &place.store().await, 1, 1_000, history.page_size - 1).await.expect("stored");
    let nth = |command: &str, nth: usize| Nth(format!("{command} {}", history.name), nth);
    proxy.harm_nth(nth("find", 0), Way::There, Harm::Hold);
    let meanwhile = async {
        proxy.struck(1).await;
        later(3_600_000);
        proxy.relent();
    };
    let (told, ()) = tokio::join!(append_once("second"), meanwhile);
    assert_eq!(told, [history.page_size + 1]);
    let commands = proxy.commands().into_iter().filter(|Nth(name, _)| name.ends_with(history.name));
    let (refused, reads_tail, searches) = (nth("update", 0), nth("aggregate", 0), nth("find", 0));
    let (reads_it_again, opens) = (nth("aggregate", 1), nth("update", 1));
    assert_eq!(commands.collect::<Vec<_>>(), [refused, reads_tail, searches, reads_it_again, opens]);
}

test_over!(a_tombstone_ages_from_when_it_is_there, TRADES);
/// The clock of the command that writes a tombstone stands still. Reads that do not show it yet are justified
/// by a later time.
async fn a_tombstone_ages_from_when_it_is_there(history: &'static History) {
    let mongod = Mongod::own().await;
    let proxy = Proxy::before(&mongod).await;
    let ages = Ages { command: Duration::from_secs(20), ..LATE };
    let setup = Setup::at(&proxy.uri()).of(history).aging(ages);
    let client = mongod.client().await;
    let (database, admin) = (client.database(&setup.connection.database), client.database("admin"));
    let place = Place { history, database };
    let store = setup.store().await;
    append(&place, &store, 1, 1, 1).await.expect("stored");
    hold(&place, &proxy);
    let began = DateTime::now();
    let meanwhile = async {
        proxy.struck(1).await;
        admin.run_command(doc! { "fsync": 1, "lock": true }).await.expect("a lock");
        proxy.relent();
        let collection = format!("{}.{}", place.database.name(), history.name);
        let waits = doc! { "currentOp": 1, "ns": collection, "waitingForLock": true };
        eventually("it waits for the lock", PATIENCE, async || {
            let found = admin.run_command(waits.clone()).await.expect("an answer");
            found.get_array("inprog").is_ok_and(|found| !found.is_empty())
        })
        .await;
        leap(&client).await;
        admin.run_command(doc! { "fsyncUnlock": 1 }).await.expect("no lock");
    };
    let owner = place.owner(1);
    let (erased, ()) = tokio::join!(engine_of(&store, &place).erasures().erase(&owner, soon()), meanwhile);
    erased.expect("an answer");
    let tombstones = place.database.collection::<Document>(history.name);
    let tombstone =
        tombstones.find_one(doc! { "swept": false }).await.expect("an answer").expect("a tombstone");
    let since = tombstone.get_datetime("since").expect("a date").timestamp_millis();
    assert!(since >= began.timestamp_millis() + 3_500_000, "after the leap by an hour: {tombstone}");
    mongod.remove().await;
}
