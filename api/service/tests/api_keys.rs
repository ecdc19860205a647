//! The life of an API key: created, found, remembered, noted, expired, revoked; and what the database keeps
//! of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Document, doc};
use pagebucket_engine::internal::api_keys::{CreateError, KeyRecord, Revocation};
use pagebucket_engine::{ConnectError, Deadline, Store};
use pagebucket_http::auth::Refusal;
use pagebucket_http::auth::keys::{ApiKey, Keys};
use pagebucket_model::domain::{AllowedOwners, Clock, Instant, OwnerType, Scope, Scopes};

use crate::harness::{Harm, PATIENCE, Proxy, Setup, Way, eventually, shared};

/// Ten seconds before an hour ends: 2026-11-22T15:59:50Z.
const START: i64 = 1_795_363_190_000;
const HOUR: i64 = 3_600_000;

/// The time of all instances of a test.
#[derive(Clone)]
struct Time(Arc<AtomicI64>);

impl Time {
    fn new() -> Self {
        Self(Arc::new(AtomicI64::new(START)))
    }

    fn now(&self) -> Instant {
        Instant::from_millis(self.0.load(Ordering::SeqCst)).expect("a date")
    }

    fn pass(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }

    fn clock(&self) -> Clock {
        let time = self.clone();
        Clock::from_fn(move || time.now())
    }
}

/// An instance, whose commands on the keys are written down.
struct Instance {
    store: Store,
    keys: Keys,
    sent: Arc<Mutex<Vec<String>>>,
    database: String,
}

impl Instance {
    async fn new(time: &Time) -> Self {
        Self::of(Setup::on(shared().await), time).await
    }

    async fn behind(proxy: &Proxy, time: &Time) -> Self {
        Self::of(Setup::at(&proxy.uri()), time).await
    }

    /// Another one on the same database.
    async fn sibling(&self, time: &Time) -> Self {
        let mut setup = Setup::on(shared().await);
        setup.connection.database.clone_from(&self.database);
        Self::of(setup, time).await
    }

    async fn of(setup: Setup, time: &Time) -> Self {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let watch = Arc::clone(&sent);
        let setup = setup.observed(move |name, command| {
            if command.get_str(name).is_ok_and(|collection| collection == "api_keys") {
                watch.lock().expect("no test panics here").push(name.to_owned());
            }
        });
        let store = setup.store().await;
        let keys = Keys::new(&store, time.clock());
        sent.lock().expect("no test panics here").clear();
        Self { store, keys, sent, database: setup.store.connection.database }
    }

    /// How many commands of this name were sent.
    fn sent(&self, name: &str) -> usize {
        self.sent.lock().expect("no test panics here").iter().filter(|sent| *sent == name).count()
    }

    async fn database(&self) -> mongodb::Database {
        shared().await.client().await.database(&self.database)
    }

    /// A new key.
    async fn create(&self, record: &KeyRecord) -> ApiKey {
        let key = ApiKey::new();
        self.store.api_keys().create(key.hash(), record, soon()).await.expect("a new name");
        key
    }

    async fn revoke(&self, name: &str, time: &Time) -> Revocation {
        self.store.api_keys().revoke(name, time.now(), soon()).await.expect("an answer")
    }

    async fn refusal(&self, key: &str) -> Refusal {
        assert!(self.keys.remembered(key).is_none());
        self.keys.principal(key, soon()).await.expect_err("it is refused")
    }

    /// The record of the only key.
    async fn record(&self) -> KeyRecord {
        self.store.api_keys().all(soon()).await.expect("an answer").remove(0)
    }
}

fn soon() -> Deadline {
    Deadline::within(PATIENCE)
}

fn record(name: &str) -> KeyRecord {
    KeyRecord {
        name: name.to_owned(),
        scopes: Scopes::from_iter([Scope::Read, Scope::Append]),
        owners: None,
        created: Time::new().now(),
        last_used: None,
        expires: None,
        revoked: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_lives_until_it_is_revoked() {
    let time = Time::new();
    let (one, other) = {
        let one = Instance::new(&time).await;
        let other = one.sibling(&time).await;
        (one, other)
    };
    let key = one.create(&record("backend")).await;
    let key = key.expose();
    for instance in [&one, &other] {
        assert!(instance.keys.remembered(key).is_none());
        let principal = instance.keys.principal(key, soon()).await.expect("a valid key");
        assert_eq!(&*principal.name, "key:backend");
        assert_eq!(principal.scopes, record("backend").scopes);
        assert!(principal.reaches_all("customers") && principal.expires.is_none());
        for _ in 0..100 {
            assert_eq!(instance.keys.remembered(key).as_ref(), Some(&principal));
            assert_eq!(instance.keys.principal(key, soon()).await.expect("a valid key"), principal);
        }
        assert_eq!(instance.sent("find"), 1);
    }

    assert_eq!(one.revoke("backend", &time).await, Revocation::Revoked);
    time.pass(29_999);
    assert!(other.keys.remembered(key).is_some(), "remembered for 30 s");
    time.pass(1);
    for instance in [&one, &other] {
        for _ in 0..10 {
            let refusal = instance.refusal(key).await;
            assert!(is_refused(&refusal, "was revoked", Some("key:backend")), "{refusal:?}");
        }
        assert_eq!(instance.sent("find"), 2);
    }
    time.pass(1_000);
    assert_eq!(other.revoke("backend", &time).await, Revocation::AlreadyRevoked);
    assert_eq!(other.revoke("front", &time).await, Revocation::UnknownName);
    let revoked = one.record().await.revoked.expect("it is marked");
    assert_eq!(revoked.millis(), START, "the first revocation keeps its date");

    // A clock that is set back keeps no record fresh.
    let key = one.create(&record("another")).await;
    one.keys.principal(key.expose(), soon()).await.expect("a valid key");
    time.pass(-HOUR);
    assert!(one.keys.remembered(key.expose()).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_expires_at_its_time() {
    let time = Time::new();
    let instance = Instance::new(&time).await;
    let expires = Instant::from_millis(START + 20_000).ok();
    let key = instance.create(&KeyRecord { expires, ..record("backend") }).await;
    let key = key.expose();
    let principal = instance.keys.principal(key, soon()).await.expect("a valid key");
    assert_eq!(principal.expires, expires);
    time.pass(19_999);
    assert!(instance.keys.remembered(key).is_some());
    time.pass(1);
    let refusal = instance.refusal(key).await;
    assert!(is_refused(&refusal, "has expired", Some("key:backend")), "{refusal:?}");
    assert_eq!(instance.sent("find"), 1, "the clock decides");
    let refusal = instance.sibling(&time).await.refusal(key).await;
    assert!(is_refused(&refusal, "has expired", Some("key:backend")), "{refusal:?}");
}

/// Whether a key is refused with these words, and as the key of this client.
fn is_refused(refusal: &Refusal, why: &str, client: Option<&str>) -> bool {
    matches!(refusal, Refusal::Invalid(words, name) if *words == format!("The API key {why}.") && name.as_deref() == client)
}

#[tokio::test(flavor = "multi_thread")]
async fn whose_histories_a_key_reaches() {
    let time = Time::new();
    let instance = Instance::new(&time).await;
    for (name, owners, reached) in [
        ("some", &["7", "customers=8", "rooms=9"][..], AllowedOwners::of_ids(["7", "8"], OwnerType::Integer)),
        ("all", &["7", "*"], AllowedOwners::All),
        ("none", &["rooms=*"], AllowedOwners::of_ids::<&str>([], OwnerType::Integer)),
    ] {
        let owners = Some(owners.iter().map(|owner| (*owner).to_owned()).collect());
        let key = instance.create(&KeyRecord { owners, ..record(name) }).await;
        let principal = instance.keys.principal(key.expose(), soon()).await.expect("a valid key");
        assert_eq!(principal.owners, BTreeMap::from([("customers".into(), reached)]), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_belongs_to_one_key() {
    let time = Time::new();
    let instance = Instance::new(&time).await;
    let first = instance.create(&record("backend")).await;
    let again = async || {
        let key = ApiKey::new();
        let refused = instance.store.api_keys().create(key.hash(), &record("backend"), soon()).await;
        let error = refused.expect_err("the name is taken");
        assert!(matches!(error, CreateError::NameTaken), "{error}");
        assert!(is_refused(&instance.refusal(key.expose()).await, "is unknown", None));
    };
    again().await;
    instance.keys.principal(first.expose(), soon()).await.expect("it is as it was");
    instance.revoke("backend", &time).await;
    again().await;
    instance.create(&record("Backend")).await;
    let all = instance.store.api_keys().all(soon()).await.expect("an answer");
    let names: Vec<_> = all.iter().map(|record| record.name.as_str()).collect();
    assert_eq!(names, ["Backend", "backend"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_keys_are_asked_for_once_in_five_seconds() {
    let time = Time::new();
    let instance = Instance::new(&time).await;
    for text in ["", "pb_", "backend", &"x".repeat(46), "eyJhbGciOiJub25lIn0.e30."] {
        assert!(is_refused(&instance.refusal(text).await, "is unknown", None));
    }
    assert_eq!(instance.sent("find"), 0, "a malformed key is no question");
    let key = ApiKey::new();
    for (passed, asked) in [(0, 1), (4_999, 1), (1, 2), (1, 2)] {
        time.pass(passed);
        for _ in 0..100 {
            assert!(is_refused(&instance.refusal(key.expose()).await, "is unknown", None));
        }
        assert_eq!(instance.sent("find"), asked);
    }
    // Created after it was presented: it works when the five seconds are over.
    instance.store.api_keys().create(key.hash(), &record("backend"), soon()).await.expect("a new name");
    assert!(is_refused(&instance.refusal(key.expose()).await, "is unknown", None));
    time.pass(5_000);
    instance.keys.principal(key.expose(), soon()).await.expect("a valid key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_looked_up_once_at_a_time() {
    let time = Time::new();
    let proxy = Proxy::before(shared().await).await;
    let instance = Instance::behind(&proxy, &time).await;
    let key = instance.create(&record("backend")).await;
    for turn in 1..=2_u32 {
        proxy.harm("find api_keys", Way::Back, Harm::Hold, 1_000);
        let all = join_all((0..100).map(|_| instance.keys.principal(key.expose(), soon())));
        let release = async {
            proxy.struck(turn).await;
            proxy.relent();
        };
        let (all, ()) = tokio::join!(all, release);
        assert!(all.iter().all(Result::is_ok));
        assert_eq!(instance.sent("find"), turn as usize);
        time.pass(30_000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_unknown_keys_takes_few_connections() {
    let time = Time::new();
    let proxy = Proxy::before(shared().await).await;
    let instance = Instance::behind(&proxy, &time).await;
    let keys: Vec<_> = (0..500).map(|_| ApiKey::new()).collect();
    proxy.harm("find api_keys", Way::Back, Harm::Hold, 1_000);
    let flood = join_all(keys.iter().map(|key| instance.keys.principal(key.expose(), soon())));
    let others = async {
        proxy.struck(16).await;
        for _ in 0..100 {
            instance.store.ping(PATIENCE).await.expect("a connection that the flood has not taken");
        }
        assert_eq!((proxy.strikes(), instance.sent("find")), (16, 16));
        proxy.relent();
    };
    let (all, ()) = tokio::join!(flood, others);
    let is_unknown = |refused: &Refusal| is_refused(refused, "is unknown", None);
    assert!(all.iter().all(|answer| answer.as_ref().is_err_and(is_unknown)));
    assert_eq!(instance.sent("find"), 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_is_no_refusal() {
    for harm in [Harm::Cut, Harm::Hold] {
        let time = Time::new();
        let proxy = Proxy::before(shared().await).await;
        let instance = Instance::behind(&proxy, &time).await;
        let (key, expires) =
            (instance.create(&record("backend")).await, Instant::from_millis(START + 40_000).ok());
        let (revoked, expiring) = (
            instance.create(&record("revoked")).await,
            instance.create(&KeyRecord { expires, ..record("expiring") }).await,
        );
        instance.revoke("revoked", &time).await;
        assert!(is_refused(&instance.refusal(revoked.expose()).await, "was revoked", Some("key:revoked")));
        for key in [&key, &expiring] {
            instance.keys.principal(key.expose(), soon()).await.expect("a valid key");
        }

        proxy.harm("find api_keys", Way::There, harm, u32::MAX);
        // What is cut fails by itself, and is asked once more by the driver, which must not come later.
        let seconds = if harm == Harm::Cut { 30 } else { 3 };
        let short = || Deadline::within(Duration::from_secs(seconds));
        time.pass(57_000);
        let asked = instance.sent("find");
        instance
            .keys
            .principal(key.expose(), short())
            .await
            .expect("the database was asked less than 60 s ago");
        // On a busy machine a question may be sent later than its answer is given up.
        eventually("the database was asked", PATIENCE, async || instance.sent("find") > asked).await;
        // One that was given up may be sent once more meanwhile.
        eventually("500 requests ask nothing", PATIENCE, async || {
            let sent = instance.sent("find");
            for _ in 0..500 {
                assert!(instance.keys.remembered(key.expose()).is_some(), "another request has just asked");
            }
            instance.sent("find") == sent
        })
        .await;
        time.pass(2_999);
        assert!(instance.keys.remembered(key.expose()).is_none(), "the database is asked first");
        let principal = instance.keys.principal(key.expose(), short()).await;
        assert_eq!(&*principal.expect("the database was asked less than 60 s ago").name, "key:backend");
        assert!(instance.keys.remembered(key.expose()).is_some(), "another request has just asked");
        let refused = instance.keys.principal(revoked.expose(), short()).await.expect_err("it was revoked");
        assert!(is_refused(&refused, "was revoked", Some("key:revoked")), "{refused:?}");
        let refused = instance.keys.principal(expiring.expose(), short()).await.expect_err("it has expired");
        assert!(is_refused(&refused, "has expired", Some("key:expiring")), "{refused:?}");
        time.pass(1);
        for key in [&key, &revoked, &ApiKey::new()] {
            let unknown = instance.keys.principal(key.expose(), short()).await;
            assert!(matches!(unknown, Err(Refusal::Database(_))), "{unknown:?}");
        }
        proxy.relent();
        eventually("the database is back", PATIENCE, || async {
            instance.keys.principal(key.expose(), short()).await.is_ok()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_use_is_noted_once_an_hour() {
    let time = Time::new();
    let one = Instance::new(&time).await;
    let other = one.sibling(&time).await;
    let key = one.create(&record("backend")).await;
    let key = key.expose();
    let until_noted = async |hour: i64| {
        eventually("the last use is noted", PATIENCE, || async {
            one.record().await.last_used.is_some_and(|at| at.millis() == hour)
        })
        .await;
    };
    let first = START - START.rem_euclid(HOUR);
    assert_eq!(one.record().await.last_used, None);
    one.keys.principal(key, soon()).await.expect("a valid key");
    until_noted(first).await;
    // The other reads that it is noted.
    for instance in [&one, &other].into_iter().cycle().take(100) {
        instance.keys.principal(key, soon()).await.expect("a valid key");
    }
    // The next hour begins while the record is remembered.
    time.pass(10_000);
    for _ in 0..100 {
        other.keys.remembered(key).expect("it is remembered");
    }
    until_noted(first + HOUR).await;
    assert_eq!((one.sent("update"), other.sent("update")), (1, 1));

    // An instance that is behind takes nothing back.
    time.pass(-10_000);
    let behind = one.sibling(&time).await;
    behind.keys.principal(key, soon()).await.expect("a valid key");
    time.pass(2 * HOUR);
    one.keys.principal(key, soon()).await.expect("a valid key");
    until_noted(first + 2 * HOUR).await;
    assert_eq!((one.sent("update"), behind.sent("update")), (2, 0));
}

/// As `ApiKeys` writes it, with all that is optional.
fn sound(name: &str, first: u8) -> Document {
    let mut bytes = vec![7; 32];
    bytes[0] = first;
    let at = DateTime::from_millis(START);
    doc! {
        "_id": Binary { subtype: BinarySubtype::Generic, bytes },
        "name": name,
        "scopes": ["read", "append", "list", "views", "metrics", "admin"],
        "owners": ["7", "*", "customers=7", "rooms=*", "room-2=018f3c6e-7b1a"],
        "created": at,
        "lastUsed": DateTime::from_millis(START - START.rem_euclid(HOUR)),
        "expires": at,
        "revoked": at,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_corrupt_record_can_be_written() {
    let instance = Instance::new(&Time::new()).await;
    let keys = instance.database().await.collection::<Document>("api_keys");
    let with = |field: &str, value: Bson| {
        let mut record = sound("backend", 1);
        record.insert(field, value);
        record
    };
    let bytes = |length: usize| Binary { subtype: BinarySubtype::Generic, bytes: vec![7; length] };
    let texts = |texts: &[&str]| Bson::from(texts.to_vec());
    let mut corrupt = vec![
        with("_id", "7".repeat(32).into()),
        with("_id", bytes(31).into()),
        with("_id", bytes(33).into()),
        with("name", "".into()),
        with("name", "a b".into()),
        with("name", "a\n".into()),
        with("name", "ä".into()),
        with("name", "x".repeat(65).into()),
        with("name", 7.into()),
        with("scopes", texts(&[])),
        with("scopes", texts(&["write"])),
        with("scopes", texts(&["read", "read"])),
        with("scopes", "read".into()),
        with("owners", texts(&[])),
        with("owners", texts(&["7", "7"])),
        with("owners", Bson::Null),
        with("owners", Bson::Array(vec![7.into()])),
        with("owners", (0..1001).map(|id| id.to_string()).collect::<Vec<_>>().into()),
        with("lastUsed", DateTime::from_millis(START).into()),
        with("revoked", true.into()),
        with("key", "pb_".into()),
    ];
    for owner in ["", "a_b", "=7", "customers=", "Customers=7", "customers=7\n", "7,8", "a=b=c"] {
        corrupt.push(with("owners", texts(&[owner])));
    }
    for field in ["created", "lastUsed", "expires", "revoked"] {
        for value in [
            START.into(),
            "2026-11-22".into(),
            Bson::Null,
            DateTime::from_millis(-62_167_219_200_000 - HOUR).into(),
            DateTime::from_millis(253_402_300_800_000).into(),
        ] {
            corrupt.push(with(field, value));
        }
    }
    for field in ["name", "scopes", "created"] {
        let mut record = sound("backend", 1);
        record.remove(field).expect("such a field");
        corrupt.push(record);
    }
    for record in corrupt {
        let refused = keys.insert_one(&record).await.expect_err(&format!("corrupt: {record}"));
        let mongodb::error::ErrorKind::Write(mongodb::error::WriteFailure::WriteError(error)) =
            refused.kind.as_ref()
        else {
            panic!("{record}: {refused}");
        };
        assert_eq!(error.code, 121, "{record}: {refused}");
    }
    keys.insert_one(sound("backend", 1)).await.expect("a sound record");
    let mut least = sound("x.Y-9_", 2);
    ["owners", "lastUsed", "expires", "revoked"].iter().for_each(|field| drop(least.remove(field)));
    keys.insert_one(least).await.expect("a sound record");
    for taken in [sound("backend", 3), sound("third", 1)] {
        keys.insert_one(taken).await.expect_err("a name and a hash exist once");
    }
    let all = instance.store.api_keys().all(soon()).await.expect("an answer");
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].scopes, Scopes::from_iter(Scope::ALL));
    assert_eq!(all[0].owners.as_ref().map(Vec::len), Some(5));
}

#[tokio::test(flavor = "multi_thread")]
async fn api_keys_without_a_guard_are_refused() {
    let instance = Instance::new(&Time::new()).await;
    let database = instance.database().await;
    instance.store.check_collections().await.expect("its own collections");
    for (command, guard) in [
        (doc! { "collMod": "api_keys", "validationAction": "warn" }, "validator"),
        (doc! { "dropIndexes": "api_keys", "index": "name_1" }, "unique index on name"),
    ] {
        database.run_command(command).await.expect("to harm it");
        let error = instance.store.check_collections().await.expect_err("it is harmed");
        assert!(
            matches!(&error, ConnectError::Unguarded { collection, guard: it } if collection == "api_keys" && it == guard),
            "{error}"
        );
        // As the message says.
        database.collection::<Document>("migrations").drop().await.expect("to drop it");
        instance.store.migrate().await.expect("again");
        instance.store.check_collections().await.expect("it is mended");
    }
}
