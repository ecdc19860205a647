use mongodb::bson::Binary;
use pagebucket_model::domain::OwnerId;
use tokio::time::Instant;

/// How far the walk over tombstones is that deletes what came late ([`super::erased_late`]).
#[derive(Debug, Clone, Default)]
pub(super) struct LateWalk {
    /// The last owner of the step before.
    pub(super) after: Option<OwnerId>,
    /// The record of a key from which this step goes on.
    pub(super) records: Option<Binary>,
    /// When the last walk began.
    pub(super) began: Option<Instant>,
}
