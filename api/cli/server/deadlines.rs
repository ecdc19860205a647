//! What a client must do in time, on every connection.

use std::time::Duration;

use crate::config::ServerArgs;

/// Maximum time for a TLS handshake: a client needs two round trips and no thought.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The deadlines of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadlines {
    /// For the head of a request, the preface of HTTP/2, and the next request.
    pub(super) head: Duration,
    /// For a TLS handshake.
    pub(super) handshake: Duration,
    /// For the next piece of an answer.
    pub(super) write: Duration,
}

impl Deadlines {
    pub(super) fn new(args: &ServerArgs) -> Self {
        let head = Duration::from_secs(args.header_timeout);
        Self { head, handshake: head.min(HANDSHAKE), write: Duration::from_secs(args.write_timeout) }
    }
}
