//! The schemas and examples of a definition's items for the OpenAPI document.
//!
//! They say the same as the schema of the definition, in the words of JSON Schema 2020-12: our formats become
//! patterns, and what the server refuses on its own becomes a keyword.

use pagebucket_model::definition::{Definition, Measure, StoredNumber, Summaries, capitalised};
use pagebucket_model::domain::{Instant, MAX_SAFE_INTEGER, OwnerType};
use pagebucket_model::item::{SIDES, write_members};
use serde_json::{Map, Value, json};

/// Which form of an item a schema describes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As clients send it.
    New,
    /// As it is answered.
    Stored,
}

/// The schemas of a history's items, by their names in `components`: `TradeInput`, `TradeLineInput`, `Trade`,
/// `PlacedTrade`, `ExportedTrade`, with summaries `TradeSeriesGroup` and `TradeSeriesValues`, and for each of
/// the schema's `$defs` two more, such as `TradeInput_leg` and `Trade_leg`. Each has examples, unless none
/// could be made.
pub(crate) fn schemas(definition: &Definition) -> Vec<(String, Value)> {
    let (new, stored) = (new_item(definition), stored(definition));
    let (title, item, owner) = (&definition.title, definition.item.noun(), definition.owner.noun());
    let an_item = item.article();
    let owned = |schema: &Value, description| {
        let (field, kind) = (&definition.owner.field, definition.owner.kind);
        with_first(schema.clone(), field, owner_id(kind), &owner_example(kind), description)
    };
    let line = format!("{} to append, and its {owner}: one line of an upload.", capitalised(an_item));
    let placed = format!("A stored {} and the number of its page.", item.one());
    let row =
        format!("A row of NDJSON: {an_item} and its {owner}, or those of its members that `fields` names.");
    let mut schemas = vec![
        (format!("{title}LineInput"), owned(&new, line)),
        (format!("Placed{title}"), with_first(stored.clone(), "page", ordinal(), &json!(1), placed)),
        (format!("Exported{title}"), without_required(owned(&stored, row))),
        (name_of(title, Form::New), new),
        (name_of(title, Form::Stored), stored),
    ];
    if let Some(summaries) = &definition.summaries {
        schemas.push((format!("{title}SeriesGroup"), series_group(definition, summaries)));
        schemas.push((format!("{title}SeriesValues"), series_values(definition, summaries)));
    }
    for (name, schema) in definition.source.get("$defs").and_then(Value::as_object).into_iter().flatten() {
        for form in [Form::New, Form::Stored] {
            schemas.push((format!("{}_{name}", name_of(title, form)), rewritten(schema, definition, form)));
        }
    }
    schemas
}

/// An item as a client sends it.
fn new_item(definition: &Definition) -> Value {
    let mut schema = root(definition, Form::New);
    let ours = || format!("{} to append.", capitalised(definition.item.noun().article()));
    let description = schema["description"].as_str().map_or_else(ours, str::to_owned);
    let bytes = definition.max_item_bytes;
    schema["description"] = json!(format!("{description} At most {bytes} bytes when it is stored."));
    if schema.get("examples").is_none()
        && let Some(example) = definition.item.example()
    {
        schema["examples"] = json!([example]);
    }
    schema
}

/// The schema of an object that may have a part of its members.
fn without_required(mut schema: Value) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.shift_remove("required");
    }
    schema
}

/// The schema with one more property, which is the first one, and required.
fn with_first(mut schema: Value, name: &str, property: Value, example: &Value, description: String) -> Value {
    schema["description"] = json!(description);
    schema["properties"] = before(name, property, &schema["properties"]);
    match &mut schema["required"] {
        Value::Array(required) => required.insert(0, json!(name)),
        none => *none = json!([name]),
    }
    if let Some(reserved) = schema.pointer_mut("/propertyNames/not/enum").and_then(Value::as_array_mut) {
        reserved.retain(|reserved| reserved != name);
    }
    for item in schema.get_mut("examples").and_then(Value::as_array_mut).into_iter().flatten() {
        *item = before(name, example.clone(), item);
    }
    schema
}

fn before(name: &str, value: Value, members: &Value) -> Value {
    let rest = members.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone()));
    [(name.to_owned(), value)].into_iter().chain(rest).collect()
}

/// A stored item: `seq` first, and the date always.
fn stored(definition: &Definition) -> Value {
    let (noun, date) = (definition.item.noun().one(), &definition.date);
    let mut seq = ordinal();
    seq["description"] =
        json!(format!("Sequence number: the permanent address of the {noun} in its history."));
    let schema = root(definition, Form::Stored);
    let mut schema = with_first(schema, "seq", seq, &json!(1), format!("A stored {noun}."));
    if let Some(required) = schema["required"].as_array_mut().filter(|_| !date.required) {
        required.push(json!(date.name));
    }
    if let Some(example) = stored_example(definition) {
        schema["examples"] = json!([example]);
    }
    schema
}

/// The example of an item as it is answered, as the first item of its history.
pub(crate) fn stored_example(definition: &Definition) -> Option<Value> {
    let example = definition.item.example()?.to_string();
    let draft = definition.item.parse_drafts(example.as_bytes(), 1).ok()?.pop()?;
    let arrival = Instant::parse_rfc3339("2004-01-09T00:00:00.000Z").ok()?;
    let mut json = br#"{"seq":1"#.to_vec();
    write_members(draft.dated(arrival).document(), definition.key_field(), &definition.date.name, &mut json)
        .ok()?;
    json.push(b'}');
    serde_json::from_slice(&json).ok()
}

/// The texts that a group of a summary has.
fn series_group(definition: &Definition, summaries: &Summaries) -> Value {
    let items = definition.item.noun().many();
    let item = definition.item.example().unwrap_or_default();
    let meta = definition.time_series.iter().flat_map(|series| &series.meta);
    let meta = meta.filter(|name| !summaries.groups.contains(name));
    let names: Vec<_> = summaries.groups.iter().chain(meta).collect();
    let example = names.iter().filter_map(|name| Some(((*name).clone(), item.get(*name)?.clone())));
    let texts = names.iter().map(|name| {
        // Also those that an earlier schema allowed.
        ((*name).clone(), json!({ "type": "string", "maxLength": Summaries::MAX_GROUP }))
    });
    json!({
        "type": "object",
        "description": format!("What all {items} of a point have."),
        "properties": texts.collect::<Map<_, _>>(),
        "additionalProperties": false,
        "examples": [example.filter(|(_, text)| text.is_string()).collect::<Map<_, _>>()],
    })
}

/// What becomes of the numbers of a summary.
fn series_values(definition: &Definition, summaries: &Summaries) -> Value {
    let items = definition.item.noun().many();
    let values = summaries.values.iter().map(|value| {
        let number = match value.kind {
            StoredNumber::Integer => {
                let most = MAX_SAFE_INTEGER as i64;
                json!({ "type": "integer", "minimum": -most, "maximum": most })
            }
            StoredNumber::Decimal => any_decimal(),
            StoredNumber::Double => json!({ "type": "number", "minimum": f64::MIN, "maximum": f64::MAX }),
        };
        let own = |measure: &'static str, which| (measure, number.clone(), format!("The {which}."));
        let measures = value.measures.iter().flat_map(|measure| match measure {
            Measure::Sum => {
                let sum = "The exact sum: a string, because it may have more digits than a number keeps.";
                vec![("sum", any_decimal(), sum.to_owned())]
            }
            Measure::Min => vec![own("min", "least")],
            Measure::Max => vec![own("max", "greatest")],
            Measure::Ohlc => vec![
                own("open", "first by date"),
                own("high", "greatest"),
                own("low", "least"),
                own("close", "last by date"),
            ],
            Measure::Vwap { weight, .. } => {
                let average =
                    format!("The average, weighted by `{weight}`, rounded once to 34 digits, half to even.");
                vec![("vwap", any_decimal(), average)]
            }
        });
        let described = |(measure, mut schema, about): (&str, Value, String)| {
            schema["description"] = json!(about);
            (measure.to_owned(), schema)
        };
        let measures: Map<_, _> = measures.map(described).collect();
        let name = &value.name;
        let schema = json!({
            "type": "object",
            "description": format!("Of the `{name}` of the {items}. What none of them makes is absent."),
            "properties": measures,
            "additionalProperties": false,
        });
        (name.clone(), schema)
    });
    let values: Map<_, _> = values.collect();
    let required: Vec<_> = values.keys().cloned().collect();
    let mut schema = json!({
        "type": "object",
        "description": "What the definition summarises.",
        "properties": values,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Any decimal number, as it is answered.
fn any_decimal() -> Value {
    json!({ "type": "string", "pattern": r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$", "maxLength": LONGEST_DECIMAL })
}

/// The UUID of examples.
const UUID: &str = "123e4567-e89b-42d3-a456-426614174000";

/// The schema of an owner's id.
pub(crate) fn owner_id(kind: OwnerType) -> Value {
    let mut schema = match kind {
        OwnerType::Integer => ordinal(),
        OwnerType::String => {
            json!({ "type": "string", "pattern": "^[A-Za-z0-9-]{1,64}$", "maxLength": OwnerType::MAX_LEN })
        }
        // In requests either case is read, and answers are in lower case.
        OwnerType::Uuid => json!({ "type": "string", "format": "uuid", "maxLength": UUID.len() }),
    };
    schema["examples"] = json!([owner_example(kind)]);
    schema
}

/// A pattern of owners' ids as part of a text.
pub(crate) fn owner_pattern(kind: OwnerType) -> &'static str {
    match kind {
        OwnerType::Integer => "([1-9][0-9]{0,14}|[1-8][0-9]{15})",
        OwnerType::String => "[A-Za-z0-9-]{1,64}",
        OwnerType::Uuid => "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    }
}

/// An owner's id.
pub(crate) fn owner_example(kind: OwnerType) -> Value {
    match kind {
        OwnerType::Integer => json!(7),
        OwnerType::String => json!("7f3a2c"),
        OwnerType::Uuid => json!(UUID),
    }
}

/// A whole number from 1 to 2^53 - 1.
pub(crate) fn ordinal() -> Value {
    json!({ "type": "integer", "format": "int64", "minimum": 1, "maximum": MAX_SAFE_INTEGER })
}

fn root(definition: &Definition, form: Form) -> Value {
    let mut schema = rewritten(&definition.source, definition, form);
    if let Some(rule) = schema.get_mut("propertyNames") {
        // As `Schema` refuses them on the first level.
        let reserved: Vec<_> =
            definition.item.reserved().iter().filter(|name| !name.starts_with('_')).collect();
        *rule = json!({ "pattern": r"^([^$._\u0000][^.\u0000]*)?$", "not": { "enum": reserved } });
    }
    schema
}

fn name_of(title: &str, form: Form) -> String {
    match form {
        Form::New => format!("{title}Input"),
        Form::Stored => title.to_owned(),
    }
}

/// A schema of the subset in the words of OpenAPI 3.1.
fn rewritten(schema: &Value, definition: &Definition, form: Form) -> Value {
    let Value::Object(schema) = schema else { return schema.clone() };
    let mut written = Map::new();
    for (keyword, value) in schema {
        let value = match (keyword.as_str(), value) {
            // They are schemas of their own.
            ("$defs", _) => continue,
            // In words: generated clients would send a default, or demand it, and show it in answers that do
            // not have it.
            ("default", _) => continue,
            // An item may have been stored under an earlier schema, which allowed more.
            ("additionalProperties", Value::Bool(false)) if form == Form::Stored => continue,
            ("properties", Value::Object(schemas)) => schemas
                .iter()
                .map(|(name, schema)| (name.clone(), rewritten(schema, definition, form)))
                .collect(),
            ("items" | "additionalProperties", schema) => rewritten(schema, definition, form),
            ("$ref", Value::String(reference)) => {
                let name = reference.trim_start_matches("#/$defs/");
                json!(format!("#/components/schemas/{}_{name}", name_of(&definition.title, form)))
            }
            (_, value) => value.clone(),
        };
        written.insert(keyword.clone(), value);
    }
    if let Some(default) = schema.get("default").filter(|_| form == Form::New) {
        describe(&mut written, &format!("Default: `{default}`."));
    }
    if form == Form::Stored && (may_be(schema, "object") || may_be(schema, "array")) {
        // Their dates are written as clients may send them.
        written.shift_remove("examples");
    }
    bound_integers(&mut written);
    rewrite_format(&mut written, form);
    bound_sizes(&mut written, definition.max_item_bytes);
    let is_listed = ["enum", "const", "$ref"].iter().any(|keyword| schema.contains_key(*keyword));
    if form == Form::New
        && !is_listed
        && may_be(schema, "object")
        && written.get("additionalProperties") != Some(&json!(false))
    {
        // As the checker refuses them in every object.
        written.insert("propertyNames".to_owned(), json!({ "pattern": r"^([^$.\u0000][^.\u0000]*)?$" }));
    }
    Value::Object(written)
}

/// Adds a sentence to the description.
fn describe(schema: &mut Map<String, Value>, sentence: &str) {
    let given = schema.get("description").and_then(Value::as_str).map(|given| format!("{given} "));
    schema.insert("description".to_owned(), json!(given.unwrap_or_default() + sentence));
}

fn bound_integers(schema: &mut Map<String, Value>) {
    if !schema.contains_key("type") || !may_be(schema, "integer") {
        return;
    }
    let most = MAX_SAFE_INTEGER as i64;
    bound(schema, json!(-most), json!(most));
}

/// What has no bound of its own has that of the whole item. In BSON no character, element or member takes
/// less than a byte.
fn bound_sizes(schema: &mut Map<String, Value>, max_item_bytes: usize) {
    if !schema.contains_key("type") {
        return;
    }
    let listed = schema.contains_key("enum") || schema.contains_key("const");
    let size = json!(max_item_bytes);
    if may_be(schema, "string") && !listed {
        schema.entry("maxLength").or_insert(size.clone());
    }
    if may_be(schema, "array") {
        schema.entry("maxItems").or_insert(size.clone());
    }
    if schema.get("additionalProperties").is_some_and(Value::is_object) {
        schema.entry("maxProperties").or_insert(size);
    }
    if may_be(schema, "number") {
        bound(schema, json!(f64::MIN), json!(f64::MAX));
    }
}

/// Bounds numbers that have no bounds of their own.
fn bound(schema: &mut Map<String, Value>, least: Value, most: Value) {
    for (closed, open, bound) in
        [("minimum", "exclusiveMinimum", least), ("maximum", "exclusiveMaximum", most)]
    {
        if !schema.contains_key(open) {
            schema.entry(closed).or_insert(bound);
        }
    }
}

fn rewrite_format(schema: &mut Map<String, Value>, form: Form) {
    match (schema.get("format").and_then(Value::as_str), form) {
        // A pattern and not the format, which says nothing of fraction digits or leap seconds.
        (Some("date-time"), Form::New) => {
            schema.shift_remove("format");
            restrict(schema, new_instant(), NEW_INSTANT_LENGTH);
        }
        (Some("date-time"), Form::Stored) => {
            let description = "RFC 3339 in UTC, with exactly three fraction digits.";
            schema.insert("description".to_owned(), json!(description));
            // They hold for the spelling that clients send.
            for keyword in ["pattern", "minLength", "maxLength", "enum", "const", "examples"] {
                schema.shift_remove(keyword);
            }
            schema.insert("pattern".to_owned(), json!(INSTANT));
            schema.insert("maxLength".to_owned(), json!(INSTANT_LENGTH));
        }
        (Some("decimal"), _) => rewrite_decimal(schema),
        _ => {}
    }
}

/// Adds a pattern to that which the schema may have, and a length if it has none.
fn restrict(schema: &mut Map<String, Value>, pattern: String, longest: usize) {
    match schema.contains_key("pattern") {
        true => schema.insert("allOf".to_owned(), json!([{ "pattern": pattern }])),
        false => schema.insert("pattern".to_owned(), json!(pattern)),
    };
    schema.entry("maxLength").or_insert(json!(longest));
}

fn may_be(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == kind,
        Some(Value::Array(names)) => names.iter().any(|name| name == kind),
        _ => true,
    }
}

/// An instant as it is answered: in RFC 3339, in UTC, with three fraction digits.
pub(crate) const INSTANT: &str = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$";

/// The length of an instant as it is answered.
pub(crate) const INSTANT_LENGTH: usize = "2004-01-09T00:00:00.000Z".len();

/// The length of the longest instant that clients send.
pub(crate) const NEW_INSTANT_LENGTH: usize = "2004-01-09T00:00:00.000000000+00:00".len();

/// An instant as clients send it: in RFC 3339, with days that exist, not finer than milliseconds, and no leap
/// second.
pub(crate) fn new_instant() -> String {
    let day = "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])";
    let time = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,3}0{0,6})?";
    let leap = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29";
    let offset = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
    format!("^([0-9]{{4}}-({day})|{leap})T{time}{offset}$")
}

/// Decimal numbers as one string. A regular expression cannot count significant digits across a point: it
/// allows 33 on either side, and the description states the rule. So it does with bounds other than 0.
fn rewrite_decimal(schema: &mut Map<String, Value>) {
    let mut words = String::from("A decimal number in plain notation, with at most 34 significant digits");
    let mut bounds = Vec::new();
    for side in &SIDES {
        if let Some(bound) = schema.shift_remove(side.keyword) {
            words.push_str(&format!(", {} {bound}", side.words));
            bounds.extend(bound.as_f64().map(|bound| (side, bound)));
        }
    }
    let positive = bounds.iter().all(|(side, bound)| side.lower || *bound > 0.0);
    let negative = bounds.iter().all(|(side, bound)| !side.lower || *bound < 0.0);
    let zero =
        bounds.iter().all(|(side, bound)| 0.0_f64.partial_cmp(bound).is_some_and(|order| side.has(order)));
    let number = r"[1-9][0-9]{0,33}|[1-9][0-9]{0,32}\.[0-9]{1,33}|0\.0*[1-9][0-9]{0,33}";
    let number = match (positive, negative) {
        (true, true) => Some(format!("-?({number})")),
        (true, false) => Some(number.to_owned()),
        (false, true) => Some(format!("-({number})")),
        (false, false) => None,
    };
    let shapes: Vec<_> = number.into_iter().chain(zero.then(|| r"-?0(\.0+)?".to_owned())).collect();
    describe(schema, &format!("{words}."));
    schema.shift_remove("format");
    restrict(schema, format!("^({})$", shapes.join("|")), LONGEST_DECIMAL);
}

/// The length of the longest decimal number: a sign, a zero, a point, and as many digits as a decimal128 can
/// have after it.
const LONGEST_DECIMAL: usize = "-0.".len() + 6176;
