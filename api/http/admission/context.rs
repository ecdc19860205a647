//! What is known of a request. It is made once, by the outermost layer; the layers inside add what they
//! decide.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
use pagebucket_engine::internal::QueueClient;
use pagebucket_engine::{Deadline, Engine};
use pagebucket_model::domain::{Invalid, OwnerId, Peer, Principal};

use super::deadline;
use super::permits::LongPermit;
use super::rate::ClientQuota;
use crate::answer::memory::Account;
use crate::answer::request_id::RequestId;

/// The connection that a request came over. The server adds it to each request as an extension.
#[derive(Debug, Clone)]
pub struct RequestConnection {
    /// The other end.
    pub peer: Peer,
    /// What its answers hold in memory.
    pub account: Account,
}

/// Of a request without a connection, as in benchmarks.
impl Default for RequestConnection {
    fn default() -> Self {
        Self { peer: Peer(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), account: Account::default() }
    }
}

/// What is known of a request: its only extension of ours.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    /// Its id.
    pub id: RequestId,
    /// Its connection.
    pub connection: RequestConnection,
    /// Its client, if clients are authenticated: set by the gate.
    pub principal: Option<Arc<Principal>>,
    /// When its database commands end. Admission begins it again. Uploads ignore it, because they may take
    /// longer.
    pub deadline: Deadline,
    /// What its client may still use: set by admission.
    pub quota: ClientQuota,
    /// Its client, as one of those that share the queue of appends: set by admission, unless it only reads.
    pub queue_client: Option<QueueClient>,
    /// The history that its address names, or those of its collection of owners: set by admission.
    pub histories: Option<Arc<[Engine]>>,
    /// The owner that its address names: set by admission, and taken by the handler.
    pub owner: Option<Result<OwnerId, Invalid>>,
    /// The permit of an upload or a live stream, which outlives its handler: set by admission, and taken by
    /// the handler.
    pub permit: Option<LongPermit>,
}

impl RequestContext {
    /// Of a request that begins.
    pub(crate) fn new(id: RequestId, connection: RequestConnection) -> Self {
        Self {
            id,
            connection,
            principal: None,
            deadline: deadline::from_now(),
            quota: ClientQuota::default(),
            queue_client: None,
            histories: None,
            owner: None,
            permit: None,
        }
    }

    /// Among the extensions of a request.
    pub(crate) fn of(extensions: &Extensions) -> &Self {
        extensions.get().expect("the outermost layer gives every request its context")
    }

    /// The same, to add to it.
    pub(crate) fn of_mut(extensions: &mut Extensions) -> &mut Self {
        extensions.get_mut().expect("the outermost layer gives every request its context")
    }

    /// The name of its client, if clients are authenticated.
    pub(crate) fn principal_name(&self) -> Option<&str> {
        self.principal.as_deref().map(|principal| &*principal.name)
    }
}

/// What admission has granted a request.
#[derive(Debug)]
pub(crate) struct Granted {
    /// When its database commands end.
    pub deadline: Deadline,
    /// What its client may still use.
    pub quota: ClientQuota,
}

impl Granted {
    /// Among the extensions of a request.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let RequestContext { deadline, quota, .. } = RequestContext::of(extensions);
        Self { deadline: *deadline, quota: quota.clone() }
    }
}

impl<S: Sync> FromRequestParts<S> for Granted {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}

/// The histories of the collection of owners that the address of a request names.
pub(crate) struct Histories(pub Arc<[Engine]>);

impl<S: Sync> FromRequestParts<S> for Histories {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let histories = RequestContext::of(&parts.extensions).histories.clone();
        Ok(Self(histories.expect("each route of owners is mounted with its histories")))
    }
}
