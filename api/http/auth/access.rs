//! Who may use a route. The rows are in [`crate::routes`].

use pagebucket_model::domain::Scope;

/// Who may use a route, if clients are authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everyone, also without a token.
    Everyone,
    /// Every client with a valid token or key.
    Authenticated,
    /// Clients with this scope.
    With(Scope),
    /// Clients with this scope who may use the histories of the owner that the address names: `/v1/{owners}/{ownerId}`.
    OfOwner(Scope),
    /// Clients with this scope who may use the histories of every owner.
    OfAllOwners(Scope),
    /// Erases the owner that the address names: clients with the scope `admin` who may use its histories. Without
    /// authentication, everyone or no client, as the operator decides.
    Erasing,
}

impl Access {
    /// The scope that a client must have.
    pub fn scope(self) -> Option<Scope> {
        match self {
            Self::Everyone | Self::Authenticated => None,
            Self::With(scope) | Self::OfOwner(scope) | Self::OfAllOwners(scope) => Some(scope),
            Self::Erasing => Some(Scope::Admin),
        }
    }

    /// Whether the address names an owner whose histories the client must be allowed to use.
    pub fn names_owner(self) -> bool {
        matches!(self, Self::OfOwner(_) | Self::Erasing)
    }
}
