//! The catalogue of histories, from which programs learn that work for every definition.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::History;
use crate::harness::{Service, Setup, shared, test_over};

/// Bytes, as a browser gets them, of all that a program reads before it shows something.
const MOST: usize = 20_000;

/// A history of 30 properties, described at length.
fn definition(number: usize) -> Value {
    let property = |index: usize| {
        let about = format!(
            "What device {number} says as its value {index}, measured as chapter {} of the handbook has it.",
            index * 7 + number
        );
        (
            format!("value{index}Of{number}"),
            json!({ "type": "string", "description": about, "maxLength": 10 + index }),
        )
    };
    let mut properties: serde_json::Map<String, Value> = (0..29).map(property).collect();
    properties.insert("at".to_owned(), json!({ "type": "string", "format": "date-time" }));
    json!({
        "history": format!("readings-of-kind-{number}"), "title": format!("ReadingOfKind{number}"), "pageSize": 20, "date": "at",
        "owner": { "collection": "devices", "field": "deviceId", "type": "string" },
        "item": {
            "type": "object", "description": format!("A reading of kind {number}. {}", "It is kept for the auditors. ".repeat(100)),
            "additionalProperties": false, "properties": properties
        }
    })
}

/// A directory with so many definitions. It is removed with this value.
struct Definitions(PathBuf);

impl Definitions {
    fn of(count: usize) -> Self {
        let directory = std::env::temp_dir().join(format!("catalog-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        for number in 0..count {
            let file = directory.join(format!("{number}.json"));
            std::fs::write(file, definition(number).to_string()).expect("a file");
        }
        Self(directory)
    }
}

impl Drop for Definitions {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How long an answer is, compressed.
async fn size(service: &Service, path: &str) -> usize {
    let takes_gzip = |request: reqwest::RequestBuilder| request.header("accept-encoding", "gzip");
    let answer = service.client.send(reqwest::Method::GET, path, takes_gzip).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-encoding")), (200, "gzip"), "{path}");
    answer.body.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_short_whatever_the_definitions() {
    for count in [5, 30] {
        let definitions = Definitions::of(count);
        let mut setup = Setup::on(shared().await);
        setup.definitions = Some(definitions.0.clone());
        let service = setup.start().await;
        let all = service.client.get("/histories.json").await;
        let listed = all.json();
        assert_eq!(listed["histories"].as_array().map(Vec::len), Some(count));
        let about = listed["histories"][0]["about"].as_str().expect("a text");
        assert_eq!(about.chars().count(), 201, "{about}");
        let one = "/histories/readings-of-kind-1.json";
        let whole = service.client.get(one).await.expect(200);
        assert!(whole["about"].as_str().expect("a text").len() > 2_000);
        let sizes = [size(&service, "/histories.json").await, size(&service, one).await];
        let document = size(&service, "/openapi.json").await;
        println!(
            "{count} definitions: {sizes:?} bytes, {} uncompressed; the OpenAPI document {document}",
            all.body.len()
        );
        assert!(all.body.len() < MOST && sizes.iter().sum::<usize>() < MOST, "{sizes:?}");
        assert!(document > MOST, "the control: {document}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_says_of_trades_what_the_definition_says() {
    let service = Service::start().await;
    let all = service.client.get("/histories.json").await;
    assert_eq!((all.header("content-type"), all.header("cache-control")), ("application/json", "no-cache"));
    let unchanged = |request: reqwest::RequestBuilder| request.header("if-none-match", all.header("etag"));
    let again = service.client.send(reqwest::Method::GET, "/histories.json", unchanged).await;
    assert_eq!(again.status, 304);
    let all = all.json();
    assert_eq!((&all["needsToken"], &all["docsNeedToken"]), (&json!(false), &json!(false)));
    let trades = service.client.get("/histories/trades.json").await.expect(200);
    for (member, value) in all["histories"][0].as_object().expect("a history") {
        assert_eq!(&trades[member], value, "{member}");
    }
    let owner = json!({ "collection": "customers", "field": "customerId", "type": "integer", "example": 7 });
    assert_eq!((&trades["history"], &trades["owner"]), (&json!("trades"), &owner));
    assert_eq!(
        (&trades["pageSize"], &trades["date"], &trades["csv"]),
        (&json!(10), &json!("date"), &json!(true))
    );
    assert_eq!(trades["filters"], json!(["ticker", "type"]));
    assert_eq!(trades["summaries"]["group"], json!(["ticker", "type"]));
    assert_eq!(trades["summaries"]["by"][8], "1M");
    assert_eq!(trades["summaries"]["values"]["qty"][0], "sum");
    let names: Vec<_> = trades["item"]["properties"].as_object().expect("properties").keys().collect();
    assert_eq!(names, ["seq", "type", "ticker", "qty", "date", "price"]);
    service.client.get("/histories/none.json").await.problem(404, "not-found");
}

test_over!(its_schemas_stand_alone, NOTES);
/// Also where they refer to schemas of their own.
async fn its_schemas_stand_alone(history: &'static History) {
    let service = Service::of(history).await;
    for listed in
        service.client.get("/histories.json").await.expect(200)["histories"].as_array().expect("histories")
    {
        let name = listed["history"].as_str().expect("a name");
        let one = service.client.get(&format!("/histories/{name}.json")).await.expect(200);
        for form in ["newItem", "item"] {
            let schema = jsonschema::validator_for(&one[form])
                .unwrap_or_else(|error| panic!("{name} {form}: {error}"));
            let example = &one[form]["examples"][0];
            assert!(schema.is_valid(example), "{name} {form}: {example}");
            assert!(!schema.is_valid(&json!([])), "{name} {form}");
            assert!(!one[form].to_string().contains("#/components"), "{name} {form}");
        }
    }
}
