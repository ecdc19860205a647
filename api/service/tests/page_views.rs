//! Views of pages: counting, reading, preallocation.

mod bad_input;
mod counting;
mod faults;
mod limits;
mod preallocation;
mod reads;

use mongodb::bson::Document;
use serde_json::{Value, json};

use crate::harness::{Answer, Client, Service};

const PATH: &str = "/v1/page-views";

/// Counts one page view, or an array of them.
async fn count(client: &Client, views: &Value) -> Answer {
    client.post_text(PATH, views.to_string()).await
}

/// Counts, which must succeed.
#[track_caller]
fn counted(answer: &Answer) {
    let body = String::from_utf8_lossy(&answer.body);
    assert_eq!((answer.status.as_u16(), &*body), (204, ""));
}

fn view(path: &str, at: &str, views: u64) -> Value {
    json!({ "path": path, "at": at, "views": views })
}

async fn bucket(service: &Service, path: &str, timestamp: &str) -> Value {
    let address = format!("{PATH}/buckets?path={path}&timestamp={timestamp}");
    service.client.get(&address).await.expect(200)
}

/// How many buckets there are of these.
async fn documents(service: &Service, which: Document) -> u64 {
    let views = service.database.collection::<Document>("page_views");
    views.count_documents(which).await.expect("a count")
}

async fn series(service: &Service, query: &str) -> Value {
    service.client.get(&format!("{PATH}?{query}")).await.expect(200)
}

/// The views of all points of a series, which must be dense.
#[track_caller]
fn points(series: &Value) -> Vec<u64> {
    let unit = match series["resolution"].as_str().expect("a name") {
        "second" => 1_000,
        "minute" => 60_000,
        "hour" => 3_600_000,
        _ => 86_400_000,
    };
    let millis = |value: &Value| {
        pagebucket_model::domain::Instant::parse_rfc3339(value.as_str().expect("a date"))
            .expect("a date")
            .millis()
    };
    let points = series["points"].as_array().expect("points");
    let begins: Vec<_> = points.iter().map(|point| millis(&point["at"])).collect();
    let expected: Vec<_> = (millis(&series["from"])..millis(&series["to"])).step_by(unit).collect();
    assert_eq!(begins, expected, "each unit once, in order");
    let views: Vec<_> = points.iter().map(|point| point["views"].as_u64().expect("a number")).collect();
    assert_eq!(series["totalViews"], views.iter().sum::<u64>());
    let most = views.iter().copied().max().unwrap_or(0);
    match views.iter().position(|views| *views == most).filter(|_| most > 0) {
        Some(first) => assert_eq!(series["busiest"], points[first], "of equals the first"),
        None => assert!(series.get("busiest").is_none(), "{series}"),
    }
    views
}
