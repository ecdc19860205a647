//! Headers in and out: request ids, CORS, compression, HEAD.

use std::io::Read;

use reqwest::Method;
use serde_json::{Value, json};

use super::refused;
use crate::harness::{Answer, Service, Setup, shared, trade};

#[tokio::test(flavor = "multi_thread")]
async fn request_ids() {
    let service = Service::start().await;
    let longest = "a".repeat(128);
    for path in ["/livez", "/v1/customers/0", "/v1/customers/1", "/nothing"] {
        for good in ["1", "3f9c2b7a51d84e06", "A-b_c.d:e", &longest] {
            let answer =
                service.client.send(Method::GET, path, |request| request.header("x-request-id", good)).await;
            assert_eq!(answer.header("x-request-id"), good, "{path}");
        }
        let too_long = "a".repeat(129);
        let mut seen = Vec::new();
        let bad: [&[u8]; 9] =
            [b"", b"a b", b"<b>", b"a\"b", b"a\tb", "ä".as_bytes(), b"\xff", b"a;b", too_long.as_bytes()];
        for bad in bad {
            let answer =
                service.client.send(Method::GET, path, |request| request.header("x-request-id", bad)).await;
            seen.push(answer.header("x-request-id").to_owned());
        }
        seen.push(service.client.get(path).await.header("x-request-id").to_owned());
        for id in &seen {
            assert!(id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{path}: {id:?}");
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 10, "an id of its own for each request");
    }
    let answer = service
        .client
        .send(Method::GET, "/v1/customers/0", |request| request.header("x-request-id", "mine-1"))
        .await;
    assert_eq!(refused(&answer, 400, "invalid-parameter", "customer 0")["requestId"], "mine-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn sniffing() {
    let service = Service::start().await;
    for path in [
        "/",
        "/docs/",
        "/problems",
        "/definition.schema.json",
        "/openapi.json",
        "/openapi-3.0.json",
        "/livez",
        "/v1/customers/1",
        "/v1/customers/0",
        "/nothing",
    ] {
        assert_eq!(service.client.get(path).await.header("x-content-type-options"), "nosniff", "{path}");
    }
}

fn listed<'a>(answer: &'a Answer, header: &str) -> Vec<&'a str> {
    let mut names: Vec<_> = answer.header(header).split(',').map(str::trim).collect();
    names.sort_unstable();
    names
}

/// Whether caches are told that the answer depends on this header of the request.
fn varies_by(answer: &Answer, header: &str) -> bool {
    let values = answer.headers.get_all("vary").into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|name| name.trim() == header)
}

const LOCAL: [&str; 4] =
    ["http://localhost", "http://localhost:5173", "https://127.0.0.1:8443", "http://[::1]:3000"];

const ELSEWHERE: [&str; 9] = [
    "https://evil.example",
    "http://localhost.evil.example",
    "http://evil.example/localhost",
    "http://localhost@evil.example",
    "http://localhost:5173@evil.example",
    "http://localhost:",
    "http://localhost:99999",
    "file://localhost",
    "null",
];

#[tokio::test(flavor = "multi_thread")]
async fn preflight() {
    let service = Service::start().await;
    let ask = |origin: &'static str| {
        let client = service.client.clone();
        async move {
            client
                .send(Method::OPTIONS, "/v1/customers/1/trades", |request| {
                    request
                        .header("origin", origin)
                        .header("access-control-request-method", "POST")
                        .header("access-control-request-headers", "content-type,x-request-id")
                })
                .await
        }
    };
    for origin in LOCAL {
        let answer = ask(origin).await;
        assert!(answer.status.is_success(), "{origin}: {answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), origin);
        assert_eq!(listed(&answer, "access-control-allow-methods"), ["GET", "HEAD", "POST"]);
        for name in
            ["authorization", "content-type", "if-none-match", "last-event-id", "range", "x-request-id"]
        {
            assert!(listed(&answer, "access-control-allow-headers").contains(&name), "{answer:?}");
        }
        assert!(!answer.headers.contains_key("access-control-allow-credentials"));
        assert!(varies_by(&answer, "origin"), "{answer:?}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
    for origin in ELSEWHERE {
        let answer = ask(origin).await;
        assert!(!answer.headers.contains_key("access-control-allow-origin"), "{origin}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn origins() {
    let service = Service::start().await;
    let from = |method: Method, path: &'static str, origin: &'static str| {
        let client = service.client.clone();
        async move { client.send(method, path, |request| request.header("origin", origin).json(&trade(1))).await }
    };
    // Errors too: a page must be able to read what is wrong.
    for (method, path, status) in [
        (Method::POST, "/v1/customers/1/trades", 201),
        (Method::GET, "/v1/customers/1/trades", 200),
        (Method::GET, "/v1/customers/0/trades", 400),
        (Method::GET, "/nothing", 404),
        (Method::PATCH, "/v1/customers/1", 405),
    ] {
        for origin in LOCAL {
            let answer = from(method.clone(), path, origin).await;
            assert_eq!(answer.status, status);
            assert_eq!(answer.header("access-control-allow-origin"), origin);
            let exposed = listed(&answer, "access-control-expose-headers");
            assert_eq!(
                exposed,
                [
                    "accept-ranges",
                    "content-range",
                    "etag",
                    "idempotency-replayed",
                    "link",
                    "location",
                    "ratelimit",
                    "ratelimit-policy",
                    "retry-after",
                    "www-authenticate",
                    "x-request-id",
                    "x-total-count"
                ]
            );
        }
        for origin in ELSEWHERE {
            let answer = from(method.clone(), path, origin).await;
            assert!(!answer.headers.contains_key("access-control-allow-origin"), "{origin}: {answer:?}");
            assert!(varies_by(&answer, "origin"), "{origin}: {answer:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn compression() {
    let service = Service::start().await;
    service.client.append(1, &json!(vec![trade(1); 10])).await.expect(201);
    let path = "/v1/customers/1/trades";
    let plain = service.client.get(path).await;
    assert!(!plain.headers.contains_key("content-encoding"));
    for (accepted, encoding, magic) in [
        ("gzip", "gzip", &[0x1f, 0x8b][..]),
        ("zstd", "zstd", &[0x28, 0xb5, 0x2f, 0xfd][..]),
        ("gzip;q=0.5, br", "gzip", &[0x1f, 0x8b][..]),
    ] {
        let answer = service
            .client
            .send(Method::GET, path, |request| request.header("accept-encoding", accepted))
            .await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-encoding"), encoding, "{accepted}");
        assert!(answer.body.starts_with(magic), "{accepted}: {:?}", answer.body);
        assert!(answer.body.len() < plain.body.len() / 2, "{} of {}", answer.body.len(), plain.body.len());
        assert!(varies_by(&answer, "accept-encoding"), "{answer:?}");
    }
    for accepted in ["identity", "br", "gzip;q=0", "nonsense"] {
        let answer = service
            .client
            .send(Method::GET, path, |request| request.header("accept-encoding", accepted))
            .await;
        assert_eq!(answer.body, plain.body, "{accepted}");
    }
}

/// All that `/docs/` loads, and the other pages.
const SITE: [&str; 15] = [
    "/",
    "/site.css",
    "/home.js",
    "/problems",
    "/definition.schema.json",
    "/openapi.json",
    "/openapi-3.0.json",
    "/docs/",
    "/docs/index.css",
    "/docs/swagger-ui.css",
    "/docs/swagger-ui-bundle.js",
    "/docs/docs.css",
    "/docs/docs.js",
    "/icon.svg",
    "/favicon.ico",
];

/// Swagger UI is large: it is compressed once, and sent once.
#[tokio::test(flavor = "multi_thread")]
async fn the_site_is_compressed() {
    let service = Service::start().await;
    let (mut all, mut compressed, mut tags) = (0, 0, Vec::new());
    for path in SITE {
        let with = |headers: &[(&'static str, &str)]| {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
            service.client.send(Method::GET, path, move |request| {
                headers.into_iter().fold(request, |request, (name, value)| request.header(name, value))
            })
        };
        let plain = with(&[]).await;
        let tag = plain.header("etag").to_owned();
        assert!(tag.len() > 10 && tag.starts_with('"') && tag.ends_with('"'), "{path}: {tag}");
        let weak = format!("W/{tag}");
        for (accepted, encoded) in [
            ("gzip, deflate, br, zstd", true),
            ("gzip;q=0.5", true),
            ("*", true),
            ("zstd", false),
            ("identity", false),
            ("gzip;q=0", false),
        ] {
            let answer = with(&[("accept-encoding", accepted)]).await;
            assert_eq!(answer.status, 200, "{path}");
            assert_eq!(answer.headers.contains_key("content-encoding"), encoded, "{path}: {accepted}");
            assert_eq!(answer.header("etag"), if encoded { &weak } else { &tag }, "{path}: {accepted}");
            assert_eq!(answer.header("content-length"), answer.body.len().to_string(), "{path}");
            assert_eq!(answer.header("cache-control"), "no-cache", "asked for anew each time: {path}");
            assert_eq!(answer.header("content-type"), plain.header("content-type"), "{path}");
            assert!(varies_by(&answer, "accept-encoding"), "{path}: {answer:?}");
            let mut body = answer.body;
            if encoded {
                (all, compressed) = (all + plain.body.len(), compressed + body.len());
                let mut unpacked = Vec::new();
                flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut unpacked).expect("gzip");
                body = unpacked;
            }
            assert!(body == plain.body, "{path}: {accepted}");
        }
        // In the form that was asked about, whatever is accepted now.
        let (both, star) = (format!("\"other\", {tag}"), "*".to_owned());
        for (known, kept) in [(&tag, &tag), (&weak, &weak), (&both, &tag), (&star, &tag)] {
            for accepted in ["gzip", "identity"] {
                let answer = with(&[("if-none-match", known), ("accept-encoding", accepted)]).await;
                assert_eq!((answer.status.as_u16(), answer.body.len()), (304, 0), "{path}");
                assert_eq!(answer.header("etag"), kept, "{path}");
                assert!(varies_by(&answer, "accept-encoding"), "{path}: {answer:?}");
            }
        }
        for other in ["\"other\"", tag.trim_matches('"')] {
            let answer = with(&[("if-none-match", other)]).await;
            assert_eq!((answer.status.as_u16(), answer.body), (200, plain.body.clone()), "{path}");
        }
        tags.push(tag);
    }
    assert!(compressed < all / 3, "{compressed} of {all} bytes");
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), SITE.len(), "one for each file");
    let none =
        service.client.send(Method::GET, "/docs/none.js", |request| request.header("if-none-match", "*"));
    none.await.problem(404, "not-found");
}

/// Its page at each address, and what the page loads.
#[tokio::test(flavor = "multi_thread")]
async fn the_explorer_is_kept() {
    let service = Service::start().await;
    let mut assets = Vec::new();
    for (path, root) in [
        ("/", "./"),
        ("/explorer", "./"),
        ("/explorer/", "../"),
        ("/explorer/customers", "../"),
        ("/explorer/customers/7", "../../"),
        ("/explorer/customers/7/trades?page=937", "../../../"),
        ("/explorer/customers/7/trades/", "../../../../"),
        ("/explorer/customers/7/trades/24", "../../../../"),
    ] {
        let page = service.client.get(path).await;
        assert_eq!((page.status.as_u16(), page.header("cache-control")), (200, "no-cache"), "{path}");
        let page = String::from_utf8(page.body.to_vec()).expect("text");
        let begin = format!("\"{root}assets/");
        let of_page = page.split(&begin).skip(1).filter_map(|rest| rest.split('"').next().map(str::to_owned));
        let of_page: Vec<_> = of_page.collect();
        assert_eq!(of_page.len(), 2, "a script and a style sheet: {page}");
        assets.extend(of_page);
    }
    assets.sort_unstable();
    assets.dedup();
    assert_eq!(assets.len(), 2, "the same at each address: {assets:?}");
    for asset in assets {
        let answer = service.client.get(&format!("/assets/{asset}")).await;
        assert_eq!(answer.status, 200, "{asset}");
        assert_eq!(answer.header("cache-control"), "public, max-age=31536000, immutable");
        assert!(answer.header("content-type").starts_with("text/"), "{answer:?}");
        let takes_gzip = |request: reqwest::RequestBuilder| request.header("accept-encoding", "gzip");
        let gzip = service.client.send(Method::GET, &format!("/assets/{asset}"), takes_gzip).await;
        assert_eq!(gzip.header("content-encoding"), "gzip", "as the build has compressed it");
        assert!(gzip.body.len() * 2 < answer.body.len(), "{asset}: {} bytes", gzip.body.len());
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&gzip.body[..]).read_to_end(&mut plain).expect("gzip");
        assert_eq!(plain, answer.body, "{asset} is the same for a client that takes no gzip");
    }
    for nowhere in ["/assets/none.js", "/explorer/customers/7/trades/24/1", "/explorers"] {
        service.client.get(nowhere).await.problem(404, "not-found");
    }
    let mut setup = Setup::on(shared().await);
    setup.config.api.explorer = false;
    let service = setup.start().await;
    service.client.get("/explorer/customers/7/trades").await.problem(404, "not-found");
    let page = String::from_utf8(service.client.get("/").await.body.to_vec()).expect("text");
    assert!(page.contains("/v1/customers/7/trades") && !page.contains("assets/"), "{page}");
}

/// What a browser does under it, `browser` shows.
#[tokio::test(flavor = "multi_thread")]
async fn the_site_has_a_policy() {
    let service = Service::start().await;
    for path in SITE {
        let answer = service.client.get(path).await;
        let policy: Vec<_> = answer.header("content-security-policy").split(';').map(str::trim).collect();
        for directive in [
            "default-src 'none'",
            "script-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(&directive), "{path}: {directive} in {policy:?}");
        }
        assert!(!policy.iter().any(|directive| directive.contains("unsafe")), "{path}: {policy:?}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn head() {
    let service = Service::start().await;
    service.client.append(1, &json!(vec![trade(1); 3])).await.expect(201);
    for path in [
        "/v1/customers/1",
        "/v1/customers/1/trades?page=1",
        "/v1/customers/1/trades/pages/1",
        "/v1/customers/1/trades/3",
        "/livez",
        "/readyz",
        "/openapi.json",
        "/openapi-3.0.json",
        "/",
        "/v1/customers/0",
        "/v1/customers/1/trades/4",
        "/nothing",
    ] {
        let get = service.client.get(path).await;
        let head = service.client.send(Method::HEAD, path, |request| request).await;
        assert_eq!(head.status, get.status, "{path}");
        assert!(head.body.is_empty(), "{path}");
        for name in ["content-type", "content-length", "link", "cache-control", "x-content-type-options"] {
            assert_eq!(head.headers.get(name), get.headers.get(name), "{name} of {path}");
        }
    }
    let refused: Value = service.client.get("/v1/customers/0").await.json();
    assert_eq!(refused["status"], 400);
}
