//! How long a stream may last: as long as its client may begin another one.

use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use pagebucket_engine::internal::tasks;
use pagebucket_model::domain::{Clock, Principal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::context::RequestContext;
use super::deadline;
use super::gate::{Gate, credential};
use crate::auth::{Authenticator, Refusal};

/// How often a token or key is verified again: it may have been withdrawn or revoked.
const AGAIN: Duration = Duration::from_secs(30);

/// The life of a stream. It ends when the token or key of its client expires, and soon after it was withdrawn
/// or revoked. Without authentication it has no end.
#[derive(Debug, Default)]
pub(crate) struct Lifetime {
    over: CancellationToken,
    _watch: Option<AbortOnDropHandle<()>>,
}

impl Lifetime {
    /// How long a stream of this request may last, once the gate has let the request in.
    pub(crate) fn of_request(parts: &Parts, gate: &Gate, clock: &Clock) -> Self {
        let principal = &RequestContext::of(&parts.extensions).principal;
        let (Some(authenticator), Some(principal), Ok(credential)) =
            (gate.authenticator(), principal, credential(&parts.headers))
        else {
            return Self::default();
        };
        Self::of(Arc::clone(authenticator), credential.to_owned(), principal, clock.clone())
    }

    /// As long as the credential is one of this principal.
    fn of(
        authenticator: Arc<Authenticator>,
        credential: String,
        principal: &Principal,
        clock: Clock,
    ) -> Self {
        let (over, mut expires) = (CancellationToken::new(), principal.expires);
        let ended = over.clone().drop_guard();
        let watch = async move {
            // The stream is over when this ends, also by a panic.
            let _ended = ended;
            loop {
                let left = expires.map(|expires| expires.millis() - clock.now().millis());
                let left = left.map(|left| Duration::from_millis(u64::try_from(left).unwrap_or_default()));
                if left == Some(Duration::ZERO) {
                    break;
                }
                tokio::time::sleep(left.unwrap_or(AGAIN).min(AGAIN)).await;
                match authenticator.authenticate(&credential, deadline::from_now()).await {
                    Ok(principal) => expires = principal.expires,
                    Err(Refusal::Invalid(..)) => break,
                    // Streams of items wait for a database that is away, and for a slow issuer.
                    Err(Refusal::Database(_) | Refusal::Issuer) => {}
                }
            }
        };
        Self { over, _watch: Some(AbortOnDropHandle::new(tasks::start("stream-lifetime", watch))) }
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Waits until it is over.
    pub(crate) async fn over(&self) {
        self.over.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pagebucket_model::domain::{Instant, Scopes};

    use super::*;

    /// Otherwise the stream would go on with a token that has expired.
    #[tokio::test]
    async fn a_stream_is_over_when_its_watch_has_panicked() {
        let authenticator = Arc::new(Authenticator { jwt: None, keys: None });
        let (name, scopes, owners) = ("ann".into(), Scopes::default(), BTreeMap::new());
        let principal = Principal { name, scopes, owners, expires: Some(Instant::MIN) };
        let clock = Clock::from_fn(|| panic!("as a bug would"));
        let lifetime = Lifetime::of(authenticator, String::new(), &principal, clock);
        let over = tokio::time::timeout(Duration::from_secs(60), lifetime.over()).await;
        over.expect("it is over");
    }
}
