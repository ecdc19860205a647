//! The histories that a live stream is to show, as its query names them:
//! `?watch=customers/7/trades:120&watch=…`.

use axum::http::Uri;
use pagebucket_engine::Engine;
use pagebucket_engine::live::LiveStart;
use pagebucket_model::domain::{Invalid, OwnerId, Position};

use super::address::{QueryValue, pairs};

/// The name of the parameter.
pub(crate) const WATCH: &str = "watch";

/// A history that a live stream is to show.
#[derive(Debug)]
pub(crate) struct WatchedHistory {
    /// The engine of the history.
    pub engine: Engine,
    /// Whose history it is.
    pub owner: OwnerId,
    /// Where the stream begins.
    pub start: LiveStart,
}

/// A value, in its parts.
struct WatchValue<'a> {
    collection: &'a str,
    owner: &'a str,
    history: &'a str,
    after: Option<&'a str>,
}

impl<'a> WatchValue<'a> {
    fn of(value: &'a str) -> Option<Self> {
        let (history, after) = match value.split_once(':') {
            Some((history, after)) => (history, Some(after)),
            None => (value, None),
        };
        let mut names = history.split('/');
        let (collection, owner, history) = (names.next()?, names.next()?, names.next()?);
        names.next().is_none().then_some(Self { collection, owner, history, after })
    }

    /// The history that has these names.
    fn engine<'e>(&self, histories: &'e [Engine]) -> Option<&'e Engine> {
        histories.iter().find(|engine| {
            let definition = engine.definition();
            *definition.name == *self.history && definition.owner.collection == self.collection
        })
    }
}

impl WatchedHistory {
    /// Parses a value.
    ///
    /// # Errors
    /// It names no owner of one of these histories, or no position.
    pub(crate) fn parse(value: &str, histories: &[Engine]) -> Result<Self, Invalid> {
        let named = WatchValue::of(value);
        let named = named.ok_or_else(|| {
            Invalid::new("must be a history as its address names it, such as `customers/7/trades`, and a position: `:120`")
        })?;
        let engine = named.engine(histories);
        let engine = engine.ok_or_else(|| Invalid::new("must name a history that this server has"))?;
        let owner = engine.definition().owner.kind.parse(named.owner);
        let owner = owner.map_err(|Invalid(rule)| Invalid(format!("has an owner that {rule}")))?;
        let after = named.after.map(Position::parse).transpose();
        let after = after.map_err(|Invalid(rule)| Invalid(format!("has a position that {rule}")))?;
        Ok(Self { engine: engine.clone(), owner, start: LiveStart::of(after) })
    }

    /// Its name, without the position. A history has only one.
    pub(crate) fn name(&self) -> String {
        let definition = self.engine.definition();
        format!("{}/{}/{}", definition.owner.collection, self.owner, definition.name)
    }
}

/// The owners that a query names, each with its collection, as ids of their type are compared: so that the
/// gate can decide before anything else is parsed. What names no owner at all is refused later.
pub(crate) fn owners(address: &Uri, histories: &[Engine]) -> Vec<(String, String)> {
    let query = pairs(address);
    let values = query.iter().filter(|(name, _)| name == WATCH);
    let owner = |(_, value): &(String, QueryValue)| {
        let named = WatchValue::of(&value.text)?;
        let owner = match named.engine(histories) {
            Some(engine) => engine.definition().owner.kind.spelled(named.owner).into_owned(),
            None => named.owner.to_owned(),
        };
        Some((named.collection.to_owned(), owner))
    };
    values.filter_map(owner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_names_a_history_and_a_position() {
        let parts = |value| {
            WatchValue::of(value).map(|named| (named.collection, named.owner, named.history, named.after))
        };
        assert_eq!(parts("customers/7/trades"), Some(("customers", "7", "trades", None)));
        assert_eq!(parts("rooms/a-B/messages:120"), Some(("rooms", "a-B", "messages", Some("120"))));
        assert_eq!(parts("rooms/a/messages:"), Some(("rooms", "a", "messages", Some(""))));
        for value in [
            "",
            "trades",
            "customers/7",
            "customers/7/trades/live",
            "customers:7/7/trades",
            "/customers/7/trades",
        ] {
            assert_eq!(parts(value), None, "{value}");
        }
    }
}
