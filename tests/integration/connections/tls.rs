//! TLS: versions, protocols, certificates that are replaced, and the commands that meet it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustls::ProtocolVersion;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use super::certificates::{self, Files, trusting};
use super::wire::{Http2, get, plain, secure};
use crate::commands::program::{Place, Serving, pagebucket, run};
use crate::harness::{PATIENCE, Setup, TOTAL, TRADES, eventually, shared};

const PAGE: &str = "/v1/customers/1/trades/pages/1";

#[tokio::test(flavor = "multi_thread")]
async fn all_versions_serve_the_same_bytes() {
    let pair = certificates::new();
    let files = Files::of(&pair);
    let mut setup = Setup::on(shared().await);
    setup.config.server.certificate = super::certificate(&files);
    let service = setup.start().await;
    service.client.append_all(1, 1..=25).await;
    let page = service.client.get(PAGE).await;
    assert_eq!(page.header("strict-transport-security"), "max-age=31536000");
    assert_eq!(page.expect(200)["items"].as_array().map(Vec::len), Some(10));
    // Problems have it, too.
    let nothing = service.client.get("/nothing").await;
    assert_eq!(
        (nothing.status.as_u16(), nothing.header("strict-transport-security")),
        (404, "max-age=31536000")
    );
    for tls13 in [true, false] {
        for protocols in [&[&b"h2"[..], b"http/1.1"][..], &[b"h2"], &[b"http/1.1"], &[]] {
            let config = trusting(&[pair.cert.der()], tls13, protocols);
            let wire = secure(service.address(), &config).await.expect("a handshake");
            let (_, session) = wire.get_ref();
            let version = if tls13 { ProtocolVersion::TLSv1_3 } else { ProtocolVersion::TLSv1_2 };
            assert_eq!(session.protocol_version(), Some(version));
            assert_eq!(session.alpn_protocol(), protocols.first().copied());
            if protocols.first() == Some(&&b"h2"[..]) {
                let client = Http2::over(wire).await;
                let mut answer = client.get(PAGE).await;
                assert_eq!((answer.status.as_u16(), answer.rest().await), (200, page.body.clone()));
                assert_eq!(answer.header("strict-transport-security"), Some("max-age=31536000"));
                assert_eq!(answer.header("etag"), Some(page.header("etag")));
            } else {
                let (head, body) = get(wire, PAGE).await.expect("an answer");
                assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
                assert_eq!(body, page.body);
            }
        }
    }
    // Neither other protocols nor plain text.
    let config = trusting(&[pair.cert.der()], true, &[b"ftp"]);
    secure(service.address(), &config).await.expect_err("no protocol in common");
    let mut wire = plain(service.address()).await;
    wire.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("to send");
    let mut answer = Vec::new();
    wire.read_to_end(&mut answer).await.ok();
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    // And a server without TLS tells no browser to use it.
    let plain = service.sibling(shared().await).await;
    assert!(!plain.client.get("/livez").await.headers.contains_key("strict-transport-security"));
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_replaced_while_requests_run() {
    let (old, new) = (certificates::new(), certificates::new());
    let files = Files::of(&old);
    let place = Place::new().await;
    let flags = files.flags();
    let serving = place.serve(&flags.each_ref().map(String::as_str)).await;
    let address = serving.address;
    let either = trusting(&[old.cert.der(), new.cert.der()], true, &[b"http/1.1"]);
    let [only_old, only_new] = [&old, &new].map(|pair| trusting(&[pair.cert.der()], true, &[b"http/1.1"]));

    let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let mut clients = JoinSet::new();
    for _ in 0..4 {
        let (either, stop, asked) = (Arc::clone(&either), Arc::clone(&stop), Arc::clone(&asked));
        clients.spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let wire = secure(address, &either).await.expect("a handshake");
                let (head, _) = get(wire, "/livez").await.expect("an answer");
                assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
                asked.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    let lasting = trusting(&[old.cert.der()], true, &[b"h2"]);
    let lasting = Http2::over(secure(address, &lasting).await.expect("a handshake")).await;
    let kept = |times: usize| {
        let serving = &serving;
        let said =
            move || async move { serving.err().matches("the certificate in use is kept").count() == times };
        eventually("it keeps its certificate", PATIENCE, said)
    };

    // Half of a file, then the certificate without its key.
    let text = new.cert.pem();
    files.write_certificate(&text[..text.len() / 2]);
    kept(1).await;
    secure(address, &only_old).await.expect("the old certificate");
    files.write_certificate(&text);
    kept(2).await;
    assert!(serving.err().contains("; the certificate is newer: replace the key, too"), "{}", serving.err());
    secure(address, &only_old).await.expect("the old certificate");
    secure(address, &only_new).await.expect_err("not the new certificate");
    let key = new.signing_key.serialize_pem();
    files.write_key(&key);
    let replaced = || async { secure(address, &only_new).await.is_ok() };
    eventually("the new certificate", PATIENCE, replaced).await;
    secure(address, &only_old).await.expect_err("not the old certificate");
    let before = asked.load(Ordering::SeqCst);
    let more = || async { asked.load(Ordering::SeqCst) > before + 20 };
    eventually("requests go on", PATIENCE, more).await;
    stop.store(true, Ordering::SeqCst);
    while let Some(client) = clients.join_next().await {
        client.expect("every request is answered");
    }
    assert_eq!(lasting.get("/livez").await.status, 200, "an open connection goes on");

    drop(lasting);
    let ended = serving.stop().await;
    assert_eq!(ended.err.matches("the certificate in use is kept").count(), 2, "{}", ended.err);
    for key in [old.signing_key.serialize_pem(), key] {
        for line in key.lines() {
            assert!(!ended.err.contains(line) && !ended.out.contains(line), "{}", ended.err);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_certificate_is_a_warning() {
    let (valid, key) = (certificates::new(), rcgen::KeyPair::generate().expect("a key"));
    let mut expired = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("a name");
    expired.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let cert = expired.self_signed(&key).expect("a certificate");
    let expired = rcgen::CertifiedKey { cert, signing_key: key };
    const WARNING: &str = " WARN pagebucket_server::tls: the certificate has expired";
    for (first, then, warnings) in [(&valid, &expired, 1), (&expired, &valid, 1)] {
        let files = Files::of(first);
        let place = Place::new().await;
        let serving = place.serve(&files.flags().each_ref().map(String::as_str)).await;
        files.write_certificate(&then.cert.pem());
        files.write_key(&then.signing_key.serialize_pem());
        eventually("it is taken", PATIENCE, async || serving.err().contains("the new certificate")).await;
        let ended = serving.stop().await;
        assert_eq!(ended.err.matches(WARNING).count(), warnings, "{}", ended.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unusable_certificates_are_refused() {
    let pair = certificates::new();
    let (good, wrong) = (Files::of(&pair), Files::of(&pair));
    wrong.write_key("key");
    let ended = run(pagebucket(&["serve"]).args(wrong.flags())).await;
    assert!(ended.sentence(2).contains("holds no private key in PEM that can be used"), "{ended:?}");
    assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
    let [flag, certificate, key_flag, _] = good.flags();
    let ended =
        run(pagebucket(&["serve"]).args([&flag, &certificate, &key_flag, &"/nowhere/key.pem".to_owned()]))
            .await;
    assert_eq!(
        ended.sentence(2),
        "--tls-key /nowhere/key.pem cannot be read: No such file or directory (os error 2)"
    );
    let ended = run(pagebucket(&["serve"]).args([&flag, &certificate])).await;
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.err.contains("--tls-cert needs --tls-key"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_speak_tls() {
    let (pair, other) = (certificates::new(), certificates::new());
    let (files, others) = (Files::of(&pair), Files::of(&other));
    let place = Place::new().await;
    let mut command = place.pagebucket("serve", &["--listen", "127.0.0.1:0"]);
    command.env("PAGEBUCKET_TLS_CERT", files.certificate()).env("PAGEBUCKET_TLS_KEY", files.key());
    let serving = Serving::start(TRADES, &mut command).await;
    let address = serving.address.to_string();
    assert!(serving.out().contains(&format!("pagebucket listens on https://{address}")), "{}", serving.out());

    let healthcheck = async |certificate: &Files| {
        let mut command = pagebucket(&["healthcheck", "--listen", &address]);
        run(command.env("PAGEBUCKET_TLS_CERT", certificate.certificate())).await
    };
    let ended = healthcheck(&files).await;
    assert_eq!((ended.status, ended.out.as_str(), ended.err.as_str()), (Some(0), "ready\n", ""));
    // The file has been renewed, and the server has not read it.
    assert_eq!(healthcheck(&others).await.status, Some(0));
    let ended = run(&mut pagebucket(&["healthcheck", "--listen", &address])).await;
    assert!(ended.sentence(1).contains("does not answer"), "{ended:?}");

    let rows = std::env::temp_dir().join(format!("pagebucket-tls-{}.ndjson", std::process::id()));
    let lines: String = (1..=25).map(|number| TRADES.line_of(1, number) + "\n").collect();
    std::fs::write(&rows, lines).expect("a file");
    let import = async |trusted: &Files| {
        let url = format!("https://{address}");
        let mut command = pagebucket(&["import", "--url", &url, &rows.display().to_string()]);
        run(command.env("SSL_CERT_FILE", trusted.certificate())).await
    };
    let ended = import(&others).await;
    assert_ne!(ended.status, Some(0), "another certificate: {ended:?}");
    let ended = import(&files).await;
    assert_eq!(ended.status, Some(0), "{ended:?}");
    std::fs::remove_file(&rows).expect("the file");
    let config = trusting(&[pair.cert.der()], true, &[]);
    let wire = secure(serving.address, &config).await.expect("a handshake");
    let (_, body) = get(wire, "/v1/customers/1").await.expect("an answer");
    let owner: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(TRADES.totals(&owner)[TOTAL], json!(25), "{owner}");
    serving.stop().await;
}
