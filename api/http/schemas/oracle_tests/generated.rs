//! Generated schemas of the subset, and items that mostly satisfy them.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRng;
use serde_json::{Map, Value, json};

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
    let patterns = select(
        &[
            ("^a+$", "aa"),
            ("^[A-Z0-9.-]{1,12}$", "MDB"),
            ("b", "abc"),
            (r"^\d+$", "007"),
            (r"^\w*$", ""),
            ("^(a|😀)$", "😀"),
            (r"[^\s]", "éé"),
        ][..],
    )
    .prop_map(|(pattern, text)| json!({ "type": "string", "pattern": pattern, "examples": [text] }));
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

/// A schema of items: an object with a date.
pub(crate) fn item_schema() -> impl Strategy<Value = Value> {
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

/// A value that mostly satisfies the schema.
pub(crate) fn candidate(schema: &Value, root: &Value, random: &mut TestRng) -> Value {
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
