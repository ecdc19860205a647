//! Who a client is, and what it may do with whose histories.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Instant, Invalid, OwnerType};

/// What a client may do. It is shown as its name, in tokens and in flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
#[display(rename_all = "lowercase")]
pub enum Scope {
    /// Read the histories of an owner.
    Read,
    /// Append to the histories of an owner.
    Append,
    /// List the owners.
    List,
    /// Count page views, and read the counts.
    Views,
    /// Read the metrics.
    Metrics,
    /// Do what only operators do: preallocate page views, and erase owners.
    Admin,
}

impl Scope {
    /// All scopes, in the order of the documentation.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Append, Self::List, Self::Views, Self::Metrics, Self::Admin];

    /// # Errors
    /// No scope has the name.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        let rule = || Invalid::new("must be one of read, append, list, views, metrics and admin");
        Self::ALL.into_iter().find(|scope| scope.to_string() == name).ok_or_else(rule)
    }
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// Whether the scope is in the set.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    /// The scopes of the set, in the order of the documentation.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.has(*scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | 1 << scope as u8))
    }
}

/// Whose histories a client may use, among the owners of one collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedOwners {
    /// Those of every owner: `*`.
    All,
    /// Those of the owners with these ids, as text in one spelling.
    These(BTreeSet<Box<str>>),
}

impl AllowedOwners {
    /// The word for all owners.
    pub const EVERY: &str = "*";

    /// Of a list of ids of this type. All owners, if one of the ids is `*`.
    pub fn of_ids<I: AsRef<str>>(ids: impl IntoIterator<Item = I>, kind: OwnerType) -> Self {
        let ids: BTreeSet<Box<str>> = ids.into_iter().map(|id| kind.spelled(id.as_ref()).into()).collect();
        if ids.contains(Self::EVERY) { Self::All } else { Self::These(ids) }
    }

    /// Whether the owner with this id is one of them.
    pub fn include(&self, id: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(ids) => ids.contains(id),
        }
    }
}

/// A client that was authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Its name in the log: the `sub` of its token, or `key:` and the name of its API key. At most 255
    /// visible ASCII characters.
    pub name: Arc<str>,
    /// What it may do.
    pub scopes: Scopes,
    /// Whose histories it may use, by the name of the owners' collection, such as `customers`. It may use
    /// none in a collection that is missing here.
    pub owners: BTreeMap<Box<str>, AllowedOwners>,
    /// When its token or its key expires.
    pub expires: Option<Instant>,
}

impl Principal {
    /// Whether it may use the histories of the owner with this id, in this collection of owners.
    pub fn reaches(&self, collection: &str, id: &str) -> bool {
        self.owners.get(collection).is_some_and(|owners| owners.include(id))
    }

    /// Whether it may use the histories of all owners of this collection.
    pub fn reaches_all(&self, collection: &str) -> bool {
        self.owners.get(collection) == Some(&AllowedOwners::All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_what_was_given() {
        for scope in Scope::ALL {
            assert_eq!(Scope::parse(&scope.to_string()), Ok(scope));
            assert!(Scopes::from_iter(Scope::ALL).has(scope) && !Scopes::default().has(scope));
            assert_eq!(Scopes::from_iter([scope]).iter().collect::<Vec<_>>(), [scope]);
        }
        assert!(Scope::parse("Read").is_err() && Scope::parse("").is_err());
    }

    #[test]
    fn owners_are_compared_as_text() {
        let owners = |ids: &[&str]| AllowedOwners::of_ids(ids, OwnerType::String);
        let uuids = AllowedOwners::of_ids(["018F3C6E-7B1A-7C3D-9E2F-0123456789AB"], OwnerType::Uuid);
        assert!(uuids.include("018f3c6e-7b1a-7c3d-9e2f-0123456789ab"));
        let principal = Principal {
            name: "ann".into(),
            scopes: Scopes::default(),
            owners: BTreeMap::from([
                ("customers".into(), owners(&["7", "8"])),
                ("rooms".into(), owners(&["a", "*"])),
            ]),
            expires: None,
        };
        for (collection, id, reached) in [
            ("customers", "7", true),
            ("customers", "9", false),
            ("customers", "07", false),
            ("customers", "*", false),
            ("rooms", "anything", true),
            ("teams", "7", false),
        ] {
            assert_eq!(principal.reaches(collection, id), reached, "{collection} {id}");
        }
        assert!(
            principal.reaches_all("rooms")
                && !principal.reaches_all("customers")
                && !principal.reaches_all("teams")
        );
    }
}
