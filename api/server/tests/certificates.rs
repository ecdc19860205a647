//! Certificates in files, and who trusts them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{CertifiedKey, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore};

/// A new certificate of `localhost` and 127.0.0.1, and its key.
pub fn new() -> CertifiedKey<KeyPair> {
    let names = ["localhost", "127.0.0.1"].map(str::to_owned);
    rcgen::generate_simple_self_signed(names).expect("a certificate")
}

/// A directory with a certificate and its key, until it is dropped.
pub struct Files {
    directory: PathBuf,
}

impl Files {
    pub fn of(pair: &CertifiedKey<KeyPair>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pagebucket-tls-{}-{number}", std::process::id());
        let files = Self { directory: std::env::temp_dir().join(name) };
        std::fs::create_dir_all(&files.directory).expect("a directory");
        files.write_certificate(&pair.cert.pem());
        files.write_key(&pair.signing_key.serialize_pem());
        files
    }

    pub fn certificate(&self) -> PathBuf {
        self.directory.join("certificate.pem")
    }

    pub fn key(&self) -> PathBuf {
        self.directory.join("key.pem")
    }

    pub fn write_certificate(&self, text: &str) {
        std::fs::write(self.certificate(), text).expect("to write");
    }

    pub fn write_key(&self, text: &str) {
        std::fs::write(self.key(), text).expect("to write");
    }

    /// The same as flags.
    pub fn flags(&self) -> [String; 4] {
        let [certificate, key] = [self.certificate(), self.key()].map(|file| file.display().to_string());
        ["--tls-cert".to_owned(), certificate, "--tls-key".to_owned(), key]
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.directory).ok();
    }
}

/// A TLS client that trusts these certificates and offers these protocols. It resumes no session.
pub fn trusting(
    certificates: &[&CertificateDer<'static>],
    tls13: bool,
    protocols: &[&[u8]],
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add((*certificate).clone()).expect("a certificate");
    }
    let versions = if tls13 { [&TLS13] } else { [&TLS12] };
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&versions)
        .expect("versions of the provider")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    config.resumption = rustls::client::Resumption::disabled();
    Arc::new(config)
}
