use std::time::Duration;

use mongodb::options::{ReadPreference as Driver, SelectionCriteria};

/// Of whom is asked first what need not be the primary's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadPreference {
    /// The primary alone.
    #[default]
    Primary,
    /// A secondary, where there is one.
    SecondaryPreferred,
    /// Whoever is nearest.
    Nearest,
}

/// One that does not answer in this time, elections included, is left alone.
pub(super) const SOON: Duration = Duration::from_secs(2);

impl ReadPreference {
    /// The servers to choose from; `None` is the primary.
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
