use std::sync::Arc;

use mongodb::Database;

use super::dedup::ServerTime;
use crate::domain::Clock;
use crate::store::group_commit::Sessions;
use crate::store::majority::MonotonicReads;

/// What all committers of trades share.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) database: Database,
    pub(super) reads: MonotonicReads,
    pub(super) sessions: Arc<Sessions>,
    pub(super) clock: Clock,
    /// The server's clock, for the records of keys.
    pub(super) server_time: ServerTime,
}
