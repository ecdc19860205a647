//! Every route for every kind of client: a table that the OpenAPI document and the service must agree with.

use std::collections::BTreeSet;
use std::fmt::Write;

use pagebucket_http::OpenParts;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::tokens::{EVERYTHING, Issuer, claims};
use crate::harness::{Service, Setup, shared, trade};

/// For whom a route is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum For {
    Everyone,
    Owner,
    AllOwners,
    Scoped,
    /// The same as `Owner`, for an owner that no other row has.
    Erased,
}

/// An operation: its method and its address in the document, its scope, for whom it is.
pub type Row = (&'static str, &'static str, &'static str, For);

use For::{AllOwners, Erased, Everyone, Owner, Scoped};

const VIEWS: &str = "path=%2Findex.htm";

pub const ROWS: &[Row] = &[
    ("post", "/v1/customers/{customerId}/trades", "append", Owner),
    ("post", "/v1/customers/{customerId}/trades/batch", "append", Owner),
    ("get", "/v1/customers/{customerId}/trades", "read", Owner),
    ("post", "/v1/customers/{customerId}/trades/upload", "append", Owner),
    ("post", "/v1/customers/{customerId}/trades/upload.ndjson", "append", Owner),
    ("post", "/v1/trades/upload", "append", AllOwners),
    ("post", "/v1/trades/upload.ndjson", "append", AllOwners),
    ("get", "/v1/customers/{customerId}/trades/export.ndjson", "read", Owner),
    ("get", "/v1/customers/{customerId}/trades/export.csv", "read", Owner),
    ("get", "/v1/customers/{customerId}/trades/live", "read", Owner),
    ("get", "/v1/trades/live", "list", AllOwners),
    ("get", "/v1/customers/{customerId}/trades/summary", "read", Owner),
    ("get", "/v1/customers/{customerId}/trades/pages/{page}", "read", Owner),
    ("get", "/v1/customers/{customerId}/trades/{seq}", "read", Owner),
    ("get", "/v1/customers", "list", AllOwners),
    ("get", "/v1/customers/{customerId}", "read", Owner),
    // An owner of its own: the other rows need theirs.
    ("delete", "/v1/customers/{customerId}", "admin", Erased),
    ("get", "/v1/live", "read", Owner),
    ("post", "/v1/page-views", "views", Scoped),
    ("get", "/v1/page-views", "views", Scoped),
    ("post", "/v1/page-views/batch", "views", Scoped),
    ("post", "/v1/page-views/upload", "views", Scoped),
    ("get", "/v1/page-views/buckets", "views", Scoped),
    ("get", "/v1/page-views/top", "views", Scoped),
    ("post", "/v1/page-views/preallocations", "admin", Scoped),
    ("get", "/livez", "", Everyone),
    ("get", "/readyz", "", Everyone),
    ("get", "/metrics", "metrics", Scoped),
];

/// The operations of a document.
fn operations(document: &Value) -> BTreeSet<(String, String)> {
    let paths = document["paths"].as_object().expect("paths");
    let of_path = |(path, methods): (&String, &Value)| {
        let methods: Vec<_> = methods.as_object().expect("methods").keys().cloned().collect();
        methods.into_iter().map(|method| (method, path.clone())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

/// What stands in one of the two only.
fn difference(rows: &[Row], operations: &BTreeSet<(String, String)>) -> Vec<String> {
    let rows = rows.iter().map(|(method, path, ..)| ((*method).to_owned(), (*path).to_owned())).collect();
    operations.symmetric_difference(&rows).map(|(method, path)| format!("{method} {path}")).collect()
}

/// Sends a request that succeeds if its client may send it.
pub async fn status(service: &Service, row: &Row, token: Option<String>) -> u16 {
    let (method, path, _, reach) = *row;
    let path = if reach == Erased { path.replace("{customerId}", "2") } else { path.to_owned() };
    let address = ["{customerId}", "{page}", "{seq}"].iter().fold(path, |path, name| path.replace(name, "1"));
    let address = address.as_str();
    let client = match token {
        Some(token) => service.client.with_token(token),
        None => service.client.clone(),
    };
    let hour = "2014-01-01T10:00:00Z";
    let query = match (method, address) {
        ("get", "/v1/live") => "?watch=customers/1/trades".to_owned(),
        ("get", address) if address.ends_with("/summary") => "?by=1d".to_owned(),
        ("get", "/v1/page-views/buckets") => format!("?{VIEWS}&timestamp={hour}"),
        ("get", "/v1/page-views") => format!("?{VIEWS}&from={hour}&to=2014-01-01T11:00:00Z"),
        ("get", "/v1/page-views/top") => format!("?from={hour}&to=2014-01-01T11:00:00Z"),
        _ => String::new(),
    };
    let mut line = trade(1);
    line["customerId"] = json!(1);
    let (media_type, body) = match address {
        "/v1/page-views" => ("application/json", json!({ "path": "/index.htm", "at": hour }).to_string()),
        "/v1/page-views/batch" => {
            ("application/json", json!([{ "path": "/index.htm", "at": hour }]).to_string())
        }
        "/v1/page-views/upload" => {
            ("application/x-ndjson", json!({ "path": "/index.htm", "at": hour }).to_string())
        }
        "/v1/page-views/preallocations" => {
            ("application/json", json!({ "path": "/index.htm", "hour": hour }).to_string())
        }
        address if address.ends_with("/batch") => ("application/json", json!([trade(1)]).to_string()),
        address if address.contains("/upload") => ("application/x-ndjson", line.to_string()),
        _ => ("application/json", trade(1).to_string()),
    };
    let address = format!("{address}{query}");
    let answer = match method {
        // The answer has no end.
        "get" if row.1.ends_with("/live") => client.send(Method::HEAD, &address, |request| request).await,
        "get" => client.get(&address).await,
        "delete" => client.send(Method::DELETE, &address, |request| request).await,
        _ => {
            let with =
                |request: reqwest::RequestBuilder| request.header("content-type", media_type).body(body);
            client.send(Method::POST, &address, with).await
        }
    };
    answer.status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_route_is_for_those_of_its_row() {
    let issuer = Issuer::start().await;
    let mut setup = Setup::on(shared().await);
    setup.gate = issuer.gate(OpenParts::default()).await;
    let service = setup.start().await;
    let document = pagebucket_http::document(
        &pagebucket_model::definition::Definitions::built_in(),
        pagebucket_http::Version::V3_1,
    );
    let document: Value = serde_json::from_str(&document).expect("a document");
    assert_eq!(difference(ROWS, &operations(&document)), [""; 0], "the table and the document differ");
    let token = |scope: &str, customers: Value| Some(issuer.signer.sign(&claims("ann", scope, customers)));
    service
        .client
        .with_token(token("append", json!("*")).expect("a token"))
        .append(1, &trade(1))
        .await
        .expect(201);
    let mut table = String::from(
        "| Route | no token | another owner's | without the scope | right |\n|---|---|---|---|---|\n",
    );
    for row in ROWS {
        let (method, path, scope, reach) = *row;
        let all_but: Vec<_> = EVERYTHING.split(' ').filter(|other| *other != scope).collect();
        let right = match reach {
            AllOwners => json!("*"),
            Erased => json!([2]),
            Everyone | Owner | Scoped => json!([1]),
        };
        let given = [
            status(&service, row, None).await,
            status(&service, row, token(EVERYTHING, json!(["8"]))).await,
            status(&service, row, token(&all_but.join(" "), json!("*"))).await,
            status(&service, row, token(scope, right)).await,
        ];
        let expected = match reach {
            Everyone => [200, 200, 200, 200],
            Scoped => [401, 200, 403, 200],
            Owner | AllOwners | Erased => [401, 403, 403, 200],
        };
        let class = |status: u16| if (200..300).contains(&status) { 200 } else { status };
        let [none, other, missing, right] = given;
        writeln!(table, "| {method} {path} | {none} | {other} | {missing} | {right} |").expect("a line");
        assert_eq!(given.map(class), expected, "{method} {path}");
    }
    println!("{table}");
    service.stored(1).await;
}

/// The control: the comparison of the table with the document finds each row that is taken out.
#[test]
fn a_row_that_is_missing_is_found() {
    let document = pagebucket_http::document(
        &pagebucket_model::definition::Definitions::built_in(),
        pagebucket_http::Version::V3_1,
    );
    let all = operations(&serde_json::from_str(&document).expect("a document"));
    for row in ROWS {
        let others: Vec<_> =
            ROWS.iter().filter(|other| (other.0, other.1) != (row.0, row.1)).copied().collect();
        assert_eq!(difference(&others, &all), [format!("{} {}", row.0, row.1)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documentation_and_metrics_may_be_open() {
    let issuer = Issuer::start().await;
    let pages = [
        "/docs/",
        "/docs/swagger-ui.css",
        "/openapi.json",
        "/openapi-3.0.json",
        "/histories.json",
        "/histories/trades.json",
        "/problems",
        "/definition.schema.json",
        "/site.css",
    ];
    for (docs, metrics) in [(false, false), (true, false), (false, true)] {
        let mut setup = Setup::on(shared().await);
        setup.gate = issuer.gate(OpenParts { docs, metrics }).await;
        setup.config.api.explorer = !metrics;
        let service = setup.start().await;
        let status = |open: bool| if open { 200 } else { 401 };
        for page in pages {
            assert_eq!(service.client.get(page).await.status, status(docs), "{page}");
        }
        // A browser asks for it without a token, beside each page.
        for icon in ["/favicon.ico", "/icon.svg"] {
            assert_eq!(service.client.get(icon).await.status, 200, "{icon}");
        }
        // The explorer asks for a token itself. Without it the first page tells of the histories.
        assert_eq!(service.client.get("/").await.status, status(docs || !metrics));
        assert_eq!(service.client.get("/metrics").await.status, status(metrics));
        assert_eq!(service.client.get("/v1/customers").await.status, 401);
        assert_eq!(service.client.get("/nowhere").await.status, 404);
        let anyone = service.client.with_token(issuer.signer.sign(&claims("ann", "", json!([]))));
        assert_eq!(anyone.get("/docs/").await.status, 200);
    }
}
