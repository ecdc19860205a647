//! Takes connections from the listener, and serves each in a task of its own.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pagebucket_model::domain::Peer;
use pagebucket_model::metric::REFUSED_CONNECTIONS;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::addresses::ConnectionCounts;
use crate::config::ServerConfig;
use crate::connection::Connections;
use crate::service::ConnectionService;

/// Pause after an error of accept, such as too many open files.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// A listener and the connections that were accepted from it.
pub(crate) struct Acceptor<S> {
    pub(crate) listener: TcpListener,
    pub(crate) accepted: Accepted<S>,
}

/// The connections that were accepted, and the limits of their number.
pub(crate) struct Accepted<S> {
    connections: Arc<Connections<S>>,
    permits: Arc<Semaphore>,
    addresses: Arc<ConnectionCounts>,
    close: CancellationToken,
    tasks: TaskTracker,
}

impl<S: ConnectionService> Acceptor<S> {
    /// Accepts connections until it is dropped.
    pub(crate) async fn accept(&self) -> Infallible {
        loop {
            // A permit before the next connection: beyond the limit they wait in the backlog.
            let permit = Arc::clone(&self.accepted.permits).acquire_owned().await;
            match self.listener.accept().await {
                Ok((stream, address)) => self.accepted.begin(stream, address, permit.ok()),
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_REST).await;
                }
            }
        }
    }

    /// Accepts the connections that wait, and then no more: others are refused, so that a proxy sends their
    /// requests to another instance. A connection that waits when a listener is closed would be reset,
    /// perhaps after its request was sent.
    pub(crate) fn stop_listening(self) -> Accepted<S> {
        let Self { listener, accepted } = self;
        let Ok(listener) = listener.into_std() else { return accepted };
        while let Ok(permit) = Arc::clone(&accepted.permits).try_acquire_owned()
            && let Ok((stream, address)) = listener.accept()
        {
            if stream.set_nonblocking(true).is_ok()
                && let Ok(stream) = TcpStream::from_std(stream)
            {
                accepted.begin(stream, address, Some(permit));
            }
        }
        accepted
    }
}

impl<S: ConnectionService> Accepted<S> {
    pub(crate) fn new(connections: Connections<S>, config: &ServerConfig) -> Self {
        Self {
            connections: Arc::new(connections),
            permits: Arc::new(Semaphore::new(config.max_connections)),
            addresses: ConnectionCounts::new(config.max_connections_per_address),
            close: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Serves a connection.
    fn begin(&self, stream: TcpStream, address: SocketAddr, permit: Option<OwnedSemaphorePermit>) {
        let peer = Peer::new(address.ip());
        let Some(counted) = self.addresses.count(peer.0) else {
            metrics::counter!(REFUSED_CONNECTIONS).increment(1);
            return;
        };
        // Answers are small and written whole: waiting to fill a segment only costs time. If it
        // cannot be set the connection is slower, no more.
        let _ = stream.set_nodelay(true);
        // A token of its own, because connections would wait for each other at a common one.
        let (connections, close) = (Arc::clone(&self.connections), self.close.child_token());
        self.tasks.spawn(async move {
            connections.serve(stream, peer, close).await;
            drop((permit, counted));
        });
    }

    /// Closes each connection when it has no request, and one that had none yet after
    /// [`crate::deadlines::FIRST_REQUEST`].
    pub(crate) fn close(&self) {
        self.close.cancel();
        self.tasks.close();
    }

    /// Waits until all are closed.
    pub(crate) async fn closed(&self) {
        self.tasks.wait().await;
    }
}
