//! Visits the schemas, operations and responses of an OpenAPI document.

use serde_json::{Map, Value};

/// Calls `visit` with every schema of the document, after the schemas inside it. A Boolean as
/// `additionalProperties` is none: it means the same in all versions.
pub(crate) fn each_schema(part: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    elements(Some(part)).for_each(|element| each_schema(element, visit));
    for (name, part) in part.as_object_mut().into_iter().flatten() {
        match name.as_str() {
            "schema" => inside(part, visit),
            "schemas" => members(Some(part)).for_each(|schema| inside(schema, visit)),
            // What is shown there may have members of any name.
            "example" | "examples" => {}
            _ => each_schema(part, visit),
        }
    }
}

/// Calls `visit` with the path and the content of every operation of the document.
pub(crate) fn each_operation(document: &mut Value, visit: &mut dyn FnMut(&str, &mut Value)) {
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for (path, operations) in paths.into_iter().flatten() {
        members(Some(operations)).for_each(|operation| visit(path, operation));
    }
}

/// Calls `visit` with the status and the content of every response of an operation.
pub(crate) fn each_response(operation: &mut Value, visit: &mut dyn FnMut(&str, &mut Value)) {
    let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
    responses.into_iter().flatten().for_each(|(status, response)| visit(status, response));
}

/// Calls `visit` with the schemas inside this one, and then with it.
pub(crate) fn inside(schema: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    members(schema.get_mut("properties")).for_each(|schema| inside(schema, visit));
    for keyword in ["items", "propertyNames", "not"] {
        schema.get_mut(keyword).into_iter().for_each(|schema| inside(schema, visit));
    }
    let others = schema.get_mut("additionalProperties").filter(|others| others.is_object());
    others.into_iter().for_each(|schema| inside(schema, visit));
    for keyword in ["anyOf", "oneOf", "allOf"] {
        elements(schema.get_mut(keyword)).for_each(|schema| inside(schema, visit));
    }
    visit(schema);
}

/// The values of an object, if it is one.
pub(crate) fn members(object: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    object.and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
}

/// The values of an array, if it is one.
pub(crate) fn elements(array: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    array.and_then(Value::as_array_mut).into_iter().flatten()
}
