//! What a service does beside its requests, once a minute: it retires pages, and sweeps the tombstones of
//! erased owners. A lock in the database lets one instance at a time do it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use pagebucket_engine::internal::{Housekeeping, Retention};
use pagebucket_engine::{Error, Store};
use pagebucket_model::metric::{HOUSEKEEPING, RETIRED_PAGES};

/// Keeps house until it is dropped.
pub(crate) async fn keep(
    store: &Store,
    retained: &BTreeMap<Box<str>, Retention>,
    every: Duration,
) -> Infallible {
    loop {
        tokio::time::sleep(every).await;
        // In a task of its own, because a round must not be dropped: it ends with the release of its lock.
        let (store, retained) = (store.clone(), retained.clone());
        let round = tokio::spawn(async move { store.run_housekeeping(&retained).await }).await;
        let round = round.unwrap_or_else(|panic| Err(Error::internal(panic.to_string())));
        let result = match round {
            Ok(Some(Housekeeping { retired_pages, swept, waits })) => {
                metrics::counter!(RETIRED_PAGES).increment(retired_pages);
                if swept > 0 {
                    tracing::info!(swept, "erasures have come to their end");
                }
                if waits { "waiting" } else { "done" }
            }
            Ok(None) => "elsewhere",
            Err(error) => {
                tracing::warn!(%error, "housekeeping failed; the next round does what is left");
                "failed"
            }
        };
        metrics::counter!(HOUSEKEEPING, "result" => result).increment(1);
    }
}
