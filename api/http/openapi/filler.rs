//! Fills the templates of the OpenAPI document with what a definition says.

use serde_json::{Map, Value};

use super::items::Items;
use crate::definition::{Definition, openapi};
use crate::http::names::Names;
use crate::http::schemas::OWNER_ID;

const REFERENCE: &str = "#/components/schemas/";

/// Fills templates with what one definition says.
pub struct Filler<'a> {
    definition: &'a Definition,
    names: Names,
    items: Items<'a>,
}

impl<'a> Filler<'a> {
    /// For the templates of this definition.
    pub fn of(definition: &'a Definition) -> Self {
        let items = Items::of(definition);
        Self { definition, names: Names::of(definition).with(items.texts()), items }
    }

    /// The document of the definition's routes and schemas.
    pub fn document(&self, template: &Value) -> Value {
        let mut document = self.fill(template).unwrap_or_default();
        if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
            for (name, schema) in std::mem::take(schemas) {
                schemas.insert(self.schema_name(&name), joined(schema));
            }
            schemas.extend(self.items.schemas().iter().cloned());
            self.items.bound_pages(schemas);
        }
        self.items.limit_formats(&mut document);
        document
    }

    /// `None` if this is or has an example that cannot be made.
    fn fill(&self, template: &Value) -> Option<Value> {
        Some(match template {
            Value::String(text) => {
                let placeholder = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
                match placeholder.and_then(|name| self.items.example(name)) {
                    Some(example) => return example,
                    None => Value::String(self.text(text)),
                }
            }
            Value::Array(values) => {
                Value::Array(values.iter().map(|value| self.fill(value)).collect::<Option<_>>()?)
            }
            Value::Object(members) if members.get("$ref").is_some_and(|to| *to == owner_id_reference()) => {
                openapi::owner_id(self.definition.owner.kind)
            }
            Value::Object(members) => {
                let mut filled = Map::new();
                for (name, value) in members {
                    match self.fill(value) {
                        Some(value) => drop(filled.insert(self.names.fill(name), value)),
                        // Better no example than half of one.
                        None if ["example", "examples", "value"].contains(&name.as_str()) => {}
                        None => return None,
                    }
                }
                Value::Object(filled)
            }
            other => other.clone(),
        })
    }

    fn text(&self, template: &str) -> String {
        match template.strip_prefix(REFERENCE) {
            Some(name) => format!("{REFERENCE}{}", self.schema_name(name)),
            None => self.names.fill(template),
        }
    }

    /// `ItemPage` as `TradePage`, `OwnerListing` as `CustomerListing`. Other schemas belong to no definition.
    fn schema_name(&self, template: &str) -> String {
        self.names.fill(&template.replace("Item", "{Item}").replace("Owner", "{Owner}"))
    }
}

fn owner_id_reference() -> String {
    format!("{REFERENCE}{OWNER_ID}")
}

/// A schema whose `allOf` has at most one object of its own, beside references.
///
/// A member that a definition names is an object of its own, because no field of a struct can document it.
fn joined(mut schema: Value) -> Value {
    let Some(parts) = schema.get_mut("allOf").and_then(Value::as_array_mut) else { return schema };
    let (mut parts, own): (Vec<_>, Vec<_>) =
        std::mem::take(parts).into_iter().partition(|part| part.get("$ref").is_some());
    let mut own = own.into_iter();
    let mut joined = own.next().unwrap_or_default();
    own.for_each(|part| merge(&mut joined, part));
    if parts.is_empty() {
        schema.as_object_mut().and_then(|schema| schema.shift_remove("allOf"));
        merge(&mut schema, joined);
    } else {
        parts.push(joined);
        schema["allOf"] = Value::Array(parts);
    }
    schema
}

/// Adds what `more` has and `to` has not, at every level. Lists of names are united.
pub fn merge(to: &mut Value, more: Value) {
    match (to, more) {
        (Value::Object(to), Value::Object(more)) => {
            for (name, value) in more {
                match to.get_mut(&name) {
                    Some(there) => merge(there, value),
                    None => drop(to.insert(name, value)),
                }
            }
        }
        (Value::Array(to), Value::Array(more)) if more.iter().all(Value::is_string) => {
            for name in more {
                if !to.contains(&name) {
                    to.push(name);
                }
            }
        }
        (Value::Array(to), Value::Array(more)) => {
            to.iter_mut().zip(more).for_each(|(to, more)| merge(to, more));
        }
        (_, _) => {}
    }
}
