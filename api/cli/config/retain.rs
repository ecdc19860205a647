//! Flags of retention: how much of each history is kept.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use clap::Args;
use pagebucket_engine::internal::Retention;
use pagebucket_model::definition::{Definition, Definitions};
use pagebucket_model::domain::Invalid;

use super::heading;

/// What is kept of each history. Without a flag of its name a history keeps all.
#[derive(Args, Debug, Clone, Default)]
pub struct RetainArgs {
    /// Full pages that a history keeps before its last page.
    ///
    /// Such as `trades=100`; several, with commas between them. Older pages are deleted for good. Page and
    /// sequence numbers stay as they are. With --retain-days of the same history, a page is kept if either
    /// flag keeps it.
    #[arg(long, help_heading = heading::HISTORIES, env = "PAGEBUCKET_RETAIN_PAGES", value_name = "HISTORY=N", value_delimiter = ',', value_parser = of_history::<NonZeroU64>)]
    pub retain_pages: Vec<OfHistory<NonZeroU64>>,

    /// Days for which a history keeps a full page after its latest date.
    ///
    /// The date is that of its items. Such as `trades=365`; several, with commas between them. Pages are
    /// deleted from the oldest on, up to the first one that is kept.
    #[arg(long, help_heading = heading::HISTORIES, env = "PAGEBUCKET_RETAIN_DAYS", value_name = "HISTORY=N", value_delimiter = ',', value_parser = of_history::<NonZeroU32>)]
    pub retain_days: Vec<OfHistory<NonZeroU32>>,

    /// Histories whose summaries outlive retired pages.
    ///
    /// Such as `trades`; several, with commas between them. Pages are then retired 64 at a time, after what
    /// they add up to by quarters of an hour and groups is stored: it stays until the owner is erased.
    #[arg(long, help_heading = heading::HISTORIES, env = "PAGEBUCKET_KEEP_SUMMARIES", value_name = "HISTORY", value_delimiter = ',')]
    pub keep_summaries: Vec<Box<str>>,
}

/// A number, and the name of the history that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfHistory<N> {
    /// The history, which may not exist.
    pub history: Box<str>,
    /// How much it keeps.
    pub most: N,
}

impl RetainArgs {
    /// What these flags say of the histories with these definitions.
    ///
    /// # Errors
    /// A flag names a history that does not exist, or one that it has named before; or the summaries of one
    /// that has none.
    pub fn retained(&self, definitions: &Definitions) -> Result<BTreeMap<Box<str>, Retention>, Invalid> {
        let mut retained = BTreeMap::new();
        for OfHistory { history, most } in &self.retain_pages {
            let retention = named("--retain-pages", history, definitions, &mut retained)?.0;
            once("--retain-pages", history, retention.pages.replace(*most).is_none())?;
        }
        for OfHistory { history, most } in &self.retain_days {
            let retention = named("--retain-days", history, definitions, &mut retained)?.0;
            once("--retain-days", history, retention.days.replace(*most).is_none())?;
        }
        for history in &self.keep_summaries {
            let (retention, definition) = named("--keep-summaries", history, definitions, &mut retained)?;
            if definition.summaries.is_none() {
                return Err(Invalid(format!("--keep-summaries {history}: its definition has no summaries")));
            }
            once("--keep-summaries", history, !std::mem::replace(&mut retention.keep_summaries, true))?;
        }
        // A history that keeps its pages has no retention.
        retained.retain(|_, retention| retention.pages.is_some() || retention.days.is_some());
        Ok(retained)
    }
}

/// The retention of the history that a flag names, and its definition.
fn named<'a>(
    flag: &str,
    history: &str,
    definitions: &'a Definitions,
    retained: &'a mut BTreeMap<Box<str>, Retention>,
) -> Result<(&'a mut Retention, &'a Definition), Invalid> {
    let Some(definition) = definitions.get(history) else {
        let known: Vec<_> = definitions.iter().map(|definition| &*definition.name).collect();
        let known = known.join(", ");
        return Err(Invalid(format!("{flag} {history}: there is no such history (there are {known})")));
    };
    Ok((retained.entry(history.into()).or_default(), definition))
}

fn once(flag: &str, history: &str, is_first: bool) -> Result<(), Invalid> {
    if is_first { Ok(()) } else { Err(Invalid(format!("{flag} {history}: is given more than once"))) }
}

/// `trades=100`.
fn of_history<N: std::str::FromStr>(text: &str) -> Result<OfHistory<N>, Invalid> {
    let parse = || {
        let (history, most) = text.trim().split_once('=')?;
        let digits = most.len() <= 9 && most.bytes().all(|byte| byte.is_ascii_digit());
        let most = most.parse().ok().filter(|_| digits && !history.is_empty())?;
        Some(OfHistory { history: history.into(), most })
    };
    parse()
        .ok_or_else(|| Invalid::new("must be the name of a history and 1 to 999999999, such as trades=100"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_of_a_history() {
        let most = NonZeroU32::new(100).unwrap();
        assert_eq!(of_history(" audit-2=100"), Ok(OfHistory { history: "audit-2".into(), most }));
        for text in [
            "",
            "trades",
            "=1",
            "trades=",
            "trades=0",
            "trades=-1",
            "trades=+1",
            "trades=1e3",
            "trades=1000000000",
        ] {
            assert!(of_history::<NonZeroU64>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn flags_name_histories_that_exist_once() {
        let pages = |history: &str| OfHistory { history: history.into(), most: NonZeroU64::MIN };
        let days = |history: &str| OfHistory { history: history.into(), most: NonZeroU32::MIN };
        let definitions = Definitions::built_in();
        let with = |retain_pages, retain_days, keep_summaries| {
            RetainArgs { retain_pages, retain_days, keep_summaries }.retained(&definitions)
        };
        let told = |pages, days| with(pages, days, vec![]);
        assert_eq!(told(vec![], vec![]), Ok(BTreeMap::new()));
        let both =
            Retention { pages: Some(NonZeroU64::MIN), days: Some(NonZeroU32::MIN), keep_summaries: false };
        assert_eq!(told(vec![pages("trades")], vec![days("trades")]), Ok([("trades".into(), both)].into()));
        assert_eq!(
            told(vec![], vec![days("trade")]).unwrap_err().0,
            "--retain-days trade: there is no such history (there are trades)"
        );
        assert_eq!(
            told(vec![pages("trades"), pages("trades")], vec![]).unwrap_err().0,
            "--retain-pages trades: is given more than once"
        );
        let kept = Retention { pages: Some(NonZeroU64::MIN), days: None, keep_summaries: true };
        let summaries = || vec!["trades".into()];
        assert_eq!(with(vec![pages("trades")], vec![], summaries()), Ok([("trades".into(), kept)].into()));
        assert_eq!(with(vec![], vec![], summaries()), Ok(BTreeMap::new()));
        for (names, sentence) in [
            (vec!["trade".into()], "--keep-summaries trade: there is no such history (there are trades)"),
            (vec!["trades".into(), "trades".into()], "--keep-summaries trades: is given more than once"),
        ] {
            assert_eq!(with(vec![], vec![], names).unwrap_err().0, sentence);
        }
    }
}
