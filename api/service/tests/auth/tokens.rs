//! Tokens that are accepted, and many that are not.

use pagebucket_http::OpenParts;
use pagebucket_model::domain::OwnerType;
use serde_json::{Value, json};

use crate::harness::tokens::{
    AUDIENCE, EVERYTHING, ISSUER, Issuer, Signer, base64url, claims, now, owners_claim,
};
use crate::harness::{Service, Setup, shared, trade};

const TRADES: &str = "/v1/customers/7/trades";

/// A service behind a gate that accepts the tokens of an issuer.
async fn guarded(issuer: &Issuer) -> Service {
    let mut setup = Setup::on(shared().await);
    setup.gate = issuer.gate(OpenParts::default()).await;
    setup.start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_lets_its_bearer_in() {
    let issuer = Issuer::start().await;
    let eddsa = Signer::eddsa("second");
    issuer.replace([issuer.signer.jwk(), eddsa.jwk()]);
    let service = guarded(&issuer).await;
    let mine = claims("ann", "append read", json!(["7"]));
    let with = |member: &str, value: Value| {
        let mut claims = mine.clone();
        claims[member] = value;
        issuer.signer.sign(&claims)
    };
    let typed = |kind: &str| {
        let mut header = issuer.signer.header();
        header["typ"] = kind.into();
        issuer.signer.sign_as(&header, &mine)
    };
    for (count, token) in [
        issuer.signer.sign(&mine),
        eddsa.sign(&mine),
        typed("application/at+jwt"),
        typed("AT+JWT"),
        with("aud", json!(["https://other.example", AUDIENCE])),
        // Within the leeway.
        with("exp", json!(now() - 30)),
        with("nbf", json!(now() + 30)),
        with("iat", json!(now() + 30)),
        with("exp", json!(now() as f64 + 100.5)),
        with("scope", json!("openid append read profile")),
    ]
    .into_iter()
    .enumerate()
    {
        let client = service.client.with_token(&token);
        client.append_to(TRADES).await.expect(201);
        let listing = client.get(TRADES).await;
        listing.expect(200);
        assert_eq!(client.total(7).await, count as u64 + 1, "{token}");
        assert!(listing.headers.get_all("vary").iter().any(|vary| vary == "authorization"), "{listing:?}");
    }
    service.stored(7).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_says_why() {
    let issuer = Issuer::start().await;
    let service = guarded(&issuer).await;
    let metadata = "resource_metadata=\"https://api.example/.well-known/oauth-protected-resource\"";
    let answer = service.client.get(TRADES).await;
    answer.problem(401, "unauthorized");
    assert_eq!(answer.header("www-authenticate"), format!("Bearer realm=\"pagebucket\", {metadata}"));
    assert_eq!(answer.header("cache-control"), "no-cache");

    let mut expired = claims("ann", "read", json!(["7"]));
    expired["exp"] = json!(now() - 61);
    let answer = service.client.with_token(issuer.signer.sign(&expired)).get(TRADES).await;
    assert_eq!(answer.problem(401, "unauthorized")["detail"], "The token has expired.");
    let challenge = answer.header("www-authenticate");
    let error = "error=\"invalid_token\", error_description=\"The token has expired.\"";
    assert_eq!(challenge, format!("Bearer realm=\"pagebucket\", {error}, {metadata}"));

    let reader = service.client.with_token(issuer.signer.sign(&claims("ann", "read", json!(["7"]))));
    let answer = reader.append_to(TRADES).await;
    answer.problem(403, "forbidden");
    let challenge = answer.header("www-authenticate");
    assert!(challenge.contains("error=\"insufficient_scope\", scope=\"append\""), "{challenge}");
    assert_eq!(service.stored(7).await.numbers.len(), 0);
    for probe in ["/livez", "/readyz"] {
        service.client.get(probe).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_refused() {
    let issuer = Issuer::start().await;
    let service = guarded(&issuer).await;
    let mine = claims("ann", EVERYTHING, json!("*"));
    let signer = &issuer.signer;
    let good = signer.sign(&mine);
    let with = |member: &str, value: Value| {
        let mut claims = mine.clone();
        claims[member] = value;
        (format!("{member}: {}", claims[member]), signer.sign(&claims))
    };
    let without = |member: &str| {
        let mut claims = mine.clone();
        claims.as_object_mut().expect("claims").remove(member);
        (format!("no {member}"), signer.sign(&claims))
    };
    let headed = |member: &str, value: Value| {
        let mut header = signer.header();
        header[member] = value;
        (format!("{member}: {}", header[member]), signer.sign_as(&header, &mine))
    };
    let [header, payload, signature] = good.split('.').collect::<Vec<_>>()[..] else { panic!("{good}") };
    let unsigned =
        |header: Value, signature: &str| format!("{}.{payload}.{signature}", base64url(header.to_string()));
    // The confusion of RFC 8725, 2.1: the public key as the secret of an HMAC.
    let confused = |secret: &[u8]| {
        let header = json!({ "alg": "HS256", "typ": "at+jwt", "kid": signer.id });
        let message = format!("{}.{payload}", base64url(header.to_string()));
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
        format!("{message}.{}", base64url(ring::hmac::sign(&key, message.as_bytes())))
    };
    let mut altered = mine.clone();
    altered["sub"] = json!("bob");
    let mut long = mine.clone();
    long["more"] = json!("x".repeat(8 * 1024));
    let wrong: Vec<(String, String)> = vec![
        with("iss", json!("https://other.example")),
        with("iss", json!([ISSUER])),
        with("iss", Value::Null),
        with("aud", json!("https://other.example")),
        with("aud", json!([])),
        with("aud", json!({ AUDIENCE: true })),
        with("exp", json!(now() - 61)),
        with("exp", json!(0)),
        with("exp", json!("never")),
        with("exp", json!(-1)),
        with("nbf", json!(now() + 120)),
        with("nbf", json!("soon")),
        with("iat", json!(now() + 120)),
        with("iat", json!("now")),
        with("sub", json!("")),
        with("sub", json!(7)),
        with("sub", json!("a\nb")),
        with("sub", json!("key:backend")),
        with("sub", json!("x".repeat(256))),
        without("exp"),
        without("iss"),
        without("aud"),
        without("sub"),
        headed("typ", json!("JWT")),
        headed("typ", json!("id_token+jwt")),
        headed("typ", Value::Null),
        headed("alg", json!("ES384")),
        headed("alg", json!("RS256")),
        headed("alg", json!("none")),
        headed("alg", json!("HS256")),
        headed("alg", json!("EdDSA")),
        headed("crit", json!(["b64"])),
        headed("crit", json!([])),
        headed("kid", json!("../../etc/passwd")),
        headed("kid", json!("first/../second")),
        headed("kid", json!("' OR 1=1 --")),
        headed("kid", json!("x".repeat(4096))),
        headed("kid", json!(1)),
        ("another key's".to_owned(), Signer::es256("first").sign(&mine)),
        // The key that the token brings along is not asked.
        ("its own key".to_owned(), {
            let own = Signer::es256("own");
            let mut header = own.header();
            header["jwk"] = own.jwk();
            header["jku"] = json!("https://evil.example/jwks");
            own.sign_as(&header, &mine)
        }),
        ("unsigned".to_owned(), unsigned(json!({ "alg": "none", "typ": "at+jwt" }), "")),
        (
            "unsigned, None".to_owned(),
            unsigned(json!({ "alg": "None", "typ": "at+jwt", "kid": "first" }), ""),
        ),
        ("without its signature".to_owned(), format!("{header}.{payload}.")),
        ("two parts".to_owned(), format!("{header}.{payload}")),
        ("four parts".to_owned(), format!("{good}.{signature}")),
        ("zeros for a signature".to_owned(), format!("{header}.{payload}.{}", base64url([0; 64]))),
        ("other claims".to_owned(), format!("{header}.{}.{signature}", base64url(altered.to_string()))),
        ("no JSON".to_owned(), format!("{header}.{}.{signature}", base64url("ann"))),
        ("padding".to_owned(), format!("{good}==")),
        ("an HMAC of the key".to_owned(), confused(signer.public())),
        ("an HMAC of the set".to_owned(), confused(signer.jwk().to_string().as_bytes())),
        ("longer than 8 KiB".to_owned(), signer.sign(&long)),
        ("words".to_owned(), "open sesame".to_owned()),
        ("a key of no server".to_owned(), format!("pb_{}", "A".repeat(43))),
    ];
    service.client.with_token(&good).append_to(TRADES).await.expect(201);
    for (what, token) in &wrong {
        let client = service.client.with_token(token);
        for answer in [client.get(TRADES).await, client.append_to(TRADES).await] {
            answer.problem(401, "unauthorized");
            let challenge = answer.header("www-authenticate");
            assert!(challenge.contains("error=\"invalid_token\""), "{what}: {challenge}");
        }
    }
    for (what, header) in [("basic", "Basic YTpi"), ("nothing", "Bearer"), ("a space", "Bearer ")] {
        let headed = |request: reqwest::RequestBuilder| request.header("authorization", header);
        let answer = service.client.send(reqwest::Method::GET, TRADES, headed).await;
        assert_eq!(answer.status, 401, "{what}: {answer:?}");
    }
    let twice = |request: reqwest::RequestBuilder| request.bearer_auth(&good).bearer_auth(&good);
    service.client.send(reqwest::Method::GET, TRADES, twice).await.problem(401, "unauthorized");
    assert_eq!(service.stored(7).await.numbers.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_are_named_by_a_claim() {
    let issuer = Issuer::start().await;
    let service = guarded(&issuer).await;
    for (customers, allowed) in [
        (json!("7"), true),
        (json!(7), true),
        (json!([6, 7]), true),
        (json!(["6", "7"]), true),
        (json!("*"), true),
        (json!(["*"]), true),
        (json!("07"), false),
        (json!("7 "), false),
        (json!(7.0), false),
        (json!("6,7"), false),
        (json!([[7]]), false),
        (json!({ "7": true }), false),
        (json!(true), false),
        (json!([]), false),
        (Value::Null, false),
    ] {
        let token = issuer.signer.sign(&claims("ann", "read", customers.clone()));
        let status = service.client.with_token(token).get(TRADES).await.status;
        assert_eq!(status, if allowed { 200 } else { 403 }, "{customers}");
    }
    // One owner a token.
    let mut settings = issuer.settings();
    settings.claims = [("customers".into(), owners_claim("sub", OwnerType::Integer))].into();
    let mut setup = Setup::on(shared().await);
    setup.gate = crate::harness::tokens::gate(settings, OpenParts::default()).await;
    let service = setup.start().await;
    for (name, status) in [("7", 200), ("8", 403), ("*", 403)] {
        let token = issuer.signer.sign(&claims(name, "read", json!("*")));
        assert_eq!(service.client.with_token(token).get(TRADES).await.status, status, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_name_the_issuer() {
    let issuer = Issuer::start().await;
    let service = guarded(&issuer).await;
    let metadata = service.client.get("/.well-known/oauth-protected-resource").await.expect(200);
    assert_eq!(metadata["resource"], AUDIENCE);
    assert_eq!(metadata["authorization_servers"], json!([ISSUER]));
    assert_eq!(metadata["scopes_supported"], json!(EVERYTHING.split(' ').collect::<Vec<_>>()));
    let open = Service::start().await;
    open.client.get("/.well-known/oauth-protected-resource").await.problem(404, "not-found");
    // Without authentication a token does not matter.
    open.client.with_token("nonsense").append(1, &trade(1)).await.expect(201);
}
