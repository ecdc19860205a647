//! The checker against the `jsonschema` crate, over generated schemas of the subset and generated items.
//!
//! Both judge alike, except for what docs/reference/definition.md lists: the notation of integers, date-times
//! finer than milliseconds, names that the database reads as paths, nesting, sizes. The generators
//! ([`generated`]) keep clear of these.

mod generated;

use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::test_runner::TestRng;
use serde_json::{Map, Value, json};

use generated::{candidate, item_schema};

use pagebucket_model::definition::{Definition, Definitions, JSON_SCHEMA};
use pagebucket_model::domain::Instant;
use pagebucket_model::item::{canonical, check_stored, write_members};

use super::items;

/// The published schema of definitions.
static PUBLISHED: LazyLock<jsonschema::Validator> =
    LazyLock::new(|| jsonschema::validator_for(&serde_json::from_str(JSON_SCHEMA).unwrap()).unwrap());

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
        Ok(definition) => {
            assert!(PUBLISHED.is_valid(&serde_json::from_str(&text).unwrap()), "{text}");
            Some(definition)
        }
        // What only a generator writes: values that their own schema refuses, and bounds without a number
        // between them.
        Err(mistakes)
            if mistakes.kept().iter().all(|mistake| {
                ["must not be given more than once", "leaves no"]
                    .iter()
                    .any(|rule| mistake.rule.contains(rule))
            }) =>
        {
            None
        }
        Err(mistakes) => panic!("{text}: {mistakes}"),
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
    let schemas: Map<_, _> = items::schemas(definition).into_iter().collect();
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
    let documented = oracle(&documented(&definition, "ThingInput"));
    for _ in 0..12 {
        let item = candidate(schema, schema, random);
        let text = item.to_string();
        let parsed = definition.item.parse_drafts(format!("[{text}]").as_bytes(), 1);
        if let Some(standard) = &standard {
            assert_eq!(parsed.is_ok(), standard.is_valid(&item), "{schema}\n{text}\n{parsed:?}");
        }
        assert_eq!(parsed.is_ok(), documented.is_valid(&item), "as documented: {schema}\n{text}\n{parsed:?}");
        let Ok(drafts) = parsed else { continue };
        let stored = drafts[0].clone().dated(Instant::MAX);
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
        assert_eq!(again[0].clone().dated(Instant::MAX), stored);
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
fn names_that_are_refused_are_documented() {
    let schema = json!({
        "type": "object",
        "properties": {
            "at": { "type": "string", "format": "date-time" },
            "typed": { "type": ["object", "null"] },
            "mapped": { "type": "object", "additionalProperties": { "type": "integer" } },
            "free": {},
            "list": { "type": "array", "items": {} },
        },
    });
    let definition = definition(&schema).unwrap();
    let documented = oracle(&documented(&definition, "ThingInput"));
    for (name, accepted) in
        [("a", true), ("_a", true), ("", true), ("a.b", false), ("$a", false), ("a\u{0}", false)]
    {
        let object = json!({ name: 1 });
        for item in [
            json!({ "typed": object }),
            json!({ "mapped": object }),
            json!({ "free": object }),
            json!({ "list": [object] }),
        ] {
            let parsed = definition.item.parse_drafts(item.to_string().as_bytes(), 1);
            assert_eq!((parsed.is_ok(), documented.is_valid(&item)), (accepted, accepted), "{item}");
        }
    }
}

/// Generated clients would send it, demand it, or show it where it is not stored.
#[test]
fn a_default_is_documented_in_words() {
    let schema = json!({
        "type": "object",
        "properties": {
            "at": { "type": "string", "format": "date-time" },
            "level": { "type": "string", "description": "How bad it is.", "default": "info" },
            "place": { "type": "object", "properties": { "zone": { "type": "string", "default": "UTC" } } },
        },
    });
    let definition = definition(&schema).unwrap();
    let schemas: Map<_, _> = items::schemas(&definition).into_iter().collect();
    let of = |name: &str, pointer: &str| {
        schemas[name].pointer(pointer).and_then(|text| text.as_str().map(str::to_owned))
    };
    let level = "/properties/level/description";
    assert_eq!(of("ThingInput", level).as_deref(), Some("How bad it is. Default: `\"info\"`."));
    assert_eq!(of("Thing", level).as_deref(), Some("How bad it is."));
    let zone = "/properties/place/properties/zone/description";
    assert_eq!(of("ThingInput", zone).as_deref(), Some("Default: `\"UTC\"`."));
    assert!(!json!(schemas).to_string().contains("\"default\""));
}

#[test]
fn the_examples_that_are_shipped_are_as_documented() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/test_data/example_histories");
    let examples = Definitions::of_directory(&examples).unwrap();
    for definition in examples.iter().chain(Definitions::built_in().iter()) {
        let (title, owner) = (&definition.title, &definition.owner);
        let example = definition.item.example().unwrap();
        assert!(oracle(&documented(definition, &format!("{title}Input"))).is_valid(&example), "{title}");
        let stored = documented(definition, title);
        assert!(oracle(&stored).is_valid(&stored["$defs"][title]["examples"][0]), "{title}");
        let mut line = example;
        line[&owner.field] = items::owner_example(owner.kind);
        let lines = oracle(&documented(definition, &format!("{title}LineInput")));
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
