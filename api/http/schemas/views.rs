//! The schemas of views: of what requests have and answers show. Their names and texts are those of a
//! definition, and so are some of their members.

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::names::Names;
use super::visit::inside;

/// Schemas by their names.
pub(crate) type Schemas = Map<String, Value>;

/// The schema of a view, and those that it refers to.
pub(crate) fn schemas<T: ToSchema>(names: &Names<'_>) -> Schemas {
    let mut found = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut found);
    let filled = |(name, schema): (String, _)| {
        let mut schema = names.filled(json!(schema));
        inside(&mut schema, &mut without_null);
        (names.schema_name(&name), joined(schema))
    };
    found.into_iter().map(filled).collect()
}

/// Removes `null`: a member that has no value is absent.
fn without_null(schema: &mut Value) {
    let null = json!({ "type": "null" });
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
}

/// One object instead of those that a view is made of: a member that a definition names is an object of its
/// own, because no field of a struct can document it.
fn joined(mut schema: Value) -> Value {
    let parts = schema.as_object_mut().and_then(|schema| schema.shift_remove("allOf"));
    for part in parts.as_ref().and_then(Value::as_array).into_iter().flatten() {
        schema["type"] = json!("object");
        for required in part["required"].as_array().into_iter().flatten() {
            match &mut schema["required"] {
                Value::Array(all) => all.push(required.clone()),
                none => *none = json!([required]),
            }
        }
        for (name, property) in part["properties"].as_object().into_iter().flatten() {
            schema["properties"][name] = property.clone();
        }
    }
    schema
}
