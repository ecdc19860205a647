//! What a service does beside its requests, once a minute: it retires pages, and sweeps the tombstones of erased owners. A
//! lock in the database lets one instance at a time do it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use pagebucket_engine::internal::{Housekeeping, Retention};
use pagebucket_engine::{Error, Store};
use pagebucket_model::metric::{HOUSEKEEPING, RETIRED_PAGES};

use crate::config::{OfHistory, RetainArgs};

/// Pause before each round.
pub const EVERY: Duration = Duration::from_secs(60);

/// What is kept, by the names of the histories.
pub type Retentions = BTreeMap<Box<str>, Retention>;

/// What these flags say of the histories with these names.
///
/// # Errors
/// A flag names a history that does not exist, or one that it has named before: a sentence for the user.
pub fn retentions(args: &RetainArgs, histories: &[&str]) -> Result<Retentions, String> {
    let mut retentions = Retentions::new();
    add(&mut retentions, "--retain-pages", &args.retain_pages, histories, |kept| &mut kept.pages)?;
    add(&mut retentions, "--retain-days", &args.retain_days, histories, |kept| &mut kept.days)?;
    Ok(retentions)
}

fn add<N: Copy>(
    retentions: &mut Retentions,
    flag: &str,
    given: &[OfHistory<N>],
    histories: &[&str],
    part: impl Fn(&mut Retention) -> &mut Option<N>,
) -> Result<(), String> {
    for OfHistory { history, most } in given {
        if !histories.contains(&&**history) {
            let names = histories.join(", ");
            return Err(format!("{flag} {history}: there is no such history (there are {names})"));
        }
        if part(retentions.entry(history.clone()).or_default()).replace(*most).is_some() {
            return Err(format!("{flag} {history}: is given more than once"));
        }
    }
    Ok(())
}

/// Keeps house until it is dropped.
pub(super) async fn keep(store: &Store, retentions: &Retentions, every: Duration) -> Infallible {
    loop {
        tokio::time::sleep(every).await;
        // In a task of its own, because a round must not be dropped: it ends with the release of its lock.
        let (store, retentions) = (store.clone(), retentions.clone());
        let round = tokio::spawn(async move { store.run_housekeeping(&retentions).await }).await;
        let round = round.unwrap_or_else(|panic| Err(Error::Internal(panic.to_string())));
        let result = match round {
            Ok(Some(Housekeeping { retired_pages, swept, waits })) => {
                metrics::counter!(RETIRED_PAGES).increment(retired_pages);
                if retired_pages > 0 || swept > 0 {
                    tracing::info!(retired_pages, swept, "kept house");
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

#[cfg(test)]
mod tests {
    use std::num::{NonZeroU32, NonZeroU64};

    use super::*;

    #[test]
    fn flags_name_histories_that_exist_once() {
        let pages = |history: &str| OfHistory { history: history.into(), most: NonZeroU64::MIN };
        let days = |history: &str| OfHistory { history: history.into(), most: NonZeroU32::MIN };
        let told =
            |retain_pages, retain_days| retentions(&RetainArgs { retain_pages, retain_days }, &["trades"]);
        assert_eq!(told(vec![], vec![]), Ok(Retentions::new()));
        let both = Retention { pages: Some(NonZeroU64::MIN), days: Some(NonZeroU32::MIN) };
        assert_eq!(told(vec![pages("trades")], vec![days("trades")]), Ok([("trades".into(), both)].into()));
        assert_eq!(
            told(vec![], vec![days("trade")]).unwrap_err(),
            "--retain-days trade: there is no such history (there are trades)"
        );
        assert_eq!(
            told(vec![pages("trades"), pages("trades")], vec![]).unwrap_err(),
            "--retain-pages trades: is given more than once"
        );
    }
}
