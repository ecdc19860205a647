//! The schemas and examples of a definition's items.

use serde_json::{Map, Value, json};

use crate::definition::{Definition, openapi};
use crate::domain::Limit;
use crate::export::columns;

/// The schemas and examples of one definition.
pub struct Items<'a> {
    definition: &'a Definition,
    schemas: Vec<(String, Value)>,
}

impl<'a> Items<'a> {
    /// The items of this definition.
    pub fn of(definition: &'a Definition) -> Self {
        Self { definition, schemas: openapi::schemas(definition) }
    }

    /// The schemas, by their names.
    pub fn schemas(&self) -> &[(String, Value)] {
        &self.schemas
    }

    /// The value for a placeholder that stands for an example. `Some(None)` if the example cannot be made.
    pub fn example(&self, placeholder: &str) -> Option<Option<Value>> {
        let title = &self.definition.title;
        let first = |schema: String| self.examples(&schema)?.first().cloned();
        Some(match placeholder {
            "ownerExample" => Some(openapi::owner_example(self.definition.owner.kind)),
            "newItem" => first(format!("New{title}")).map(|item| self.undated(item)),
            "newItems" => self.examples(&format!("New{title}")).map(|items| json!(items)),
            "newLine" => first(format!("New{title}Line")).map(|item| self.undated(item)),
            "storedItem" => first(title.clone()),
            "placedItem" => first(format!("Placed{title}")),
            "exportedItem" => first(format!("Exported{title}")),
            "csvRows" => first(format!("Exported{title}")).and_then(|item| self.csv(&item)),
            _ => return None,
        })
    }

    fn examples(&self, schema: &str) -> Option<&Vec<Value>> {
        let (_, schema) = self.schemas.iter().find(|(name, _)| name == schema)?;
        schema.get("examples")?.as_array()
    }

    /// Without the date, if clients need not send it.
    fn undated(&self, mut item: Value) -> Value {
        let date = &self.definition.date;
        if let Some(item) = item.as_object_mut().filter(|_| !date.required) {
            item.shift_remove(&date.name);
        }
        item
    }

    /// A file of one row. `None` if items are no rows of a table.
    fn csv(&self, item: &Value) -> Option<Value> {
        let mut columns = columns(self.definition)?;
        columns.splice(0..0, [self.definition.owner.field.clone(), "seq".to_owned()]);
        let cell = |name: &String| match &item[name] {
            Value::Null => String::new(),
            Value::String(text) if text.contains(['"', ',', '\r', '\n']) => {
                format!("\"{}\"", text.replace('"', "\"\""))
            }
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let row: Vec<_> = columns.iter().map(cell).collect();
        Some(json!(format!("{}\r\n{}\r\n", columns.join(","), row.join(","))))
    }

    /// The texts that examples and formats make.
    pub fn texts(&self) -> Vec<(&'static str, String)> {
        let required = self.definition.source.get("required").and_then(Value::as_array);
        let fault = match required.and_then(|required| required.last()?.as_str()) {
            Some(name) => (format!("/0/{name}"), "is required".to_owned()),
            None => {
                let item = self.definition.item.noun().article();
                ("/0".to_owned(), format!("must be {item}, which is an object, not a string"))
            }
        };
        let formats = if self.is_flat() {
            "The format is one JSON object a line, or CSV; `pagebucket import` reads both."
        } else {
            "The format is one JSON object a line, as `pagebucket import` reads it."
        };
        let owner = match openapi::owner_example(self.definition.owner.kind) {
            Value::String(id) => id,
            id => id.to_string(),
        };
        vec![
            ("ownerExample", owner),
            ("faultPointer", fault.0),
            ("faultDetail", fault.1),
            ("formats", formats.to_owned()),
        ]
    }

    /// Writes the page size into the schemas of pages and listings.
    pub fn bound_pages(&self, schemas: &mut Map<String, Value>) {
        let (title, size) = (&self.definition.title, self.definition.page_size.get());
        let mut bound = |schema: String, property: &str, keyword: &str, most: usize| {
            if let Some(property) =
                schemas.get_mut(&schema).and_then(|schema| schema["properties"].get_mut(property))
            {
                property[keyword] = json!(most);
            }
        };
        bound(format!("{title}Page"), "count", "maximum", size);
        bound(format!("{title}Page"), "items", "maxItems", size);
        bound(format!("{title}Listing"), "items", "maxItems", size.max(Limit::MAX.into()));
    }

    /// Removes CSV from the formats of an export if items are no rows of a table.
    pub fn limit_formats(&self, document: &mut Value) {
        if self.is_flat() {
            return;
        }
        let Some(Value::Object(paths)) = document.get_mut("paths") else { return };
        for export in paths.values_mut().filter_map(|path| path.get_mut("get")) {
            if let Some(Value::Object(types)) = export.pointer_mut("/responses/200/content") {
                types.shift_remove("text/csv");
            }
            for parameter in export["parameters"].as_array_mut().into_iter().flatten() {
                if parameter["name"] == "format" {
                    parameter["schema"]["enum"] = json!(["ndjson"]);
                }
            }
        }
    }

    fn is_flat(&self) -> bool {
        self.definition.item.columns().is_some()
    }
}
