use std::sync::Arc;

use mongodb::Database;

use super::dedup::ServerTime;
use super::source::Source;
use crate::domain::Clock;
use crate::store::group_commit::Sessions;

/// What all committers of items share.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) database: Database,
    pub(super) source: Source,
    pub(super) sessions: Arc<Sessions>,
    pub(super) clock: Clock,
    /// The server's clock, for the records of keys.
    pub(super) server_time: ServerTime,
}
