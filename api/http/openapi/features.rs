//! What not every server does, as its document says.

use crate::admission::gate::{Access, Gate, OpenParts};

/// What a server does that others do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features {
    /// It accepts access tokens of an issuer.
    pub tokens: bool,
    /// It accepts API keys.
    pub keys: bool,
    /// What it serves without either.
    pub open: OpenParts,
    /// It limits the rates of its clients.
    pub rate_limits: bool,
    /// No client may erase.
    pub erasing_off: bool,
}

impl Features {
    /// All that a server may do. No server does all of it at once.
    pub(crate) const ALL: Self = Self {
        tokens: true,
        keys: true,
        open: OpenParts { docs: false, metrics: false },
        rate_limits: true,
        erasing_off: true,
    };

    /// Those of a server with this gate, which may limit the rates of its clients.
    pub(crate) fn of(gate: &Gate, rate_limits: bool) -> Self {
        let authenticator = gate.authenticator();
        Self {
            tokens: authenticator.is_some_and(|authenticator| authenticator.jwt.is_some()),
            keys: authenticator.is_some_and(|authenticator| authenticator.keys.is_some()),
            open: gate.open,
            rate_limits,
            erasing_off: authenticator.is_none() && !gate.is_open(Access::Erasing),
        }
    }

    /// Whether clients are authenticated.
    pub(crate) fn authenticates(self) -> bool {
        self.tokens || self.keys
    }
}
