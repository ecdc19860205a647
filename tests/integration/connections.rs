//! What requests come over: TLS, and clients that are slow or hostile, by the program.

#[path = "../../api/server/tests/certificates.rs"]
mod certificates;
mod floods;
mod tls;
mod unread;
#[path = "../../api/server/tests/wire.rs"]
#[allow(dead_code, reason = "tests of the service use the rest")]
pub mod wire;

use pagebucket_server::CertificateFiles;

/// These files, as a service takes them.
fn certificate(files: &certificates::Files) -> Option<CertificateFiles> {
    Some(CertificateFiles { certificate: files.certificate(), key: files.key() })
}
