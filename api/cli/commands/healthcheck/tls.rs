//! TLS to a server, whatever certificate it has. The file of the certificate may have another one than the
//! server that runs, while it is renewed; and a server with an old certificate still serves. Nothing secret
//! is sent or read.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme, version::TLS12, version::TLS13};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Speaks TLS to the server at `address`.
///
/// # Errors
/// It does not speak TLS, or the connection is broken.
pub(crate) async fn connect(stream: TcpStream, address: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
    let provider = Arc::new(ring::default_provider());
    let any = AnyCertificate(Arc::clone(&provider));
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .expect("the provider has suites of both versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(any))
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config)).connect(ServerName::from(address.ip()), stream).await
}

/// Accepts every certificate. The handshake proves that the server has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
