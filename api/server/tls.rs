//! The server's certificate, which is read again when its files change.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use sha2::{Digest, Sha256};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsArgs;

/// What a client may choose by ALPN, best first.
pub(super) const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// How often the files are read. Their contents are compared, because a modification time does not tell of a symbolic link
/// that leads elsewhere now, as with mounted secrets.
const READ_AGAIN: Duration = Duration::from_secs(2);

/// Why the files cannot be used. No text has anything of what is in them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// One of the files cannot be read.
    #[error("{} {} cannot be read: {why}", .flag, .file.display())]
    Unreadable {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        file: PathBuf,
        /// Why.
        why: String,
    },
    /// The file has no certificate, or a malformed one.
    #[error("--tls-cert {} holds no certificate in PEM that can be used", .0.display())]
    NoCertificate(PathBuf),
    /// The file has no key, or an encrypted one, or one of an unknown kind.
    #[error("--tls-key {} holds no private key in PEM that can be used: it must be RSA, ECDSA or Ed25519, and not encrypted", .0.display())]
    NoKey(PathBuf),
    /// Certificate and key do not belong together.
    #[error("--tls-key {} is not the key of the certificate in --tls-cert {}", .key.display(), .certificate.display())]
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
}

/// The certificate in use, and its files.
#[derive(derive_more::Debug)]
#[debug("Certificate({certificate:?}, {key:?})")]
pub(super) struct Certificate {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
    /// Of the texts that were read first. Their digest is kept, because nothing else needs the key's text.
    digest: [u8; 32],
}

/// The texts of both files.
struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Certificate {
    /// Reads the files. Nothing when the server is to speak plain text.
    ///
    /// # Errors
    /// The files cannot be used.
    pub(super) async fn read(args: &TlsArgs) -> Result<Option<Arc<Self>>, TlsError> {
        let (Some(certificate), Some(key)) = (args.tls_cert.clone(), args.tls_key.clone()) else {
            return Ok(None);
        };
        let texts = Texts::read(&certificate, &key).await?;
        let current = RwLock::new(Arc::new(texts.parse(&certificate, &key)?));
        Ok(Some(Arc::new(Self { certificate, key, current, digest: texts.digest() })))
    }

    /// What serves TLS with the certificate of each moment.
    pub(super) fn acceptor(self: &Arc<Self>) -> TlsAcceptor {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .expect("the provider has suites of both versions");
        let mut config = config.with_no_client_auth().with_cert_resolver(self.clone());
        config.alpn_protocols = [HTTP2, HTTP1].map(<[u8]>::to_vec).to_vec();
        TlsAcceptor::from(Arc::new(config))
    }

    /// Reads the files again and again, until it is dropped. Connections that are open keep their certificate. While the
    /// files cannot be used, because only one of them was replaced so far or for good, the old certificate stays in use.
    pub(super) async fn keep_current(&self) -> Infallible {
        let mut seen = Ok(self.digest);
        loop {
            tokio::time::sleep(READ_AGAIN).await;
            let texts = Texts::read(&self.certificate, &self.key).await;
            let now = texts.as_ref().map(Texts::digest).map_err(TlsError::clone);
            if now == seen {
                continue;
            }
            seen = now;
            match texts.and_then(|texts| texts.parse(&self.certificate, &self.key)) {
                Ok(key) => {
                    *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(key);
                    tracing::info!(file = %self.certificate.display(), "new connections get the new certificate");
                }
                Err(error) => tracing::warn!(%error, "the certificate in use is kept"),
            }
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Texts {
    async fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        Ok(Self { certificate: read("--tls-cert", certificate).await?, key: read("--tls-key", key).await? })
    }

    fn digest(&self) -> [u8; 32] {
        Sha256::new().chain_update(&self.certificate).chain_update(&self.key).finalize().into()
    }

    fn parse(&self, certificate: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| TlsError::NoCertificate(certificate.to_owned()))?;
        // Errors of this parser name the line that they stumble over.
        let no_key = || TlsError::NoKey(key.to_owned());
        let private = PrivateKeyDer::from_pem_slice(&self.key).map_err(|_| no_key())?;
        let private = ring::sign::any_supported_type(&private).map_err(|_| no_key())?;
        let pair = CertifiedKey::new(chain, private);
        match pair.keys_match() {
            Ok(()) => Ok(pair),
            Err(rustls::Error::InvalidCertificate(_)) => Err(TlsError::NoCertificate(certificate.to_owned())),
            Err(_) => Err(TlsError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned() }),
        }
    }
}

async fn read(flag: &'static str, file: &Path) -> Result<Vec<u8>, TlsError> {
    let text = tokio::fs::read(file).await;
    text.map_err(|error| TlsError::Unreadable { flag, file: file.to_owned(), why: error.to_string() })
}
