//! Commands that are late: the connection holds them back until the owner is erased and swept, or the pages
//! are deleted. The database refuses them. The controls show what they would do without the fence.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mongodb::Client;
use mongodb::bson::{Document, Timestamp, deserialize_from_document, doc};
use pagebucket_engine::erasures::Reopening;
use pagebucket_engine::internal::Ages;
use pagebucket_engine::{Deadline, Error, Store};

use super::{
    Place, SHORT, append, append_within, engine_of, erase, keep, pages_left, refused_as_erased, retire_to,
    seqs, soon,
};
use crate::harness::rig::WRITES;
use crate::harness::{
    Harm, History, Mongod, PATIENCE, Proxy, ReplicaSet, Setup, Way, Wires, eventually, shared, stored,
    test_over, try_stored,
};

/// Long enough for the fence, which goes by whole seconds.
pub(super) const LATE: Ages = Ages { tail: Duration::from_secs(1), marker: Duration::from_secs(5), ..SHORT };

/// Its commands are never late.
const CONTROL: Ages = Ages { tail: Duration::from_secs(3600), ..LATE };

/// An instance whose commands can be held back.
pub(super) async fn delayed(place: &Place, ages: Ages) -> (Proxy, Store) {
    let proxy = Proxy::before(shared().await).await;
    let setup = Setup::at(&proxy.uri()).of(place.history).in_database(&place.database).aging(ages);
    let store = setup.store().await;
    (proxy, store)
}

/// An append of one item that is held back until what happens meanwhile has ended: it must not give up
/// before.
pub(super) async fn held(
    place: &Place,
    late: &Store,
    owner: u64,
    number: u64,
) -> Result<pagebucket_engine::appends::AppendProgress, pagebucket_engine::appends::AppendError> {
    Opening::ByUpdate.held(place, late, owner, number).await
}

/// Holds back the next append or marker of this history.
pub(super) fn hold(place: &Place, proxy: &Proxy) {
    Opening::ByUpdate.hold(place, proxy);
}

/// How an append opens pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    ByUpdate,
    ByInsert,
}

impl Opening {
    const EACH: [Self; 2] = [Self::ByUpdate, Self::ByInsert];

    fn command(self) -> &'static str {
        match self {
            Self::ByUpdate => "update",
            Self::ByInsert => "insert",
        }
    }

    /// A number of items for which an append opens pages in this way.
    fn items(self, history: &History) -> u64 {
        match self {
            Self::ByUpdate => 1,
            Self::ByInsert => 5 * history.page_size,
        }
    }

    fn hold(self, place: &Place, proxy: &Proxy) {
        proxy.harm(format!("{} {}", self.command(), place.history.name), Way::There, Harm::Hold, 1);
    }

    /// An append of [`Opening::items`] items that is held back, as [`held`] is.
    async fn held(
        self,
        place: &Place,
        late: &Store,
        owner: u64,
        number: u64,
    ) -> Result<pagebucket_engine::appends::AppendProgress, pagebucket_engine::appends::AppendError> {
        let items = self.items(place.history);
        append_within(place, late, owner, number, items, Deadline::within(3 * PATIENCE)).await
    }
}

/// An owner with one full page, who is erased while the command that opens the second is held back. Returns
/// what became of that.
async fn erased_meanwhile(
    place: &Place,
    ages: Ages,
    how: Opening,
) -> Result<pagebucket_engine::appends::AppendProgress, pagebucket_engine::appends::AppendError> {
    let (proxy, late) = delayed(place, ages).await;
    append(place, &late, 1, 1, place.history.page_size).await.expect("stored");
    how.hold(place, &proxy);
    tokio::join!(how.held(place, &late, 1, 1_000), erased_while_held(place, &proxy)).0
}

/// Erases owner 1 as soon as the proxy holds a command back, which it lets go then.
pub(super) async fn erased_while_held(place: &Place, proxy: &Proxy) {
    proxy.struck(1).await;
    let other = place.store_with(LATE).await;
    erase(place, &other, 1).await;
    place.is_erased(1).await;
    proxy.relent();
}

test_over!(a_late_command_brings_back_nothing_of_an_erased_owner, SMALL);
async fn a_late_command_brings_back_nothing_of_an_erased_owner(history: &'static History) {
    for how in Opening::EACH {
        let place = Place::new(history).await;
        refused_as_erased(erased_meanwhile(&place, LATE, how).await);
        place.is_erased(1).await;
    }
}

test_over!(without_a_fence_a_late_command_opens_a_page_of_nothing, NOTES);
async fn without_a_fence_a_late_command_opens_a_page_of_nothing(history: &'static History) {
    for how in Opening::EACH {
        let place = Place::new(history).await;
        let told = erased_meanwhile(&place, CONTROL, how).await.expect("this is the trap");
        assert_eq!(seqs(&told)[0], history.page_size + 1);
        assert_eq!(pages_left(&place, 1).await[0], 2, "a page of an erased owner");
    }
}

test_over!(a_late_command_opens_no_retired_page_again, NOTES);
async fn a_late_command_opens_no_retired_page_again(history: &'static History) {
    for how in Opening::EACH {
        let place = Place::new(history).await;
        let (proxy, late) = delayed(&place, LATE).await;
        append(&place, &late, 1, 1, history.page_size).await.expect("stored");
        how.hold(&place, &proxy);
        let meanwhile = async {
            proxy.struck(1).await;
            let other = place.store_with(LATE).await;
            append(&place, &other, 1, 1_000, 9 * history.page_size).await.expect("stored");
            retire_to(&place, &other, 1, keep(2), 8).await;
            proxy.relent();
        };
        let told = tokio::join!(how.held(&place, &late, 1, 2_000), meanwhile).0.expect("stored");
        assert_eq!(seqs(&told)[0], 10 * history.page_size + 1, "at the end");
        assert_eq!(stored(&place.database, history, 1).await.first_page, 8);
    }
}

test_over!(a_server_that_fills_in_no_time_opens_no_page, NOTES);
/// Then a page would have no fence. An update does not fill it in.
async fn a_server_that_fills_in_no_time_opens_no_page(history: &'static History) {
    let place = Place::new(history).await;
    let store = place.store().await;
    append(&place, &store, 1, 1, 5 * history.page_size).await.expect("stored");
    let buckets = place.database.collection::<Document>(history.name);
    for (opened, openable) in [(0, 7), (8, 7)] {
        let [opened, openable] = [opened, openable].map(|time| Timestamp { time, increment: 0 });
        let times = doc! { "$set": { "opened": opened, "openable": openable } };
        let refused = buckets.update_one(doc! { "page": 5_i64 }, times).await.expect_err("no valid document");
        assert!(refused.to_string().contains("validation"), "{refused}");
    }
    let page = buckets.find_one(doc! { "page": 5_i64 }).await.expect("an answer").expect("the page");
    let [opened, openable] = ["opened", "openable"].map(|time| page.get_timestamp(time).expect("a time"));
    assert!(opened.time > 1_700_000_000 && opened <= openable, "{page}");
}

/// An instance on this mongod, and the names of its commands that store items.
async fn watched(history: &'static History, mongod: &Mongod) -> (Place, Store, Arc<Mutex<Vec<String>>>) {
    let (seen, name) = (Arc::new(Mutex::new(Vec::new())), history.name);
    let log = Arc::clone(&seen);
    let setup = Setup::on(mongod).of(history).aging(LATE).observed(move |command, body| {
        if WRITES.contains(&command) && body.get_str(command).is_ok_and(|of| of == name) {
            log.lock().expect("no test panics here").push(command.to_owned());
        }
    });
    let database = mongod.client().await.database(&setup.connection.database);
    (Place { history, database }, setup.store().await, seen)
}

test_over!(pages_are_upserted_after_a_refusal, NOTES);
/// The clock of a set stands still while nothing is written, but the time of an insert does not.
async fn pages_are_upserted_after_a_refusal(history: &'static History) {
    let mongod = Mongod::own().await;
    let (place, store, seen) = watched(history, &mongod).await;
    let items = Opening::ByInsert.items(history);
    append(&place, &store, 1, 1, items).await.expect("stored");
    leap(&mongod.client().await).await;
    append(&place, &store, 1, 1_000, items).await.expect("stored");
    let seen = std::mem::take(&mut *seen.lock().expect("no test panics here"));
    assert_eq!(seen[..2], ["insert", "insert"], "{seen:?}");
    assert!(seen.len() > 2 && seen[2..].iter().all(|command| command == "update"), "{seen:?}");
    assert_eq!(stored(&place.database, history, 1).await.numbers.len() as u64, 2 * items);
    mongod.remove().await;
}

test_over!(the_last_page_is_filled_before_pages_are_inserted, SMALL);
async fn the_last_page_is_filled_before_pages_are_inserted(history: &'static History) {
    let (place, store, seen) = watched(history, shared().await).await;
    append(&place, &store, 1, 1, 1).await.expect("stored");
    for (number, pages, expected) in [(2, 10, &["update"][..]), (1_000, 40, &["update", "insert"][..])] {
        seen.lock().expect("no test panics here").clear();
        append(&place, &store, 1, number, pages * history.page_size).await.expect("stored");
        assert_eq!(*seen.lock().expect("no test panics here"), expected, "{pages} pages");
    }
    let expected = 1 + 50 * history.page_size;
    assert_eq!(stored(&place.database, history, 1).await.numbers.len() as u64, expected);
}

test_over!(a_late_first_page_does_not_replace_the_marker_in_its_place, SMALL);
async fn a_late_first_page_does_not_replace_the_marker_in_its_place(history: &'static History) {
    let place = Place::new(history).await;
    let (proxy, late) = delayed(&place, CONTROL).await;
    hold(&place, &proxy);
    let meanwhile = async {
        proxy.struck(1).await;
        let other = place.store_with(LATE).await;
        // Of the same date: page 1 has the same `_id`.
        append(&place, &other, 1, 1_000, 4 * history.page_size).await.expect("stored");
        retire_to(&place, &other, 1, keep(1), 3).await;
        proxy.relent();
    };
    let told = tokio::join!(held(&place, &late, 1, 1), meanwhile).0.expect("stored");
    assert_eq!(seqs(&told), [4 * history.page_size + 1], "at the end");
    assert_eq!(stored(&place.database, history, 1).await.first_page, 3);
}

test_over!(a_late_tombstone_does_not_erase_a_reopened_owner, TRADES, NOTES);
async fn a_late_tombstone_does_not_erase_a_reopened_owner(history: &'static History) {
    let place = Place::new(history).await;
    let (proxy, late) = delayed(&place, LATE).await;
    let other = place.store_with(LATE).await;
    append(&place, &other, 1, 1, history.page_size).await.expect("stored");
    hold(&place, &proxy);
    let (owner, size) = (place.owner(1), history.page_size);
    let meanwhile = async {
        proxy.struck(1).await;
        erase(&place, &other, 1).await;
        let reopened = engine_of(&other, &place).erasures().reopen(&owner, soon()).await;
        assert_eq!(reopened.expect("an answer"), Reopening::Reopened);
        append(&place, &other, 1, 1_000, 2 * size).await.expect("stored");
        proxy.relent();
    };
    let late = tokio::join!(
        engine_of(&late, &place).erasures().erase(&owner, Deadline::within(3 * PATIENCE)),
        meanwhile
    )
    .0;
    assert!(matches!(late, Err(Error::Unavailable(_))), "{late:?}");
    assert!(
        engine_of(&other, &place).erasures().is_swept(&owner, soon()).await.expect("an answer").is_none()
    );
    other.run_housekeeping(&Default::default()).await.expect("an answer");
    let stored = stored(&place.database, history, 1).await;
    assert_eq!((stored.first_page, stored.numbers.len() as u64), (2, 2 * size));
}

test_over!(a_locked_server_ends_commands_that_open_pages, NOTES);
/// The clock of a command stands still while it waits. So its time is limited, and a replay has the time of
/// its own begin.
async fn a_locked_server_ends_commands_that_open_pages(history: &'static History) {
    let mongod = Mongod::own().await;
    let (limits, unlimited) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (counted, others, name) = (Arc::clone(&limits), Arc::clone(&unlimited), history.name);
    let setup = Setup::on(&mongod).of(history).aging(LATE).observed(move |command, body| {
        if WRITES.contains(&command) && body.get_str(command).is_ok_and(|of| of == name) {
            let limit = body.get("maxTimeMS").and_then(mongodb::bson::Bson::as_i64);
            let is_limited = limit.is_some_and(|limit| (1..=1_000).contains(&limit));
            if is_limited { &counted } else { &others }.fetch_add(1, Ordering::Relaxed);
        }
    });
    let database = mongod.client().await.database(&setup.connection.database);
    let store = setup.store().await;
    let place = Place { history, database };
    for (owner, how) in (1..).zip(Opening::EACH) {
        append(&place, &store, owner, 1, history.page_size).await.expect("stored");
        let (admin, before) = (mongod.client().await.database("admin"), limits.load(Ordering::Relaxed));
        admin.run_command(doc! { "fsync": 1, "lock": true }).await.expect("a lock");
        let unlock = async {
            eventually("two replays", PATIENCE, async || limits.load(Ordering::Relaxed) >= before + 3).await;
            admin.run_command(doc! { "fsyncUnlock": 1 }).await.expect("no lock");
        };
        let items = how.items(history);
        let told = tokio::join!(append(&place, &store, owner, 1_000, items), unlock).0.expect("stored");
        assert_eq!(seqs(&told)[0], history.page_size + 1);
        let ids = try_stored(&place.database, history, owner).await.expect("the invariants").ids;
        assert_eq!(ids.len() as u64, 1 + items.div_ceil(history.page_size));
    }
    assert_eq!(unlimited.load(Ordering::Relaxed), 0);
    append(&place, &store, 1, 2_000, 1).await.expect("stored");
    assert_eq!(unlimited.load(Ordering::Relaxed), 1, "an append to an open page");
    mongod.remove().await;
}

/// Has the clock of the set leap ahead by an hour: it follows the greatest time that a member or a client
/// has.
pub(super) async fn leap(client: &Client) {
    let admin = client.database("admin");
    let ping = admin.run_command(doc! { "ping": 1 }).await.expect("an answer");
    let mut time = ping.get_document("$clusterTime").expect("the time of a set").clone();
    let now = time.get_timestamp("clusterTime").expect("a time");
    time.insert("clusterTime", Timestamp { time: now.time + 3600, increment: 1 });
    let mut session = client.start_session().await.expect("a session");
    session.advance_cluster_time(&deserialize_from_document(time).expect("a cluster time"));
    admin.run_command(doc! { "ping": 1 }).session(&mut session).await.expect("an answer");
}

/// Instances on a set of their own: one whose commands can be held back by `proxy`, and another.
pub(super) async fn beside(history: &'static History, late: &str, uri: &str) -> (Place, Store, Store) {
    let setup = Setup::at(uri).of(history).aging(LATE);
    let database = Client::with_uri_str(uri).await.expect("a client").database(&setup.connection.database);
    let other = setup.store().await;
    let late = Setup::at(late).of(history).in_database(&database).aging(LATE).store().await;
    (Place { history, database }, late, other)
}

test_over!(a_clock_that_leaps_ahead_opens_no_page_again, NOTES);
async fn a_clock_that_leaps_ahead_opens_no_page_again(history: &'static History) {
    let mongod = Mongod::own().await;
    let proxy = Proxy::before(&mongod).await;
    let (place, late, other) = beside(history, &proxy.uri(), mongod.uri()).await;
    let size = history.page_size;
    for owner in [1, 2] {
        append(&place, &late, owner, 1, size).await.expect("stored");
    }
    proxy.harm(format!("update {}", history.name), Way::There, Harm::Hold, 2);
    let meanwhile = async {
        proxy.struck(2).await;
        append(&place, &other, 2, 1_000, 5 * size).await.expect("stored");
        engine_of(&other, &place).erasures().erase(&place.owner(1), soon()).await.expect("an answer");
        engine_of(&other, &place).retirement().retire(keep(2), soon()).await.expect("an answer");
        leap(&mongod.client().await).await;
        erase(&place, &other, 1).await;
        retire_to(&place, &other, 2, keep(2), 4).await;
        proxy.relent();
    };
    // One after the other: together they might go in one command.
    let second = async {
        proxy.struck(1).await;
        held(&place, &late, 2, 2_000).await
    };
    let appends = async { tokio::join!(held(&place, &late, 1, 2_000), second) };
    let (erased, retired) = tokio::join!(appends, meanwhile).0;
    refused_as_erased(erased);
    place.is_erased(1).await;
    assert_eq!(seqs(&retired.expect("stored")), [6 * size + 1], "at the end");
    assert_eq!(stored(&place.database, history, 2).await.first_page, 4);
    mongod.remove().await;
}

test_over!(a_standalone_server_refuses_late_commands_too, NOTES);
/// Its clock is that of its machine.
async fn a_standalone_server_refuses_late_commands_too(history: &'static History) {
    let mongod = Mongod::standalone().await;
    let proxy = Proxy::before(&mongod).await;
    let (place, late, other) = beside(history, &proxy.uri(), mongod.uri()).await;
    let size = history.page_size;
    for owner in [1, 2] {
        append(&place, &late, owner, 1, size).await.expect("stored");
    }
    proxy.harm(format!("update {}", history.name), Way::There, Harm::Hold, 2);
    let meanwhile = async {
        proxy.struck(2).await;
        append(&place, &other, 2, 1_000, 5 * size).await.expect("stored");
        erase(&place, &other, 1).await;
        retire_to(&place, &other, 2, keep(2), 4).await;
        proxy.relent();
    };
    // One after the other: together they might go in one command.
    let second = async {
        proxy.struck(1).await;
        held(&place, &late, 2, 2_000).await
    };
    let appends = async { tokio::join!(held(&place, &late, 1, 2_000), second) };
    let (erased, retired) = tokio::join!(appends, meanwhile).0;
    refused_as_erased(erased);
    place.is_erased(1).await;
    assert_eq!(seqs(&retired.expect("stored")), [6 * size + 1], "at the end");
    assert_eq!(stored(&place.database, history, 2).await.first_page, 4);
    mongod.remove().await;
}

test_over!(a_leap_of_the_clock_outlives_a_failover, TRADES);
async fn a_leap_of_the_clock_outlives_a_failover(history: &'static History) {
    let set = ReplicaSet::start(Wires::Harmable).await;
    let (place, late, other) = beside(history, set.uri(), set.uri()).await;
    append(&place, &late, 1, 1, history.page_size).await.expect("stored");
    let wire = set.proxy(set.primary().await);
    wire.harm(format!("update {}", history.name), Way::There, Harm::Hold, 1);
    let meanwhile = async {
        wire.struck(1).await;
        engine_of(&other, &place).erasures().erase(&place.owner(1), soon()).await.expect("an answer");
        leap(&set.client().await).await;
        // The clocks of the other members are an hour behind the time of the set.
        set.step_down().await;
        erase(&place, &other, 1).await;
        place.is_erased(1).await;
        wire.relent();
    };
    refused_as_erased(tokio::join!(held(&place, &late, 1, 1_000), meanwhile).0);
    place.is_erased(1).await;
    set.remove().await;
}
