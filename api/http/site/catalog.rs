//! The catalogue: which histories a server keeps, and for each of them what its items are. A program that
//! works for every definition, such as the explorer, needs no more. The OpenAPI document says the same and
//! much else, and is far longer.

use std::sync::Arc;

use pagebucket_model::definition::{Definition, Definitions};
use pagebucket_model::summary::SpanLength;
use pagebucket_streams::export;
use serde_json::{Map, Value, json};

use super::file::File;
use crate::openapi::Features;
use crate::schemas::items;

/// The media type of all files of the catalogue.
const JSON: &str = "application/json";

/// Characters of what an item is, where all histories are listed: their number is the operator's, and so is
/// the length of each text.
const MOST_ABOUT: usize = 200;

/// All histories, each in a few words.
pub(crate) fn of_all(definitions: &Definitions, features: Features) -> Arc<File> {
    let brief = |definition: &Arc<Definition>| {
        let mut history = outline(definition);
        let about = about(definition);
        if let Some((end, _)) = about.char_indices().nth(MOST_ABOUT) {
            history["about"] = json!(format!("{}…", &about[..end]));
        }
        history
    };
    let catalog = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "needsToken": features.authenticates(),
        "docsNeedToken": features.authenticates() && !features.open.docs,
        "histories": definitions.iter().map(brief).collect::<Vec<_>>(),
    });
    File::new("/histories.json", JSON, catalog.to_string().into(), false)
}

/// The address of one history in the catalogue.
pub(crate) fn address(definition: &Definition) -> String {
    format!("/histories/{}.json", definition.name)
}

/// One history: what its items are, and what may be asked of it.
pub(crate) fn of_one(definition: &Definition) -> Arc<File> {
    let schemas: Map<String, Value> = items::schemas(definition).into_iter().collect();
    let mut history = outline(definition);
    history["maxItemBytes"] = json!(definition.max_item_bytes);
    history["filters"] = json!(definition.filters);
    history["csv"] = json!(export::columns(definition).is_some());
    if let Some(summaries) = &definition.summaries {
        let members = |schema: &Value| {
            schema["properties"].as_object().map(|members| members.keys().cloned().collect())
        };
        let values = &schemas[&format!("{}SeriesValues", definition.title)]["properties"];
        let values = values.as_object().into_iter().flatten();
        let values = values.map(|(name, schema)| (name.clone(), members(schema).unwrap_or_default()));
        history["summaries"] = json!({
            "by": SpanLength::NAMED.map(|(name, _)| name),
            "group": summaries.groups,
            "values": values.collect::<Map<String, Value>>(),
        });
    }
    history["newItem"] = standalone(&schemas, &format!("{}Input", definition.title));
    history["item"] = standalone(&schemas, &definition.title);
    File::new("/histories/{history}.json", JSON, history.to_string().into(), false)
}

/// What both have.
fn outline(definition: &Definition) -> Value {
    let Definition { name, title, owner, page_size, date, .. } = definition;
    json!({
        "history": name,
        "title": title,
        "about": about(definition),
        "owner": {
            "collection": owner.collection,
            "field": owner.field,
            "type": owner.kind.to_string(),
            "example": items::owner_example(owner.kind),
        },
        "pageSize": page_size.get(),
        "date": date.name,
    })
}

/// What an item is.
fn about(definition: &Definition) -> &str {
    definition.source["description"].as_str().unwrap_or_default()
}

/// A schema of the document, with those that it refers to as its own `$defs`.
fn standalone(schemas: &Map<String, Value>, name: &str) -> Value {
    let mut schema = schemas[name].clone();
    let prefix = format!("{name}_");
    let own = schemas.iter().filter_map(|(name, schema)| Some((name.strip_prefix(&prefix)?, schema)));
    let own: Map<_, _> = own.map(|(name, schema)| (name.to_owned(), schema.clone())).collect();
    if !own.is_empty() {
        schema["$defs"] = own.into();
    }
    refer_to_own(&mut schema, &format!("#/components/schemas/{prefix}"));
    schema
}

fn refer_to_own(schema: &mut Value, prefix: &str) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(prefix)
            {
                *reference = format!("#/$defs/{name}");
            }
            members.values_mut().for_each(|schema| refer_to_own(schema, prefix));
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(|schema| refer_to_own(schema, prefix)),
        _ => {}
    }
}
