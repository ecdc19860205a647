//! An instance whose machine has slept for longer than keys are remembered.

use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{DateTime, Document, doc};
use pagebucket_engine::Deadline;
use pagebucket_engine::appends::{Append, Once};
use pagebucket_engine::internal::UploadedSoFar;
use pagebucket_model::domain::{Clock, IdempotencyKey};

use super::REPLAYED;
use crate::harness::{Harm, History, Proxy, Service, Setup, Way, engine, shared, stored, test_over};

/// For how long the machine has slept.
const SLEPT: u32 = 2 * 3600;

/// For how long a key is remembered.
const RETENTION: i64 = 3_600_000;

/// Removes the records that have expired by the server's clock, as the server itself would. How many there
/// were.
async fn expire(database: &Database) -> u64 {
    let records = database.collection::<Document>("idempotency_keys");
    let before = DateTime::from_millis(server_time(database).await - RETENTION);
    let removed = records.delete_many(doc! { "touched": { "$lt": before } }).await;
    removed.expect("an answer").deleted_count
}

/// Milliseconds since 1970.
async fn server_time(database: &Database) -> i64 {
    let hello = database.run_command(doc! { "hello": 1 }).await.expect("an answer");
    hello.get_datetime("localTime").expect("a time").timestamp_millis()
}

async fn record(database: &Database) -> Document {
    let records = database.collection::<Document>("idempotency_keys");
    records.find_one(doc! {}).await.expect("an answer").expect("a record")
}

/// An instance that has just woken up: the last answer that it knows of told the time two hours ago.
async fn woken(history: &'static History) -> (Service, Proxy) {
    let proxy = Proxy::before(shared().await).await;
    proxy.set_back(SLEPT);
    let service = Setup::at(&proxy.uri()).of(history).start().await;
    service.client.append(1, &history.item(1)).await.expect(201);
    proxy.set_back(0);
    (service, proxy)
}

test_over!(a_record_is_not_born_old, NOTES);
async fn a_record_is_not_born_old(history: &'static History) {
    let (service, _proxy) = woken(history).await;
    let before = server_time(&service.database).await;
    let first = service.client.append_once(1, "k", &history.item(2)).await.expect(201);
    let touched = record(&service.database).await.get_datetime("touched").expect("a date").timestamp_millis();
    assert!(touched >= before, "{touched}, {before}");
    assert_eq!(expire(&service.database).await, 0);
    let other = service.sibling(shared().await).await;
    let again = other.client.append_once(1, "k", &history.item(2)).await;
    assert_eq!((again.expect(201), again.header(REPLAYED)), (first, "true"));
    assert_eq!(service.stored(1).await.numbers, [1, 2]);
}

test_over!(a_record_that_expires_before_it_is_touched_is_made_again, NOTES);
async fn a_record_that_expires_before_it_is_touched_is_made_again(history: &'static History) {
    let (service, proxy) = woken(history).await;
    proxy.harm("update idempotency_keys", Way::There, Harm::Hold, 1);
    let (item, expires) = (history.item(2), async {
        proxy.struck(1).await;
        let expired = expire(&service.database).await;
        proxy.relent();
        expired
    });
    let (first, expired) = tokio::join!(service.client.append_once(1, "k", &item), expires);
    assert_eq!(expired, 1, "it was born old");
    let first = first.expect(201);
    assert_eq!(expire(&service.database).await, 0);
    assert_eq!(record(&service.database).await.get_i64("from").expect("from"), 1);
    let again = service.client.append_once(1, "k", &item).await;
    assert_eq!((again.expect(201), again.header(REPLAYED)), (first, "true"));
    assert_eq!(service.stored(1).await.numbers, [1, 2]);
}

test_over!(a_record_that_expires_during_an_upload_is_made_again, NOTES);
async fn a_record_that_expires_during_an_upload_is_made_again(history: &'static History) {
    let proxy = Proxy::before(shared().await).await;
    let setup = Setup::at(&proxy.uri()).of(history);
    let database = shared().await.client().await.database(&setup.connection.database);
    proxy.set_back(SLEPT);
    let store = setup.store().await;
    let (items, owner) = (engine::histories(&store, history), engine::owner(history, 7));
    let before = vec![engine::draft(history, 100)];
    // An instance inserts records once an answer has told it the server's time.
    let append = |lines| {
        Append::new(owner.clone(), lines, Clock::system().now(), Deadline::within(Duration::from_secs(25)))
    };
    items.appends().append(append(before)).await.expect("stored");
    let key = IdempotencyKey::parse(b"k").expect("a key");
    let upload = async |so_far: &mut Option<UploadedSoFar>, numbers: std::ops::RangeInclusive<u64>| {
        let lines = numbers.clone().map(|number| engine::draft(history, number)).collect();
        let once = Once::Lines { key: &key, numbers: numbers.collect(), so_far };
        let appended = items.appends().append(Append { once: Some(once), ..append(lines) }).await;
        let progress = appended.expect("all is dealt with");
        progress.ends().map(|end| end.expect("it is stored").get()).collect::<Vec<_>>()
    };
    let mut so_far = None;
    assert_eq!(upload(&mut so_far, 1..=3).await, [2, 3, 4]);
    assert_eq!(expire(&database).await, 1, "the machine sleeps");
    proxy.set_back(0);
    assert_eq!(upload(&mut so_far, 4..=6).await, [5, 6, 7]);
    assert_eq!(record(&database).await.get_i64("from").expect("from"), 1, "as when the upload began");
    assert_eq!(upload(&mut None, 1..=6).await, [2, 3, 4, 5, 6, 7], "sent again");
    assert_eq!(stored(&database, history, 7).await.numbers, [100, 1, 2, 3, 4, 5, 6]);
}
