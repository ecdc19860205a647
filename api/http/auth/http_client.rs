//! The HTTP client, for other servers: of `import --url`, and of the issuer of tokens.

use std::error::Error;
use std::sync::Arc;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Response};
use rustls::{ClientConfig, RootCertStore};

/// Why no HTTP client can be made.
#[derive(Debug, thiserror::Error)]
pub enum NoClient {
    /// TLS cannot be set up.
    #[error("no HTTP client can be made: {}", cause(.0))]
    Tls(#[from] rustls::Error),
    /// The client refuses its settings.
    #[error("no HTTP client can be made: {}", cause(.0))]
    Settings(#[from] reqwest::Error),
}

/// A client that takes proxies from the environment and follows no redirect: a body could not be sent twice,
/// and a redirect could lead away from a server that is trusted.
///
/// # Errors
/// TLS cannot be set up, or the settings do not go together.
pub fn client(configure: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Result<Client, NoClient> {
    let builder = Client::builder().redirect(Policy::none()).tls_backend_preconfigured(tls()?);
    Ok(configure(builder).build()?)
}

/// Trusts the certificate authorities of Mozilla, because a container image may have none of its own, and
/// those of this machine, because an organisation may have its own.
fn tls() -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    Ok(builder.with_safe_default_protocol_versions()?.with_root_certificates(roots).with_no_client_auth())
}

/// The body of an answer, copied into one buffer. Nothing if it has more than `most` bytes.
///
/// # Errors
/// The body breaks off.
pub async fn whole(mut answer: Response, most: usize) -> reqwest::Result<Option<Vec<u8>>> {
    let mut whole = Vec::new();
    while let Some(data) = answer.chunk().await? {
        if data.len() > most - whole.len() {
            return Ok(None);
        }
        whole.extend_from_slice(&data);
    }
    Ok(Some(whole))
}

/// The innermost cause of an error: those around it repeat the address.
pub fn cause(mut error: &dyn Error) -> String {
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
