//! Which client a request is counted for, and what that client may still use.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};

use super::client::{Client, Proxies};
use super::context::RequestContext;
use super::rate::{Class, ClientQuota, RateLimits};
use crate::problem::Problem;

/// Tells clients apart, and limits each. Clones share the state.
#[derive(Debug, Clone)]
pub struct Clients {
    /// The proxies before the server.
    pub proxies: Arc<Proxies>,
    /// The rate limits, if there are any.
    pub rates: Option<Arc<RateLimits>>,
}

impl Clients {
    /// Of a server behind these proxies, with these rate limits.
    pub fn new(proxies: Proxies, rates: Option<RateLimits>) -> Self {
        Self { proxies: Arc::new(proxies), rates: rates.map(Arc::new) }
    }

    /// The client of a request with these extensions and headers.
    pub fn of(&self, extensions: &Extensions, headers: &HeaderMap) -> Client {
        let RequestContext { principal, connection, .. } = RequestContext::of(extensions);
        Client::of(principal.as_deref(), connection.peer, headers, &self.proxies)
    }

    /// The address that a request comes from, whichever client it names.
    pub fn address(&self, parts: &Parts) -> Client {
        let peer = RequestContext::of(&parts.extensions).connection.peer;
        Client::at(peer, &parts.headers, &self.proxies)
    }

    /// What a client may still use for a request of this class.
    pub fn quota(&self, class: Class, client: &Client) -> ClientQuota {
        let of = |rates| ClientQuota::of(rates, class, client.clone());
        self.rates.as_ref().map_or_else(ClientQuota::default, of)
    }

    /// Charges a check or a refusal to an address.
    ///
    /// # Errors
    /// Too little is left.
    pub fn charge(&self, address: &Client) -> Result<(), Problem> {
        self.rates.as_ref().map_or(Ok(()), |rates| rates.charge_sign_in(address))
    }
}
