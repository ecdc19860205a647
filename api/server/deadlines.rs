//! What a client must do in time, on every connection.

use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::config::ServerConfig;

/// Maximum time for a TLS handshake: a client needs two round trips and no thought.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Time in which a client may open its connection and send the first request, when no more connections are
/// accepted.
pub(crate) const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// The deadlines of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadlines {
    /// For the head of a request, the preface of HTTP/2, and the next request.
    pub(crate) head: Duration,
    /// For a TLS handshake.
    pub(crate) handshake: Duration,
    /// For the next piece of an answer.
    pub(crate) write: Duration,
}

impl Deadlines {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let head = config.header_timeout;
        Self { head, handshake: head.min(HANDSHAKE), write: config.write_timeout }
    }
}

/// What opens a connection, which after `stop` has some more time.
pub(crate) async fn in_time<T>(stop: &CancellationToken, opening: impl Future<Output = T>) -> Option<T> {
    let mut opening = pin!(opening);
    if let Some(opened) = stop.run_until_cancelled(opening.as_mut()).await {
        return Some(opened);
    }
    timeout(FIRST_REQUEST, opening).await.ok()
}
