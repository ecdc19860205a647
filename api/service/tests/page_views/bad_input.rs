//! What a client may send that it should not: all that is wrong is told, and nothing is counted.

use mongodb::bson::Document;
use reqwest::Method;
use serde_json::{Value, json};

use super::{PATH, count, counted, documents, view};
use crate::harness::Service;

fn pointers(problem: &Value) -> Vec<&str> {
    problem["errors"]
        .as_array()
        .expect("errors")
        .iter()
        .map(|error| error["pointer"].as_str().expect("a pointer"))
        .collect()
}

fn parameters(problem: &Value) -> Vec<(&str, &str)> {
    let errors = problem["errors"].as_array().expect("errors").iter();
    errors.map(|error| (error["parameter"].as_str().unwrap(), error["detail"].as_str().unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_the_faults_are_told_and_nothing_is_counted() {
    let service = Service::start().await;
    let long = format!("/{}", "x".repeat(512));
    for (body, expected) in [
        (json!({}), &["/path"][..]),
        (
            json!({ "path": "index.htm", "at": "yesterday", "views": 0, "page": 1 }),
            &["/at", "/page", "/path", "/views"],
        ),
        (json!({ "path": "/?", "views": 1_000_001 }), &["/path", "/views"]),
        (json!({ "path": "/#", "views": -1 }), &["/path", "/views"]),
        (json!({ "path": "/\u{0}", "views": 1.5 }), &["/path", "/views"]),
        (json!({ "path": "/\n", "views": "1" }), &["/path", "/views"]),
        (json!({ "path": long, "views": null }), &["/path", "/views"]),
        (json!({ "path": null, "at": 1_388_570_460 }), &["/at", "/path"]),
        (json!({ "path": ["/"], "at": "2014-01-01T10:01:00" }), &["/at", "/path"]),
        (json!({ "path": "/", "at": "2014-02-30T10:01:00Z" }), &["/at"]),
        (json!({ "path": "/", "at": "2014-01-01T10:01:00.0001Z" }), &["/at"]),
        (json!([]), &[""]),
        (json!("/"), &[""]),
        (json!([[], "/", { "path": "/" }, { "views": 1 }]), &["/0", "/1", "/3/path"]),
    ] {
        let problem = count(&service.client, &body).await.problem(422, "invalid-page-view");
        let mut found = pointers(&problem);
        found.sort_unstable();
        assert_eq!(found, expected, "{body}: {problem}");
    }
    let many = Value::Array(vec![json!({ "path": "/" }); 1_001]);
    let problem = count(&service.client, &many).await.problem(422, "invalid-page-view");
    assert_eq!(problem["errors"], json!([{ "pointer": "", "detail": "must have at most 1000 page views" }]));
    let batch = format!("{PATH}/batch");
    for (body, detail) in [
        (many, "must have at most 1000 page views"),
        (json!({ "path": "/" }), "must be an array of page views, not an object"),
    ] {
        let answer = service.client.post_text(&batch, body.to_string()).await;
        let problem = answer.problem(422, "invalid-page-view");
        assert_eq!(problem["errors"], json!([{ "pointer": "", "detail": detail }]));
    }
    for (text, pointer) in [
        (r#"{"path":"/\ud800"}"#, "/path"),
        (r#"{"path":"/","path":"/"}"#, "/path"),
        (r#"{"path":"/","views":1e2}"#, "/views"),
        (r#"{"path":"/","views":1.0}"#, "/views"),
        (r#"{"path":"/","views":18446744073709551617}"#, "/views"),
        (r#"{"path":"/","a/b~":1}"#, "/a~1b~0"),
    ] {
        let problem = service.client.post_text(PATH, text).await.problem(422, "invalid-page-view");
        assert_eq!(pointers(&problem), [pointer], "{text}");
    }
    let hostile = Value::Array(vec![json!(0); 1_000]);
    let problem = count(&service.client, &hostile).await.problem(422, "invalid-page-view");
    assert_eq!((pointers(&problem).len(), &problem["errorsOmitted"]), (100, &json!(900)));
    assert_eq!(documents(&service, Document::new()).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_view_spoils_all() {
    let service = Service::start().await;
    let mut views = vec![view("/", "2014-01-01T10:01:00Z", 1); 999];
    views.push(json!({ "path": "/", "views": 0 }));
    let problem = count(&service.client, &json!(views)).await.problem(422, "invalid-page-view");
    assert_eq!(pointers(&problem), ["/999/views"]);
    assert_eq!(documents(&service, Document::new()).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_none() {
    let service = Service::start().await;
    for text in ["", "{", "[{\"path\":\"/\"},]", "{\"path\":\"/\"}{\"path\":\"/\"}", "path=/"] {
        service.client.post_text(PATH, text).await.problem(400, "malformed-json");
    }
    service.client.post_text(PATH, b"{\"path\":\"/\xff\"}".to_vec()).await.problem(400, "malformed-json");
    for media_type in ["text/plain", "application/xml", "", "application/json; charset=latin1"] {
        let send = |request: reqwest::RequestBuilder| {
            request.header("content-type", media_type).body("{\"path\":\"/\"}")
        };
        service.client.send(Method::POST, PATH, send).await.problem(415, "unsupported-media-type");
    }
    let lines =
        |request: reqwest::RequestBuilder| request.header("content-type", "application/x-ndjson").body("{}");
    for (path, detail) in [
        ("/preallocations", "The `Content-Type` must be `application/json`."),
        (
            "",
            "The `Content-Type` must be `application/json`. Lines of `application/x-ndjson` are sent to `/v1/page-views/upload`.",
        ),
    ] {
        let refused = service.client.send(Method::POST, &format!("{PATH}{path}"), lines).await;
        assert_eq!(refused.problem(415, "unsupported-media-type")["detail"], detail);
    }
    let json = service.client.post_text(&format!("{PATH}/upload"), "{\"path\":\"/\"}").await;
    json.problem(415, "unsupported-media-type");
    service.client.get(&format!("{PATH}/upload")).await.problem(405, "method-not-allowed");
    service.client.post_text(PATH, " ".repeat(1024 * 1024 + 1)).await.problem(413, "body-too-large");
    for method in [Method::PUT, Method::DELETE, Method::PATCH] {
        let answer = service.client.send(method, PATH, |request| request).await;
        answer.problem(405, "method-not-allowed");
        let mut allowed: Vec<_> = answer.header("allow").split(',').collect();
        allowed.sort_unstable();
        assert_eq!(allowed, ["GET", "HEAD", "POST"]);
    }
    assert_eq!(documents(&service, Document::new()).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_is_refused() {
    let service = Service::start().await;
    let keyed = |request: reqwest::RequestBuilder| {
        request.header("idempotency-key", "k").json(&json!({ "path": "/" }))
    };
    for path in [PATH, &format!("{PATH}/upload")] {
        let problem = service.client.send(Method::POST, path, keyed).await.problem(400, "invalid-parameter");
        let told = parameters(&problem);
        assert_eq!(told.len(), 1, "{problem}");
        assert!(
            told[0].0 == "Idempotency-Key" && told[0].1.starts_with("is not supported here: "),
            "{problem}"
        );
    }
    let problem = service
        .client
        .send(Method::POST, &format!("{PATH}?a=1"), keyed)
        .await
        .problem(400, "invalid-parameter");
    assert_eq!(parameters(&problem).len(), 2, "{problem}");
    assert_eq!(documents(&service, Document::new()).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_parameters_are_told() {
    let service = Service::start().await;
    for (query, expected) in [
        ("", &["path"][..]),
        ("?path=index.htm&from=x&to=y&resolution=week&a=1", &["path", "resolution", "from", "to", "a"]),
        ("?path=/&path=/", &["path"]),
        ("?path=/%3F&from=2014", &["path", "from"]),
        ("?path=/%00", &["path"]),
        ("?path=/&from=2014-01-02T00:00:00Z&to=2014-01-01T00:00:00Z", &["to"]),
        ("?path=/&from=9999-01-01T00:00:00Z", &["from"]),
        ("?path=/&resolution=Minute", &["resolution"]),
        ("?path=/&from=9999-12-31T00:00:00Z&to=9999-12-31T23:59:59.999Z", &["to"]),
        ("/buckets", &["path", "timestamp"]),
        ("/buckets?path=/&timestamp=2014-01-01T10:01:01Z", &["timestamp"]),
        ("/buckets?path=/&timestamp=2014-01-01T10:01:00.001Z&a", &["timestamp", "a"]),
        ("/buckets?path=x&timestamp=2014-01-01", &["path", "timestamp"]),
        ("/top?limit=0", &["limit"]),
        ("/top?limit=101&from=x&path=/", &["from", "limit", "path"]),
        ("/top?from=2014-01-02T00:00:00Z&to=2014-01-01T00:00:00Z", &["to"]),
        ("/top?from=9999-01-01T00:00:00Z", &["from"]),
    ] {
        let problem = service.client.get(&format!("{PATH}{query}")).await.problem(400, "invalid-parameter");
        let names: Vec<_> = parameters(&problem).iter().map(|(name, _)| *name).collect();
        assert_eq!(names, expected, "{query}: {problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_answered_in_what_they_do_not_take() {
    let service = Service::start().await;
    let xml =
        |request: reqwest::RequestBuilder| request.header("accept", "text/xml").json(&json!({ "path": "/" }));
    service.client.send(Method::POST, PATH, xml).await.problem(406, "not-acceptable");
    // An upload of page views is not answered line by line.
    let lines = |request: reqwest::RequestBuilder| {
        request
            .header("accept", "application/x-ndjson")
            .header("content-type", "application/x-ndjson")
            .body("{\"path\":\"/\"}")
    };
    service.client.send(Method::POST, &format!("{PATH}/upload"), lines).await.problem(406, "not-acceptable");
    assert_eq!(documents(&service, Document::new()).await, 0);
    counted(&count(&service.client, &view("/", "2014-01-01T10:01:00Z", 1)).await);
    for path in [
        &format!("{PATH}?path=/"),
        &format!("{PATH}/top"),
        &format!("{PATH}/buckets?path=/&timestamp=2014-01-01T10:01:00Z"),
    ] {
        service
            .client
            .send(Method::GET, path, |request| request.header("accept", "text/xml"))
            .await
            .problem(406, "not-acceptable");
        let head = service.client.send(Method::HEAD, path, |request| request).await;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
        let answer = service.client.get(path).await;
        assert_eq!(answer.header("cache-control"), "no-cache");
        assert!(answer.header("server-timing").starts_with("db;dur="), "{answer:?}");
    }
}
