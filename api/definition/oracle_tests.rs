//! The checker against the `jsonschema` crate, over generated schemas of the subset and generated items.
//!
//! Both judge alike, except for what docs/histories.md lists: the notation of integers, date-times finer than milliseconds, names
//! that the database reads as paths, nesting, sizes. The generators keep clear of these.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRng;
use serde_json::{Map, Value, json};

use super::all::Definitions;
use super::one::Definition;
use super::openapi;
use crate::domain::Instant;
use crate::item::{canonical, check_stored, write_members};

const TEXTS: &[&str] = &[
    "",
    "a",
    "aa",
    "b",
    "AB",
    "abc",
    "12",
    "007",
    "😀",
    "éé",
    "buy",
    "MDB",
    " ",
    "a\nb",
    "\u{0}",
    "2004-01-09T00:00:00Z",
    "2004-01-09T01:30:00.5+01:30",
    "2004-01-09",
    "2004-02-30",
    "123e4567-e89b-42d3-a456-426614174000",
    "ann@example.org",
    "ann@",
    "https://example.org/a?b#c",
    "example.org",
    "15.54",
    "0",
    "0.00",
    "-1.5",
    "1e3",
    "01",
    "12345678901234567890123456789012345",
];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "5",
    "10",
    "419",
    "1.5",
    "0.1",
    "0.3",
    "-0.5",
    "2.25",
    "1e-7",
    "1e21",
    "9007199254740991",
    "-9007199254740991",
    "123456.789",
    "5e-324",
    "1.7976931348623157e308",
];
const BOUNDS: &[&str] = &["-10", "-1.5", "-1", "0", "0.1", "1", "1.5", "2", "10", "1000"];
const NAMES: &[&str] = &["a", "b", "c", "name", "x-y", "Z_9"];

fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn scalar() -> BoxedStrategy<Value> {
    let bounds = (select(BOUNDS), select(BOUNDS), any::<[bool; 4]>(), select(&["integer", "number"][..]));
    let numbers = bounds.prop_map(|(low, high, [has_low, has_high, open_low, open_high], kind)| {
        let (low, high) = (number(low), number(high));
        let (low, high) = if low.as_f64() <= high.as_f64() { (low, high) } else { (high, low) };
        let mut schema = json!({ "type": kind });
        if has_low {
            schema[if open_low { "exclusiveMinimum" } else { "minimum" }] = low;
        }
        if has_high {
            schema[if open_high { "exclusiveMaximum" } else { "maximum" }] = high;
        }
        schema
    });
    let multiples = (select(&["0.5", "0.1", "0.01", "2", "3"][..]), select(&["integer", "number"][..]))
        .prop_map(|(of, kind)| json!({ "type": kind, "multipleOf": number(of) }));
    let lengths = (0..4_usize, 0..4_usize, any::<bool>()).prop_map(|(least, more, bounded)| {
        let mut schema = json!({ "type": "string", "minLength": least });
        if bounded {
            schema["maxLength"] = json!(least + more);
        }
        schema
    });
    let patterns = select(&["^a+$", "^[A-Z0-9.-]{1,12}$", "b", r"^\d+$", r"^\w*$", "^(a|😀)$", r"[^\s]"][..])
        .prop_map(|pattern| json!({ "type": "string", "pattern": pattern }));
    let formats = select(&["date-time", "date", "uuid", "email", "uri"][..])
        .prop_map(|format| json!({ "type": "string", "format": format }));
    let decimals = select(
        &[None, Some("minimum"), Some("exclusiveMinimum"), Some("maximum"), Some("exclusiveMaximum")][..],
    )
    .prop_map(|bound| {
        let mut schema = json!({ "type": "string", "format": "decimal" });
        if let Some(bound) = bound {
            schema[bound] = json!(0);
        }
        schema
    });
    let lists = prop::collection::vec(any_value(), 1..4).prop_map(|values| json!({ "enum": values }));
    prop_oneof![
        3 => numbers,
        1 => multiples,
        2 => lengths,
        1 => patterns,
        2 => formats,
        1 => decimals,
        1 => lists,
        1 => any_value().prop_map(|value| json!({ "const": value })),
        1 => select(&["boolean", "null", "string", "object", "array"][..]).prop_map(|kind| json!({ "type": kind })),
        1 => Just(json!({ "type": ["string", "null"], "maxLength": 3 })),
        1 => Just(json!({ "type": ["array", "integer", "boolean"], "minimum": 2, "maxItems": 1 })),
        1 => Just(json!({ "minimum": 1, "minLength": 2, "minItems": 1, "required": ["a"], "properties": { "a": {} } })),
        1 => Just(json!({})),
    ]
    .boxed()
}

fn any_value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        select(TEXTS).prop_map(|text| json!(text)),
        select(NUMBERS).prop_map(number),
        any::<bool>().prop_map(|value| json!(value)),
        Just(Value::Null),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec((select(NAMES), inner), 0..3).prop_map(object_of),
        ]
    })
    .boxed()
}

fn object_of(members: Vec<(&'static str, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

type Properties = Vec<(&'static str, Value, bool)>;

fn object_schema(properties: Properties, others: Option<Value>) -> Value {
    let mut schema = json!({ "type": "object", "properties": {}, "required": [] });
    for (name, property, required) in properties {
        let known = schema["properties"].as_object_mut().unwrap().insert(name.to_owned(), property);
        if required && known.is_none() {
            schema["required"].as_array_mut().unwrap().push(json!(name));
        }
    }
    if let Some(others) = others {
        schema["additionalProperties"] = others;
    }
    schema
}

fn properties(inner: BoxedStrategy<Value>) -> impl Strategy<Value = Properties> {
    prop::collection::vec((select(NAMES), inner, any::<bool>()), 0..4)
}

fn others(inner: BoxedStrategy<Value>) -> impl Strategy<Value = Option<Value>> {
    prop_oneof![Just(None), Just(Some(json!(true))), Just(Some(json!(false))), inner.prop_map(Some)]
}

fn schema() -> BoxedStrategy<Value> {
    let shared = select(&["small", "pair"][..]).prop_map(|name| json!({ "$ref": format!("#/$defs/{name}") }));
    let leaf = prop_oneof![8 => scalar(), 1 => shared].boxed();
    leaf.prop_recursive(3, 16, 4, |inner| {
        let arrays = (inner.clone(), 0..3_usize, 0..3_usize, any::<[bool; 2]>());
        prop_oneof![
            arrays.prop_map(|(items, least, more, [bounded, unique])| {
                let mut schema =
                    json!({ "type": "array", "items": items, "minItems": least, "uniqueItems": unique });
                if bounded {
                    schema["maxItems"] = json!(least + more);
                }
                schema
            }),
            (properties(inner.clone().boxed()), others(inner.boxed()))
                .prop_map(|(properties, others)| object_schema(properties, others)),
        ]
    })
    .boxed()
}

fn item_schema() -> impl Strategy<Value = Value> {
    (properties(schema()), others(schema()), scalar(), any::<bool>()).prop_map(|(properties, others, small, required)| {
        let mut schema = object_schema(properties, others);
        schema["properties"]["at"] = json!({ "type": "string", "format": "date-time" });
        if required {
            schema["required"].as_array_mut().unwrap().push(json!("at"));
        }
        schema["$defs"] = json!({
            "small": small,
            "pair": { "type": "array", "items": { "$ref": "#/$defs/small" }, "minItems": 2, "maxItems": 2 },
        });
        schema
    })
}

fn definition(schema: &Value) -> Option<Definition> {
    let text = json!({
        "history": "things",
        "title": "Thing",
        "owner": { "collection": "rooms", "field": "roomId", "type": "string" },
        "date": "at",
        "item": schema,
    })
    .to_string();
    match Definition::parse(&text) {
        Ok(definition) => Some(definition),
        // What only a generator writes: values that their own schema refuses, and bounds without a number between them.
        Err(mistake)
            if ["must not be given more than once", "leaves no"]
                .iter()
                .any(|rule| mistake.rule.contains(rule)) =>
        {
            None
        }
        Err(mistake) => panic!("{text}: {mistake}"),
    }
}

/// A value that mostly satisfies the schema.
fn candidate(schema: &Value, root: &Value, random: &mut TestRng) -> Value {
    let pick = |random: &mut TestRng, values: &[Value]| values[random.random_range(0..values.len())].clone();
    if random.random_bool(0.04) {
        let text = TEXTS[random.random_range(0..TEXTS.len())];
        return pick(
            random,
            &[json!(text), json!(7), Value::Null, json!([1, [2]]), json!({ "a": { "b": 1.5 } }), json!(true)],
        );
    }
    let free = json!({});
    // `true`, `false`, or not there.
    let schema = if schema.is_object() { schema } else { &free };
    if let Some(name) = schema["$ref"].as_str() {
        return candidate(&root["$defs"][&name["#/$defs/".len()..]], root, random);
    }
    if let Some(values) = schema["enum"].as_array() {
        return pick(random, values);
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    let kind = match &schema["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => pick(random, kinds).as_str().unwrap().to_owned(),
        _ => ["string", "integer", "number", "object", "array", "null"][random.random_range(0..6)].to_owned(),
    };
    match kind.as_str() {
        "null" => Value::Null,
        "boolean" => json!(random.random_bool(0.5)),
        "integer" | "number" => {
            for _ in 0..30 {
                let value = number(NUMBERS[random.random_range(0..NUMBERS.len())]);
                if kind == "number" || value.is_i64() {
                    return value;
                }
            }
            json!(0)
        }
        "string" => {
            let texts: Vec<_> = TEXTS.iter().map(|text| json!(text)).collect();
            let validator = jsonschema::options().should_validate_formats(true).build(schema).unwrap();
            let good: Vec<_> = texts.iter().filter(|text| validator.is_valid(text)).cloned().collect();
            let any = good.is_empty() || random.random_bool(0.1);
            pick(random, if any { &texts } else { &good })
        }
        "array" => {
            let least = schema["minItems"].as_u64().unwrap_or(0);
            let count = random.random_range(least..=schema["maxItems"].as_u64().unwrap_or(least + 2));
            (0..count).map(|_| candidate(&schema["items"], root, random)).collect()
        }
        _ => {
            let mut members = Map::new();
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let required =
                    schema["required"].as_array().is_some_and(|required| required.contains(&json!(name)));
                if random.random_bool(if required { 0.97 } else { 0.6 }) {
                    members.insert(name.clone(), candidate(property, root, random));
                }
            }
            let closed = schema["additionalProperties"] == json!(false);
            if random.random_bool(if closed { 0.05 } else { 0.4 }) {
                members.insert("other".to_owned(), candidate(&schema["additionalProperties"], root, random));
            }
            Value::Object(members)
        }
    }
}

/// Equal as JSON, numbers by value and dates by instant.
fn same(sent: &Value, answered: &Value) -> bool {
    match (sent, answered) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::String(one), Value::String(other)) => {
            one == other
                || matches!((Instant::parse_rfc3339(one), Instant::parse_rfc3339(other)), (Ok(one), Ok(other)) if one == other)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|other| same(one, other)))
        }
        (one, other) => one == other,
    }
}

fn oracle(schema: &Value) -> jsonschema::Validator {
    jsonschema::options().should_validate_formats(true).build(schema).unwrap()
}

/// A schema of the OpenAPI document, as a document of its own.
fn documented(definition: &Definition, name: &str) -> Value {
    let schemas: Map<_, _> = openapi::schemas(definition).into_iter().collect();
    let text = json!({ "$ref": format!("#/$defs/{name}"), "$defs": schemas }).to_string();
    serde_json::from_str(&text.replace("#/components/schemas/", "#/$defs/")).unwrap()
}

fn has_decimals(schema: &Value) -> bool {
    schema.to_string().contains("\"decimal\"")
}

fn judge(schema: &Value, random: &mut TestRng) {
    let Some(definition) = definition(schema) else { return };
    let standard = (!has_decimals(schema)).then(|| oracle(schema));
    let stored_schema = documented(&definition, "Thing");
    let documented_answer = oracle(&stored_schema);
    let documented = oracle(&documented(&definition, "NewThing"));
    for _ in 0..12 {
        let item = candidate(schema, schema, random);
        let text = item.to_string();
        let parsed = definition.item.parse_drafts(format!("[{text}]").as_bytes(), 1);
        if let Some(standard) = &standard {
            assert_eq!(parsed.is_ok(), standard.is_valid(&item), "{schema}\n{text}\n{parsed:?}");
        }
        assert_eq!(parsed.is_ok(), documented.is_valid(&item), "as documented: {schema}\n{text}\n{parsed:?}");
        let Ok(drafts) = parsed else { continue };
        let stored = drafts[0].dated(Instant::MAX);
        assert_eq!(stored.size(), drafts[0].size());
        assert_eq!(check_stored(stored.document(), "_key", "at"), Ok(stored.date()));
        let mut out = b"{\"seq\":1".to_vec();
        write_members(stored.document(), "_key", "at", &mut out).unwrap();
        out.push(b'}');
        let mut answered: Map<String, Value> = serde_json::from_slice(&out).unwrap();
        let answer = Value::Object(answered.clone());
        assert!(documented_answer.is_valid(&answer), "as documented: {schema}\n{answer}");
        assert_eq!(answered.shift_remove("seq"), Some(json!(1)));
        if drafts[0].date().is_none() {
            assert_eq!(answered.shift_remove("at"), Some(json!(Instant::MAX.to_string())));
        }
        let answered = Value::Object(answered);
        assert!(same(&item, &answered), "{schema}\n{text}\n{answered}");
        // What was answered is accepted again, and stored as the same bytes.
        let again = definition.item.parse_drafts(answered.to_string().as_bytes(), 1).unwrap();
        assert_eq!(again[0].dated(Instant::MAX), stored);
        assert_eq!(canonical(text.as_bytes()), canonical(format!("[ {text} ]").as_bytes()));
    }
    if let Some(example) = definition.item.example() {
        assert!(documented.is_valid(&example), "{schema}\n{example}");
        assert!(stored_schema["$defs"]["Thing"].get("examples").is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn verdicts_are_those_of_the_standard(schema in item_schema().prop_perturb(|schema, random| (schema, random))) {
        let (schema, mut random) = schema;
        judge(&schema, &mut random);
    }

    #[test]
    fn no_text_makes_it_panic(text in "[\\[\\]{}\",:0-9eE.a-c+\\\\u \n-]{0,60}", schema in item_schema()) {
        if let Some(definition) = definition(&schema) {
            let _ = definition.item.parse_drafts(text.as_bytes(), 3);
            let _ = definition.item.parse_line(text.as_bytes(), Some(("roomId", definition.owner.kind)));
            let _ = canonical(text.as_bytes());
            let _ = Definition::parse(&text);
        }
    }
}

#[test]
fn the_examples_that_are_shipped_are_as_documented() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/histories");
    let examples = Definitions::of_directory(&examples).unwrap();
    for definition in examples.iter().chain(Definitions::built_in().iter()) {
        let (title, owner) = (&definition.title, &definition.owner);
        let example = definition.item.example().unwrap();
        assert!(oracle(&documented(definition, &format!("New{title}"))).is_valid(&example), "{title}");
        let stored = documented(definition, title);
        assert!(oracle(&stored).is_valid(&stored["$defs"][title]["examples"][0]), "{title}");
        let mut line = example;
        line[&owner.field] = openapi::owner_example(owner.kind);
        let lines = oracle(&documented(definition, &format!("New{title}Line")));
        let parsed = line.to_string();
        assert!(lines.is_valid(&line), "{line}");
        let owner = Some((owner.field.as_str(), owner.kind));
        assert!(definition.item.parse_line(parsed.as_bytes(), owner).is_ok());
    }
}

#[test]
fn the_generators_reach_both_verdicts() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut definitions, mut examples, mut accepted, mut refused) = (0, 0, 0, 0);
    for _ in 0..400 {
        let schema = item_schema().new_tree(&mut runner).unwrap().current();
        let Some(definition) = definition(&schema) else { continue };
        definitions += 1;
        examples += u32::from(definition.item.example().is_some());
        for _ in 0..10 {
            let item = candidate(&schema, &schema, runner.rng());
            let parsed = definition.item.parse_drafts(item.to_string().as_bytes(), 1);
            *(if parsed.is_ok() { &mut accepted } else { &mut refused }) += 1;
        }
    }
    let found =
        format!("{definitions} definitions, {examples} examples, {accepted} accepted, {refused} refused");
    assert!(definitions > 300 && examples * 20 > definitions * 19, "{found}");
    assert!(accepted > 800 && refused > 800, "{found}");
}
