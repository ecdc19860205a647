//! What holds for every schema, parameter and header of the document, wherever it is written.

use pagebucket_model::domain::MAX_SAFE_INTEGER;
use serde_json::{Map, Value, json};

use super::visit::{each_operation, each_response, each_schema, elements, members};
use crate::admission::accept::JSON;
use crate::schemas::embedded;

const REFERENCE: &str = "#/components/schemas/";

/// Removes `null` from the schemas: a member that has no value is absent.
pub(crate) fn without_null(template: &mut Value) {
    let null = json!({ "type": "null" });
    each_schema(template, &mut |schema| {
        if let Some([kind, null]) = schema["type"].as_array().map(Vec::as_slice)
            && null == "null"
        {
            schema["type"] = kind.clone();
        }
        if let Some([shape, _]) =
            schema["oneOf"].as_array().filter(|shapes| shapes.contains(&null)).map(Vec::as_slice)
        {
            *schema = shape.clone();
        }
    });
}

/// Completes the document: what all reads answer, bounds of integers, schemas of headers, examples.
pub(crate) fn complete(document: &mut Value) {
    add_read_headers(document);
    // The headers of the same name are alike in all answers.
    let schemas: Map<String, Value> = embedded(include_str!("headers.json"));
    each_operation(document, &mut |operation| {
        each_response(operation, &mut |_, response| {
            let headers = response.get_mut("headers").and_then(Value::as_object_mut);
            for (name, header) in headers.into_iter().flatten() {
                let schema = schemas.get(name).unwrap_or_else(|| panic!("headers.json has no {name}"));
                header["schema"] = schema.clone();
            }
            let bodies = response.get_mut("content").and_then(Value::as_object_mut);
            for (_, text) in bodies.into_iter().flatten().filter(|(kind, _)| kind.starts_with("text/")) {
                text["schema"] = json!({ "$ref": format!("{REFERENCE}TextStream") });
            }
        });
    });
    add_rate_headers(document);
    document["components"]["schemas"]["TextStream"] =
        json!({ "type": "string", "description": "Text without a bound of its length." });
    each_schema(document, &mut bound_integer);
    for path in members(document.get_mut("paths")) {
        for parameter in elements(path.pointer_mut("/delete/parameters")) {
            withhold_example(parameter);
        }
    }
    each_operation(document, &mut |operation| {
        for parameter in elements(operation.get_mut("parameters")) {
            exemplify(parameter);
        }
    });
    pass_examples_on(document);
}

/// Adds what all reads of JSON under `/v1` answer: how long the database took and, if their answers have
/// tags, 304.
fn add_read_headers(document: &mut Value) {
    let timing = "`db`: milliseconds spent waiting for the database. `cache`: whether all full pages were in memory; absent if \
                  none was looked up.";
    let unchanged = "`If-None-Match` names the current state: the client's copy is still valid.";
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (_, path) in paths.filter(|(path, _)| path.starts_with("/v1/")) {
        let Some(Value::Object(responses)) = path.pointer_mut("/get/responses") else { continue };
        let Some(Value::Object(read)) = responses.get_mut("200") else { continue };
        let Some(content) = read.get("content").filter(|content| content.get(JSON).is_some()).cloned() else {
            continue;
        };
        let headers = read.get("headers").and_then(Value::as_object).cloned();
        let mut headers = headers.unwrap_or_default();
        headers.insert("Server-Timing".to_owned(), json!({ "schema": {}, "description": timing }));
        headers.sort_keys();
        let has_tag = headers.contains_key("ETag");
        // Headers stand before the content.
        read.shift_remove("content");
        read.insert("headers".to_owned(), headers.into());
        read.insert("content".to_owned(), content);
        if has_tag {
            responses.insert("304".to_owned(), json!({ "description": unchanged }));
            responses.sort_keys();
        }
    }
}

/// Adds the headers of a server with rate limits to every answer to clients that are limited, unless the
/// server failed.
fn add_rate_headers(document: &mut Value) {
    let rates: Map<String, Value> = embedded(include_str!("rates.json"));
    let mut limits = false;
    each_operation(document, &mut |operation| {
        if operation["responses"].get("429").is_none() {
            return;
        }
        limits = true;
        each_response(operation, &mut |status, response| {
            // A request for another host is refused before anything else.
            if status < "500" && status != "421" {
                for name in rates.keys() {
                    response["headers"][name] = json!({ "$ref": format!("#/components/headers/{name}") });
                }
            }
        });
    });
    if limits {
        document["components"]["headers"] = Value::Object(rates);
    }
}

/// Whole numbers have at most 2^53 - 1 if nothing else is said, and the format of their size.
fn bound_integer(schema: &mut Value) {
    if schema["type"] != "integer" {
        return;
    }
    if schema.get("maximum").is_none() && schema.get("exclusiveMaximum").is_none() {
        schema["maximum"] = json!(MAX_SAFE_INTEGER);
    }
    let small = schema["maximum"].as_i64().is_some_and(|most| i32::try_from(most).is_ok());
    schema["format"] = json!(if small { "int32" } else { "int64" });
}

/// Moves the example of a parameter into its schema: Swagger UI sends what `example` of a parameter says, and
/// a click must not delete.
fn withhold_example(parameter: &mut Value) {
    if let Some(example) = parameter.as_object_mut().and_then(|parameter| parameter.shift_remove("example")) {
        parameter["schema"]["examples"] = json!([example]);
    }
}

/// Gives a parameter an example that Swagger UI does not send: in its schema, and in words, for readers of
/// OpenAPI 3.0.
fn exemplify(parameter: &mut Value) {
    let schema = &parameter["schema"];
    if parameter.get("example").is_some() {
        return;
    }
    let listed = schema.get("default").is_some() || schema.get("enum").is_some();
    let given = schema.pointer("/examples/0").or(schema.get("default")).or(schema.get("minimum"));
    let value = match given.or(schema.pointer("/enum/0")) {
        Some(value) => value.clone(),
        None if parameter["name"] == "Idempotency-Key" => json!("9f0c4d2e-6f3b-4d64-8a53-1d2c7be0a9f1"),
        None => return,
    };
    if schema.get("examples").is_none() {
        parameter["schema"]["examples"] = json!([value]);
    }
    if let (false, Some(description)) = (listed, parameter["description"].as_str()) {
        let example = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        parameter["description"] = json!(format!("{description} Example: `{example}`."));
    }
}

/// Gives each schema of the components an example, if it is part of another example.
fn pass_examples_on(document: &mut Value) {
    let mut examples = Vec::new();
    each_operation(document, &mut |operation| {
        let mut of_body = |body: &Value| {
            for content in body["content"].as_object().into_iter().flat_map(Map::values) {
                let named = content["examples"].as_object().into_iter().flat_map(Map::values);
                for value in content.get("example").into_iter().chain(named.map(|example| &example["value"]))
                {
                    examples.push((content["schema"].clone(), value.clone()));
                }
            }
        };
        of_body(&operation["requestBody"]);
        operation["responses"].as_object().into_iter().flat_map(Map::values).for_each(of_body);
    });
    let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, schema) in &*schemas {
        let example = schema.pointer("/examples/0").cloned();
        examples.extend(example.map(|value| (json!({ "$ref": format!("{REFERENCE}{name}") }), value)));
    }
    examples.reverse();
    while let Some((schema, value)) = examples.pop() {
        for part in ["anyOf", "allOf"].iter().flat_map(|part| schema[part].as_array()).flatten() {
            if value.is_array() == (part["type"] == "array") {
                examples.push((part.clone(), value.clone()));
            }
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            examples.extend(value.get(name).map(|value| (property.clone(), value.clone())));
        }
        if let (Some(items), Some(value)) = (schema.get("items"), value.get(0)) {
            examples.push((items.clone(), value.clone()));
        }
        let name = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix(REFERENCE));
        if let Some(schema) = name.and_then(|name| schemas.get_mut(name)) {
            examples.push((schema.clone(), value.clone()));
            if schema.get("examples").is_none() {
                schema["examples"] = json!([value]);
            }
        }
    }
}
