//! What requests come over: TLS, HTTP/2, and clients that are slow, silent or hostile. Whatever they do,
//! others are answered. What needs neither the API nor a database is tested in `api/server/tests`.

#[path = "../../server/tests/certificates.rs"]
#[allow(dead_code, reason = "tests of the program use the rest")]
mod certificates;
mod drain;
mod http2;
mod silence;
#[path = "../../server/tests/wire.rs"]
pub mod wire;

use pagebucket_server::CertificateFiles;

/// These files, as a service takes them.
fn certificate(files: &certificates::Files) -> Option<CertificateFiles> {
    Some(CertificateFiles { certificate: files.certificate(), key: files.key() })
}
