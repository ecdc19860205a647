use std::time::Duration;

use mongodb::options::{ReadPreference as Driver, SelectionCriteria};

/// Which member serves reads that do not need the primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadPreference {
    /// Only the primary.
    #[default]
    Primary,
    /// A secondary, or the primary if no secondary is available.
    SecondaryPreferred,
    /// Any member with low latency, primary or secondary.
    Nearest,
}

/// How long a preferred member may take to answer, including elections, before it is passed over.
pub(super) const SOON: Duration = Duration::from_secs(2);

impl ReadPreference {
    /// The driver's selection of members; `None` means the primary.
    pub(super) fn criteria(self) -> Option<SelectionCriteria> {
        let options = None;
        let driver = match self {
            Self::Primary => return None,
            Self::SecondaryPreferred => Driver::SecondaryPreferred { options },
            Self::Nearest => Driver::Nearest { options },
        };
        Some(SelectionCriteria::ReadPreference(driver))
    }
}
