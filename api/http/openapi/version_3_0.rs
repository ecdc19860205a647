//! The document in OpenAPI 3.0, for generators that do not read 3.1.
//!
//! 3.0 has an older JSON Schema with words of its own. What it has no words for is left out, so that a schema
//! allows more, never less.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::admission::accept::NDJSON;
use crate::request::body::OCTETS;
use crate::schemas::visit::{each_operation, each_schema, elements, members};

/// What a schema of 3.0 may have.
const KEYWORDS: &str = "$ref additionalProperties allOf anyOf default deprecated description enum example exclusiveMaximum \
                        exclusiveMinimum format items maxItems maxLength maxProperties maximum minItems minLength \
                        minProperties minimum multipleOf not nullable oneOf pattern properties required title type \
                        uniqueItems";

/// The document of 3.1 in the words of 3.0.
pub(crate) fn in_3_0(mut document: Value) -> Value {
    document["openapi"] = json!("3.0.3");
    if let Some(Value::Object(license)) = document.pointer_mut("/info/license") {
        license.shift_remove("identifier");
        license.insert("url".to_owned(), json!("https://spdx.org/licenses/"));
    }
    document["components"]["schemas"]["ByteStream"] = json!({
        "type": "string", "format": "binary", "description": "Bytes without a bound of their number.",
    });
    each_operation(&mut document, &mut |_, operation| {
        lines(operation.get_mut("requestBody"), OCTETS, "ByteStream");
        members(operation.get_mut("responses"))
            .for_each(|response| lines(Some(response), NDJSON, "TextStream"));
    });
    each_schema(&mut document, &mut |schema| *schema = rewritten(schema.take()));
    each_operation(&mut document, &mut |_, operation| {
        for parameter in elements(operation.get_mut("parameters")) {
            // Swagger UI sends it as it sends that of the parameter, which has one if it is to be sent.
            parameter["schema"].as_object_mut().and_then(|schema| schema.shift_remove("example"));
        }
        leave_out_alike(operation);
    });
    document
}

/// Leaves out optional parameters of a query whose names differ from the name of a header only in case and
/// signs, as `lastEventId` does from `Last-Event-ID`: generators make one name of both, and some fail.
fn leave_out_alike(operation: &mut Value) {
    let Some(Value::Array(parameters)) = operation.get_mut("parameters") else { return };
    let plain = |parameter: &Value| {
        let name = parameter["name"].as_str().unwrap_or_default();
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
    };
    let headers: HashSet<String> =
        parameters.iter().filter(|parameter| parameter["in"] == "header").map(plain).collect();
    parameters.retain(|parameter| {
        parameter["in"] != "query" || parameter["required"] == true || !headers.contains(&plain(parameter))
    });
}

/// Describes a body of lines as a whole, under this media type: generators leave out requests whose type they
/// do not know. The schema that 3.1 has is that of one line: it becomes `x-line`.
fn lines(body: Option<&mut Value>, media_type: &str, schema: &str) {
    let Some(content) = body.and_then(|body| body.get_mut("content")?.as_object_mut()) else { return };
    let Some(mut lines) = content.shift_remove(NDJSON) else { return };
    lines["x-line"] = lines["schema"].take();
    lines["schema"] = json!({ "$ref": format!("#/components/schemas/{schema}") });
    if let Some(example) = lines.get_mut("example") {
        *example = json!(format!("{example}\n"));
    }
    content.insert(media_type.to_owned(), lines);
}

fn rewritten(schema: Value) -> Value {
    let mut schema = match schema {
        Value::Object(schema) => schema,
        Value::Bool(false) => return json!({ "not": {} }),
        _ => return json!({}),
    };
    if let Some(value) = schema.shift_remove("const") {
        schema.insert("enum".to_owned(), json!([value]));
    }
    if let Some(Value::Array(mut examples)) = schema.shift_remove("examples")
        && !examples.is_empty()
    {
        schema.insert("example".to_owned(), examples.swap_remove(0));
    }
    for (open, closed) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        // Beside a closed bound, which may be the narrower one, the open one is left out.
        if let Some(bound) = schema.shift_remove(open)
            && !schema.contains_key(closed)
        {
            schema.insert(closed.to_owned(), bound);
            schema.insert(open.to_owned(), json!(true));
        }
    }
    if let Some(words) = schema.get("enum").and_then(words_alike) {
        let (pattern, longest) = (format!("^({})$", words.join("|")), words.iter().map(String::len).max());
        schema.shift_remove("enum");
        schema.insert("pattern".to_owned(), json!(pattern));
        schema.insert("maxLength".to_owned(), json!(longest));
    }
    rewrite_type(&mut schema);
    schema.retain(|name, _| KEYWORDS.split(' ').any(|keyword| keyword == name));
    if schema.len() > 1
        && let Some(reference) = schema.shift_remove("$ref")
    {
        schema.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
    }
    Value::Object(schema)
}

/// Words of which some differ by case alone, as `1m` and `1M` do: generators make one name of both, and some
/// fail.
fn words_alike(words: &Value) -> Option<Vec<String>> {
    let words: Vec<&str> = words.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?;
    let names: HashSet<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let is_plain = words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    (names.len() < words.len() && is_plain).then(|| words.into_iter().map(str::to_owned).collect())
}

/// One type, `nullable` or not. Several types are alternatives.
fn rewrite_type(schema: &mut Map<String, Value>) {
    let mut kinds = match schema.shift_remove("type") {
        Some(Value::Array(kinds)) => kinds,
        Some(kind) => vec![kind],
        None => return,
    };
    let count = kinds.len();
    kinds.retain(|kind| kind != "null");
    let nullable = kinds.len() < count;
    let items = schema.shift_remove("items").unwrap_or_else(|| json!({}));
    let alternative = |kind: &Value| {
        let items = (kind == "array").then(|| ("items", items.clone()));
        let nullable = nullable.then(|| ("nullable", json!(true)));
        let words = [("type", kind.clone())].into_iter().chain(items).chain(nullable);
        words.map(|(keyword, value)| (keyword.to_owned(), value)).collect::<Map<_, _>>()
    };
    match &*kinds {
        [] => drop(schema.insert("enum".to_owned(), json!([null]))),
        [kind] => schema.extend(alternative(kind)),
        kinds => {
            let alternatives: Vec<_> = kinds.iter().map(alternative).collect();
            schema.insert("anyOf".to_owned(), json!(alternatives));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_differ_by_case_alone_become_a_pattern() {
        let alike = json!({ "type": "string", "enum": ["1m", "1h", "1M"] });
        assert_eq!(rewritten(alike), json!({ "pattern": "^(1m|1h|1M)$", "maxLength": 2, "type": "string" }));
        let others = json!({ "enum": ["asc", "desc"], "type": "string" });
        assert_eq!(rewritten(others.clone()), others);
    }

    #[test]
    fn what_may_be_in_an_object_stays() {
        let closed = json!({ "components": { "schemas": { "A": { "type": "object", "additionalProperties": false } } } });
        let closed_3_0 = in_3_0(closed.clone());
        assert_eq!(closed_3_0["components"]["schemas"]["A"], closed["components"]["schemas"]["A"]);
    }

    #[test]
    fn schemas_are_in_the_words_of_3_0() {
        for (written, expected) in [
            (
                json!({ "type": ["string", "null"], "maxLength": 3 }),
                json!({ "maxLength": 3, "type": "string", "nullable": true }),
            ),
            (json!({ "type": "null" }), json!({ "enum": [null] })),
            (
                json!({ "type": ["array", "integer"], "maxItems": 1, "items": {} }),
                json!({ "maxItems": 1, "anyOf": [{ "type": "array", "items": {} }, { "type": "integer" }] }),
            ),
            (json!({ "const": "ok" }), json!({ "enum": ["ok"] })),
            (json!({ "examples": [1, 2] }), json!({ "example": 1 })),
            (json!({ "exclusiveMinimum": 0 }), json!({ "minimum": 0, "exclusiveMinimum": true })),
            (json!({ "maximum": 1, "exclusiveMaximum": 2 }), json!({ "maximum": 1 })),
            (json!({ "$ref": "#/a" }), json!({ "$ref": "#/a" })),
            (json!({ "$ref": "#/a", "title": "A" }), json!({ "title": "A", "allOf": [{ "$ref": "#/a" }] })),
            (json!({ "type": "object", "propertyNames": { "pattern": "a" } }), json!({ "type": "object" })),
            (json!({ "type": "array" }), json!({ "type": "array", "items": {} })),
            (json!(true), json!({})),
            (json!(false), json!({ "not": {} })),
        ] {
            assert_eq!(rewritten(written.clone()), expected, "{written}");
        }
    }
}
