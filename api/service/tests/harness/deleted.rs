//! Services whose pages are retired, and whose owners are erased.

use std::num::NonZeroU64;
use std::time::Duration;

use pagebucket_engine::internal::{Ages, Retention};
use reqwest::Method;

use crate::{Answer, History, Mongod, PATIENCE, Service, Setup, eventually, shared};

/// One whose instances rely on nothing for long.
pub fn setup(mongod: &Mongod, history: &'static History) -> Setup {
    let mut setup = Setup::on(mongod).of(history);
    let [poll, tail, command, marker, late] = [20, 100, 500, 800, 3_600_000].map(Duration::from_millis);
    setup.capacity.ages = Ages { poll, tail, command, marker, late };
    setup.config.house_every = Duration::from_millis(100);
    setup
}

/// The same that keeps this many full pages.
pub fn keeping(mongod: &Mongod, history: &'static History, pages: u64) -> Setup {
    let mut setup = setup(mongod, history);
    let most = NonZeroU64::new(pages).expect("pages");
    let retention = Retention { pages: Some(most), ..Retention::default() };
    setup.config.retained = [(history.name.into(), retention)].into();
    setup
}

pub fn delete(service: &Service, owner: u64) -> impl Future<Output = Answer> {
    let path = service.history.owner_path(owner);
    let client = service.client.clone();
    async move { client.send(Method::DELETE, &path, |request| request).await }
}

/// Five pages, the last with half of its items, of which the first three are retired.
pub async fn retired(history: &'static History) -> Service {
    let service = keeping(shared().await, history, 1).start().await;
    service.client.append_all(1, 1..=history.pages(4.5)).await;
    eventually("three pages are retired", PATIENCE, async || {
        let mut retired = true;
        for page in 1..=3 {
            retired &= service.client.get(&history.at(1, &format!("/pages/{page}"))).await.status == 410;
        }
        retired
    })
    .await;
    service
}
