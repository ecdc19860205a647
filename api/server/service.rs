//! What a server serves: a tower service for each connection.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::Extensions;
use hyper::{Request, Response};
use tower_service::Service;

/// Serves the requests of one connection, and says how long its client may take for answers. Every tower
/// service is one, such as a router, and gives all clients the whole time.
pub trait ConnectionService: Clone + Send + Sync + 'static {
    /// An answer to come.
    type Answer: Future<Output = Result<Response<Body>, Infallible>> + Send + 'static;

    /// Answers a request. The extensions of the answer are kept until its client has taken it.
    fn answer(&self, request: Request<Body>) -> Self::Answer;

    /// How much of the write timeout its client has now.
    fn patience(&self, limit: Duration) -> Duration {
        limit
    }

    /// The same for the answer with these extensions, where a connection carries several.
    fn patience_for(&self, _answer: &Extensions, limit: Duration) -> Duration {
        limit
    }
}

impl<S> ConnectionService for S
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static,
{
    type Answer = S::Future;

    fn answer(&self, request: Request<Body>) -> S::Future {
        self.clone().call(request)
    }
}
