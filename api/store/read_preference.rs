use std::time::Duration;

use mongodb::options::{ReadPreference as Driver, SelectionCriteria};

use crate::domain::ReadPreference;

/// How long a preferred member may take to answer, including elections, before it is passed over.
pub(super) const SOON: Duration = Duration::from_secs(2);

impl ReadPreference {
    /// The driver's selection of members; `None` means the primary.
    pub(crate) fn criteria(self) -> Option<SelectionCriteria> {
        let options = None;
        let driver = match self {
            Self::Primary => return None,
            Self::SecondaryPreferred => Driver::SecondaryPreferred { options },
            Self::Nearest => Driver::Nearest { options },
        };
        Some(SelectionCriteria::ReadPreference(driver))
    }
}
