//! What holds for every schema, parameter and header of the document, wherever it is written.

use std::iter;

use pagebucket_model::domain::MAX_SAFE_INTEGER;
use serde_json::{Map, Value, json};

use crate::schemas::examples::text_of;
use crate::schemas::names::REFERENCE;
use crate::schemas::visit::{each_operation, each_schema, elements};

/// Completes the document: bounds of integers, examples.
pub(crate) fn complete(document: &mut Value) {
    each_schema(document, &mut bound_integer);
    each_operation(document, &mut |_, operation| {
        elements(operation.get_mut("parameters")).for_each(exemplify);
    });
    pass_examples_on(document);
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

/// Gives a parameter an example that Swagger UI does not send: in its schema, and in words, for readers of
/// OpenAPI 3.0.
fn exemplify(parameter: &mut Value) {
    let schema = &parameter["schema"];
    if parameter.get("example").is_some() {
        return;
    }
    let listed = schema.get("default").is_some() || schema.get("enum").is_some();
    let given = schema.pointer("/examples/0").or(schema.get("default")).or(schema.get("minimum"));
    let Some(value) = given.or(schema.pointer("/enum/0")).cloned() else { return };
    if schema.get("examples").is_none() {
        parameter["schema"]["examples"] = json!([value]);
    }
    if let (false, Some(description)) = (listed, parameter["description"].as_str()) {
        parameter["description"] = json!(format!("{description} Example: `{}`.", text_of(&value)));
    }
}

/// Gives each schema of the components an example, if it is part of another example.
fn pass_examples_on(document: &mut Value) {
    let mut components = document["components"].take();
    let answer = |reference: &str| components.pointer(reference.strip_prefix("#/components")?);
    let mut examples = Vec::new();
    each_operation(document, &mut |_, operation| {
        let answers = operation["responses"].as_object().into_iter().flat_map(Map::values);
        for body in iter::once(&operation["requestBody"]).chain(answers) {
            let body = body["$ref"].as_str().and_then(answer).unwrap_or(body);
            for content in body["content"].as_object().into_iter().flat_map(Map::values) {
                let named = content["examples"].as_object().into_iter().flat_map(Map::values);
                let values = content.get("example").into_iter().chain(named.map(|example| &example["value"]));
                examples.extend(values.map(|value| (content["schema"].clone(), value.clone())));
            }
        }
    });
    let Value::Object(schemas) = &mut components["schemas"] else { return };
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
    document["components"] = components;
}
