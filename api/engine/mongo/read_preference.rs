//! Reads that need not go to the primary.

use std::time::Duration;

use mongodb::options::{ReadPreference as Driver, SelectionCriteria};
use pagebucket_model::domain::ReadPreference;

/// How long a preferred member may take to answer, including elections, before it is passed over.
pub const SOON: Duration = Duration::from_secs(2);

/// The driver's selection of members; `None` means the primary.
pub fn criteria(preference: ReadPreference) -> Option<SelectionCriteria> {
    let options = None;
    let driver = match preference {
        ReadPreference::Primary => return None,
        ReadPreference::SecondaryPreferred => Driver::SecondaryPreferred { options },
        ReadPreference::Nearest => Driver::Nearest { options },
    };
    Some(SelectionCriteria::ReadPreference(driver))
}
