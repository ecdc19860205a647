//! TLS: clients that do not read, and certificates that cannot be used.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use pagebucket_server::{CertificateFiles, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::certificates::{self, Files, trusting};
use crate::harness::eventually;
use crate::toy::{Toy, secured, usual};
use crate::wire::{closed, get, secure};

/// What rustls has encrypted waits for the client as plain text does.
#[tokio::test]
async fn a_client_of_tls_that_does_not_read_is_cut_off() {
    let pair = certificates::new();
    let files = Files::of(&pair);
    let config = ServerConfig { write_timeout: Duration::from_secs(2), ..secured(&files) };
    let toy = Toy::start(config).await;
    let config = trusting(&[pair.cert.der()], true, &[b"http/1.1"]);
    let mut wire = secure(toy.address, &config).await.expect("a handshake");
    wire.write_all(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("to send");
    let mut status = [0; b"HTTP/1.1 200".len()];
    wire.read_exact(&mut status).await.expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 200");
    let has_place = || async {
        let wire = secure(toy.address, &config).await.expect("a handshake");
        get(wire, "/place").await.expect("an answer").0.starts_with("HTTP/1.1 200 ")
    };
    assert!(!has_place().await);
    eventually("it is cut off", has_place).await;
    closed(wire).await;
}

#[tokio::test]
async fn unusable_certificates_are_refused() {
    let (pair, other) = (certificates::new(), certificates::new());
    let wrong = |certificate: &str, key: &str| {
        let files = Files::of(&pair);
        files.write_certificate(certificate);
        files.write_key(key);
        files
    };
    let refused = async |config: ServerConfig| {
        pagebucket_server::check(&config).await.expect_err("they cannot be used").to_string()
    };
    let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
    let newer = wrong(&certificate, &other.signing_key.serialize_pem());
    let file = File::options().write(true).open(newer.certificate()).expect("a file");
    file.set_modified(SystemTime::UNIX_EPOCH).expect("an older file");
    let malformed = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (files, sentence) in [
        (wrong("", &key), "holds no certificate in PEM that can be used"),
        (wrong("certificate", &key), "holds no certificate in PEM that can be used"),
        (wrong(malformed, &key), "holds no certificate in PEM that can be used"),
        (wrong(&key, &key), "holds no certificate in PEM that can be used"),
        (wrong(&certificate, "key"), "holds no private key in PEM that can be used"),
        (wrong(&certificate, &certificate), "holds no private key in PEM that can be used"),
        (wrong(&certificate, &key[..key.len() / 2]), "holds no private key in PEM that can be used"),
        (wrong(&other.cert.pem(), &key), "is not the key of the certificate in --tls-cert"),
        (newer, "; the key is newer: replace the certificate, too"),
    ] {
        let told = refused(secured(&files)).await;
        assert!(told.contains(sentence), "{sentence}: {told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
    let good = Files::of(&pair);
    let files = CertificateFiles { certificate: good.certificate(), key: PathBuf::from("/nowhere/key.pem") };
    assert_eq!(
        refused(ServerConfig { certificate: Some(files), ..usual() }).await,
        "--tls-key /nowhere/key.pem cannot be read: No such file or directory (os error 2)"
    );
}
