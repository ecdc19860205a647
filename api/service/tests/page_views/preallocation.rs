//! Minutes that are there before they are needed: what is made, and that no view is lost by it.

use futures_util::future::join_all;
use mongodb::bson::{Document, doc};
use serde_json::{Value, json};

use super::{PATH, bucket, count, counted, documents, points, series, view};
use crate::harness::{Answer, Service};

async fn preallocate(service: &Service, path: &str, hour: &str) -> Answer {
    let wanted = json!({ "path": path, "hour": hour });
    service.client.post_text(&format!("{PATH}/preallocations"), wanted.to_string()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_is_made_once() {
    let service = Service::start().await;
    let made = preallocate(&service, "/index.htm", "2014-01-01T11:00:00+01:00").await.expect(201);
    let hour = "2014-01-01T10:00:00.000Z";
    assert_eq!(made, json!({ "path": "/index.htm", "hour": hour, "created": 60, "existing": 0 }));
    let again = preallocate(&service, "/index.htm", hour).await.expect(200);
    assert_eq!(again, json!({ "path": "/index.htm", "hour": hour, "created": 0, "existing": 60 }));
    assert_eq!(documents(&service, doc! { "page": "/index.htm" }).await, 60);

    let zeros: Value = (0..60).map(|second| (second.to_string(), json!(0))).collect();
    for minute in ["10:00", "10:59"] {
        let bucket = bucket(&service, "/index.htm", &format!("2014-01-01T{minute}:00Z")).await;
        assert_eq!((&bucket["totalViews"], &bucket["seconds"]), (&json!(0), &zeros));
    }
    // No views are no views: not a page of the most viewed, and no busiest minute.
    let span = "from=2014-01-01T10:00:00Z&to=2014-01-01T11:00:00Z";
    assert_eq!(points(&series(&service, &format!("path=/index.htm&{span}")).await), [0; 60]);
    let top = service.client.get(&format!("{PATH}/top?{span}")).await.expect(200);
    assert_eq!(top["items"], json!([]));
    // The edges of what there is.
    for hour in ["0000-01-01T00:00:00Z", "1969-12-31T23:00:00Z"] {
        assert_eq!(preallocate(&service, "/old", hour).await.expect(201)["created"], 60);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_stays() {
    let service = Service::start().await;
    for at in ["2014-01-01T10:01:02Z", "2014-01-01T10:59:59Z"] {
        counted(&count(&service.client, &view("/", at, 5)).await);
    }
    let made = preallocate(&service, "/", "2014-01-01T10:00:00Z").await.expect(201);
    assert_eq!((&made["created"], &made["existing"]), (&json!(58), &json!(2)));
    assert_eq!(bucket(&service, "/", "2014-01-01T10:01:00Z").await["seconds"], json!({ "2": 5 }));
    // Counted in, a minute that was made is as any other.
    counted(&count(&service.client, &view("/", "2014-01-01T10:02:03Z", 7)).await);
    let bucket = bucket(&service, "/", "2014-01-01T10:02:00Z").await;
    assert_eq!(
        (&bucket["totalViews"], &bucket["seconds"]["3"], &bucket["seconds"]["4"]),
        (&json!(7), &json!(7), &json!(0))
    );
    assert_eq!(documents(&service, doc! { "page": "/" }).await, 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_with_counting_loses_no_view() {
    let service = Service::start().await;
    let mut acknowledged = 0;
    for hour in 0..8 {
        let at = |minute: u64| format!("2014-01-01T{hour:02}:{minute:02}:30Z");
        let counting = join_all((0..60).map(async |minute| {
            counted(&count(&service.client, &view("/hot", &at(minute), minute + 1)).await);
            minute + 1
        }));
        let making = join_all((0..4).map(|_| async {
            let made = preallocate(&service, "/hot", &format!("2014-01-01T{hour:02}:00:00Z")).await;
            assert!(made.status == 200 || made.status == 201, "{made:?}");
            let made = made.json();
            assert_eq!(made["created"].as_u64().unwrap() + made["existing"].as_u64().unwrap(), 60, "{made}");
            made["created"].as_u64().unwrap()
        }));
        let (views, made) = tokio::join!(counting, making);
        println!("of 60 minutes {} were preallocated before they were counted in", made.iter().sum::<u64>());
        acknowledged += views.iter().sum::<u64>();
    }
    assert_eq!(documents(&service, doc! { "page": "/hot" }).await, 8 * 60, "each minute once");
    let day =
        series(&service, "path=/hot&resolution=day&from=2014-01-01T00:00:00Z&to=2014-01-02T00:00:00Z").await;
    assert_eq!(points(&day), [acknowledged]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_hour_is_refused() {
    let service = Service::start().await;
    for (body, expected) in [
        (json!({}), &["/path", "/hour"][..]),
        (json!([]), &[""]),
        (json!({ "path": "/", "hour": "2014-01-01T10:30:00Z" }), &["/hour"]),
        (json!({ "path": "/", "hour": "2014-01-01T10:00:00.001Z" }), &["/hour"]),
        (json!({ "path": "/", "hour": "2014-01-01T10:00:00+00:30" }), &["/hour"]),
        (json!({ "path": "/", "hour": "9999-12-31T23:00:00Z" }), &["/hour"]),
        (json!({ "path": "x?", "hour": 10, "hours": 24 }), &["/path", "/hour", "/hours"]),
    ] {
        let answer = service.client.post_text(&format!("{PATH}/preallocations"), body.to_string()).await;
        let problem = answer.problem(422, "invalid-page-view");
        let mut pointers: Vec<_> = problem["errors"]
            .as_array()
            .expect("errors")
            .iter()
            .map(|e| e["pointer"].as_str().unwrap())
            .collect();
        let mut expected = expected.to_vec();
        pointers.sort_unstable();
        expected.sort_unstable();
        assert_eq!(pointers, expected, "{body}");
    }
    let path = format!("{PATH}/preallocations");
    service.client.post_text(&path, "{").await.problem(400, "malformed-json");
    service.client.post_text(&format!("{path}?path=/"), "{}").await.problem(400, "invalid-parameter");
    service.client.get(&path).await.problem(405, "method-not-allowed");
    assert_eq!(documents(&service, Document::new()).await, 0);
}
