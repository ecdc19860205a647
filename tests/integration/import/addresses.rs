//! Ways to a server: TLS, and proxies named by the environment.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto::ring};

use super::{command, path, summary};
use crate::harness::{Service, spawn};

#[tokio::test(flavor = "multi_thread")]
async fn over_tls() {
    let service = Service::start().await;
    let (address, certificate) = tls_before(service.address()).await;
    let url = format!("https://localhost:{}", address.port());
    let example = path("examples/trades.csv");
    let mut import = command(&[&example, "--customer", "7", "--url", &url]);
    let refused = import.output().await.expect("the binary runs");
    let said = summary(&refused, 3);
    assert!(said.contains(&format!("stopped: {url} does not answer: invalid peer certificate")), "{said}");

    let output = import.env("SSL_CERT_FILE", &certificate).output().await.expect("the binary runs");
    assert!(summary(&output, 0).starts_with("stored 25 trades of 1 customer"), "{output:?}");
    assert_eq!(service.stored(7).await.numbers.len(), 25);
    std::fs::remove_file(certificate).expect("it is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn through_a_proxy() {
    let service = Service::start().await;
    let (proxy, mut seen) = proxy().await;
    let example = path("examples/trades.csv");
    let import = async |variable: &str, certificate: Option<&PathBuf>, url: &str| {
        let mut import = command(&[&example, "--customer", "7", "--key", "k", "--url", url]);
        import.env(variable, format!("http://{proxy}"));
        if let Some(certificate) = certificate {
            import.env("SSL_CERT_FILE", certificate);
        }
        let output = import.output().await.expect("the binary runs");
        assert!(summary(&output, 0).starts_with("stored 25 trades of 1 customer"), "{output:?}");
    };
    let url = format!("http://{}", service.address());
    import("HTTP_PROXY", None, &url).await;
    assert_eq!(seen.recv().await, Some(format!("POST {url}/v1/trades/upload.ndjson HTTP/1.1")));

    let (address, certificate) = tls_before(service.address()).await;
    let host = format!("localhost:{}", address.port());
    import("HTTPS_PROXY", Some(&certificate), &format!("https://{host}")).await;
    assert_eq!(seen.recv().await, Some(format!("CONNECT {host} HTTP/1.1")));
    assert_eq!(service.stored(7).await.numbers.len(), 25);
    std::fs::remove_file(certificate).expect("it is there");
}

/// A listener that decrypts for `server`, and the file of its self-signed certificate for `localhost`.
async fn tls_before(server: SocketAddr) -> (SocketAddr, PathBuf) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    let file = std::env::temp_dir().join(format!("pagebucket-{}.pem", address.port()));
    std::fs::write(&file, made.cert.pem()).expect("a file");

    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows them")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a key of its own");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            spawn(async move {
                let Ok(mut client) = acceptor.accept(client).await else { return };
                let mut server = TcpStream::connect(server).await.expect("the server");
                copy_bidirectional(&mut client, &mut server).await.ok();
            });
        }
    });
    (address, file)
}

/// A proxy that passes requests on, and tells the first line of each.
async fn proxy() -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    let (tell, seen) = mpsc::unbounded_channel();
    spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let tell = tell.clone();
            spawn(async move {
                let mut head = Vec::new();
                while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
                    assert_ne!(client.read_buf(&mut head).await.expect("a head"), 0);
                }
                let line = String::from_utf8_lossy(&head).lines().next().expect("a line").to_owned();
                let target = line.split(' ').nth(1).expect("a target").to_owned();
                let connect = line.starts_with("CONNECT ");
                tell.send(line).expect("the test listens");
                let authority = match target.strip_prefix("http://") {
                    Some(rest) => rest.split('/').next().expect("an authority"),
                    None => &target,
                };
                let mut server = TcpStream::connect(authority).await.expect("the server");
                if connect {
                    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.expect("it reads");
                } else {
                    server.write_all(&head).await.expect("it reads");
                }
                copy_bidirectional(&mut client, &mut server).await.ok();
            });
        }
    });
    (address, seen)
}
