//! Visits the schemas of an OpenAPI document.

use serde_json::{Map, Value};

/// Calls `visit` with every schema of the document, after the schemas inside it. A Boolean as
/// `additionalProperties` is none: it means the same in all versions.
pub(crate) fn each_schema(document: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    for schema in members(document.pointer_mut("/components/schemas")) {
        inside(schema, visit);
    }
    members(document.pointer_mut("/components/headers")).for_each(|header| described(header, visit));
    members(document.pointer_mut("/components/responses")).for_each(|response| answer(response, visit));
    each_operation(document, &mut |operation| {
        for parameter in elements(operation.get_mut("parameters")) {
            described(parameter, visit);
        }
        body(operation.get_mut("requestBody"), visit);
        each_response(operation, &mut |_, response| answer(response, visit));
    });
}

/// Calls `visit` with every operation of the document.
pub(crate) fn each_operation(document: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    members(document.get_mut("paths")).flat_map(|path| members(Some(path))).for_each(visit);
}

/// Calls `visit` with the status and the content of every response of an operation.
pub(crate) fn each_response(operation: &mut Value, visit: &mut dyn FnMut(&str, &mut Value)) {
    let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
    responses.into_iter().flatten().for_each(|(status, response)| visit(status, response));
}

fn answer(response: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    members(response.get_mut("headers")).for_each(|header| described(header, visit));
    body(Some(response), visit);
}

fn body(body: Option<&mut Value>, visit: &mut dyn FnMut(&mut Value)) {
    members(body.and_then(|body| body.get_mut("content"))).for_each(|content| described(content, visit));
}

fn described(described: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    described.get_mut("schema").into_iter().for_each(|schema| inside(schema, visit));
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
