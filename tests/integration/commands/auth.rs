//! `serve --auth`: its flags, its log, and its metrics.

use serde_json::{Value, json};

use super::export::Scratch;
use super::keys::keys;
use super::program::{Place, Serving, run};
use crate::harness::tokens::{AUDIENCE, ISSUER, Signer, claims};

const TRADES: &str = "/v1/customers/7/trades";

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_named_in_the_log() {
    let (place, signer) = (Place::new().await, Signer::es256("first"));
    let set = Scratch::new("jwks.json");
    std::fs::write(set.path(), json!({ "keys": [signer.jwk()] }).to_string()).expect("a file");
    let key = run(&mut keys(&place, "create", &["--name", "backend", "--scope", "append"])).await;
    let flags = [
        "--auth",
        "jwt,keys",
        "--jwt-issuer",
        ISSUER,
        "--jwt-audience",
        AUDIENCE,
        "--jwks",
        set.path(),
        "--customers-claim",
        "sub",
        "--log-format",
        "json",
        "--log",
        "info,pagebucket::access=debug",
    ];
    let serving = place.serve(&flags).await;
    let token = signer.sign(&claims("7", "read metrics", json!([])));
    let (reader, backend) = (serving.client.with_token(&token), serving.client.with_token(key.out.trim()));
    backend.append_to(TRADES).await.expect(201);
    reader.get(TRADES).await.expect(200);
    reader.append_to(TRADES).await.problem(403, "forbidden");
    reader.get("/v1/customers/8").await.problem(403, "forbidden");
    serving.client.get(TRADES).await.problem(401, "unauthorized");
    let metrics = String::from_utf8(reader.get("/metrics").await.body).expect("text");
    for line in [
        "pagebucket_client_requests_total{principal=\"7\"} 3",
        "pagebucket_client_requests_total{principal=\"key:backend\"} 1",
        "pagebucket_auth_refusals_total{reason=\"no_token\"} 1",
        "pagebucket_auth_refusals_total{reason=\"owner\"} 1",
        "pagebucket_auth_refusals_total{reason=\"scope\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    let ended = serving.stop().await;
    let signature = token.rsplit('.').next().expect("a signature");
    assert!(!ended.err.contains(signature) && !ended.err.contains(key.out.trim()), "a secret is in the log");
    let lines: Vec<Value> = ended.err.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |target: &str| lines.iter().filter(|line| line["target"] == target).collect::<Vec<_>>();
    let logged: Vec<_> =
        of("pagebucket::access").iter().map(|line| field(line, &["principal", "status"])).collect();
    assert_eq!(logged, ["key:backend 201", "7 200", "7 200"], "{}", ended.err);
    let audit: Vec<_> = of("pagebucket::audit")
        .iter()
        .map(|line| field(line, &["principal", "status", "reason", "path"]))
        .collect();
    let expected = [
        format!("7 403 scope {TRADES}"),
        "7 403 owner /v1/customers/8".to_owned(),
        format!(" 401 no_token {TRADES}"),
    ];
    assert_eq!(audit, expected, "one line each: {}", ended.err);
}

/// Without a token, too. Over HTTP/2 a long path costs a client one byte, once it has sent it.
#[tokio::test(flavor = "multi_thread")]
async fn no_client_can_fill_the_log() {
    let place = Place::new().await;
    for (flags, status) in [
        (&["--auth", "keys"][..], 401),
        (&["--auth", "keys", "--rate-limit", "1/h", "--rate-burst", "1"], 429),
        (&[], 404),
        (&["--allowed-hosts", "api.example", "--trusted-proxies", "127.0.0.1/32"], 421),
    ] {
        let serving = place.serve(flags).await;
        let path = format!("/{}{}", if status == 404 { "" } else { "v1/customers?x" }, "a%20".repeat(8_000));
        let path = path.replace('?', "/");
        let ask = async |address: &str| {
            let host = if status == 421 { "elsewhere.example" } else { "localhost" };
            let asked = serving.client.try_send(reqwest::Method::GET, &path, |request| {
                request.header("Host", host).header("X-Forwarded-For", address)
            });
            asked.await.expect("an answer").status
        };
        for _ in 0..40 {
            let answered = ask("192.0.2.1").await;
            assert!(answered == status || (answered == 401 && status == 429), "{answered}");
        }
        if status == 421 {
            ask("192.0.2.2").await;
        }
        let log = serving.stop().await.err;
        let lines: Vec<_> = log.lines().filter(|line| line.contains("a%20a%20")).collect();
        assert_eq!(lines.len(), if status == 421 { 11 } else { 10 }, "{flags:?}: {log}");
        assert!(lines.iter().all(|line| line.len() < 1_600), "{flags:?}: {log}");
        assert!(log.contains("refusals=30"), "{flags:?}: {log}");
    }
}

/// The values of a line of the log, separated by spaces.
fn field(line: &Value, names: &[&str]) -> String {
    let value = |name: &&str| match &line[*name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    names.iter().map(value).collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_address_needs_authentication() {
    let place = Place::new().await;
    let ended = run(&mut place.pagebucket("serve", &["--listen", "0.0.0.0:0"])).await;
    let sentence = ended.sentence(2);
    assert!(sentence.contains("--auth jwt") && sentence.contains("--allow-unauthenticated"), "{sentence}");
    let made = place.database().await.list_collection_names().await.expect("names");
    assert_eq!(made, [""; 0], "nothing is made by refusing");
    let open = ["--listen", "0.0.0.0:0", "--allow-unauthenticated"];
    Serving::start(place.history, &mut place.pagebucket("serve", &open)).await.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_key_set_is_refused() {
    let place = Place::new().await;
    let jwks = |keys: &str| {
        let keys = keys.to_owned();
        let place = &place;
        async move {
            let flags =
                ["--auth", "jwt", "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE, "--jwks", &keys];
            run(&mut place.pagebucket("serve", &[&flags[..], &["--listen", "127.0.0.1:0"]].concat())).await
        }
    };
    let set = Scratch::new("no-set.json");
    for (content, part) in
        [("[]", "`keys` is no array"), ("{", "not JSON"), ("{\"keys\":{}}", "`keys` is no array")]
    {
        std::fs::write(set.path(), content).expect("a file");
        let ended = jwks(set.path()).await;
        assert!(ended.sentence(2).contains(part), "{content}: {ended:?}");
    }
    assert!(jwks("/nowhere/jwks.json").await.sentence(2).contains("--jwks /nowhere/jwks.json"));
    assert!(jwks("http://issuer.example/jwks").await.sentence(2).contains("must be https"));
}

/// They would admit tokens without a type, or leave open which claim counts.
#[tokio::test(flavor = "multi_thread")]
async fn flags_with_two_meanings_are_refused() {
    let (place, set) = (Place::new().await, Scratch::new("jwks.json"));
    std::fs::write(set.path(), json!({ "keys": [Signer::es256("first").jwk()] }).to_string())
        .expect("a file");
    for (flag, value, part) in [
        ("--jwt-types", "", "--jwt-types"),
        ("--jwt-types", "at+jwt,", "--jwt-types"),
        ("--owners-claim", "customers=a,customers=b", "customers=b: a collection of owners has one claim"),
        ("--customers-claim", "a,customers=b", "customers=b: a collection of owners has one claim"),
    ] {
        let auth =
            ["--auth", "jwt", "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE, "--jwks", set.path()];
        let flags = [&auth[..], &["--listen", "127.0.0.1:0", flag, value]].concat();
        let ended = run(&mut place.pagebucket("serve", &flags)).await;
        assert_eq!(ended.status, Some(2), "{flag} {value}: {ended:?}");
        assert!(ended.err.contains(part), "{flag} {value}: {ended:?}");
    }
}
