//! Problems that several operations answer with stand in the components of the document, once.

use std::collections::HashMap;

use axum::http::StatusCode;
use pagebucket_model::definition::capitalised;
use serde_json::{Map, Value, json};

use crate::problem::{MEDIA_TYPE, ProblemKind};
use crate::schemas::examples::text_of;
use crate::schemas::visit::{each_operation, each_response, members};

const REFERENCE: &str = "#/components/responses/";

/// Moves equal problems of several operations into the components. Others stay where they are. A problem gets
/// its `instance` here: the address of its first operation.
pub(crate) fn share(document: &mut Value) {
    let mut uses: HashMap<Value, (String, u32)> = HashMap::new();
    each_operation(document, &mut |path, operation| {
        let address = example(path, operation);
        each_response(operation, &mut |_, response| {
            uses.entry(response.clone()).or_insert_with(|| (address.clone(), 0)).1 += 1;
        });
    });
    let mut shared = Map::new();
    each_operation(document, &mut |_, operation| {
        let tag = operation["tags"][0].as_str().unwrap_or_default().to_owned();
        each_response(operation, &mut |status, response| {
            let (address, uses) = &uses[&*response];
            let Some(name) = name(status, response) else { return };
            for example in members(response["content"][MEDIA_TYPE].get_mut("examples")) {
                example["value"]["instance"] = json!(address);
            }
            // Problems of the same kinds may have examples of different histories.
            let of_tag = format!("{name}Of{tag}");
            let has_it = |name: &String| shared.entry(name).or_insert_with(|| response.clone()) == response;
            if *uses > 1
                && let Some(name) = [name, of_tag].into_iter().find(has_it)
            {
                *response = json!({ "$ref": format!("{REFERENCE}{name}") });
            }
        });
    });
    shared.sort_keys();
    document["components"]["responses"] = Value::Object(shared);
}

/// The path with the examples of its parameters.
fn example(path: &str, operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    parameters.filter(|parameter| parameter["in"] == "path").fold(path.to_owned(), |address, parameter| {
        let (name, example) = (parameter["name"].as_str().unwrap_or_default(), parameter.get("example"));
        let example = example.unwrap_or(&parameter["schema"]["examples"][0]);
        address.replace(&format!("{{{name}}}"), &text_of(example))
    })
}

/// `InvalidParameterOrMalformedJson`; of many kinds `ServiceUnavailableOrTimedOut`. `None` if it is no
/// problem.
fn name(status: &str, response: &Value) -> Option<String> {
    let examples = response["content"][MEDIA_TYPE]["examples"].as_object()?;
    let status = StatusCode::from_bytes(status.as_bytes()).ok()?.canonical_reason()?;
    // In the order of their table, the last one tells similar problems apart.
    let kinds =
        ProblemKind::ALL.iter().map(|kind| kind.spec().slug).filter(|slug| examples.contains_key(*slug));
    let mut words: Vec<_> = kinds.map(pascal_case).collect();
    if words.len() > 2 {
        words.splice(..words.len() - 1, [pascal_case(status)]);
    }
    Some(words.join("Or"))
}

fn pascal_case(words: &str) -> String {
    words.split(['-', ' ']).map(capitalised).collect()
}
