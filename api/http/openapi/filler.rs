//! Fills the templates of the OpenAPI document with what a definition says.

use std::sync::Arc;

use pagebucket_engine::internal::MOST_EXAMINED;
use pagebucket_model::definition::{Definition, Definitions};
use pagebucket_model::domain::{Instant, Limit, Seq};
use pagebucket_model::summary::Aggregate;
use pagebucket_streams::export::{Fields, columns};
use serde_json::{Map, Value, json};

use crate::resources::links::{MOST_FILTER_BYTES, MOST_FILTER_VALUES};
use crate::routes::names::Names;
use crate::schemas::{OWNER_ID, items};

const REFERENCE: &str = "#/components/schemas/";

/// Fills templates with what one definition says.
pub(crate) struct Filler<'a> {
    definition: &'a Definition,
    /// The texts for placeholders.
    pub names: Names,
    /// The schemas of the items, with their examples.
    schemas: Map<String, Value>,
}

/// What a placeholder of a template stands for.
enum Placeholder {
    /// This example.
    Example(Value),
    /// An example that cannot be made of this definition.
    NoExample,
    /// Words, or nothing of ours.
    Words,
}

impl<'a> Filler<'a> {
    /// For the templates of this definition.
    pub(crate) fn of(definition: &'a Definition) -> Self {
        let schemas = items::schemas(definition).into_iter().collect();
        Self { definition, names: Names::of(definition).with(texts(definition)), schemas }
    }

    /// For the templates of all these definitions, with examples of this one.
    pub(crate) fn of_all(self, definitions: &Definitions) -> Self {
        let history = |definition: &Arc<Definition>| {
            let Definition { owner, name, .. } = &**definition;
            format!("{}/{}/{name}", owner.collection, items::owner_pattern(owner.kind))
        };
        let watchable: Vec<_> = definitions.iter().map(history).collect();
        Self { names: self.names.with([("watchable", watchable.join("|"))]), ..self }
    }

    /// The document of the definition's routes and schemas.
    pub(crate) fn document(&self, template: &Value) -> Value {
        let mut document = self.fill(template).unwrap_or_default();
        if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
            for (name, schema) in std::mem::take(schemas) {
                schemas.insert(self.schema_name(&name), joined(schema));
            }
            schemas.extend(self.schemas.clone());
            self.bound_pages(schemas);
        }
        if let (Err(_), Value::Object(paths)) = (self.definition.item.columns(), &mut document["paths"]) {
            paths.retain(|path, _| !path.ends_with(".csv"));
        }
        self.leave_out_summaries(&mut document);
        self.leave_out_time_series(&mut document);
        let filters = &self.definition.filters;
        for (address, about, filters) in [
            (OF_ONE.to_owned(), OF_LISTING, filters),
            (format!("{OF_ONE}~1summary"), OF_SUMMARY, filters),
            (OF_ALL.to_owned(), OF_SUMMARY, self.meta()),
        ] {
            let address = self.names.fill(&format!("{address}/get/parameters"));
            if let Some(Value::Array(parameters)) = document.pointer_mut(&address) {
                parameters.extend(self.filters(filters, about));
            }
        }
        self.name_groups(&mut document);
        self.name_fields(&mut document);
        document
    }

    /// `None` if this is or has an example that cannot be made.
    fn fill(&self, template: &Value) -> Option<Value> {
        Some(match template {
            Value::String(text) => {
                let placeholder = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
                match placeholder.map_or(Placeholder::Words, |name| self.placeholder(name)) {
                    Placeholder::Example(example) => example,
                    Placeholder::NoExample => return None,
                    Placeholder::Words => Value::String(self.text(text)),
                }
            }
            Value::Array(values) => {
                Value::Array(values.iter().map(|value| self.fill(value)).collect::<Option<_>>()?)
            }
            Value::Object(members)
                if members.get("$ref") == Some(&json!(format!("{REFERENCE}{OWNER_ID}"))) =>
            {
                items::owner_id(self.definition.owner.kind)
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

    /// The example that a placeholder stands for, if it can be made.
    pub(crate) fn example(&self, placeholder: &str) -> Option<Value> {
        match self.placeholder(placeholder) {
            Placeholder::Example(example) => Some(example),
            Placeholder::NoExample | Placeholder::Words => None,
        }
    }

    /// What a placeholder stands for.
    fn placeholder(&self, name: &str) -> Placeholder {
        let title = &self.definition.title;
        let examples = |schema: String| self.schemas.get(&schema)?.get("examples")?.as_array();
        let first = |schema: String| examples(schema)?.first().cloned();
        let example = match name {
            "ownerExample" => Some(items::owner_example(self.definition.owner.kind)),
            "newItem" => first(format!("{title}Input")).map(|item| self.undated(item)),
            "newItems" => examples(format!("{title}Input")).map(|items| json!(items)),
            "newLine" => first(format!("{title}LineInput")).map(|item| self.undated(item)),
            "storedItem" => first(title.clone()),
            "placedItem" => first(format!("Placed{title}")),
            "exportedItem" => first(format!("Exported{title}")),
            "seriesValues" => series_values(self.definition),
            "csvRows" => first(format!("Exported{title}")).and_then(|item| csv(self.definition, &item)),
            _ => return Placeholder::Words,
        };
        example.map_or(Placeholder::NoExample, Placeholder::Example)
    }

    /// Without the date, if clients need not send it.
    fn undated(&self, mut item: Value) -> Value {
        let date = &self.definition.date;
        if let Some(item) = item.as_object_mut().filter(|_| !date.required) {
            item.shift_remove(&date.name);
        }
        item
    }

    /// Leaves out the summaries of a definition that has none.
    fn leave_out_summaries(&self, document: &mut Value) {
        if self.definition.summaries.is_some() {
            return;
        }
        if let Value::Object(paths) = &mut document["paths"] {
            paths.retain(|path, _| !path.ends_with("/summary"));
        }
        if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
            for name in ["Series", "SeriesPoint", "SeriesGroup", "SeriesValues"] {
                schemas.shift_remove(&format!("{}{name}", self.definition.title));
            }
            schemas.shift_remove("SeriesFault");
        }
    }

    /// Leaves out the summary over all owners of a definition that has no time series.
    fn leave_out_time_series(&self, document: &mut Value) {
        if self.definition.summaries.is_some() && self.definition.time_series.is_some() {
            return;
        }
        if let Value::Object(paths) = &mut document["paths"] {
            paths.shift_remove(&self.names.fill("/v1/{items}/summary"));
        }
        if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
            schemas.shift_remove(&format!("{}SeriesOfAll", self.definition.title));
        }
    }

    /// The properties that the metaField of the time series has beside the owner.
    fn meta(&self) -> &'a Vec<String> {
        const NONE: &Vec<String> = &Vec::new();
        self.definition.time_series.as_ref().map_or(NONE, |series| &series.meta)
    }

    /// Writes the names that `group` of a summary may have.
    fn name_groups(&self, document: &mut Value) {
        let Some(summaries) = &self.definition.summaries else { return };
        for (address, groups) in
            [(format!("{OF_ONE}~1summary"), &summaries.groups), (OF_ALL.to_owned(), self.meta())]
        {
            let address = self.names.fill(&format!("{address}/get/parameters"));
            let Some(Value::Array(parameters)) = document.pointer_mut(&address) else { continue };
            parameters.retain(|parameter| parameter["name"] != "group" || !groups.is_empty());
            for group in parameters.iter_mut().filter(|parameter| parameter["name"] == "group") {
                group["schema"]["items"]["enum"] = json!(groups);
                group["schema"]["maxItems"] = json!(groups.len());
                group["schema"]["examples"] = json!([groups[..1]]);
            }
        }
    }

    /// The parameters that are properties of items. `about` says what they do.
    fn filters<'n>(&'n self, names: &'n [String], about: &'n str) -> impl Iterator<Item = Value> + 'n {
        let properties = &self.schemas[&format!("{}Input", self.definition.title)]["properties"];
        let example = self.example("newItem");
        names.iter().map(move |name| {
            let mut schema = properties[name].clone();
            if let Some(schema) = schema.as_object_mut() {
                // A filter without a value does not filter, whatever the default of the property is.
                let of_items = ["description", "examples", "default"];
                schema.retain(|keyword, _| !of_items.contains(&keyword.as_str()));
                without_null(schema);
                let longest = schema.get("maxLength").and_then(Value::as_u64);
                if longest.is_none_or(|longest| longest > MOST_FILTER_BYTES as u64) && !schema.contains_key("enum") {
                    schema.insert("maxLength".to_owned(), json!(MOST_FILTER_BYTES));
                }
            }
            let template = format!(
                "Only {{manyItems}} with this `{name}`, or with one of several: repeat the parameter for each value. {about}"
            );
            let template = template
                .replace("{mostExamined}", &MOST_EXAMINED.to_string())
                .replace("{mostBytes}", &MOST_FILTER_BYTES.to_string());
            let mut values = json!({
                "type": "array", "items": schema, "minItems": 1, "maxItems": MOST_FILTER_VALUES, "uniqueItems": true,
            });
            if let Some(example) = example.as_ref().and_then(|item| item.get(name)).filter(|value| value.is_string()) {
                values["examples"] = json!([[example]]);
            }
            json!({
                "name": name, "in": "query", "description": self.names.fill(&template), "required": false,
                "style": "form", "explode": true, "schema": values,
            })
        })
    }

    /// Writes the names that `fields` of exports may have.
    fn name_fields(&self, document: &mut Value) {
        let names = Fields::names(self.definition);
        let exports = self.names.fill("/v1/{owners}/{ownerId}/{items}/export.");
        let paths = document.get_mut("paths").and_then(Value::as_object_mut).into_iter().flatten();
        for (_, export) in paths.filter(|(path, _)| path.starts_with(&exports)) {
            let parameters = export.pointer_mut("/get/parameters").and_then(Value::as_array_mut);
            for fields in parameters.into_iter().flatten().filter(|parameter| parameter["name"] == "fields") {
                fields["schema"]["items"]["enum"] = json!(names);
                fields["schema"]["maxItems"] = json!(names.len());
                fields["schema"]["examples"] = json!([names]);
            }
        }
    }

    /// Writes the page size into the schemas of pages and listings.
    fn bound_pages(&self, schemas: &mut Map<String, Value>) {
        let (title, size) = (&self.definition.title, self.definition.page_size.get());
        for (schema, property, keyword, most) in [
            ("Page", "count", "maximum", size),
            ("Page", "items", "maxItems", size),
            ("Listing", "items", "maxItems", size.max(Limit::MAX.into())),
        ] {
            let schema = schemas.get_mut(&format!("{title}{schema}"));
            if let Some(property) = schema.and_then(|schema| schema["properties"].get_mut(property)) {
                property[keyword] = json!(most);
            }
        }
    }
}

/// Where the document has the routes of the items of one owner, and the summary over all owners.
const OF_ONE: &str = "/paths/~1v1~1{owners}~1{ownerId}~1{items}";
const OF_ALL: &str = "/paths/~1v1~1{items}~1summary";

/// What a filter does to a listing.
const OF_LISTING: &str = "They are still in order of `seq`, and the answer has no totals. A request examines at most {mostExamined} pages, with \
                          `from` or `to` only such as may hold {manyItems} of that span: the answer may have fewer {manyItems} than \
                          `limit`, or none, and a link to the next. All filters of a request together have at most \
                          {mostBytes} bytes. Not together with `page`, `offset` or `asOf`.";

/// What a filter does to a summary.
const OF_SUMMARY: &str =
    "Others are in no point. All filters of a request together have at most {mostBytes} bytes.";

/// What the example of an item alone adds up to.
fn series_values(definition: &Definition) -> Option<Value> {
    let values = &definition.summaries.as_ref()?.values;
    let example = definition.item.example()?.to_string();
    let draft = definition.item.parse_drafts(example.as_bytes(), 1).ok()?.pop()?;
    let aggregate = Aggregate::of_item(Seq::FIRST, Instant::MIN, draft.document(), values);
    let names = values.iter().map(|value| value.name.clone());
    let measured = aggregate.measured(values).into_iter().map(|measured| json!(measured));
    Some(Value::Object(names.zip(measured).collect()))
}

/// The texts that examples and formats make.
fn texts(definition: &Definition) -> Vec<(&'static str, String)> {
    let required = definition.source.get("required").and_then(Value::as_array);
    let (pointer, detail) = match required.and_then(|required| required.last()?.as_str()) {
        Some(name) => (format!("/0/{name}"), "is required".to_owned()),
        None => {
            let item = definition.item.noun().article();
            ("/0".to_owned(), format!("must be {item}, which is an object, not a string"))
        }
    };
    let owner = items::owner_example(definition.owner.kind);
    vec![
        ("ownerExample", owner.as_str().map_or_else(|| owner.to_string(), str::to_owned)),
        ("faultPointer", pointer),
        ("faultDetail", detail),
    ]
}

/// The schema of the texts alone: a parameter has no word for `null`.
fn without_null(schema: &mut Map<String, Value>) {
    for keyword in ["type", "enum"] {
        if let Some(Value::Array(values)) = schema.get_mut(keyword) {
            values.retain(|value| !value.is_null() && (keyword != "type" || value != "null"));
        }
    }
    if let Some([only]) = schema.get("type").and_then(Value::as_array).map(Vec::as_slice) {
        schema["type"] = only.clone();
    }
}

/// A file of one row. `None` if items are no rows of a table.
fn csv(definition: &Definition, item: &Value) -> Option<Value> {
    let columns = [vec![definition.owner.field.clone(), "seq".to_owned()], columns(definition)?].concat();
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
pub(crate) fn merge(to: &mut Value, more: Value) {
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
