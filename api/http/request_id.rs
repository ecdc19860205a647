//! One id a request, in and out, in the log and in every problem.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

/// The header that carries it.
pub(super) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

const LONGEST: usize = 128;

/// The client's own, or 16 hexadecimal digits by chance.
#[derive(Debug, Clone)]
pub(super) struct RequestId(Arc<str>);

impl RequestId {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Only what can stand in a log line and a header without harm.
    fn accept(header: &HeaderValue) -> Option<Self> {
        let text = header.to_str().ok()?;
        let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        ((1..=LONGEST).contains(&text.len()) && text.bytes().all(harmless)).then(|| Self(text.into()))
    }
}

impl Default for RequestId {
    fn default() -> Self {
        Self(format!("{:016x}", rand::random::<u64>()).into())
    }
}

pub(super) async fn assign(mut request: Request, next: Next) -> Response {
    let id = request.headers().get(HEADER).and_then(RequestId::accept).unwrap_or_default();
    request.extensions_mut().insert(id.clone());
    let mut response = next.run(request).await;
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_id_must_be_harmless() {
        let accept = |text: &'static str| RequestId::accept(&HeaderValue::from_static(text)).is_some();
        assert!(accept("3f9c-A_b.c:1"));
        assert!(!accept("") && !accept("a b") && !accept("a\"b") && !accept("<b>"));
        assert!(RequestId::accept(&HeaderValue::from_str(&"a".repeat(129)).unwrap()).is_none());
    }
}
