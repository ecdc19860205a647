//! Flags of retention: how much of each history is kept.

use std::num::{NonZeroU32, NonZeroU64};

use clap::Args;
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
}
