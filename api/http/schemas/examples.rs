//! Examples of a definition's items, as requests and answers have them.

use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Instant, Seq};
use pagebucket_model::summary::Aggregate;
use pagebucket_streams::export::columns;
use serde_json::{Map, Value, json};

use super::items;

/// The examples of one definition. `None`: it cannot be made of this definition.
pub(crate) struct Examples {
    /// The id of an owner.
    pub owner: Value,
    /// As a client appends it.
    pub new_item: Option<Value>,
    /// Several of them.
    pub new_items: Option<Value>,
    /// The same as a line of an upload for many owners.
    pub new_line: Option<Value>,
    /// As the first item of its history.
    pub stored_item: Option<Value>,
    /// The same with the number of its page.
    pub placed_item: Option<Value>,
    /// The same as a row of an export.
    pub exported_item: Option<Value>,
    /// The same as a file of one row, if items are rows of a table.
    pub csv_rows: Option<Value>,
    /// What the item alone adds up to, if there are summaries.
    pub series_values: Option<Value>,
    /// What is wrong with an item, and where.
    pub fault: [String; 2],
}

impl Examples {
    /// The examples of a definition whose items have these schemas.
    pub(crate) fn of(definition: &Definition, schemas: &Map<String, Value>) -> Self {
        let title = &definition.title;
        let examples = |schema: String| schemas.get(&schema)?.get("examples")?.as_array();
        let first = |schema: String| examples(schema)?.first().cloned();
        let exported_item = first(format!("Exported{title}"));
        Self {
            owner: items::owner_example(definition.owner.kind),
            new_item: first(format!("{title}Input")).map(|item| undated(definition, item)),
            new_items: examples(format!("{title}Input")).map(|items| json!(items)),
            new_line: first(format!("{title}LineInput")).map(|item| undated(definition, item)),
            stored_item: first(title.clone()),
            placed_item: first(format!("Placed{title}")),
            csv_rows: exported_item.as_ref().and_then(|item| csv(definition, item)),
            exported_item,
            series_values: series_values(definition),
            fault: fault(definition),
        }
    }
}

/// An example in an address or a sentence.
pub(crate) fn text_of(example: &Value) -> String {
    example.as_str().map_or_else(|| example.to_string(), str::to_owned)
}

/// Without the date, if clients need not send it.
fn undated(definition: &Definition, mut item: Value) -> Value {
    let date = &definition.date;
    if let Some(item) = item.as_object_mut().filter(|_| !date.required) {
        item.shift_remove(&date.name);
    }
    item
}

fn series_values(definition: &Definition) -> Option<Value> {
    let values = &definition.summaries.as_ref()?.values;
    let example = definition.item.example()?.to_string();
    let draft = definition.item.parse_drafts(example.as_bytes(), 1).ok()?.pop()?;
    let aggregate = Aggregate::of_item(Seq::FIRST, Instant::MIN, draft.document(), values);
    let names = values.iter().map(|value| value.name.clone());
    let measured = aggregate.measured(values).into_iter().map(|measured| json!(measured));
    Some(Value::Object(names.zip(measured).collect()))
}

fn fault(definition: &Definition) -> [String; 2] {
    let required = definition.source.get("required").and_then(Value::as_array);
    match required.and_then(|required| required.last()?.as_str()) {
        Some(name) => [format!("/0/{name}"), "is required".to_owned()],
        None => {
            let item = definition.item.noun().article();
            ["/0".to_owned(), format!("must be {item}, which is an object, not a string")]
        }
    }
}

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
