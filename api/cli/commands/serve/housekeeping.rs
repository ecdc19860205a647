//! What a service does beside its requests, once a minute: it retires pages, and sweeps the tombstones of
//! erased owners. A lock in the database lets one instance at a time do it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use pagebucket_engine::internal::{Housekeeping, Retention};
use pagebucket_engine::{Error, Store};
use pagebucket_model::definition::{Definition, Definitions};
use pagebucket_model::metric::{HOUSEKEEPING, RETIRED_PAGES};

use crate::config::{OfHistory, RetainArgs};

/// Pause before each round.
pub(crate) const EVERY: Duration = Duration::from_secs(60);

/// What is kept, by the names of the histories.
pub(crate) type Retentions = BTreeMap<Box<str>, Retention>;

/// Why flags of retention make no sense.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RetentionError {
    /// A flag names a history that does not exist.
    #[error("{flag} {history}: there is no such history (there are {known})")]
    Unknown {
        /// The flag.
        flag: &'static str,
        /// The history that it names.
        history: Box<str>,
        /// The names of all histories.
        known: String,
    },
    /// A history has no summaries that could be kept.
    #[error("--keep-summaries {0}: its definition has no summaries")]
    NoSummaries(Box<str>),
    /// A flag names a history twice.
    #[error("{flag} {history}: is given more than once")]
    Repeated {
        /// The flag.
        flag: &'static str,
        /// The history.
        history: Box<str>,
    },
}

/// What these flags say of the histories with these definitions.
///
/// # Errors
/// A flag names a history that does not exist, or one that it has named before; or the summaries of one that
/// has none.
pub(crate) fn retentions(args: &RetainArgs, definitions: &Definitions) -> Result<Retentions, RetentionError> {
    let mut retentions = Retentions::new();
    for OfHistory { history, most } in &args.retain_pages {
        let retention = named("--retain-pages", history, definitions, &mut retentions)?.0;
        once("--retain-pages", history, retention.pages.replace(*most).is_none())?;
    }
    for OfHistory { history, most } in &args.retain_days {
        let retention = named("--retain-days", history, definitions, &mut retentions)?.0;
        once("--retain-days", history, retention.days.replace(*most).is_none())?;
    }
    for history in &args.keep_summaries {
        let (retention, definition) = named("--keep-summaries", history, definitions, &mut retentions)?;
        if definition.summaries.is_none() {
            return Err(RetentionError::NoSummaries(history.clone()));
        }
        once("--keep-summaries", history, !std::mem::replace(&mut retention.keep_summaries, true))?;
    }
    // A history that keeps its pages has no retention.
    retentions.retain(|_, retention| retention.pages.is_some() || retention.days.is_some());
    Ok(retentions)
}

/// The retention of the history that a flag names, and its definition.
fn named<'a>(
    flag: &'static str,
    history: &str,
    definitions: &'a Definitions,
    retentions: &'a mut Retentions,
) -> Result<(&'a mut Retention, &'a Definition), RetentionError> {
    let Some(definition) = definitions.get(history) else {
        let known: Vec<_> = definitions.iter().map(|definition| &*definition.name).collect();
        return Err(RetentionError::Unknown { flag, history: history.into(), known: known.join(", ") });
    };
    Ok((retentions.entry(history.into()).or_default(), definition))
}

fn once(flag: &'static str, history: &str, is_first: bool) -> Result<(), RetentionError> {
    if is_first { Ok(()) } else { Err(RetentionError::Repeated { flag, history: history.into() }) }
}

/// Keeps house until it is dropped.
pub(crate) async fn keep(store: &Store, retentions: &Retentions, every: Duration) -> Infallible {
    loop {
        tokio::time::sleep(every).await;
        // In a task of its own, because a round must not be dropped: it ends with the release of its lock.
        let (store, retentions) = (store.clone(), retentions.clone());
        let round = tokio::spawn(async move { store.run_housekeeping(&retentions).await }).await;
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

#[cfg(test)]
mod tests {
    use std::num::{NonZeroU32, NonZeroU64};

    use super::*;

    #[test]
    fn flags_name_histories_that_exist_once() {
        let pages = |history: &str| OfHistory { history: history.into(), most: NonZeroU64::MIN };
        let days = |history: &str| OfHistory { history: history.into(), most: NonZeroU32::MIN };
        let definitions = Definitions::built_in();
        let with = |retain_pages, retain_days, keep_summaries| {
            retentions(&RetainArgs { retain_pages, retain_days, keep_summaries }, &definitions)
        };
        let told = |pages, days| with(pages, days, vec![]);
        assert_eq!(told(vec![], vec![]), Ok(Retentions::new()));
        let both =
            Retention { pages: Some(NonZeroU64::MIN), days: Some(NonZeroU32::MIN), keep_summaries: false };
        assert_eq!(told(vec![pages("trades")], vec![days("trades")]), Ok([("trades".into(), both)].into()));
        assert_eq!(
            told(vec![], vec![days("trade")]).unwrap_err().to_string(),
            "--retain-days trade: there is no such history (there are trades)"
        );
        assert_eq!(
            told(vec![pages("trades"), pages("trades")], vec![]).unwrap_err().to_string(),
            "--retain-pages trades: is given more than once"
        );
        let kept = Retention { pages: Some(NonZeroU64::MIN), days: None, keep_summaries: true };
        let summaries = || vec!["trades".into()];
        assert_eq!(with(vec![pages("trades")], vec![], summaries()), Ok([("trades".into(), kept)].into()));
        assert_eq!(with(vec![], vec![], summaries()), Ok(Retentions::new()));
        for (names, sentence) in [
            (vec!["trade".into()], "--keep-summaries trade: there is no such history (there are trades)"),
            (vec!["trades".into(), "trades".into()], "--keep-summaries trades: is given more than once"),
        ] {
            assert_eq!(with(vec![], vec![], names).unwrap_err().to_string(), sentence);
        }
    }
}
