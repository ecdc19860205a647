//! The server's certificate, which is read again when its files change.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustls::RootCertStore;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use sha2::{Digest, Sha256};
use tokio_rustls::TlsAcceptor;

/// What a client may choose by ALPN, best first.
pub(crate) const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// How often the files are read. Their contents are compared, because a modification time does not tell of a
/// symbolic link that leads elsewhere now, as with mounted secrets.
const READ_AGAIN: Duration = Duration::from_secs(2);

/// The files of a certificate and of its key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, with those that it needs up to a root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The certificate in use, and its files.
#[derive(derive_more::Debug)]
#[debug("Certificate({files:?})")]
pub(crate) struct Certificate {
    files: CertificateFiles,
    current: RwLock<Arc<CertifiedKey>>,
    /// Of the texts that were read first. Their digest is kept, because nothing else needs the key's text.
    digest: [u8; 32],
}

/// The texts of both files.
struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// Why the files cannot be used, with nothing of what is in them.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{flag} {} cannot be read: {error}", file.display())]
    Unreadable {
        /// The flag that names the file.
        flag: &'static str,
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file of the certificate has none, or none that clients accept.
    #[error("--tls-cert {} holds no certificate in PEM that can be used", .0.display())]
    NoCertificate(PathBuf),
    /// The file of the key has none.
    #[error(
        "--tls-key {} holds no private key in PEM that can be used: it must be RSA, ECDSA or Ed25519, and not encrypted",
        .0.display()
    )]
    NoKey(PathBuf),
    /// The two do not belong together.
    #[error("--tls-key {} is not the key of the certificate in --tls-cert {}{newer}", key.display(), certificate.display())]
    OtherKey {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
        /// Which of the two is newer.
        newer: &'static str,
    },
}

impl Certificate {
    /// Reads the files. Nothing when the server is to speak plain text.
    ///
    /// # Errors
    /// The files cannot be used.
    pub(crate) async fn read(
        files: Option<&CertificateFiles>,
    ) -> Result<Option<Arc<Self>>, CertificateError> {
        let Some(files) = files.cloned() else { return Ok(None) };
        let texts = Texts::read(&files).await?;
        let current = RwLock::new(Arc::new(texts.parse(&files)?));
        Ok(Some(Arc::new(Self { files, current, digest: texts.digest() })))
    }

    /// What serves TLS with the certificate of each moment.
    pub(crate) fn acceptor(self: &Arc<Self>) -> TlsAcceptor {
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .expect("the provider has suites of both versions");
        let mut config = config.with_no_client_auth().with_cert_resolver(self.clone());
        config.alpn_protocols = [HTTP2, HTTP1].map(<[u8]>::to_vec).to_vec();
        TlsAcceptor::from(Arc::new(config))
    }

    /// Reads the files again and again, until it is dropped. Connections that are open keep their
    /// certificate. While the files cannot be used, because only one of them was replaced so far or for good,
    /// the old certificate stays in use.
    pub(crate) async fn keep_current(&self) -> Infallible {
        warn_of_dates(&Arc::clone(&self.current.read()), &self.files.certificate);
        let mut seen = Ok(self.digest);
        loop {
            tokio::time::sleep(READ_AGAIN).await;
            let texts = Texts::read(&self.files).await;
            let now = texts.as_ref().map(Texts::digest).map_err(ToString::to_string);
            if now == seen {
                continue;
            }
            seen = now;
            match texts.and_then(|texts| texts.parse(&self.files)) {
                Ok(pair) => {
                    let file = self.files.certificate.display();
                    tracing::info!(%file, "new connections get the new certificate");
                    warn_of_dates(&pair, &self.files.certificate);
                    *self.current.write() = Arc::new(pair);
                }
                Err(error) => tracing::warn!(%error, "the certificate in use is kept"),
            }
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read()))
    }
}

impl Texts {
    async fn read(files: &CertificateFiles) -> Result<Self, CertificateError> {
        let certificate = read("--tls-cert", &files.certificate).await?;
        Ok(Self { certificate, key: read("--tls-key", &files.key).await? })
    }

    fn digest(&self) -> [u8; 32] {
        Sha256::new().chain_update(&self.certificate).chain_update(&self.key).finalize().into()
    }

    fn parse(&self, files: &CertificateFiles) -> Result<CertifiedKey, CertificateError> {
        let CertificateFiles { certificate, key } = files;
        let no_certificate = || CertificateError::NoCertificate(certificate.clone());
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(no_certificate)?;
        // Errors of this parser name the line that they stumble over.
        let no_key = || CertificateError::NoKey(key.clone());
        let private = PrivateKeyDer::from_pem_slice(&self.key).map_err(|_| no_key())?;
        let private = ring::sign::any_supported_type(&private).map_err(|_| no_key())?;
        let pair = CertifiedKey::new(chain, private);
        match pair.keys_match() {
            Ok(()) => Ok(pair),
            Err(rustls::Error::InvalidCertificate(_)) => Err(no_certificate()),
            Err(_) => Err(CertificateError::OtherKey {
                newer: newer(key, certificate),
                key: key.clone(),
                certificate: certificate.clone(),
            }),
        }
    }
}

/// Which of the files is newer, as the end of a sentence: after a renewal that was not completed the other
/// one is to be replaced.
fn newer(key: &Path, certificate: &Path) -> &'static str {
    let modified = |file: &Path| file.metadata().and_then(|file| file.modified()).ok();
    match modified(key).cmp(&modified(certificate)) {
        Ordering::Less => "; the certificate is newer: replace the key, too",
        Ordering::Greater => "; the key is newer: replace the certificate, too",
        Ordering::Equal => "",
    }
}

/// Warns if clients refuse the certificate because of its dates.
fn warn_of_dates(pair: &CertifiedKey, file: &Path) {
    // Without a trusted root every certificate is refused, and one of another time for that reason.
    let refused = ParsedCertificate::try_from(&pair.cert[0]).and_then(|certificate| {
        let algorithms = ring::default_provider().signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &RootCertStore::empty(),
            &[],
            UnixTime::now(),
            algorithms,
        )
    });
    if let Err(rustls::Error::InvalidCertificate(why)) = refused {
        use rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
        match why {
            Expired | ExpiredContext { .. } => {
                tracing::warn!(file = %file.display(), "the certificate has expired: clients refuse it");
            }
            NotValidYet | NotValidYetContext { .. } => {
                tracing::warn!(file = %file.display(), "the certificate is not valid yet: clients refuse it");
            }
            _ => {}
        }
    }
}

async fn read(flag: &'static str, file: &Path) -> Result<Vec<u8>, CertificateError> {
    let text = tokio::fs::read(file).await;
    text.map_err(|error| CertificateError::Unreadable { flag, file: file.to_owned(), error })
}
