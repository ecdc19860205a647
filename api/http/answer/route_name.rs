//! The route of a request, as the log and the metrics name it.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request};

/// The address of a route, with the names of its parameters.
#[derive(Debug, Clone)]
pub(crate) enum RouteName {
    /// As the router has found it.
    Matched(MatchedPath),
    /// Of a request that never came to the router.
    Known(Arc<str>),
}

impl RouteName {
    /// The route of a request, if the router has found one.
    pub(crate) fn of(request: &Request) -> Option<Self> {
        request.extensions().get().cloned().map(Self::Matched)
    }

    /// As text.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Matched(route) => route.as_str(),
            Self::Known(route) => route,
        }
    }
}
