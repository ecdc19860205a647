//! What was counted: series, buckets, the most viewed; and what that costs the database.

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{DateTime, Document, doc};
use reqwest::Method;
use serde_json::json;

use super::{PATH, bucket, count, counted, points, series, view};
use crate::cost::{profiled_in, sum};
use crate::harness::Service;

#[tokio::test(flavor = "multi_thread")]
async fn every_resolution() {
    let service = Service::start().await;
    let views = json!([
        view("/a", "2014-01-01T10:00:59Z", 1),
        view("/a", "2014-01-01T10:01:00Z", 2),
        view("/a", "2014-01-01T10:01:02Z", 4),
        view("/a", "2014-01-01T10:03:00Z", 8),
        view("/a", "2014-01-01T12:00:00Z", 16),
        view("/a", "2014-01-03T00:00:00Z", 32),
        view("/b", "2014-01-01T10:01:00Z", 1_000),
        view("/a/b", "2014-01-01T10:01:00Z", 1_000),
    ]);
    counted(&count(&service.client, &views).await);
    for (resolution, from, to, expected) in [
        ("second", "10:00:58Z", "10:01:04Z", &[0, 1, 2, 0, 4, 0][..]),
        ("minute", "10:00:00Z", "10:05:00Z", &[1, 6, 0, 8, 0]),
        ("hour", "09:00:00Z", "13:00:00Z", &[0, 15, 0, 16]),
        ("day", "00:00:00Z", "23:00:00Z", &[31]),
    ] {
        let span = format!("from=2014-01-01T{from}&to=2014-01-01T{to}");
        let shown = series(&service, &format!("path=/a&resolution={resolution}&{span}")).await;
        assert_eq!(points(&shown), expected, "{resolution}");
        assert_eq!((&shown["path"], &shown["resolution"]), (&json!("/a"), &json!(resolution)));
    }
    let days =
        series(&service, "path=/a&resolution=day&from=2013-12-31T00:00:00Z&to=2014-01-05T00:00:00Z").await;
    assert_eq!(points(&days), [0, 31, 0, 32, 0]);
    assert_eq!(days["busiest"], json!({ "at": "2014-01-03T00:00:00.000Z", "views": 32 }));
    // A page that nobody has viewed is all zeros.
    let nobody = series(&service, "path=/nobody&from=2014-01-01T10:00:00Z&to=2014-01-01T10:02:00Z").await;
    assert!(nobody.get("busiest").is_none(), "{nobody}");
    assert_eq!(points(&nobody), [0, 0]);
    // Where nobody says, it is the last 60 points.
    for resolution in ["second", "minute", "hour", "day"] {
        let usual =
            series(&service, &format!("path=/a&resolution={resolution}&to=2014-01-04T00:00:00Z")).await;
        assert_eq!((points(&usual).len(), &usual["to"]), (60, &json!("2014-01-04T00:00:00.000Z")));
        assert_eq!(points(&series(&service, &format!("path=/a&resolution={resolution}")).await).len(), 60);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rounded_outward() {
    let service = Service::start().await;
    counted(
        &count(
            &service.client,
            &json!([view("/", "2014-01-01T10:01:00Z", 1), view("/", "2014-01-01T10:02:59.999Z", 2)]),
        )
        .await,
    );
    for (resolution, from, to, first, end, expected) in [
        ("second", "10:02:59.999", "10:02:59.999", "10:02:59", "10:03:00", &[2][..]),
        ("minute", "10:01:30", "10:02:00.001", "10:01:00", "10:03:00", &[1, 2]),
        ("minute", "10:01:00", "10:02:00", "10:01:00", "10:02:00", &[1]),
        ("minute", "10:01:00", "10:01:00", "10:01:00", "10:01:00", &[]),
        ("hour", "10:59:59", "11:00:00", "10:00:00", "11:00:00", &[3]),
    ] {
        let query = format!("path=/&resolution={resolution}&from=2014-01-01T{from}Z&to=2014-01-01T{to}Z");
        let shown = series(&service, &query).await;
        let whole = |time: &str| json!(format!("2014-01-01T{time}.000Z"));
        assert_eq!((&shown["from"], &shown["to"]), (&whole(first), &whole(end)), "{query}");
        assert_eq!(points(&shown), expected, "{query}");
    }
    // A `+` that became a space is one all the same.
    let offset =
        series(&service, "path=/&from=2014-01-01T11:01:00+01:00&to=2014-01-01T11:02:00%2B01:00").await;
    assert_eq!((points(&offset), &offset["from"]), (vec![1], &json!("2014-01-01T10:01:00.000Z")));
}

/// So many minutes of a page from the first of 2014 on, each with as many views as its number.
async fn fill(service: &Service, path: &str, minutes: i64) {
    let views = service.database.collection::<Document>("page_views");
    let bucket = |minute: i64| {
        let timestamp = DateTime::from_millis(1_388_534_400_000 + minute * 60_000);
        doc! { "page": path, "timestamp": timestamp, "totalViews": minute, "seconds": { "7": minute } }
    };
    for from in (0..minutes).step_by(5_000) {
        views.insert_many((from..minutes.min(from + 5_000)).map(bucket)).await.expect("sound minutes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_points_and_no_more() {
    let service = Service::start().await;
    fill(&service, "/", 10_001).await;
    let to = "2014-01-07T22:40:00Z";
    let address = format!("{PATH}?path=/&from=2014-01-01T00:00:00Z&to={to}");
    let plain = service.client.get(&address).await;
    let zipped =
        service.client.send(Method::GET, &address, |request| request.header("accept-encoding", "gzip")).await;
    assert_eq!(zipped.header("content-encoding"), "gzip");
    println!("10,000 points: {} bytes, {} of gzip", plain.body.len(), zipped.body.len());
    let shown = plain.expect(200);
    assert_eq!(points(&shown), (0..10_000).collect::<Vec<_>>());
    for (query, told) in [
        (
            "&from=2014-01-01T00:00:00Z&to=2014-01-07T22:40:00.001Z",
            "`minute` gives 10001 points, more than the limit of 10000: `hour` fits",
        ),
        (
            "&resolution=second&from=2014-01-01T00:00:00Z&to=2014-01-01T03:00:00Z",
            "`second` gives 10800 points, more than the limit of 10000: `minute` fits",
        ),
        (
            "&resolution=hour&from=2000-01-01T00:00:00Z&to=2014-01-01T00:00:00Z",
            "`hour` gives 122736 points, more than the limit of 10000: `day` fits",
        ),
        (
            "&resolution=day&from=1969-01-01T00:00:00Z&to=2014-01-01T00:00:00Z",
            "`day` gives 16436 points, more than the limit of 10000: use a shorter span, because no resolution fits",
        ),
    ] {
        let problem =
            service.client.get(&format!("{PATH}?path=/{query}")).await.problem(400, "invalid-parameter");
        assert_eq!(problem["errors"], json!([{ "parameter": "resolution", "detail": told }]), "{query}");
    }
    // What fits, fits.
    points(
        &series(&service, "path=/&resolution=day&from=1990-01-01T00:00:00Z&to=2014-01-01T00:00:00Z").await,
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hours_and_days_are_of_utc() {
    let service = Service::start().await;
    let views = json!([view("/", "2014-03-30T00:59:59+01:00", 1), view("/", "2014-03-30T23:59:59-04:00", 2)]);
    counted(&count(&service.client, &views).await);
    let days =
        series(&service, "path=/&resolution=day&from=2014-03-29T00:00:00Z&to=2014-04-01T00:00:00Z").await;
    assert_eq!(points(&days), [1, 0, 2]);
    // The day on which Europe has 23 hours has 24.
    let hours =
        series(&service, "path=/&resolution=hour&from=2014-03-30T00:00:00Z&to=2014-03-31T00:00:00Z").await;
    assert_eq!(points(&hours), [0; 24]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_or_none() {
    let service = Service::start().await;
    counted(
        &count(
            &service.client,
            &json!([view("/", "2014-01-01T10:01:14Z", 3), view("/", "2014-01-01T10:01:02Z", 14)]),
        )
        .await,
    );
    // In order of the seconds, whatever the order of counting.
    let answer =
        service.client.get(&format!("{PATH}/buckets?path=/&timestamp=2014-01-01T11:01:00%2B01:00")).await;
    let text = String::from_utf8_lossy(&answer.body);
    assert_eq!(
        text,
        r#"{"path":"/","timestamp":"2014-01-01T10:01:00.000Z","totalViews":17,"seconds":{"2":14,"14":3}}"#
    );
    for query in ["path=/&timestamp=2014-01-01T10:02:00Z", "path=/other&timestamp=2014-01-01T10:01:00Z"] {
        service.client.get(&format!("{PATH}/buckets?{query}")).await.problem(404, "bucket-not-found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_most_viewed() {
    let service = Service::start().await;
    let mut views: Vec<_> =
        (0..30).map(|n| view(&format!("/{n:02}"), "2014-01-01T10:30:00Z", 100 + n / 2)).collect();
    views.push(view("/before", "2014-01-01T09:59:59.999Z", 1_000));
    views.push(view("/behind", "2014-01-01T11:00:00Z", 1_000));
    views.push(view("/ä", "2014-01-01T10:00:00Z", 114));
    views.push(view("/B", "2014-01-01T10:59:59Z", 60));
    views.push(view("/B", "2014-01-01T10:00:00Z", 54));
    counted(&count(&service.client, &json!(views)).await);
    let top = async |query: &str| {
        let body = service.client.get(&format!("{PATH}/top?{query}")).await.expect(200);
        let items = body["items"].as_array().expect("items").iter();
        items
            .map(|item| (item["path"].as_str().unwrap().to_owned(), item["totalViews"].as_u64().unwrap()))
            .collect::<Vec<_>>()
    };
    let hour = "from=2014-01-01T10:00:00Z&to=2014-01-01T11:00:00Z";
    let all = top(&format!("{hour}&limit=100")).await;
    let mut expected: Vec<_> = (0..30)
        .map(|n| (format!("/{n:02}"), 100 + n / 2))
        .chain([("/ä".to_owned(), 114), ("/B".to_owned(), 114)])
        .collect();
    // By views downwards, of equals by their bytes.
    expected.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.as_bytes().cmp(other.0.as_bytes())));
    assert_eq!(all, expected);
    assert_eq!(
        &all[..4].iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(),
        &["/28", "/29", "/B", "/ä"]
    );
    assert_eq!(top(hour).await, expected[..10]);
    assert_eq!(top(&format!("{hour}&limit=1")).await, expected[..1]);
    // Rounded to whole minutes, outward.
    let wide = "from=2014-01-01T09:59:59.999Z&to=2014-01-01T11:00:00.001Z&limit=2";
    let rounded = service.client.get(&format!("{PATH}/top?{wide}")).await.expect(200);
    assert_eq!(
        (&rounded["from"], &rounded["to"]),
        (&json!("2014-01-01T09:59:00.000Z"), &json!("2014-01-01T11:01:00.000Z"))
    );
    assert_eq!(rounded["items"][0], json!({ "path": "/before", "totalViews": 1000 }));
    assert_eq!(rounded["items"][1]["path"], "/behind");
    // By default, the last hour.
    assert_eq!(top("").await, []);
    counted(&count(&service.client, &json!({ "path": "/now" })).await);
    assert_eq!(top("").await, [("/now".to_owned(), 1)]);
}

/// What no writer of ours leaves: an answer says no more than that something is damaged.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_corrupt_is_an_internal_error() {
    let service = Service::start().await;
    let minute = DateTime::from_millis(1_388_570_460_000);
    let id = ObjectId::new();
    for (corrupt, whole) in [
        (doc! { "totalViews": 17, "seconds": { "2": 3 } }, true),
        (doc! { "totalViews": "17", "seconds": { "2": 17 } }, false),
        (doc! { "totalViews": -17, "seconds": { "2": -17 } }, false),
        (doc! { "totalViews": 17.0, "seconds": { "2": 17.0 } }, false),
    ] {
        let mut document = doc! { "_id": id, "page": "/secret", "timestamp": minute };
        document.extend(corrupt);
        let replace = doc! {
            "update": "page_views", "bypassDocumentValidation": true,
            "updates": [{ "q": { "_id": id }, "u": &document, "upsert": true }],
        };
        let replaced = service.database.run_command(replace).await.expect("an answer");
        assert!(!replaced.contains_key("writeErrors"), "{replaced}");
        let span = "from=2014-01-01T10:00:00Z&to=2014-01-01T11:00:00Z";
        let mut addresses = vec![
            format!("{PATH}/buckets?path=/secret&timestamp=2014-01-01T10:01:00Z"),
            format!("{PATH}?path=/secret&resolution=second&{span}"),
        ];
        // These look at no seconds.
        if !whole {
            addresses.extend(
                ["minute", "hour", "day"].map(|unit| format!("{PATH}?path=/secret&resolution={unit}&{span}")),
            );
            addresses.push(format!("{PATH}/top?{span}"));
        }
        for address in addresses {
            let problem = service.client.get(&address).await.problem(500, "internal");
            let text = problem.to_string();
            assert!(
                !text.contains("secret") && !text.contains(&id.to_hex()) && !text.contains("totalViews"),
                "{problem}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_series_is_one_scan() {
    let service = Service::start().await;
    fill(&service, "/", 3_000).await;
    fill(&service, "/other", 3_000).await;
    println!("a series: statements, keys and documents");
    for (resolution, to, minutes) in [
        ("second", "2014-01-01T02:00:00Z", 120),
        ("minute", "2014-01-03T02:00:00Z", 3_000),
        ("hour", "2014-01-03T02:00:00Z", 3_000),
        ("day", "2014-01-03T00:00:00Z", 2_880),
        ("minute", "2014-01-01T00:01:00Z", 1),
    ] {
        let query = format!("path=/&resolution={resolution}&from=2014-01-01T00:00:00Z&to={to}");
        let seen = profiled_in(&service, "page_views", async {
            let shown = series(&service, &query).await;
            assert_eq!(shown["totalViews"], minutes * (minutes - 1) / 2);
        })
        .await;
        let (keys, documents) = (sum(&seen, "keysExamined"), sum(&seen, "docsExamined"));
        println!("{resolution}, {minutes} minutes: {}, {keys}, {documents}", seen.len());
        // One more key than there are minutes: that behind the last.
        assert!(seen.len() == 1 && keys <= minutes + 1 && documents == minutes, "{seen:?}");
        let plan = seen[0].get_str("planSummary").expect("a plan");
        assert_eq!(plan, "IXSCAN { page: 1, timestamp: 1 }");
    }
    let seen = profiled_in(&service, "page_views", async {
        bucket(&service, "/", "2014-01-01T10:01:00Z").await;
    })
    .await;
    assert_eq!((sum(&seen, "keysExamined"), sum(&seen, "docsExamined")), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_most_viewed_cost_their_span() {
    let service = Service::start().await;
    fill(&service, "/a", 2_000).await;
    fill(&service, "/b", 1_000).await;
    let seen = profiled_in(&service, "page_views", async {
        let query = "from=2014-01-01T00:00:00Z&to=2014-01-01T01:00:00Z";
        let body = service.client.get(&format!("{PATH}/top?{query}")).await.expect(200);
        assert_eq!(body["items"].as_array().map(Vec::len), Some(2));
    })
    .await;
    let (keys, documents) = (sum(&seen, "keysExamined"), sum(&seen, "docsExamined"));
    assert!(keys <= 121 && documents == 120, "{keys} keys, {documents} documents: {seen:?}");
    assert_eq!(seen[0].get_str("planSummary").ok(), Some("IXSCAN { timestamp: 1 }"));
}
