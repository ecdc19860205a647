//! Documents of several histories.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pagebucket_model::definition::{Definition, Definitions, OF_LISTINGS};
use regex::Regex;
use serde_json::{Map, Value, json};

use super::{Features, Version, document_of};
use crate::admission::gate::{Access, OpenParts};
use crate::problem::MEDIA_TYPE;
use crate::routes::{Route, of_histories, of_history, of_owners, of_page_views, probes};
use crate::schemas::names::address;

/// A history whose names have hyphens, whose items need no member, and whose filter has a default; another
/// one of the same owners; and one whose owners are UUIDs, and whose properties are filled in, may be `null`,
/// or are open.
const AUDITS: [&str; 3] = [
    r#"{ "history": "audit-entries", "title": "AuditEntry", "date": "at", "pageSize": 2,
        "owner": { "collection": "chat-rooms", "field": "chatRoomId", "type": "string" }, "filters": ["level"],
        "item": { "type": "object", "properties": { "at": { "type": "string", "format": "date-time" },
            "level": { "type": "string", "default": "info", "examples": ["warning"] } } } }"#,
    r##"{ "history": "orders", "title": "Order", "date": "at", "pageSize": 137,
        "owner": { "collection": "chat-rooms", "field": "chatRoomId", "type": "string" },
        "item": { "type": "object", "required": ["at", "legs"], "additionalProperties": { "$ref": "#/$defs/leg" },
            "properties": {
                "at": { "type": "string", "format": "date-time", "examples": ["2026-03-01T09:30:00+01:00"] },
                "legs": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/leg" } } },
            "$defs": { "leg": { "type": "object", "properties": {
                "item": { "type": "string", "format": "decimal", "description": "As in {item}." } } } } } }"##,
    r#"{ "history": "events", "title": "Event", "date": "at", "filters": ["level", "topic", "phase"],
        "owner": { "collection": "devices", "field": "deviceId", "type": "uuid" },
        "item": { "type": "object", "properties": {
            "at": { "type": "string", "format": "date-time" },
            "level": { "type": "string", "enum": ["info", "warn"], "default": "info" },
            "topic": { "type": ["string", "null"], "maxLength": 20 },
            "phase": { "type": ["string", "null"], "enum": ["a", "b", null] },
            "data": {} } } }"#,
];

/// What a server does that clients reach without a token, and that erases for them.
const PLAIN: Features = Features {
    tokens: false,
    keys: false,
    open: OpenParts { docs: false, metrics: false },
    rate_limits: false,
    erasing_off: false,
};

/// What servers do.
const SERVERS: [Features; 5] = [
    Features::ALL,
    PLAIN,
    Features { erasing_off: true, ..PLAIN },
    Features { erasing_off: true, rate_limits: true, ..PLAIN },
    Features { keys: true, open: OpenParts { docs: true, metrics: true }, ..PLAIN },
];

fn documents() -> Vec<(Definitions, Value)> {
    documents_of(Version::V3_1, Features::ALL)
}

fn documents_of(version: Version, features: Features) -> Vec<(Definitions, Value)> {
    let directory = std::env::temp_dir().join(format!("pagebucket-openapi-{:x}", rand::random::<u64>()));
    std::fs::create_dir_all(&directory).unwrap();
    for (index, text) in AUDITS.iter().enumerate() {
        std::fs::write(directory.join(format!("{index}.json")), text).unwrap();
    }
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("test_data");
    let load = |path: PathBuf| Definitions::of_directory(&path).unwrap();
    let all = vec![
        Definitions::built_in(),
        load(data.join("example_histories")),
        load(data.join("histories")),
        load(directory.clone()),
    ];
    std::fs::remove_dir_all(directory).unwrap();
    let of = |definitions| {
        let document = serde_json::from_str(&document_of(&definitions, version, features)).unwrap();
        (definitions, document)
    };
    all.into_iter().map(of).collect()
}

/// Calls `visit` with each value inside, and where it is.
fn walk<'a>(value: &'a Value, at: &str, visit: &mut dyn FnMut(&str, &'a Value)) {
    visit(at, value);
    match value {
        Value::Object(members) => {
            members
                .iter()
                .for_each(|(name, value)| walk(value, &format!("{at}/{}", name.replace('/', "~1")), visit));
        }
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(index, value)| walk(value, &format!("{at}/{index}"), visit));
        }
        _ => {}
    }
}

fn operations(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, methods)| methods.as_object().unwrap().values().map(move |value| (path, value)))
}

/// The responses of an operation, by their status.
fn responses<'a>(document: &'a Value, operation: &'a Value) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let responses = operation["responses"].as_object().unwrap().iter();
    responses.map(|(status, response)| (status.as_str(), resolved(document, response)))
}

/// What a reference leads to, or the value itself.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let reference = value.get("$ref").and_then(Value::as_str);
    reference.map_or(value, |reference| document.pointer(&reference[1..]).unwrap())
}

/// The operations of a document, with the access of their rows in the table of routes.
fn guarded<'a>(definitions: &Definitions, document: &'a Value) -> Vec<(&'a Value, Access)> {
    let mut found = Vec::new();
    let mut find = |routes: Vec<Route>, definition: &Definition| {
        for route in routes {
            let path = &document["paths"][address(route.address, definition)];
            // Items that are no rows have no CSV.
            let operation = path.get(route.method.to_lowercase());
            found.extend(operation.map(|operation| (operation, route.access)));
        }
    };
    for definition in definitions.iter() {
        find(of_history(), definition);
    }
    let mut collections = BTreeSet::new();
    for definition in definitions.iter().filter(|one| collections.insert(&one.owner.collection)) {
        find(of_owners(), definition);
    }
    let any = definitions.iter().next().unwrap();
    find(of_histories(), any);
    find(of_page_views(), any);
    find(probes(), any);
    found
}

#[test]
fn every_operation_has_the_security_of_its_row() {
    for features in SERVERS {
        for (definitions, document) in documents_of(Version::V3_1, features) {
            let bearer = &document["components"]["securitySchemes"]["bearer"];
            let (kind, scheme) = (bearer["type"].as_str(), bearer["scheme"].as_str());
            let expected = features.authenticates().then_some(("http", "bearer"));
            assert_eq!(kind.zip(scheme), expected);
            assert_eq!(document.get("security"), None, "each operation has its own");
            let guarded = guarded(&definitions, &document);
            assert_eq!(guarded.len(), operations(&document).count());
            for (operation, access) in guarded {
                has_the_security_of_its_row(&document, operation, access, features);
            }
        }
    }
}

fn has_the_security_of_its_row(document: &Value, operation: &Value, access: Access, features: Features) {
    let id = &operation["operationId"];
    let of_metrics = id == "getMetrics";
    let open = access == Access::Everyone || of_metrics && features.open.metrics;
    let guarded = features.authenticates() && !open;
    let security = if open { json!([]) } else { json!([{ "bearer": [] }]) };
    assert_eq!(operation.get("security"), features.authenticates().then_some(&security), "{id}");
    let about = operation["description"].as_str().unwrap();
    assert_eq!(about.contains("Needs the scope"), guarded, "{id}");
    assert_eq!(about.contains("Needs no token."), features.authenticates() && open, "{id}");
    let scope = access.scope().filter(|_| guarded).map(|scope| format!("Needs the scope `{scope}`"));
    assert!(about.contains(&scope.unwrap_or_default()), "{id}");
    let answers: BTreeMap<_, _> = responses(document, operation).collect();
    let has = |status: &str, header: &str| {
        answers.get(status).is_some_and(|answer| answer["headers"].get(header).is_some())
    };
    assert_eq!((answers.contains_key("401"), has("401", "WWW-Authenticate")), (guarded, guarded), "{id}");
    let erasing_off = features.erasing_off && access == Access::Erasing;
    assert_eq!(about.contains("--allow-erase"), erasing_off, "{id}");
    let forbidden = guarded && access.scope().is_some();
    let refused = (answers.contains_key("403"), has("403", "WWW-Authenticate"));
    assert_eq!(refused, (forbidden || erasing_off, forbidden), "{id}");
    let limited = features.rate_limits && if of_metrics { guarded } else { access != Access::Everyone };
    assert_eq!((answers.contains_key("429"), has("429", "Retry-After")), (limited, limited), "{id}");
    assert_eq!(has("503", "Retry-After"), id != "livez" && !of_metrics, "{id}");
    for (status, _) in answers.iter().filter(|(status, _)| **status < "500" && **status != "421") {
        assert_eq!(has(status, "RateLimit"), limited, "{id} {status}");
        assert_eq!(has(status, "RateLimit-Policy"), limited, "{id} {status}");
    }
}

/// Nothing is said of what a server does not do, whatever the version.
#[test]
fn a_plain_server_has_neither_tokens_nor_rates() {
    for version in [Version::V3_0, Version::V3_1] {
        for (_, document) in documents_of(version, PLAIN) {
            walk(&document, "", &mut |at, value| {
                let names = value.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
                for text in value.as_str().into_iter().chain(names) {
                    for word in ["oken", "scope", "securitySchemes", "Authenticate", "RateLimit", "`admin`"] {
                        assert!(!text.contains(word), "{at}: {text}");
                    }
                }
            });
        }
    }
}

/// What Swagger UI puts into the field of a parameter that it shows.
fn prefilled(parameter: &Value) -> Option<&Value> {
    let schema = &parameter["schema"];
    parameter.get("example").or(schema.get("example")).or(schema.get("default"))
}

/// Of the parameters that need not be sent, only those are prefilled whose value means the same as none.
#[test]
fn nothing_is_prefilled_that_narrows_an_answer_or_deletes() {
    for version in [Version::V3_0, Version::V3_1] {
        for (_, document) in documents_of(version, Features::ALL) {
            for (path, methods) in document["paths"].as_object().unwrap() {
                for (method, operation) in methods.as_object().unwrap() {
                    for parameter in operation["parameters"].as_array().into_iter().flatten() {
                        let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
                        let needed = parameter["required"] == true && method != "delete";
                        let means_none =
                            ["order", "limit"].contains(&name) && schema.get("default").is_some();
                        let sent = prefilled(parameter);
                        assert_eq!(sent.is_some(), needed || means_none, "{method} {path}: {parameter}");
                        let about = parameter["description"].as_str().unwrap();
                        let shown = sent.is_some() || schema.get("enum").is_some();
                        assert!(shown || about.contains(" Example: `"), "{method} {path}: {parameter}");
                    }
                }
            }
        }
    }
}

/// `docs/reference/api.md` has the table of scopes that the rows make.
#[test]
fn the_documented_scopes_are_those_of_the_rows() {
    let mut groups: Vec<(Access, Vec<String>)> = Vec::new();
    let admitted = [of_history(), of_owners(), of_histories(), of_page_views()].into_iter().flatten();
    for Route { method, address, access, .. } in admitted.chain(probes()) {
        let request = format!("`{method} {address}`");
        match groups.iter_mut().find(|(known, _)| *known == access) {
            Some((_, requests)) => requests.push(request),
            None => groups.push((access, vec![request])),
        }
    }
    let line = |(access, requests): &(Access, Vec<String>)| {
        let scope = access.scope().map_or("none".to_owned(), |scope| format!("`{scope}`"));
        let whose = match access {
            Access::OfOwner(_) | Access::Erasing => "of this owner",
            Access::OfAllOwners(_) => "of all owners",
            Access::OfWatched(_) => "of each owner that `watch` names",
            _ => "",
        };
        format!("| {scope} | {whose} | {} |\n", requests.join("<br>"))
    };
    let table: String = groups.iter().map(line).collect();
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("test_data/api.md")).unwrap();
    assert!(page.contains(&table), "docs/reference/api.md needs this table:\n{table}");
}

#[test]
fn problems_of_several_operations_are_written_once() {
    for (_, document) in documents() {
        let mut seen = BTreeSet::new();
        for (path, operation) in operations(&document) {
            for (status, response) in operation["responses"].as_object().unwrap() {
                let problem =
                    response.get("content").is_some_and(|content| content.get(MEDIA_TYPE).is_some());
                assert!(!problem || seen.insert(response.to_string()), "{path} {status}");
            }
        }
    }
}

#[test]
fn every_reference_leads_to_a_component() {
    for (_, document) in SERVERS.into_iter().flat_map(|features| documents_of(Version::V3_1, features)) {
        let mut used = BTreeSet::from(["#/components/schemas/Problem"]);
        walk(&document, "", &mut |at, value| {
            if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
                assert!(document.pointer(&reference[1..]).is_some(), "{at}: {reference}");
                used.insert(reference);
            }
        });
        for kind in ["schemas", "responses", "headers"] {
            for name in document["components"][kind].as_object().into_iter().flat_map(Map::keys) {
                let reference = format!("#/components/{kind}/{name}");
                assert!(used.contains(reference.as_str()), "nothing uses {reference}");
            }
        }
    }
}

#[test]
fn operations_and_tags_have_names_of_their_own() {
    let identifier = Regex::new("^[a-z][A-Za-z0-9]*$").unwrap();
    for (_, document) in documents() {
        let tags: Vec<_> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
        let mut known = BTreeSet::new();
        for (path, operation) in operations(&document) {
            let id = operation["operationId"].as_str().unwrap();
            assert!(identifier.is_match(id) && known.insert(id), "{id}");
            assert_eq!(tags.iter().filter(|tag| **tag == &operation["tags"][0]).count(), 1, "{id}");
            let described = |parameter: &Value| {
                let name = parameter["name"].as_str().unwrap();
                parameter["in"] != "path" || path.contains(&format!("{{{name}}}"))
            };
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            assert!(parameters.into_iter().all(described), "{path}");
        }
    }
}

#[test]
fn filters_are_beside_all_other_parameters_of_listings() {
    for (definitions, document) in documents() {
        for definition in definitions.iter() {
            let owner = &definition.owner;
            let path = format!("/v1/{}/{{{}}}/{}", owner.collection, owner.field, definition.name);
            let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap();
            let of_query = parameters.iter().filter(|parameter| parameter["in"] == "query");
            let names: BTreeSet<_> = of_query.map(|parameter| parameter["name"].as_str().unwrap()).collect();
            let filters = definition.filters.iter().map(String::as_str);
            // No item has `page`.
            assert_eq!(names, OF_LISTINGS.into_iter().chain(filters).chain(["page"]).collect());
        }
    }
}

/// `null` has no spelling in an address, and a filter has no default.
#[test]
fn a_filter_is_a_text() {
    let (_, document) = documents().pop().unwrap();
    let parameters =
        document["paths"]["/v1/devices/{deviceId}/events"]["get"]["parameters"].as_array().unwrap();
    let schema = |name: &str| {
        &parameters.iter().find(|parameter| parameter["name"] == name).unwrap()["schema"]["items"]
    };
    assert_eq!(*schema("level"), json!({ "type": "string", "enum": ["info", "warn"] }));
    assert_eq!(*schema("topic"), json!({ "type": "string", "maxLength": 20 }));
    assert_eq!(*schema("phase"), json!({ "type": "string", "enum": ["a", "b"] }));
}

#[test]
fn every_placeholder_is_filled() {
    let placeholder = Regex::new(r"\{ ?[A-Za-z]+ ?\}").unwrap();
    for (_, document) in documents() {
        walk(&document, "", &mut |at, value| {
            let text = value.as_str().unwrap_or_default().replace("As in {item}.", "");
            assert!(!placeholder.is_match(&text), "{at}: {text}");
            for name in value.as_object().into_iter().flat_map(Map::keys) {
                assert!(at == "/paths" || !placeholder.is_match(name), "{at}: {name}");
                assert!(!["Item", "Owner"].contains(&name.as_str()), "{at}: {name}");
            }
        });
    }
}

#[test]
fn every_example_is_as_its_schema_says() {
    for (definitions, document) in documents() {
        let schema = |schema: &Value| {
            let whole = json!({ "allOf": [schema], "components": document["components"] });
            jsonschema::options().should_validate_formats(true).build(&whole).unwrap()
        };
        let mut seen = 0;
        walk(&document, "", &mut |at, value| {
            let Some(described) = value.get("schema").filter(|_| !at.contains("/example")) else { return };
            let named =
                value["examples"].as_object().into_iter().flat_map(Map::values).map(|one| &one["value"]);
            for example in value.get("example").into_iter().chain(named) {
                let found: Vec<_> =
                    schema(described).iter_errors(example).map(|error| error.to_string()).collect();
                assert!(found.is_empty(), "{at}: {found:?}\n{example}");
                seen += 1;
            }
        });
        walk(&document["components"]["schemas"], "", &mut |at, value| {
            if !at.ends_with("/properties") && !at.contains("/examples") {
                for example in value.get("examples").and_then(Value::as_array).into_iter().flatten() {
                    assert!(schema(value).is_valid(example), "{at}: {example}");
                    seen += 1;
                }
            }
        });
        assert!(seen > 40 * definitions.iter().count(), "{seen}");
        for (path, operation) in operations(&document).filter(|(path, _)| path.starts_with("/v1")) {
            let answers = responses(&document, operation).filter(|(status, _)| *status < "300");
            let bodies = answers.map(|(_, answer)| answer).chain(operation.get("requestBody"));
            for (media_type, content) in
                bodies.flat_map(|body| body["content"].as_object().into_iter().flatten())
            {
                let given = content.get("example").or(content.get("examples"));
                assert!(given.is_some(), "{path} has no example of {media_type}");
            }
        }
    }
}

/// Generated clients fail where they must choose.
#[test]
fn an_operation_has_one_media_type_in_each_direction() {
    for (_, document) in documents() {
        for (path, operation) in operations(&document) {
            let answers = responses(&document, operation).filter(|(status, _)| *status < "300");
            let content =
                |body: &Value| body["content"].as_object().map(|types| types.keys().cloned().collect());
            let types: BTreeSet<Vec<String>> = answers.filter_map(|(_, answer)| content(answer)).collect();
            assert!(types.len() <= 1 && types.iter().all(|types| types.len() == 1), "{path}: {types:?}");
            let taken: Option<Vec<_>> = content(&operation["requestBody"]);
            assert!(taken.is_none_or(|types| types.len() == 1), "{path}");
        }
    }
}

/// What generators of clients fail at: a body that is one of several things, and in Go a type with the name
/// of the function that makes another (`NewTrade` makes a `Trade`).
#[test]
fn every_generator_has_a_type_for_a_body() {
    for (definitions, document) in documents() {
        for (path, operation) in operations(&document) {
            let bodies = operation["requestBody"]["content"].as_object();
            for body in bodies.into_iter().flat_map(Map::values) {
                let schema = &body["schema"];
                let one = schema.get("items").unwrap_or(schema)["$ref"].as_str();
                let schema = one.and_then(|one| document.pointer(&one[1..])).unwrap();
                assert!(schema["type"] == "object" || schema["type"] == "string", "{path}: {schema}");
            }
        }
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for name in schemas.keys().filter_map(|name| name.strip_prefix("New")) {
            assert!(!schemas.contains_key(name), "New{name} makes a {name}");
        }
        for definition in definitions.iter() {
            let (owner, title) = (&definition.owner, &definition.title);
            let path = format!("/v1/{}/{{{}}}/{}", owner.collection, owner.field, definition.name);
            let body = |path: &str| {
                let operation = &document["paths"][path]["post"];
                (
                    &operation["operationId"],
                    &operation["requestBody"]["content"]["application/json"]["schema"],
                )
            };
            let item = json!({ "$ref": format!("#/components/schemas/{title}Input") });
            let many = json!({ "type": "array", "items": item, "minItems": 1, "maxItems": 1000 });
            assert_eq!(body(&path).1, &item);
            assert_eq!(body(&format!("{path}/batch")), (&json!(format!("append{title}Batch")), &many));
        }
    }
}

#[test]
fn csv_is_promised_where_items_are_rows() {
    for (definitions, document) in documents() {
        for definition in definitions.iter() {
            let owner = &definition.owner;
            let path = format!("/v1/{}/{{{}}}/{}/export", owner.collection, owner.field, definition.name);
            let has = |ending: &str| document["paths"].get(format!("{path}.{ending}")).is_some();
            assert_eq!((has("ndjson"), has("csv")), (true, definition.item.columns().is_ok()), "{path}");
        }
    }
}

#[test]
fn summaries_of_all_owners_are_promised_where_there_is_a_time_series() {
    let mut found = 0;
    for (definitions, document) in documents() {
        for definition in definitions.iter() {
            let path = document["paths"].get(format!("/v1/{}/summary", definition.name));
            let schema = format!("{}SeriesOfAll", definition.title);
            let Some(series) = &definition.time_series else {
                assert_eq!((path, document["components"]["schemas"].get(&schema)), (None, None));
                continue;
            };
            found += 1;
            let operation = &path.unwrap()["get"];
            let parameters = operation["parameters"].as_array().unwrap();
            let names: Vec<_> =
                parameters.iter().map(|parameter| parameter["name"].as_str().unwrap()).collect();
            let meta = series.meta.iter().map(String::as_str);
            let ours = ["by", "tz", "group", "from", "to", "fill", "order", "limit"];
            let expected: Vec<_> = ours.into_iter().chain(meta).collect();
            assert_eq!(names, expected);
            assert_eq!(parameters[2]["schema"]["items"]["enum"], json!(series.meta));
            let body = &operation["responses"]["200"]["content"]["application/json"];
            assert_eq!(body["schema"]["$ref"], format!("#/components/schemas/{schema}"));
            assert!(body["example"]["points"][0]["values"].is_object(), "{body}");
            let group = &document["components"]["schemas"][format!("{}SeriesGroup", definition.title)];
            assert!(series.meta.iter().all(|name| group["properties"].get(name).is_some()), "{group}");
        }
    }
    assert!(found > 0, "an example has one");
}

/// No two definitions that a server accepts may make a schema of the same name.
#[test]
fn names_of_schemas_are_those_that_definitions_are_checked_for() {
    for (definitions, document) in documents() {
        for name in document["components"]["schemas"].as_object().unwrap().keys() {
            let (known, of_defs) = (definitions.has_schema(name), name.contains('_'));
            assert!(known || of_defs, "{name} is not in api/model/definition/names.rs");
        }
    }
}

#[test]
fn owners_have_a_member_for_each_of_their_histories() {
    let (_, document) = documents().pop().unwrap();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["ChatRoom"]["required"], json!(["chatRoomId", "audit-entries", "orders"]));
    let orders = &schemas["ChatRoomTotals"]["properties"]["orders"];
    assert_eq!(*orders, json!({ "$ref": "#/components/schemas/HistoryTotals" }));
    assert_eq!(schemas["ChatRoomTotals"]["required"], json!(["chatRoomId"]));
    let summary = &document["paths"]["/v1/chat-rooms/{chatRoomId}"]["get"];
    let example = &summary["responses"]["200"]["content"]["application/json"]["example"];
    assert!(example["orders"]["first"]["legs"].is_array() && example["audit-entries"]["first"].is_object());
    assert_eq!(summary["operationId"], "getChatRoom");
    assert_eq!(schemas["OrderPage"]["properties"]["items"]["maxItems"], 137);
    assert_eq!(schemas["OrderListing"]["properties"]["items"]["maxItems"], 137);
    let one = &document["paths"]["/v1/chat-rooms/{chatRoomId}/audit-entries"]["post"]["requestBody"];
    assert_eq!(one["content"]["application/json"]["examples"]["one"]["summary"], "One audit entry, now");
}

/// Calls `check` with each schema of the document, and where it is.
fn each_described(document: &Value, check: &mut dyn FnMut(&str, &Value)) {
    walk(document, "", &mut |at, value| {
        let example = ["/example", "/examples/", "/default"].iter().any(|part| at.contains(part));
        if value.get("type").is_some_and(|kind| kind.is_string() || kind.is_array()) && !example {
            check(at, value);
        }
    });
}

#[test]
fn every_number_text_and_list_has_bounds() {
    for (_, document) in documents() {
        each_described(&document, &mut |at, schema| {
            let kinds: Vec<_> = match &schema["type"] {
                Value::Array(kinds) => kinds.iter().collect(),
                kind => vec![kind],
            };
            let has = |keywords: &[&str]| keywords.iter().any(|keyword| schema.get(keyword).is_some());
            let listed = has(&["enum", "const"]);
            // A range that the server does not know is ignored (RFC 9110, section 14.2), however long it is.
            let range = schema["examples"] == json!(["items=0-9"]);
            for kind in kinds {
                let bounded = match kind.as_str().unwrap() {
                    "integer" | "number" => {
                        has(&["minimum", "exclusiveMinimum"]) && has(&["maximum", "exclusiveMaximum"])
                    }
                    "string" => has(&["maxLength"]) || range || at == "/components/schemas/TextStream",
                    "array" => has(&["maxItems"]) && has(&["items"]),
                    _ => true,
                };
                assert!(listed || bounded, "{at}: {schema}");
                assert!(kind != "integer" || has(&["format"]), "{at}: {schema}");
            }
        });
    }
}

#[test]
fn every_parameter_header_and_schema_has_an_example() {
    for (_, document) in documents() {
        let shown = |at: &str, described: &Value| {
            let schema = &described["schema"];
            let listed = schema.get("enum").is_some();
            let shown = described.get("example").is_some() || schema.get("examples").is_some();
            assert!(shown || listed, "{at}: {described}");
        };
        for (path, operation) in operations(&document) {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            parameters.for_each(|parameter| shown(path, parameter));
            for (status, response) in responses(&document, operation) {
                for (name, header) in response["headers"].as_object().into_iter().flatten() {
                    shown(&format!("{path} {status} {name}"), resolved(&document, header));
                }
            }
        }
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            assert!(schema.get("examples").is_some(), "{name} has no example");
        }
    }
}

/// What has no value is absent. Only an item may have `null`, because its definition says so.
#[test]
fn nothing_of_ours_is_null() {
    let (_, document) = documents().swap_remove(0);
    let text = document.to_string();
    assert!(!text.contains("null") && !text.contains("oneOf"), "{text}");
}
