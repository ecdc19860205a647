//! Items of all kinds: what is accepted, what a refusal says, how they are stored and answered.

use serde_json::{Value, json};

use super::single::Definition;
use crate::domain::{DraftError, Instant, OwnerId, OwnerType};
use crate::item::{Corrupt, Item, check_stored, date, write_members};

fn with_schema(changes: Value) -> Definition {
    let mut definition = json!({
        "history": "notes",
        "title": "Note",
        "owner": { "collection": "rooms", "field": "roomId", "type": "string" },
        "date": "at",
        "item": {
            "type": "object",
            "properties": { "at": { "type": "string", "format": "date-time" } }
        }
    });
    for (pointer, value) in changes.as_object().unwrap() {
        let (object, name) = pointer.rsplit_once('/').unwrap();
        definition.pointer_mut(object).unwrap()[name] = value.clone();
    }
    Definition::parse(&definition.to_string()).unwrap()
}

fn of_value(schema: Value) -> Definition {
    with_schema(json!({ "/item/properties/x": schema }))
}

fn refusals(definition: &Definition, text: &str) -> Vec<(String, String)> {
    match definition.item.parse_drafts(text.as_bytes(), 100) {
        Err(DraftError::Invalid(faults)) => {
            faults.kept().iter().map(|fault| (fault.pointer.clone(), fault.rule.to_string())).collect()
        }
        other => panic!("{text}: {other:?}"),
    }
}

/// The one refusal.
fn refusal(definition: &Definition, text: &str) -> (String, String) {
    let mut refusals = refusals(definition, text);
    assert_eq!(refusals.len(), 1, "{text}: {refusals:?}");
    refusals.remove(0)
}

fn stored(definition: &Definition, text: &str) -> Item {
    match definition.item.parse_drafts(text.as_bytes(), 1) {
        Ok(mut drafts) => drafts.remove(0).dated(Instant::MIN),
        Err(error) => panic!("{text}: {error:?}"),
    }
}

/// The members of the answer.
fn answered(definition: &Definition, text: &str) -> String {
    let mut out = Vec::new();
    write_members(stored(definition, text).document(), "_key", "at", &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_refusal_says_the_rule() {
    for (schema, bad, sentence) in [
        (json!({ "type": "boolean" }), "0", "must be a boolean, not a number"),
        (json!({ "type": "null" }), "false", "must be null, not a boolean"),
        (json!({ "type": ["string", "null"] }), "[]", "must be a string or null, not an array"),
        (
            json!({ "type": ["object", "array", "number"] }),
            "\"\"",
            "must be a number, an array or an object, not a string",
        ),
        (
            json!({ "type": "integer" }),
            "1.0",
            "must be a whole number from -9007199254740991 to 9007199254740991, written without a fraction or an exponent",
        ),
        (
            json!({ "type": "integer", "exclusiveMinimum": 0, "maximum": 2.5 }),
            "3",
            "must be a whole number from 1 to 2, written without a fraction or an exponent",
        ),
        (json!({ "type": "integer", "multipleOf": 5 }), "12", "must be a multiple of 5"),
        (json!({ "type": "number" }), "1e400", "must be a number that a double can hold"),
        (json!({}), "-1e400", "must be a number that a double can hold"),
        (json!({ "type": "number", "minimum": 0.5 }), "0.4", "must be at least 0.5"),
        (json!({ "type": "number", "exclusiveMaximum": 1e3 }), "1000", "must be less than 1000.0"),
        (json!({ "type": "number", "multipleOf": 0.01 }), "0.001", "must be a multiple of 0.01"),
        (json!({ "type": "string", "minLength": 1 }), "\"\"", "must have at least 1 character"),
        (json!({ "type": "string", "maxLength": 2 }), "\"😀😀😀\"", "must have at most 2 characters"),
        (json!({ "type": "string", "minLength": 2, "maxLength": 4 }), "\"a\"", "must have 2 to 4 characters"),
        (json!({ "type": "string", "minLength": 2, "maxLength": 2 }), "\"a\"", "must have 2 characters"),
        (
            json!({ "type": "string", "pattern": "^a+$", "examples": ["a"] }),
            "\"b\"",
            "must match the regular expression ^a+$",
        ),
        (
            json!({ "type": "string", "format": "uuid" }),
            "\"b\"",
            "must be a UUID, such as \"123e4567-e89b-42d3-a456-426614174000\"",
        ),
        (
            json!({ "type": "string", "format": "date" }),
            "\"2004-02-30\"",
            "must be a day, such as \"2004-01-09\"",
        ),
        (
            json!({ "type": "string", "format": "email" }),
            "\"b\"",
            "must be an email address, such as \"ann@example.org\"",
        ),
        (
            json!({ "type": "string", "format": "uri" }),
            "\"b\"",
            "must be a URI with a scheme (RFC 3986), such as \"https://example.org/\"",
        ),
        (
            json!({ "type": "string", "format": "decimal" }),
            "1.5",
            "must be a string, such as \"15.54\": a JSON number would be rounded on its way",
        ),
        (
            json!({ "type": "string", "format": "decimal" }),
            "\"1e5\"",
            "must be a decimal number in plain notation, such as \"15.54\"",
        ),
        (
            json!({ "type": "string", "format": "decimal", "minimum": 0.1 }),
            "\"-1\"",
            "must be a positive decimal number in plain notation, such as \"15.54\"",
        ),
        (
            json!({ "type": "string", "format": "decimal", "minimum": -0.1 }),
            "\"-0.10000000000000000000001\"",
            "must be at least -0.1",
        ),
        (
            json!({ "type": "string", "format": "decimal", "maximum": 10 }),
            "\"10.0000000000000000000000000001\"",
            "must be at most 10",
        ),
        (json!({ "type": "array", "maxItems": 1 }), "[1,2]", "must have at most 1 item"),
        (json!({ "type": "array", "minItems": 2 }), "[1]", "must have at least 2 items"),
        (
            json!({ "type": "array", "uniqueItems": true }),
            "[{\"a\":1,\"b\":2},{\"b\":2.0,\"a\":1e0}]",
            "must not have two items that are equal",
        ),
        (json!({ "const": { "a": 1 } }), "{\"a\":2}", "must be {\"a\":1}"),
        (json!({ "enum": [1, null, "x"] }), "2", "must be 1, null or \"x\""),
        (
            json!({ "enum": (0..100).map(|n| format!("value {n}")).collect::<Vec<_>>() }),
            "2",
            "must be one of the 100 values that the schema lists",
        ),
        (json!({}), "\"\\ud800\"", "must be Unicode text, without a lone surrogate"),
    ] {
        let definition = of_value(schema);
        assert_eq!(
            refusal(&definition, &format!("{{\"x\":{bad}}}")),
            ("/x".to_owned(), sentence.to_owned()),
            "{bad}"
        );
    }
}

#[test]
fn numbers_are_stored_by_the_schema_and_answered_by_value() {
    for (schema, sent, answer) in [
        (json!({ "type": "integer" }), "-0", "0"),
        (json!({ "type": "number" }), "1", "1"),
        (json!({ "type": "number" }), "-0.0", "0"),
        (json!({ "type": "number" }), "1E21", "1e+21"),
        (json!({ "type": "number" }), "0.1", "0.1"),
        (json!({}), "9007199254740991", "9007199254740991"),
        (json!({}), "9007199254740992", "9007199254740992"),
        (json!({}), "[1, 1.0, 1.5, {\"a\": 1e-7}]", "[1,1,1.5,{\"a\":1e-7}]"),
        (json!({ "type": "string", "format": "decimal" }), "\"-0.50\"", "\"-0.50\""),
        (
            json!({ "type": "string", "format": "decimal", "exclusiveMinimum": 0 }),
            "\"0.00000001\"",
            "\"0.00000001\"",
        ),
        (
            json!({ "type": "string", "format": "date-time" }),
            "\"2004-01-09T01:30:00.5+01:30\"",
            "\"2004-01-09T00:00:00.500Z\"",
        ),
        (
            json!({ "type": "string", "format": "uuid" }),
            "\"123E4567-E89B-42D3-A456-426614174000\"",
            "\"123E4567-E89B-42D3-A456-426614174000\"",
        ),
        (
            json!({}),
            "\"2004-01-09T01:30:00Z\\u0000\\u2028\\\"\"",
            "\"2004-01-09T01:30:00Z\\u0000\u{2028}\\\"\"",
        ),
        (json!({}), "{\"\":{},\"b\":[],\"a\":null}", "{\"\":{},\"b\":[],\"a\":null}"),
    ] {
        let definition = of_value(schema);
        let text = format!("{{\"x\":{sent},\"at\":\"2004-01-09T00:00:00Z\"}}");
        assert_eq!(
            answered(&definition, &text),
            format!(",\"x\":{answer},\"at\":\"2004-01-09T00:00:00.000Z\"")
        );
    }
    let int64 = |schema| stored(&of_value(schema), r#"{"x":5}"#).document().get_i64("x").is_ok();
    let double = |schema| stored(&of_value(schema), r#"{"x":5}"#).document().get_f64("x").is_ok();
    assert!(int64(json!({})) && int64(json!({ "type": "integer" })) && double(json!({ "type": "number" })));
}

#[test]
fn members_are_stored_in_the_order_of_the_schema() {
    let definition = with_schema(json!({ "/item/properties": {
        "b": {},
        "at": { "type": "string", "format": "date-time" },
        "a": { "type": "object", "properties": { "y": {}, "x": {} } },
        "c": {},
    } }));
    let names = |text: &str| {
        let item = stored(&definition, text);
        let names = item.document().iter().map(|element| element.unwrap().0.as_str().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    let at = r#""at":"2004-01-09T00:00:00Z""#;
    assert_eq!(names(&format!(r#"{{"z":1,"c":1,"a":{{}},{at},"y":2,"b":1}}"#)), "b at a c z y");
    // A missing date has the same place.
    assert_eq!(names(r#"{"z":1,"c":1,"a":{},"y":2,"b":1}"#), "b at a c z y");
    assert_eq!(names(r#"{"c":1}"#), "at c");
    assert_eq!(names(r#"{"b":1}"#), "b at");
    assert_eq!(names("{}"), "at");
    assert_eq!(names(&format!("{{{at}}}")), "at");
    let with = stored(&definition, r#"{"a":{"z":0,"x":1,"y":2},"at":"0000-01-01T00:00:00Z","b":[1]}"#);
    assert_eq!(with, stored(&definition, r#"{"b":[1],"a":{"x":1,"z":0,"y":2}}"#));
    assert_eq!(
        answered(&definition, r#"{"a":{"z":0,"x":1,"y":2},"b":[1]}"#),
        r#","b":[1],"a":{"y":2,"x":1,"z":0},"at":"0000-01-01T00:00:00.000Z""#
    );
}

#[test]
fn a_missing_property_is_filled_in() {
    let definition = with_schema(json!({ "/item/properties": {
        "level": { "type": "string", "default": "info" },
        "at": { "type": "string", "format": "date-time" },
        "price": { "$ref": "#/$defs/price", "default": "1.50" },
        "place": {
            "type": ["object", "null"],
            "properties": { "city": { "type": "string" }, "zone": { "type": "string", "default": "UTC" } },
        },
        "labels": { "type": "object", "properties": { "n": { "type": "integer", "default": 1 } }, "default": {} },
        "note": { "type": ["string", "null"], "default": null },
    }, "/item/$defs": { "price": { "type": "string", "format": "decimal" } } }));
    let at = r#""at":"0000-01-01T00:00:00.000Z""#;
    for (sent, expected) in [
        ("{}", format!(r#","level":"info","price":"1.50","labels":{{"n":1}},"note":null,{at}"#)),
        (
            r#"{"other":1,"note":"a","place":{"city":"Bern"},"level":"warn"}"#,
            format!(
                r#","level":"warn","price":"1.50","place":{{"city":"Bern","zone":"UTC"}},"labels":{{"n":1}},"note":"a","other":1,{at}"#
            ),
        ),
        (
            r#"{"place":null,"labels":{"m":2},"price":"2"}"#,
            format!(r#","level":"info","price":"2","place":null,"labels":{{"n":1,"m":2}},"note":null,{at}"#),
        ),
    ] {
        assert_eq!(answered(&definition, sent), expected, "{sent}");
    }
    // What is filled in counts, and `null` is a value.
    assert_eq!(refusal(&definition, r#"{"level":null}"#).0, "/level");
    let default = "x".repeat(200);
    let definition = with_schema(json!({
        "/maxItemBytes": 256, "/item/properties/level": { "type": "string", "default": default }, "/item/properties/x": {},
    }));
    assert_eq!(
        refusal(&definition, r#"{"x":"xxxxxxxxxx"}"#).1,
        "must take at most 256 bytes when it is stored"
    );
    assert!(definition.item.parse_drafts(br#"{"level":"","x":"xxxxxxxxxx"}"#, 1).is_ok());
}

#[test]
fn names_that_nothing_may_have() {
    let open = of_value(json!({}));
    let storable = "must have a name without \".\" and NUL that does not begin with \"$\"";
    for (name, pointer, detail) in [
        ("a.b", "/a.b", storable),
        ("$set", "/$set", storable),
        ("a\\u0000", "/a\0", storable),
        ("seq", "/seq", "has a name that is reserved"),
        ("page", "/page", "has a name that is reserved"),
        ("roomId", "/roomId", "has a name that is reserved"),
        ("_key", "/_key", "has a name that is reserved"),
        ("\\ud800", "", "has a field whose name is not Unicode text"),
    ] {
        let found = refusal(&open, &format!("{{\"{name}\":1}}"));
        assert_eq!(found, (pointer.to_owned(), detail.to_owned()));
        let nested = format!("[{{\"y\":[{{\"{name}\":1}}]}}]");
        if detail == "has a name that is reserved" {
            assert!(open.item.parse_drafts(nested.as_bytes(), 1).is_ok());
        } else {
            assert_eq!(refusal(&open, &nested), (format!("/0/y/0{pointer}"), detail.to_owned()));
        }
    }
    let twice = "must not be given more than once";
    assert_eq!(refusal(&open, r#"{"a":1,"b":2,"a":3}"#), ("/a".to_owned(), twice.to_owned()));
    assert_eq!(refusal(&open, r#"{"x":{"a":1,"\u0061":3}}"#), ("/x/a".to_owned(), twice.to_owned()));
    // A long name is not repeated.
    let long = "n".repeat(65);
    assert_eq!(
        refusal(&open, &format!(r#"{{"y":{{"{long}":{{"a":"\ud800"}}}}}}"#)),
        (
            "/y".to_owned(),
            "has a field with a name of 65 bytes, which must be Unicode text, without a lone surrogate"
                .to_owned()
        )
    );
    let closed = of_value(json!({ "type": "object", "additionalProperties": false }));
    assert_eq!(
        refusal(&closed, r#"{"x":{"a":1}}"#),
        ("/x/a".to_owned(), "is not a field of this object".to_owned())
    );
    let each = with_schema(json!({ "/item/additionalProperties": { "type": "integer" } }));
    assert_eq!(answered(&each, r#"{"a":1}"#), r#","a":1,"at":"0000-01-01T00:00:00.000Z""#);
    assert_eq!(refusal(&each, r#"{"a":"1"}"#).0, "/a");
}

#[test]
fn levels_are_bounded() {
    let open = of_value(json!({}));
    let nested = |levels: usize| format!("{{\"x\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(open.item.parse_drafts(nested(31).as_bytes(), 1).is_ok());
    answered(&open, &nested(31));
    let (pointer, detail) = refusal(&open, &nested(32));
    assert_eq!(
        (pointer, detail.as_str()),
        (format!("/x{}", "/0".repeat(31)), "must not be nested deeper than 32 levels")
    );
    assert_eq!(refusal(&open, &nested(200_000)).1, "must not be nested deeper than 32 levels");
}

#[test]
fn sizes_are_those_of_the_database() {
    let definition = with_schema(json!({ "/maxItemBytes": 256, "/pageSize": 200, "/item/properties/x": {} }));
    // An element of the array of a page: 1 + "199" + NUL; the document; and in it the key: 1 + "_key" + NUL +
    // 4 + 1 + 12.
    let most = 256 - 5 - 23;
    let text_of = |len: usize| format!("{{\"x\":\"{}\"}}", "a".repeat(len));
    let around = stored(&definition, &text_of(0)).size();
    let longest = stored(&definition, &text_of(most - around));
    assert_eq!(longest.size(), most);
    let drafts = definition.item.parse_drafts(text_of(most - around).as_bytes(), 1).unwrap();
    assert_eq!((drafts[0].size(), drafts[0].date()), (most, None));
    let sentence = "must take at most 256 bytes when it is stored";
    assert_eq!(refusal(&definition, &text_of(most - around + 1)), (String::new(), sentence.to_owned()));
    // Zeros grow sevenfold, and are not written far beyond the limit.
    let zeros = format!("[{{}},{{\"x\":[{}0]}}]", "0,".repeat(100_000));
    assert_eq!(refusal(&definition, &zeros), ("/1".to_owned(), sentence.to_owned()));
    let names: Vec<_> = (0..50_000).map(|n| format!("\"n{n}\":null")).collect();
    assert_eq!(refusal(&definition, &format!("{{{}}}", names.join(","))).1, sentence);
}

#[test]
fn many_properties_are_found() {
    let mut properties = json!({ "at": { "type": "string", "format": "date-time" } });
    for n in 0..50 {
        properties[format!("p{n}")] = json!({ "type": "integer" });
    }
    let definition =
        with_schema(json!({ "/item/properties": properties, "/item/additionalProperties": false }));
    let backwards: Vec<_> = (0..50).rev().map(|n| format!("\"p{n}\":{n}")).collect();
    let answer: Vec<_> = (0..50).map(|n| format!(",\"p{n}\":{n}")).collect();
    let expected = answer.concat() + ",\"at\":\"0000-01-01T00:00:00.000Z\"";
    assert_eq!(answered(&definition, &format!("{{{}}}", backwards.join(","))), expected);
    assert_eq!(refusal(&definition, r#"{"p50":1}"#).1, "is not a field of a note");
}

#[test]
fn a_line_names_its_owner() {
    let definition = with_schema(json!({ "/item/additionalProperties": false }));
    let owner = Some(("roomId", OwnerType::String));
    let (room, draft) = definition.item.parse_line(br#"{"roomId":"a-1"}"#, owner).unwrap();
    assert_eq!((room, draft.date()), (Some(OwnerId::Text("a-1".into())), None));
    for (text, detail) in [
        ("{}", "is required"),
        (r#"{"roomId":"a_1"}"#, "must be 1 to 64 of the characters A-Z, a-z, 0-9 and \"-\""),
        (r#"{"roomId":"\ud800"}"#, "must be 1 to 64 of the characters A-Z, a-z, 0-9 and \"-\""),
        (r#"{"roomId":7}"#, "must be a string, not a number"),
        (r#"{"roomId":"a","roomId":"a"}"#, "must not be given more than once"),
    ] {
        let Err(DraftError::Invalid(faults)) = definition.item.parse_line(text.as_bytes(), owner) else {
            panic!("{text}")
        };
        let fault = &faults.kept()[0];
        assert_eq!((fault.pointer.as_str(), fault.rule.to_string().as_str()), ("/roomId", detail));
    }
    assert!(matches!(definition.item.parse_line(br#"{"roomId":"a"}"#, None), Err(DraftError::Invalid(_))));
}

#[test]
fn damage_is_named() {
    let definition = of_value(json!({}));
    let item = stored(&definition, r#"{"x":{"a":[1,2.5,"t"]},"at":"2004-01-09T00:00:00Z"}"#);
    let good = item.document().as_bytes();
    let judged = |find: &[u8], replace: &[u8]| {
        let at = good.windows(find.len()).position(|window| window == find).unwrap();
        let mut bytes = good.to_vec();
        bytes[at..at + find.len()].copy_from_slice(replace);
        let document = &bson::RawDocumentBuf::from_bytes(bytes).unwrap();
        let (mut out, words) = (Vec::new(), |Corrupt { field, detail }: Corrupt| format!("{field} {detail}"));
        let written = write_members(document, "_key", "at", &mut out).map_err(words);
        let checked = check_stored(document, "_key", "at").map(|_| ()).map_err(words);
        assert_eq!(written, checked);
        written
    };
    assert_eq!(judged(b"x", b"x"), Ok(()));
    let integer = [b"\x120\0".as_slice(), &1_i64.to_le_bytes()].concat();
    let beyond = [b"\x120\0".as_slice(), &(1_i64 << 53).to_le_bytes()].concat();
    assert_eq!(judged(&integer, &beyond).unwrap_err(), "x.a.0 is an int64 beyond 2^53 - 1");
    let double = [b"\x011\0".as_slice(), &2.5_f64.to_le_bytes()].concat();
    let infinite = [b"\x011\0".as_slice(), &f64::INFINITY.to_le_bytes()].concat();
    assert_eq!(judged(&double, &infinite).unwrap_err(), "x.a.1 is not a finite number");
    assert_eq!(judged(b"\x120\0", b"\x110\0").unwrap_err(), "x.a.0 has a type that no item has");
    assert_eq!(judged(b"\x09at\0", b"\x12at\0").unwrap_err(), "at is not a date of the years 0000 to 9999");
    assert_eq!(judged(b"\x09at\0", b"\x09it\0").unwrap_err(), "at is not a date of the years 0000 to 9999");
    assert_eq!(date(item.document(), "at"), Ok(item.date()));
    assert_eq!(date(item.document(), "x").unwrap_err().field, "x");
}
