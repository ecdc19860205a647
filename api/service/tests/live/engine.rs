//! Live readers of the store itself: two stores on one database, of which each appends and each has readers.

use pagebucket_engine::Deadline;
use pagebucket_engine::internal::COMMAND;
use pagebucket_engine::live::LiveStart;

use crate::harness::{Service, Setup, TRADES, engine, shared};

/// A service of before knows nothing of readers; they cost its appends nothing, and they see its appends.
#[tokio::test(flavor = "multi_thread")]
async fn readers_see_what_a_service_appends() {
    let service = Service::start().await;
    let setup = Setup::on(shared().await).in_database(&service.database);
    let store = setup.store().await;
    let owner = engine::owner(TRADES, 7);
    let mut reader = engine::histories(&store, TRADES)
        .live()
        .watch(owner, LiveStart::End, Deadline::within(COMMAND))
        .await
        .expect("a reader");
    service.client.append_all(7, 1..=33).await;
    engine::read_to(TRADES, &mut reader, 33).await;
}
