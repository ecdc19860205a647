//! Which history a command means.

use std::sync::Arc;

use clap::Args;

use super::exit::Failure;
use crate::definition::{Definition, Definitions};
use crate::domain::{Invalid, OwnerId};
use crate::store::Store;
use crate::store::history::Engine;

/// The flag that names a history.
#[derive(Args, Debug)]
pub(super) struct HistoryArgs {
    /// Name of the history. Not needed where there is only one.
    #[arg(long, value_name = "NAME")]
    history: Option<String>,
}

impl HistoryArgs {
    /// The definition that is meant.
    ///
    /// # Errors
    /// There is none of this name, or there are several and none is named.
    pub(super) fn of<'a>(&self, definitions: &'a Definitions) -> Result<&'a Arc<Definition>, Failure> {
        let mut all = definitions.iter();
        let problem = match (&self.history, all.next(), all.next()) {
            (Some(name), ..) => match definitions.get(name) {
                Some(definition) => return Ok(definition),
                None => format!("--history {name}: there is no such history"),
            },
            (None, Some(only), None) => return Ok(only),
            (None, ..) => "there are several histories; name one with --history NAME".to_owned(),
        };
        let names: Vec<_> = definitions.iter().map(|definition| &*definition.name).collect();
        Err(Failure::Usage(format!("{problem} (there are {})", names.join(", "))))
    }

    /// The engine of that history.
    ///
    /// # Errors
    /// As [`HistoryArgs::of`].
    pub(super) fn engine<'a>(&self, store: &'a Store) -> Result<&'a Engine, Failure> {
        let definition = self.of(store.definitions())?;
        // A store has an engine for each of its definitions.
        let missing = || Failure::Usage(format!("there is no history {}", definition.name));
        store.history(&definition.name).ok_or_else(missing)
    }
}

/// The id of an owner, as the value of a flag.
///
/// # Errors
/// A sentence for the user.
pub(super) fn parse_owner(text: &str, definition: &Definition, flag: &str) -> Result<OwnerId, String> {
    definition.owner.kind.parse(text).map_err(|Invalid(rule)| format!("{flag} {rule}"))
}
