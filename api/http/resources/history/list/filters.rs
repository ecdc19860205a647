//! Filters of a listing: the properties that its items must have, each with one value or with one of several.

use pagebucket_model::definition::Definition;
use serde_json::{Value, json};
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, ParameterStyle};

use crate::request::params::ParameterReader;
use crate::resources::links::{MOST_FILTER_BYTES, MOST_FILTER_VALUES};
use crate::schemas::names::Names;

/// A property, and the values of which an item must have one there: at least one, in ascending order.
pub(crate) type Filter = (String, Vec<String>);

/// Reads the filters of a request, in the order of the definition.
pub(crate) fn filters(reader: &mut ParameterReader<'_>, definition: &Definition) -> Vec<Filter> {
    filters_by(reader, definition, &definition.filters)
}

/// Reads filters by these properties.
pub(crate) fn filters_by(
    reader: &mut ParameterReader<'_>,
    definition: &Definition,
    names: &[String],
) -> Vec<Filter> {
    let (mut filters, mut bytes) = (Vec::new(), 0);
    for name in names {
        let parse = |text: &str| definition.item.check_text(name, text).map(|()| text.to_owned());
        let Some(mut values) = reader.repeated(name, MOST_FILTER_VALUES, parse) else { continue };
        // Links repeat the name with each value.
        bytes +=
            values.iter().map(String::len).sum::<usize>() + (values.len() - 1) * (name.len() + "&=".len());
        if bytes > MOST_FILTER_BYTES {
            let rule = format!(
                "must have at most {MOST_FILTER_BYTES} bytes, together with the other filters, and with its name for each further value"
            );
            reader.refuse(name.clone(), rule);
        }
        // One selection has one form, whatever the order of its values.
        values.sort_unstable();
        filters.push((name.clone(), values));
    }
    filters
}

/// Documents the filters by these properties of items. `about` says what they do.
pub(crate) fn filters_documented(names: &Names<'_>, properties: &[String], about: &str) -> Vec<Parameter> {
    let schemas = &names.schemas[&format!("{}Input", names.item_type)]["properties"];
    let documented = |name: &String| {
        let mut values = json!({
            "type": "array", "items": of_text(&schemas[name]), "minItems": 1, "maxItems": MOST_FILTER_VALUES,
            "uniqueItems": true,
        });
        let example = names.examples.new_item.as_ref().and_then(|item| item.get(name));
        if let Some(example) = example.filter(|value| value.is_string()) {
            values["examples"] = json!([[example]]);
        }
        let what = format!(
            "Only {} with this `{name}`, or with one of several: repeat the parameter for each value. {about}",
            names.many_items
        );
        // `Schema` has not all keywords that a definition may use.
        let schema = Extensions::from_iter([("schema", values)]);
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Query)
            .description(Some(what))
            .style(Some(ParameterStyle::Form))
            .explode(Some(true))
            .extensions(Some(schema))
            .build()
    };
    properties.iter().map(documented).collect()
}

/// The schema of a property as a filter has it: a text, with neither a word for `null` nor a default.
fn of_text(property: &Value) -> Value {
    let mut schema = property.as_object().cloned().unwrap_or_default();
    schema.retain(|keyword, _| !["description", "examples", "default"].contains(&keyword.as_str()));
    for keyword in ["type", "enum"] {
        if let Some(Value::Array(values)) = schema.get_mut(keyword) {
            values.retain(|value| !value.is_null() && (keyword != "type" || value != "null"));
        }
    }
    if let Some([only]) = schema.get("type").and_then(Value::as_array).map(Vec::as_slice) {
        schema["type"] = only.clone();
    }
    let longest = schema.get("maxLength").and_then(Value::as_u64);
    if longest.is_none_or(|longest| longest > MOST_FILTER_BYTES as u64) && !schema.contains_key("enum") {
        schema.insert("maxLength".to_owned(), json!(MOST_FILTER_BYTES));
    }
    schema.into()
}
