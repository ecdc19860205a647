//! The schemas and examples of a definition's items for the OpenAPI document.
//!
//! They say the same as the schema of the definition, in the words of JSON Schema 2020-12: our formats become patterns, and
//! what the server refuses on its own becomes a keyword.

use serde_json::{Map, Value, json};

use super::names::{self, capitalised};
use super::one::Definition;
use crate::domain::{Instant, MAX_SAFE_INTEGER, OwnerType};
use crate::item::write_members;

/// Which form of an item a schema describes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As clients send it.
    New,
    /// As it is answered.
    Stored,
}

/// The schemas of a history's items, by their names in `components`: `NewTrade`, `NewTradeLine`, `Trade`, `PlacedTrade`,
/// `ExportedTrade`, and for each of the schema's `$defs` two more, such as `NewTrade_leg` and `Trade_leg`. Each has
/// examples, unless none could be made.
pub fn schemas(definition: &Definition) -> Vec<(String, Value)> {
    let title = &definition.title;
    let stored = stored(definition);
    let mut schemas = vec![
        (format!("New{title}"), Value::Object(new_item(definition))),
        (format!("New{title}Line"), new_line(definition)),
        (format!("Placed{title}"), placed(definition, stored.clone())),
        (format!("Exported{title}"), exported(definition, stored.clone())),
        (title.clone(), Value::Object(stored)),
    ];
    let shared = definition.source.get("$defs").and_then(Value::as_object);
    for (name, schema) in shared.into_iter().flatten() {
        for form in [Form::New, Form::Stored] {
            let schema = Rewriter { definition, form }.schema(schema);
            schemas.push((format!("{}_{name}", name_of(title, form)), schema));
        }
    }
    schemas
}

/// An item as a client sends it.
fn new_item(definition: &Definition) -> Map<String, Value> {
    let mut schema = root(definition, Form::New);
    let noun = definition.item.noun().article();
    let given = schema.get("description").and_then(Value::as_str);
    let description = given.map_or_else(|| format!("{} to append.", capitalised(&noun)), str::to_owned);
    let bytes = definition.max_item_bytes;
    schema.insert(
        "description".to_owned(),
        json!(format!("{description} At most {bytes} bytes when it is stored.")),
    );
    if !schema.contains_key("examples")
        && let Some(example) = definition.item.example()
    {
        schema.insert("examples".to_owned(), json!([example]));
    }
    schema
}

/// An item with its owner, as a client sends it in an upload to many histories.
fn new_line(definition: &Definition) -> Value {
    let (item, owner) = (definition.item.noun().article(), definition.owner_noun());
    let description = format!("{} to append, and its {owner}: one line of an upload.", capitalised(&item));
    owned(definition, new_item(definition), &description)
}

/// A stored item and its page.
fn placed(definition: &Definition, stored: Map<String, Value>) -> Value {
    let description = format!("A stored {} and the number of its page.", definition.item.noun().one());
    with_first(stored, "page", ordinal(), &json!(1), &description)
}

/// A stored item and its owner.
fn exported(definition: &Definition, stored: Map<String, Value>) -> Value {
    let (item, owner) = (definition.item.noun().article(), definition.owner_noun());
    owned(definition, stored, &format!("A row of NDJSON: {item} and its {owner}."))
}

fn owned(definition: &Definition, schema: Map<String, Value>, description: &str) -> Value {
    let owner = &definition.owner;
    with_first(schema, &owner.field, owner_id(owner.kind), &owner_example(owner.kind), description)
}

/// The schema with one more property, which is the first one, and required.
fn with_first(
    mut schema: Map<String, Value>,
    name: &str,
    property: Value,
    example: &Value,
    description: &str,
) -> Value {
    schema.insert("description".to_owned(), json!(description));
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    *properties = Value::Object(before(name, property, properties.as_object()));
    if let Value::Array(required) = schema.entry("required").or_insert_with(|| json!([])) {
        required.insert(0, json!(name));
    }
    if let Some(Value::Object(rule)) = schema.get_mut("propertyNames")
        && let Some(reserved) = rule.get_mut("not").and_then(|not| not["enum"].as_array_mut())
    {
        reserved.retain(|reserved| reserved != name);
    }
    for item in schema.get_mut("examples").and_then(Value::as_array_mut).into_iter().flatten() {
        *item = Value::Object(before(name, example.clone(), item.as_object()));
    }
    Value::Object(schema)
}

/// A stored item: `seq` first, and the date always.
fn stored(definition: &Definition) -> Map<String, Value> {
    let mut schema = root(definition, Form::Stored);
    let noun = definition.item.noun().one();
    schema.insert("description".to_owned(), json!(format!("A stored {noun}.")));
    let description = format!("Sequence number: the permanent address of the {noun} in its history.");
    let mut seq = ordinal();
    seq["description"] = json!(description);
    let properties = schema.get("properties").and_then(Value::as_object);
    schema.insert("properties".to_owned(), Value::Object(before("seq", seq, properties)));
    if let Value::Array(required) = schema.entry("required").or_insert_with(|| json!([])) {
        required.insert(0, json!("seq"));
        if !definition.date.required {
            required.push(json!(definition.date.name));
        }
    }
    match stored_example(definition) {
        Some(example) => schema.insert("examples".to_owned(), json!([example])),
        None => schema.shift_remove("examples"),
    };
    schema
}

/// The example of an item as it is answered, as the first item of its history.
fn stored_example(definition: &Definition) -> Option<Value> {
    let example = definition.item.example()?.to_string();
    let draft = definition.item.parse_drafts(example.as_bytes(), 1).ok()?.pop()?;
    let arrival = Instant::parse_rfc3339("2004-01-09T00:00:00.000Z").ok()?;
    let mut json = br#"{"seq":1"#.to_vec();
    write_members(draft.dated(arrival).document(), definition.key_field(), &definition.date.name, &mut json)
        .ok()?;
    json.push(b'}');
    serde_json::from_slice(&json).ok()
}

/// The schema of an owner's id.
pub fn owner_id(kind: OwnerType) -> Value {
    match kind {
        OwnerType::Integer => ordinal(),
        OwnerType::String => json!({ "type": "string", "pattern": "^[A-Za-z0-9-]{1,64}$" }),
    }
}

/// An owner's id.
pub fn owner_example(kind: OwnerType) -> Value {
    match kind {
        OwnerType::Integer => json!(7),
        OwnerType::String => json!("7f3a2c"),
    }
}

/// A whole number from 1 to 2^53 - 1.
fn ordinal() -> Value {
    json!({ "type": "integer", "format": "int64", "minimum": 1, "maximum": MAX_SAFE_INTEGER })
}

fn root(definition: &Definition, form: Form) -> Map<String, Value> {
    let Value::Object(mut schema) = (Rewriter { definition, form }).schema(&definition.source) else {
        return Map::new();
    };
    schema.shift_remove("$defs");
    if let Some(Value::Object(rule)) = schema.get_mut("propertyNames") {
        // As `Schema` refuses them on the first level.
        let reserved =
            names::RESERVED.iter().copied().chain([definition.owner.field.as_str(), definition.key_field()]);
        let reserved: Vec<_> = reserved.filter(|name| !name.starts_with('_')).collect();
        rule.insert("pattern".to_owned(), json!(r"^([^$._\u0000][^.\u0000]*)?$"));
        rule.insert("not".to_owned(), json!({ "enum": reserved }));
    }
    schema
}

fn name_of(title: &str, form: Form) -> String {
    match form {
        Form::New => format!("New{title}"),
        Form::Stored => title.to_owned(),
    }
}

fn before(name: &str, value: Value, members: Option<&Map<String, Value>>) -> Map<String, Value> {
    let rest = members.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone()));
    [(name.to_owned(), value)].into_iter().chain(rest).collect()
}

/// Puts a schema of the subset into the words of OpenAPI 3.1.
struct Rewriter<'a> {
    definition: &'a Definition,
    form: Form,
}

impl Rewriter<'_> {
    fn schema(&self, schema: &Value) -> Value {
        let Value::Object(schema) = schema else { return schema.clone() };
        let mut written = Map::new();
        for (keyword, value) in schema {
            let value = match (keyword.as_str(), value) {
                // An item may have been stored under an earlier schema, which allowed more.
                ("additionalProperties", Value::Bool(false)) if self.form == Form::Stored => continue,
                ("properties" | "$defs", Value::Object(schemas)) => {
                    schemas.iter().map(|(name, schema)| (name.clone(), self.schema(schema))).collect()
                }
                ("items" | "additionalProperties", schema) => self.schema(schema),
                ("$ref", Value::String(reference)) => {
                    let name = reference.trim_start_matches("#/$defs/");
                    let title = name_of(&self.definition.title, self.form);
                    json!(format!("#/components/schemas/{title}_{name}"))
                }
                (_, value) => value.clone(),
            };
            written.insert(keyword.clone(), value);
        }
        if self.form == Form::Stored && (may_be(schema, "object") || may_be(schema, "array")) {
            // Their dates are written as clients may send them.
            written.shift_remove("examples");
        }
        self.numbers(&mut written);
        self.text(&mut written);
        if self.form == Form::New
            && schema.contains_key("type")
            && may_be(schema, "object")
            && written.get("additionalProperties") != Some(&json!(false))
        {
            written.insert("propertyNames".to_owned(), json!({ "pattern": r"^([^$.\u0000][^.\u0000]*)?$" }));
        }
        Value::Object(written)
    }

    /// Integers are bounded.
    fn numbers(&self, schema: &mut Map<String, Value>) {
        if schema.get("type").is_none() || !may_be(schema, "integer") {
            return;
        }
        let most = MAX_SAFE_INTEGER as i64;
        let has = |schema: &Map<String, Value>, names: [&str; 2]| {
            names.iter().any(|name| schema.contains_key(*name))
        };
        if !has(schema, ["minimum", "exclusiveMinimum"]) {
            schema.insert("minimum".to_owned(), json!(-most));
        }
        if !has(schema, ["maximum", "exclusiveMaximum"]) {
            schema.insert("maximum".to_owned(), json!(most));
        }
        if schema.get("type") == Some(&json!("integer")) {
            schema.insert("format".to_owned(), json!("int64"));
        }
    }

    fn text(&self, schema: &mut Map<String, Value>) {
        match (schema.get("format").and_then(Value::as_str), self.form) {
            // A pattern and not the format, which says nothing of fraction digits or leap seconds.
            (Some("date-time"), Form::New) => {
                schema.shift_remove("format");
                add_pattern(schema, &new_instant());
            }
            (Some("date-time"), Form::Stored) => {
                schema.insert(
                    "description".to_owned(),
                    json!("RFC 3339 in UTC, with exactly three fraction digits."),
                );
                // They hold for the spelling that clients send.
                for keyword in ["pattern", "minLength", "maxLength", "enum", "const", "examples"] {
                    schema.shift_remove(keyword);
                }
                add_pattern(schema, INSTANT);
            }
            (Some("decimal"), _) => decimal(schema),
            _ => {}
        }
    }
}

fn may_be(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == kind,
        Some(Value::Array(names)) => names.iter().any(|name| name == kind),
        _ => true,
    }
}

/// A second pattern stands in `allOf`.
fn add_pattern(schema: &mut Map<String, Value>, pattern: &str) {
    if schema.contains_key("pattern") {
        schema.insert("allOf".to_owned(), json!([{ "pattern": pattern }]));
    } else {
        schema.insert("pattern".to_owned(), json!(pattern));
    }
}

/// An instant as it is answered: in RFC 3339, in UTC, with three fraction digits.
pub const INSTANT: &str = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$";

/// An instant as clients send it: in RFC 3339, with days that exist, at most three fraction digits, and no leap second.
pub fn new_instant() -> String {
    let day = "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])";
    let time = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,3})?";
    let leap = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29";
    let offset = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
    format!("^([0-9]{{4}}-({day})|{leap})T{time}{offset}$")
}

/// Decimal numbers in several shapes: 34 significant digits cannot be counted across a point by a regular expression, but a
/// length beside it can. Bounds other than 0 are told in words.
fn decimal(schema: &mut Map<String, Value>) {
    const BOUNDS: [(&str, &str); 4] = [
        ("minimum", "at least"),
        ("exclusiveMinimum", "greater than"),
        ("maximum", "at most"),
        ("exclusiveMaximum", "less than"),
    ];
    let (digits, scale) = (34, 6176);
    let number = |schema: &Map<String, Value>, name: &str| schema.get(name).and_then(Value::as_f64);
    let (least, above) = (number(schema, "minimum"), number(schema, "exclusiveMinimum"));
    let (most, below) = (number(schema, "maximum"), number(schema, "exclusiveMaximum"));
    let positive = most.is_none_or(|most| most > 0.0) && below.is_none_or(|below| below > 0.0);
    let negative = least.is_none_or(|least| least < 0.0) && above.is_none_or(|above| above < 0.0);
    let zero = least.is_none_or(|least| least <= 0.0)
        && above.is_none_or(|above| above < 0.0)
        && most.is_none_or(|most| most >= 0.0)
        && below.is_none_or(|below| below > 0.0);
    let shape = |sign: &str, pattern: &str, longest: usize| json!({ "type": "string", "pattern": format!("^{sign}{pattern}$"), "maxLength": longest + sign.len() });
    let mut shapes = Vec::new();
    for sign in [positive.then_some(""), negative.then_some("-")].into_iter().flatten() {
        shapes.push(shape(sign, "[1-9][0-9]*", digits));
        shapes.push(shape(sign, r"[1-9][0-9]*\.[0-9]+", digits + ".".len()));
        shapes.push(shape(sign, &format!(r"0\.0*[1-9][0-9]{{0,{}}}", digits - 1), scale + "0.".len()));
    }
    if zero {
        shapes.push(shape("-?", r"0(\.0+)?", scale + "0.".len()));
    }
    if may_be(schema, "null") {
        shapes.push(json!({ "type": "null" }));
    }
    let mut words = String::from("A decimal number in plain notation, with at most 34 significant digits");
    for (name, side) in BOUNDS {
        if let Some(bound) = schema.shift_remove(name) {
            words.push_str(&format!(", {side} {bound}"));
        }
    }
    let description = match schema.get("description").and_then(Value::as_str) {
        Some(given) => format!("{given} {words}."),
        None => format!("{words}."),
    };
    schema.insert("description".to_owned(), json!(description));
    schema.shift_remove("format");
    schema.shift_remove("type");
    schema.insert("oneOf".to_owned(), json!(shapes));
}
