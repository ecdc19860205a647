//! A real issuer, oidc-provider, whose keys are replaced while requests run.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pagebucket_http::OpenParts;
use pagebucket_http::auth::jwt::{KeySource, Pace, Settings};
use pagebucket_model::domain::OwnerType;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::harness::tokens::{AUDIENCE, gate, owners_claim};
use crate::harness::{Setup, eventually, http, shared, skip, spawn};

const TRADES: &str = "/v1/customers/7/trades";

/// Far longer than each step takes.
const LONG: Duration = Duration::from_secs(60);

/// The process of the issuer.
struct Issuer {
    _process: Child,
    commands: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    url: String,
    http: reqwest::Client,
}

impl Issuer {
    /// Starts it with the packages in this directory.
    async fn start(packages: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/issuer/issuer.mjs");
        let mut process = Command::new("node")
            .args([&script, packages])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("node");
        let commands = process.stdin.take().expect("its input");
        let mut lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        let url = lines.next_line().await.expect("a line").expect("an address");
        let http = http().build().expect("a client");
        Self { _process: process, commands, lines, url, http }
    }

    /// What it answers to this line.
    async fn answer(&mut self, line: &str) -> String {
        self.commands.write_all(format!("{line}\n").as_bytes()).await.expect("to be read");
        self.lines.next_line().await.expect("a line").expect("an answer")
    }

    /// It publishes these keys from now on, and signs with the first one.
    async fn publish(&mut self, keys: &str) {
        assert_eq!(self.answer(keys).await, "ok");
    }

    /// Waits until the service knows the keys.
    async fn known(&mut self) {
        let deadline = Instant::now() + LONG;
        // The second time begins after the answer to the first was read.
        while self.answer("fetched").await.parse::<u32>().expect("a number") < 2 {
            assert!(Instant::now() < deadline, "the keys are not fetched");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Asks for a token of a client, as clients do.
async fn token(http: &reqwest::Client, url: &str, client: &str) -> String {
    let body = format!("grant_type=client_credentials&scope=read%20append&resource={AUDIENCE}");
    let request = http.post(format!("{url}/token")).basic_auth(client, Some("secret"));
    let request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
    let answer: Value = request.send().await.expect("an answer").json().await.expect("JSON");
    answer["access_token"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_replaced_while_requests_run() {
    let Some(packages) = std::env::var_os("OIDC_PROVIDER") else {
        return skip("a real issuer", "OIDC_PROVIDER does not name the packages of tests/issuer");
    };
    let mut issuer = Issuer::start(Path::new(&packages)).await;
    let settings = Settings {
        issuer: issuer.url.clone(),
        audience: AUDIENCE.to_owned(),
        types: vec!["at+jwt".to_owned()],
        claims: [("customers".into(), owners_claim("customers", OwnerType::Integer))].into(),
        keys: KeySource::parse(&format!("{}/jwks", issuer.url)).expect("an address of this machine"),
        pace: Pace { refresh: Duration::from_millis(500), ..Pace::default() },
    };
    let mut setup = Setup::on(shared().await);
    setup.gate = gate(settings, OpenParts::default()).await;
    let service = setup.start().await;
    let with = |token: String| service.client.with_token(token);
    let old = with(token(&issuer.http, &issuer.url, "ann-7").await);
    old.append_to(TRADES).await.expect(201);
    with(token(&issuer.http, &issuer.url, "bob-8").await).get(TRADES).await.problem(403, "forbidden");

    let (stop, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (stop, rounds) = (Arc::clone(&stop), Arc::clone(&rounds));
            let (client, http, url) = (service.client.clone(), issuer.http.clone(), issuer.url.clone());
            spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    let client = client.with_token(token(&http, &url, "ann-7").await);
                    for _ in 0..10 {
                        client.get(TRADES).await.expect(200);
                    }
                    rounds.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let some_rounds = async || {
        let begun = rounds.load(Ordering::SeqCst);
        eventually("requests", LONG, async || rounds.load(Ordering::SeqCst) >= begun + 12).await;
    };
    some_rounds().await;
    // A key that is published and used at once: a token makes it known.
    issuer.publish("second first").await;
    some_rounds().await;
    old.get(TRADES).await.expect(200);
    // The first key is withdrawn.
    issuer.publish("second").await;
    let refused = async || old.get(TRADES).await.status == 401;
    eventually("a token of the withdrawn key is refused", LONG, refused).await;
    some_rounds().await;
    // A key that is published before it is used, as issuers do.
    issuer.publish("second third").await;
    issuer.known().await;
    issuer.publish("third second").await;
    some_rounds().await;
    // No client has a token of the second any more.
    issuer.publish("third").await;
    some_rounds().await;
    old.get(TRADES).await.problem(401, "unauthorized");
    stop.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.expect("no good token to be refused");
    }
    assert_eq!(service.stored(7).await.numbers.len(), 1);
}
