//! What holds for every schema, parameter and header of the document, wherever it is written.

use pagebucket_model::domain::MAX_SAFE_INTEGER;
use serde_json::{Map, Value, json};

use super::visit::{each_operation, each_schema, elements, members};
use crate::schemas::names::REFERENCE;

/// Completes the document: bounds of integers, examples.
pub(crate) fn complete(document: &mut Value) {
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
