//! One running service: bind, tell the address, serve, drain.
//!
//! Written on hyper rather than on `axum::serve`, which waits for a request's head for ever and
//! drains without a deadline.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::config::{CorsOrigin, ServerArgs};
use crate::domain::Clock;
use crate::http::{self, Api, Limits, Origins, Ready};
use crate::store::Store;

/// From the signal to stop until the last connection is closed.
pub const DRAIN: Duration = Duration::from_secs(40);

// A request that begins right before the signal may end.
const _: () = assert!(http::REQUEST.as_secs() < DRAIN.as_secs());

/// How long accepting rests after an error, such as too many open files.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// A service that is bound, and not yet serving.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    ready: Ready,
    header_timeout: Duration,
    connections: Arc<Semaphore>,
}

impl Server {
    /// Binds. Port 0 takes a free one.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(args: &ServerArgs, store: Store, clock: Clock) -> std::io::Result<Self> {
        let listener = TcpListener::bind(args.listen).await?;
        let ready = Ready::default();
        let api = Api {
            store,
            clock,
            limits: limits(args),
            origins: origins(&args.cors_origins),
            ready: ready.clone(),
        };
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            router: http::router(api),
            ready,
            header_timeout: Duration::from_secs(args.header_timeout),
            connections: Arc::new(Semaphore::new(args.max_connections as usize)),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` completes; then says unready, accepts nothing new, and lets requests
    /// under way end, for at most [`DRAIN`]. True when all have.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> bool {
        let graceful = GracefulShutdown::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            // A place before the next connection: beyond the limit they wait in the backlog.
            let accepted = async {
                let place = Arc::clone(&self.connections).acquire_owned().await;
                (self.listener.accept().await, place)
            };
            let (accepted, place) = tokio::select! {
                accepted = accepted => accepted,
                () = &mut stop => break,
            };
            match accepted {
                Ok((stream, _)) => {
                    let connection = graceful.watch(self.connection(stream));
                    tokio::spawn(async move {
                        // Ends with an error when the client hangs up or is too slow: nobody is left to be told.
                        let ended = connection.await;
                        tracing::trace!(?ended, "connection closed");
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_REST).await;
                }
            }
        }
        self.ready.end();
        drop(self.listener);
        tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_ok()
    }

    fn connection(
        &self,
        stream: TcpStream,
    ) -> http1::Connection<TokioIo<TcpStream>, TowerToHyperService<Router>> {
        // Answers are small and written whole: waiting to fill a segment only costs time. If it
        // cannot be set the connection is slower, no more.
        let _ = stream.set_nodelay(true);
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(self.router.clone()))
    }
}

fn limits(args: &ServerArgs) -> Limits {
    Limits {
        requests: args.max_requests as usize,
        body: args.max_body as usize,
        body_timeout: Duration::from_secs(args.body_timeout),
    }
}

fn origins(given: &[CorsOrigin]) -> Origins {
    let mut origins = Origins::default();
    for origin in given {
        match origin {
            CorsOrigin::Any => origins.any = true,
            CorsOrigin::Localhost => origins.localhost = true,
            CorsOrigin::Exactly(origin) => origins.exactly.push(origin.clone()),
        }
    }
    origins
}
