//! What the events of a live stream have as their `id`, which resumes the stream, and how they name their
//! history.
//!
//! The `id` of a stream of one history is a sequence number. That of a stream of several histories begins
//! with a hash of their names, so that it resumes no stream of others, and has the position of each, in the
//! order of the request: `3f9c2b7a51d8.120.0.-`. `-` is a history that was gone when the stream began, and
//! whose end is not known.

use std::fmt::Write;

use pagebucket_model::domain::{Invalid, Position};
use sha2::{Digest, Sha256};

/// Bytes of a hash.
const HASH: usize = 6;

/// Where the histories of a stream are.
#[derive(Debug)]
pub(crate) enum EventIds {
    /// The stream shows one history.
    One,
    /// The stream shows several: their names, and a position of each that is known.
    Several { hash: String, parts: Box<[(String, Option<Position>)]> },
}

impl EventIds {
    /// Of several histories with these names.
    pub(crate) fn of(parts: impl IntoIterator<Item = (String, Option<Position>)>) -> Self {
        let parts: Box<[_]> = parts.into_iter().collect();
        Self::Several { hash: hash(parts.iter().map(|(name, _)| &**name)), parts }
    }

    /// Notes a position of a history, and returns the `id` of an event that shows it.
    pub(crate) fn at(&mut self, index: usize, position: Position) -> String {
        match self {
            Self::One => position.get().to_string(),
            Self::Several { hash, parts } => {
                parts[index].1 = Some(position);
                let mut id = hash.clone();
                for (_, position) in parts {
                    match position {
                        Some(position) => write!(id, ".{}", position.get()),
                        None => write!(id, ".-"),
                    }
                    .expect("a text takes all words");
                }
                id
            }
        }
    }

    /// The name of a history, if there are several.
    pub(crate) fn name(&self, index: usize) -> Option<&str> {
        match self {
            Self::One => None,
            Self::Several { parts, .. } => Some(&parts[index].0),
        }
    }
}

/// The positions of histories with these names, as the `id` of an event has them.
///
/// # Errors
/// The text is no such `id`, or it is one of a stream of other histories.
pub(crate) fn positions(id: &str, names: &[String]) -> Result<Vec<Option<Position>>, Invalid> {
    let (hashed, positions) = id.split_once('.').unwrap_or((id, ""));
    if hashed.len() != 2 * HASH || hashed.bytes().any(|byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(Invalid::new("must be the `id` of an event of a stream of several histories"));
    }
    if hashed != hash(names.iter().map(|name| &**name)) {
        return Err(Invalid::new("is of a stream with another list of `watch`"));
    }
    let position = |text| match text {
        "-" => Ok(None),
        text => Position::parse(text)
            .map(Some)
            .map_err(|Invalid(rule)| Invalid(format!("has a position that {rule}"))),
    };
    let positions = positions.split('.').map(position).collect::<Result<Vec<_>, _>>()?;
    if positions.len() != names.len() {
        return Err(Invalid::new("must have a position for each `watch`"));
    }
    Ok(positions)
}

fn hash<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for name in names {
        // No name has a line break.
        hash.update(name);
        hash.update("\n");
    }
    hash.finalize().iter().take(HASH).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["customers/7/trades", "rooms/kitchen/messages"].map(str::to_owned).into()
    }

    #[test]
    fn an_id_has_all_positions() {
        let position = |text: &str| Position::parse(text).unwrap();
        assert_eq!(EventIds::One.at(0, position("34")), "34");
        let mut ids = EventIds::of(names().into_iter().zip([Some(position("120")), None]));
        assert_eq!((ids.name(0), ids.name(1)), (Some("customers/7/trades"), Some("rooms/kitchen/messages")));
        let id = ids.at(0, position("121"));
        assert!(id.ends_with(".121.-"), "{id}");
        assert_eq!(positions(&id, &names()), Ok(vec![Some(position("121")), None]));
        let id = ids.at(1, position("0"));
        assert_eq!(positions(&id, &names()), Ok(vec![Some(position("121")), Some(position("0"))]));
    }

    #[test]
    fn an_id_of_other_histories_is_refused() {
        let id = EventIds::of(names().into_iter().map(|name| (name, None))).at(0, Position::BEGINNING);
        let mut turned = names();
        turned.reverse();
        let other = positions(&id, &turned).unwrap_err();
        assert_eq!(other, Invalid::new("is of a stream with another list of `watch`"));
        let hash = id.split('.').next().unwrap();
        for id in
            ["", "34", "x.1.2", hash, &format!("{hash}.1"), &format!("{hash}.1.2.3"), &format!("{hash}.1.x")]
        {
            assert!(positions(id, &names()).is_err(), "{id}");
        }
    }
}
