//! Each mistake in a definition has its sentence.

use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::names::{OF_LISTINGS, OF_SUMMARIES, OUR_FIELDS, OUR_ROUTES, RESERVED};
use super::set::Definitions;
use super::single::{Definition, JSON_SCHEMA};
use crate::domain::OwnerType;

fn good() -> Value {
    json!({
        "history": "messages",
        "title": "Message",
        "owner": { "collection": "rooms", "field": "roomId", "type": "string" },
        "pageSize": 50,
        "maxItemBytes": 4096,
        "date": "sentAt",
        "item": {
            "type": "object",
            "required": ["text"],
            "properties": {
                "text": { "type": "string" },
                "x": {},
                "sentAt": { "type": "string", "format": "date-time" }
            }
        }
    })
}

/// [`good`], with the value at a pointer replaced; `null` removes it.
fn with(pointer: &str, value: Value) -> String {
    let mut definition = good();
    let (object, name) = pointer.rsplit_once('/').unwrap();
    let object = definition.pointer_mut(object).unwrap().as_object_mut().unwrap();
    if value.is_null() {
        object.shift_remove(name)
    } else {
        object.insert(name.to_owned(), value)
    };
    definition.to_string()
}

/// The published schema of definitions.
pub(crate) fn published() -> &'static jsonschema::Validator {
    static PUBLISHED: LazyLock<jsonschema::Validator> =
        LazyLock::new(|| jsonschema::validator_for(&serde_json::from_str(JSON_SCHEMA).unwrap()).unwrap());
    &PUBLISHED
}

/// Rules that JSON Schema has no words for.
const BEYOND_JSON_SCHEMA: [&str; 26] = [
    "must not be given if an item has the property",
    "/pageSize must be a whole number",
    "so that a page of",
    "must not be the name of a history",
    "must name a property",
    "must name one of the properties",
    "must name a schema",
    "must be { \"type\"",
    "has a name that is reserved",
    "is refused by its own schema",
    "is no item",
    "must not be less than",
    "leaves no",
    "may have groups",
    "has an escape",
    "is not a regular expression",
    "is too large",
    "must have examples beside it or in a schema around it",
    "must not lead back",
    "declares items",
    "is nested deeper",
    "means nothing for a required property",
    "a missing date is the time of arrival",
    "must not be the name of another parameter of summaries",
    "must be named as a property",
    "must not be of a property that is a number",
];

#[track_caller]
fn expect(text: &str, sentence: &str) {
    let mistakes = Definition::parse(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
    assert_eq!(mistakes.to_string(), sentence, "{text}");
    let is_accepted = serde_json::from_str(text).is_ok_and(|definition| published().is_valid(&definition));
    assert!(
        !is_accepted || BEYOND_JSON_SCHEMA.iter().any(|rule| sentence.contains(rule)),
        "the published schema accepts {text}: {sentence}"
    );
}

#[test]
fn filters_are_no_other_parameters_of_listings() {
    for name in OF_LISTINGS {
        let mut definition = good();
        definition["item"]["properties"][name] = json!({ "type": "string" });
        definition["filters"] = json!([name]);
        expect(&definition.to_string(), "/filters/0 must not be the name of another parameter of listings");
    }
}

/// Only where there are summaries: a history without them keeps its filters.
#[test]
fn filters_are_no_parameters_of_summaries() {
    for name in OF_SUMMARIES {
        let mut definition = good();
        definition["item"]["properties"][name] = json!({ "type": "string" });
        definition["filters"] = json!([name]);
        assert!(Definition::parse(&definition.to_string()).is_ok(), "{name}");
        definition["summaries"] = json!({});
        expect(&definition.to_string(), "/filters/0 must not be the name of another parameter of summaries");
    }
}

#[test]
fn time_series() {
    let text = |series: Value, more: Value| {
        let mut definition = json!({
            "history": "ticks", "title": "Tick", "owner": { "collection": "books", "field": "bookId", "type": "integer" },
            "date": "at", "timeSeries": series,
            "item": { "type": "object", "properties": {
                "at": { "type": "string", "format": "date-time" },
                "ticker": { "type": "string", "maxLength": 12 }, "text": { "type": "string" },
                "size": { "type": "integer" }, "by": { "type": "string", "maxLength": 12 },
                "owner": { "type": "string", "maxLength": 12 },
            } },
        });
        for (name, schema) in more.as_object().unwrap() {
            definition["item"]["properties"][name] = schema.clone();
        }
        definition.to_string()
    };
    let none = || json!({});
    let all = json!({ "meta": ["ticker"], "granularity": "minutes", "expireAfterDays": 365 });
    let parsed = Definition::parse(&text(all.clone(), none())).unwrap().time_series.unwrap();
    assert_eq!(
        (parsed.meta, parsed.granularity.to_string(), parsed.expire_after_days),
        (vec!["ticker".to_owned()], "minutes".to_owned(), Some(365))
    );
    assert!(published().is_valid(&serde_json::from_str(&text(all, none())).unwrap()));
    let least =
        Definition::parse(&text(json!({ "granularity": "hours" }), none())).unwrap().time_series.unwrap();
    assert_eq!((least.meta.len(), least.expire_after_days), (0, None));
    let group =
        "must name a property that is a string of at most 64 bytes, by an enum, a maxLength or a pattern";
    let taken = "must not be a name that the metaField, or a parameter of summaries, has for something else";
    for (series, sentence) in [
        (json!([]), "/timeSeries must be an object with meta, granularity and expireAfterDays".to_owned()),
        (json!({}), "/timeSeries/granularity is required".to_owned()),
        (
            json!({ "granularity": "days" }),
            "/timeSeries/granularity must be \"seconds\", \"minutes\" or \"hours\"".to_owned(),
        ),
        (
            json!({ "granularity": "hours", "metas": [] }),
            "/timeSeries/metas is not a member of a definition: did you mean \"meta\"?".to_owned(),
        ),
        (json!({ "granularity": "hours", "meta": ["text"] }), format!("/timeSeries/meta/0 {group}")),
        (
            json!({ "granularity": "hours", "meta": ["tiker"] }),
            format!("/timeSeries/meta/0 {group}: did you mean \"ticker\"?"),
        ),
        (
            json!({ "granularity": "hours", "meta": ["ticker", "ticker"] }),
            "/timeSeries/meta/1 must not be given more than once".to_owned(),
        ),
        (json!({ "granularity": "hours", "meta": ["owner"] }), format!("/timeSeries/meta/0 {taken}")),
        (json!({ "granularity": "hours", "meta": ["by"] }), format!("/timeSeries/meta/0 {taken}")),
        (
            json!({ "granularity": "hours", "expireAfterDays": 0 }),
            "/timeSeries/expireAfterDays must be a whole number from 1 to 18250".to_owned(),
        ),
        (
            json!({ "granularity": "hours", "expireAfterDays": 1.5 }),
            "/timeSeries/expireAfterDays must be a whole number from 1 to 18250".to_owned(),
        ),
    ] {
        expect(&text(series, none()), &sentence);
    }
    let named = json!({ "meta": { "type": "integer" } });
    expect(
        &text(json!({ "granularity": "hours" }), named),
        "/timeSeries must not be given if an item has the property `meta`, which is the name of the metaField",
    );
}

#[test]
fn summaries() {
    let group =
        "must name a property that is a string of at most 64 bytes, by an enum, a maxLength or a pattern";
    let value = "must be named as a property that is an integer, a number, or a string of the format decimal";
    let doubles = "must not be of a property that is a number: doubles have no exact sum. Store decimals, as strings of the format decimal";
    let weight = "must name a property after \"vwap:\" that is an integer, or a string of the format decimal";
    let measure = "must be \"sum\", \"min\", \"max\", \"ohlc\" or \"vwap:\" and a property";
    let mut definition = good();
    for (name, schema) in [
        ("kind", json!({ "type": ["string", "null"], "enum": ["a", "b", null] })),
        ("author", json!({ "type": "string", "maxLength": 64 })),
        ("code", json!({ "type": "string", "pattern": "^([A-Z]{2}|\\d{1,64})$", "examples": ["AB"] })),
        ("loose", json!({ "type": "string", "pattern": "[A-Z]{2}", "examples": ["AB"] })),
        ("long", json!({ "type": "string", "maxLength": 65 })),
        ("size", json!({ "type": "integer" })),
        ("fee", json!({ "type": ["string", "null"], "format": "decimal" })),
        ("ratio", json!({ "type": "number" })),
    ] {
        definition["item"]["properties"][name] = schema;
    }
    let with = |pointer: &str, value: Value| {
        let mut definition = definition.clone();
        definition["summaries"] = json!({ "group": [], "values": {} });
        *definition.pointer_mut(pointer).unwrap() = value;
        definition.to_string()
    };
    let values = json!({ "size": ["sum", "vwap:fee"], "fee": ["sum", "min", "max", "ohlc", "vwap:size"], "ratio": ["ohlc", "min"] });
    let all = json!({ "group": ["kind", "author", "code"], "values": values });
    let parsed = Definition::parse(&with("/summaries", all.clone())).unwrap().summaries.unwrap();
    assert_eq!((parsed.groups.len(), parsed.values.len(), parsed.values[1].measures.len()), (3, 3, 5));
    assert_eq!(
        parsed.canonical(),
        "kind author code\nsize Integer sum vwap:fee Decimal\nfee Decimal sum min max ohlc vwap:size Integer\nratio Double ohlc min"
    );
    assert!(published().is_valid(&serde_json::from_str(&with("/summaries", all)).unwrap()));
    for (pointer, given, mistake) in [
        ("/summaries", json!([]), "/summaries must be an object with group and values".to_owned()),
        (
            "/summaries",
            json!({ "groups": [] }),
            "/summaries/groups is not a member of a definition: did you mean \"group\"?".to_owned(),
        ),
        ("/summaries/group", json!("kind"), "/summaries/group must be an array".to_owned()),
        ("/summaries/group", json!(["kin"]), format!("/summaries/group/0 {group}: did you mean \"kind\"?")),
        ("/summaries/group", json!(["text"]), format!("/summaries/group/0 {group}")),
        ("/summaries/group", json!(["long"]), format!("/summaries/group/0 {group}")),
        ("/summaries/group", json!(["loose"]), format!("/summaries/group/0 {group}")),
        ("/summaries/group", json!(["size"]), format!("/summaries/group/0 {group}")),
        (
            "/summaries/group",
            json!(["kind", "kind"]),
            "/summaries/group/1 must not be given more than once".to_owned(),
        ),
        (
            "/summaries/values",
            json!([]),
            "/summaries/values must be an object with a list of measures for each property".to_owned(),
        ),
        ("/summaries/values", json!({ "text": ["sum"] }), format!("/summaries/values/text {value}")),
        (
            "/summaries/values",
            json!({ "sise": ["sum"] }),
            format!("/summaries/values/sise {value}: did you mean \"size\"?"),
        ),
        (
            "/summaries/values",
            json!({ "size": [] }),
            "/summaries/values/size must name at least one measure".to_owned(),
        ),
        ("/summaries/values", json!({ "size": ["avg"] }), format!("/summaries/values/size/0 {measure}")),
        ("/summaries/values", json!({ "size": [1] }), "/summaries/values/size/0 must be a string".to_owned()),
        (
            "/summaries/values",
            json!({ "size": ["sum", "sum"] }),
            "/summaries/values/size/1 must not be given more than once".to_owned(),
        ),
        (
            "/summaries/values",
            json!({ "fee": ["vwap:size", "vwap:fee"] }),
            "/summaries/values/fee/1 must be the only \"vwap:\" of the property: it has one average"
                .to_owned(),
        ),
        ("/summaries/values", json!({ "ratio": ["sum"] }), format!("/summaries/values/ratio/0 {doubles}")),
        (
            "/summaries/values",
            json!({ "ratio": ["vwap:size"] }),
            format!("/summaries/values/ratio/0 {doubles}"),
        ),
        ("/summaries/values", json!({ "fee": ["vwap:ratio"] }), format!("/summaries/values/fee/0 {weight}")),
        (
            "/summaries/values",
            json!({ "fee": ["vwap:siz"] }),
            format!("/summaries/values/fee/0 {weight}: did you mean \"size\"?"),
        ),
    ] {
        expect(&with(pointer, given), &mistake);
    }
}

#[test]
fn the_definition_that_is_spoilt_below_is_good() {
    let definition = Definition::parse(&good().to_string()).unwrap();
    assert_eq!((definition.item.noun().one(), definition.owner.noun().as_str()), ("message", "room"));
    assert_eq!((definition.key_field(), definition.date.required), ("_key", false));
    let least = Definition::parse(&with("/pageSize", Value::Null)).unwrap();
    assert_eq!((least.page_size.get(), least.max_item_bytes), (10, 4096));
    assert_eq!(Definition::parse(&with("/maxItemBytes", Value::Null)).unwrap().max_item_bytes, 16 * 1024);
}

#[test]
fn members() {
    let route = "must be 1 to 48 of the characters a-z, 0-9 and \"-\", and begin with a letter";
    let ours = "must not be a name that the server uses itself";
    let bytes =
        "must be a whole number from 64 to 83886, so that a page of 50 items has at most 4194304 bytes";
    let filter = "must name a property that is a string, without the format date-time or decimal";
    for (pointer, value, sentence) in [
        ("/history", Value::Null, "/history is required".to_owned()),
        ("/history", json!(5), "/history must be a string".to_owned()),
        ("/history", json!("Messages"), format!("/history {route}")),
        ("/history", json!("1a"), format!("/history {route}")),
        ("/history", json!("page_views"), format!("/history {route}")),
        ("/history", json!(""), format!("/history {route}")),
        ("/history", json!("x".repeat(49)), format!("/history {route}")),
        ("/history", json!("histories"), format!("/history {ours}")),
        ("/history", json!("page-views"), format!("/history {ours}")),
        ("/title", Value::Null, "/title is required".to_owned()),
        ("/title", json!("message"), "/title must be 1 to 64 letters and digits that begin with a capital, such as \"Trade\"".to_owned()),
        ("/title", json!("Chat_Message"), "/title must be 1 to 64 letters and digits that begin with a capital, such as \"Trade\"".to_owned()),
        ("/owner", Value::Null, "/owner is required".to_owned()),
        ("/owner", json!("rooms"), "/owner must be an object with collection, field and type".to_owned()),
        ("/owner/collection", json!("messages"), "/owner/collection must not be the name of a history".to_owned()),
        ("/owner/collection", json!("Rooms"), format!("/owner/collection {route}")),
        ("/owner/collection", json!("migrations"), format!("/owner/collection {ours}")),
        ("/owner/field", json!("room_id"), "/owner/field must be 1 to 64 letters and digits that begin with a small letter, such as \"customerId\"".to_owned()),
        ("/owner/field", json!("page"), "/owner/field must not be a name that pages and listings use for something else".to_owned()),
        ("/owner/field", json!("totalItems"), "/owner/field must not be a name that pages and listings use for something else".to_owned()),
        ("/owner/type", json!("number"), "/owner/type must be \"integer\", \"string\" or \"uuid\"".to_owned()),
        ("/owner/type", Value::Null, "/owner/type is required".to_owned()),
        ("/owner/name", json!("x"), "/owner/name is not a member of a definition".to_owned()),
        ("/pageSize", json!(1), "/pageSize must be a whole number from 2 to 200".to_owned()),
        ("/pageSize", json!(201), "/pageSize must be a whole number from 2 to 200".to_owned()),
        ("/pageSize", json!("50"), "/pageSize must be a whole number from 2 to 200".to_owned()),
        ("/pageSize", json!(50.0), "/pageSize must be a whole number from 2 to 200".to_owned()),
        ("/maxItemBytes", json!(83_887), format!("/maxItemBytes {bytes}")),
        ("/maxItemBytes", json!(63), format!("/maxItemBytes {bytes}")),
        ("/date", Value::Null, "/date is required".to_owned()),
        ("/date", json!("created"), "/date must name a property of the item".to_owned()),
        ("/date", json!("text"), "/item/properties/text must be { \"type\": \"string\", \"format\": \"date-time\" }, because date names it".to_owned()),
        ("/filters", json!("text"), "/filters must be an array".to_owned()),
        ("/filters", json!([1]), "/filters/0 must be a string".to_owned()),
        ("/filters", json!(["sentAt"]), format!("/filters/0 {filter}")),
        ("/filters", json!(["text", "other"]), format!("/filters/1 {filter}")),
        ("/filters", json!(["text", "text"]), "/filters/1 must not be given more than once".to_owned()),
        ("/item", Value::Null, "/item is required".to_owned()),
        ("/$schema", json!(1), "/$schema must be a string".to_owned()),
        ("/indexes", json!([]), "/indexes is not a member of a definition: did you mean \"filters\", which need no index?".to_owned()),
    ] {
        expect(&with(pointer, value), &sentence);
    }
    expect("", "the document is not JSON: EOF while parsing a value at line 1 column 0");
    expect("[]", "the document must be an object, which is a definition");
    expect(
        r#"{"history":"a","history":"b"}"#,
        "/history must not be given more than once\n/title is required\n/owner is required\n/date is required\n/item is required",
    );
    let long = format!("{{\"history\":\"{}\"}}", "x".repeat(1 << 20));
    expect(&long, "the document must have at most 1048576 bytes");
}

#[test]
fn the_published_schema_has_the_names_that_are_taken() {
    let schema: Value = serde_json::from_str(JSON_SCHEMA).unwrap();
    let of_series = [&["generation", "owner"][..], &OF_LISTINGS, &OF_SUMMARIES].concat();
    for (pointer, names) in [
        ("/properties/owner/properties/field/not/enum", &OUR_FIELDS[..]),
        ("/properties/filters/items/not/enum", &OF_LISTINGS),
        ("/properties/timeSeries/properties/meta/items/not/enum", &of_series),
        ("/$defs/route/not/enum", &OUR_ROUTES),
        ("/$defs/item/properties/properties/propertyNames/not/enum", &RESERVED),
    ] {
        assert_eq!(schema.pointer(pointer), Some(&json!(names)), "{pointer}");
    }
}

#[test]
fn the_published_schema_accepts_definitions() {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = vec![good(), serde_json::from_str(Definition::trades_text()).unwrap()];
    for directory in ["examples/histories", "tests/data/histories"] {
        for file in std::fs::read_dir(checkout.join(directory)).unwrap() {
            all.push(serde_json::from_str(&std::fs::read_to_string(file.unwrap().path()).unwrap()).unwrap());
        }
    }
    assert!(all.len() > 5);
    all.push(serde_json::from_str(&with("/$schema", json!("definition.schema.json"))).unwrap());
    for definition in all {
        assert!(Definition::parse(&definition.to_string()).is_ok(), "{definition}");
        if let Err(error) = published().validate(&definition) {
            panic!("{} {error}", error.instance_path());
        }
    }
}

/// Slips that are likely have a hint.
#[test]
fn what_was_meant() {
    let types = "/type must be one of \"string\", \"integer\", \"number\", \"boolean\", \"array\", \"object\" and \"null\"";
    let formats = "/format must be date-time, date, uuid, email, uri or decimal";
    let keyword = "is not a keyword that a definition may use";
    let instant = "{ \"type\": \"string\", \"format\": \"date-time\" }";
    for (schema, sentence) in [
        (json!({ "nullable": true }), format!("/nullable {keyword}: give two types, such as \"type\": [\"string\", \"null\"]")),
        (json!({ "definitions": {} }), format!("/definitions {keyword}: did you mean \"$defs\"?")),
        (json!({ "descripton": "" }), format!("/descripton {keyword}: did you mean \"description\"?")),
        (json!({ "additional_properties": false }), format!("/additional_properties {keyword}: did you mean \"additionalProperties\"?")),
        (json!({ "example": 1 }), format!("/example {keyword}: did you mean \"examples\", which is an array?")),
        (json!({ "type": "string", "required": true }), "/required must be an array of names, and stand in the schema of the object that has this property".to_owned()),
        (json!({ "type": "int" }), format!("{types}: did you mean \"integer\"?")),
        (json!({ "type": "Bool" }), format!("{types}: did you mean \"boolean\"?")),
        (json!({ "type": "timestamp" }), format!("{types}: did you mean {instant}?")),
        (json!({ "type": "strng" }), format!("{types}: did you mean \"string\"?")),
        (json!({ "type": "cat" }), types.to_owned()),
        (json!({ "type": "number", "exclusiveMinimum": true }), "/exclusiveMinimum must be a number: it is the bound, and stands instead of \"minimum\"".to_owned()),
        (json!({ "type": "string", "format": "uuid4" }), format!("{formats}: did you mean \"uuid\"?")),
        (json!({ "type": "string", "format": "date_time" }), format!("{formats}: did you mean \"date-time\"?")),
        (json!({ "type": "integer", "format": "int64" }), "/format means nothing for the type of this schema: an integer is within 53 bits, and a number is a double".to_owned()),
        (json!({ "n".repeat(65): 1 }), format!("/{} {keyword}", "n".repeat(65))),
    ] {
        expect(&with("/item/properties/x", schema), &format!("/item/properties/x{sentence}"));
    }
    let member = "is not a member of a definition";
    for (name, hint) in [
        ("page_size", ": did you mean \"pageSize\"?"),
        ("pagesize", ": did you mean \"pageSize\"?"),
        ("maxitembytes", ": did you mean \"maxItemBytes\"?"),
        ("properties", ": it belongs into \"item\""),
        ("schema", ": did you mean \"item\"?"),
        ("colour", ""),
    ] {
        expect(&with(&format!("/{name}"), json!(1)), &format!("/{name} {member}{hint}"));
    }
    let references = json!({ "leg": {} });
    let text = with("/item/$defs", references);
    for (reference, hint) in [
        (
            "#/definitions/leg",
            "must be #/$defs/ and the name of a schema in the item's $defs: did you mean \"#/$defs/leg\"?",
        ),
        ("#/$defs/legs", "must name a schema in the item's $defs: did you mean \"leg\"?"),
    ] {
        let text = text.replace(r#""x":{}"#, &format!(r#""x":{{"$ref":"{reference}"}}"#));
        expect(&text, &format!("/item/properties/x/$ref {hint}"));
    }
    expect(
        &with("/date", json!("sent_at")),
        "/date must name a property of the item: did you mean \"sentAt\"?",
    );
    let filter = "must name a property that is a string, without the format date-time or decimal";
    expect(&with("/filters", json!(["txt"])), &format!("/filters/0 {filter}: did you mean \"text\"?"));
}

/// One mistake never hides another, and never leads to another.
#[test]
fn all_mistakes_are_named_at_once() {
    let mut definition = good();
    definition["page_size"] = json!(10);
    definition["history"] = json!("Messages");
    definition["title"] = json!("message");
    definition["owner"] = json!({ "collection": "Rooms", "field": "room_id", "type": "int" });
    definition["pageSize"] = json!(1);
    definition["maxItemBytes"] = json!(1);
    definition["filters"] = json!(["text", "from", "x", "other", "text"]);
    definition["item"] = json!({
        "type": "object",
        "oneOf": [],
        "required": ["text", "gone", "_key", "x"],
        "properties": {
            "text": { "type": "string", "minlength": 1, "pattern": "(?=a)", "examples": ["a", 5] },
            "_key": {},
            "x": { "type": "text", "minimum": 5 },
            "seq": { "type": "string", "format": "number", "minimum": 0 },
            "list": { "type": "array", "items": { "type": "integer", "minLength": 1, "maximum": "5", "enum": ["a", 1, 1] } },
            "sentAt": { "type": "string", "format": "datetime" },
            "from": { "$ref": "#/$defs/unknown", "type": "string" },
            "used": { "$ref": "#/$defs/used" },
        },
        "$defs": { "used": { "nullable": true }, "unused": { "maxLength": -1 } },
    });
    let mistakes = Definition::parse(&definition.to_string()).unwrap_err();
    let places: Vec<_> = mistakes.kept().iter().map(|mistake| mistake.pointer.as_str()).collect();
    let expected = [
        "/page_size",
        "/history",
        "/title",
        "/owner/collection",
        "/owner/field",
        "/owner/type",
        "/pageSize",
        "/maxItemBytes",
        "/item/oneOf",
        "/item/properties/_key",
        "/item/properties/text/minlength",
        "/item/properties/text/pattern",
        "/item/properties/text/examples/1",
        "/item/properties/x/type",
        "/item/properties/seq/format",
        "/item/properties/list/items/minLength",
        "/item/properties/list/items/maximum",
        "/item/properties/list/items/enum/0",
        "/item/properties/list/items/enum/2",
        "/item/properties/sentAt/format",
        "/item/properties/from/type",
        "/item/properties/from/$ref",
        "/item/$defs/used/nullable",
        "/item/required/1",
        "/item/$defs/unused/maxLength",
        "/item/properties/seq",
        "/filters/1",
        "/filters/3",
        "/filters/4",
    ];
    assert_eq!(places, expected, "{mistakes}");
    assert_eq!(Definition::parse(&definition.to_string()).unwrap_err(), mistakes);
    // Their number is bounded.
    let many: serde_json::Map<_, _> = (0..70).map(|n| (format!("p{n}"), json!({ "oneOf": [] }))).collect();
    let mistakes = Definition::parse(&with("/item/properties/x", json!({ "properties": many }))).unwrap_err();
    assert_eq!(
        (mistakes.kept().len(), mistakes.lines().last().as_deref()),
        (50, Some("has 20 more mistakes"))
    );
}

#[test]
fn items() {
    let name = "must have a name of A-Z, a-z, 0-9, \"_\" and \"-\" that begins with a letter and has at most 64 characters";
    for (pointer, value, sentence) in [
        ("/item", json!(true), "/item must be an object, which is a schema".to_owned()),
        ("/item/type", Value::Null, "/item/type must be \"object\"".to_owned()),
        ("/item/type", json!("array"), "/item/type must be \"object\"".to_owned()),
        ("/item/type", json!(["object", "null"]), "/item/type must be \"object\"".to_owned()),
        ("/item/properties/seq", json!({}), "/item/properties/seq has a name that is reserved".to_owned()),
        ("/item/properties/page", json!({}), "/item/properties/page has a name that is reserved".to_owned()),
        ("/item/properties/roomId", json!({}), "/item/properties/roomId has a name that is reserved".to_owned()),
        ("/item/properties/_key", json!({}), format!("/item/properties/_key {name}")),
        ("/item/properties/a.b", json!({}), format!("/item/properties/a.b {name}")),
        ("/item/properties/$a", json!({}), format!("/item/properties/$a {name}")),
        ("/item/required", json!(["txt"]), "/item/required/0 must name one of the properties: did you mean \"text\"?".to_owned()),
        ("/item/required", json!(["text", "text"]), "/item/required/1 must not be given more than once".to_owned()),
        ("/item/allOf", json!([]), "/item/allOf is not a keyword that a definition may use: write the keywords of all parts into one schema".to_owned()),
        ("/item/patternProperties", json!({}), "/item/patternProperties is not a keyword that a definition may use: \"additionalProperties\" is the schema of all members that \"properties\" does not declare".to_owned()),
        ("/item/$schema", json!("x"), "/item/$schema is not a keyword that a definition may use: it may stand in the definition itself, beside \"history\"".to_owned()),
        ("/item/description", json!(5), "/item/description must be a string".to_owned()),
        ("/item/deprecated", json!("yes"), "/item/deprecated must be true or false".to_owned()),
        ("/item/examples", json!([{ "text": 5 }]), "/item/examples/0/text is refused by its own schema: it must be a string, not a number".to_owned()),
        ("/item/examples", json!([{ "text": "a", "seq": 1 }]), "/item/examples/0/seq is no item: it has a name that is reserved".to_owned()),
        ("/item/$ref", json!("#/$defs/a"), "/item/$ref must not stand in the item's own schema".to_owned()),
        ("/item/enum", json!([{ "text": "a" }]), "/item/enum must not stand in the item's own schema".to_owned()),
        ("/item/const", json!({ "text": "a" }), "/item/const must not stand in the item's own schema".to_owned()),
        ("/item/default", json!({ "text": "a" }), "/item/default must not stand in the item's own schema".to_owned()),
        ("/item/properties/sentAt", json!({ "type": "string", "format": "date-time", "default": "2004-01-09T00:00:00Z" }), "/item/properties/sentAt/default must not be given: a missing date is the time of arrival".to_owned()),
        ("/item/$defs", json!({ "a": { "default": 1 } }), "/item/$defs/a/default must stand in the schema of a property: nothing else can be filled in".to_owned()),
        ("/item/$defs", json!({ "a b": {} }), format!("/item/$defs/a b {name}")),
        ("/item/$defs", json!({ "a": { "type": "text" } }), "/item/$defs/a/type must be one of \"string\", \"integer\", \"number\", \"boolean\", \"array\", \"object\" and \"null\": did you mean \"string\"?".to_owned()),
    ] {
        expect(&with(pointer, value), &sentence);
    }
}

#[test]
fn schemas() {
    let nothing = "means nothing for the type of this schema";
    let unshown = "must have examples beside it or in a schema around it, because none is made from a regular expression";
    for (schema, sentence) in [
        (json!([]), " must be an object, which is a schema".to_owned()),
        (json!({ "type": "text" }), "/type must be one of \"string\", \"integer\", \"number\", \"boolean\", \"array\", \"object\" and \"null\": did you mean \"string\"?".to_owned()),
        (json!({ "type": [] }), "/type must name at least one type".to_owned()),
        (json!({ "type": ["integer", "number"] }), "/type/1 must not name a type twice (a number may be an integer)".to_owned()),
        (json!({ "minlength": 1 }), "/minlength is not a keyword that a definition may use: did you mean \"minLength\"?".to_owned()),
        (json!({ "oneOf": [] }), "/oneOf is not a keyword that a definition may use: declare the properties of all alternatives, and require those that every alternative has".to_owned()),
        (json!({ "type": "integer", "minLength": 1 }), format!("/minLength {nothing}: did you mean \"minimum\"?")),
        (json!({ "type": "string", "maxItems": 1 }), format!("/maxItems {nothing}: did you mean \"maxLength\"?")),
        (json!({ "type": "object", "items": {} }), format!("/items {nothing}")),
        (json!({ "type": "boolean", "minimum": 0 }), format!("/minimum {nothing}")),
        (json!({ "type": "string", "minimum": 0 }), "/minimum means nothing for a string whose format is not decimal: did you mean \"minLength\"?".to_owned()),
        (json!({ "type": "string", "format": "decimal", "multipleOf": 1 }), "/multipleOf means nothing for a string".to_owned()),
        (json!({ "type": "string", "minLength": -1 }), "/minLength must be a whole number from 0 to 4294967295, written without a fraction or an exponent".to_owned()),
        (json!({ "type": "string", "minLength": 5, "maxLength": 4 }), "/maxLength must not be less than minLength".to_owned()),
        (json!({ "type": "array", "minItems": 5, "maxItems": 4 }), "/maxItems must not be less than minItems".to_owned()),
        (json!({ "type": "array", "uniqueItems": 1 }), "/uniqueItems must be true or false".to_owned()),
        (json!({ "type": "array", "items": [{}] }), "/items must be an object, which is a schema".to_owned()),
        (json!({ "type": "number", "minimum": "0" }), "/minimum must be a number".to_owned()),
        (json!({ "type": "number", "minimum": 2, "maximum": 1 }), "/maximum leaves no number between the bounds".to_owned()),
        (json!({ "type": "number", "minimum": 1, "exclusiveMaximum": 1 }), "/exclusiveMaximum leaves no number between the bounds".to_owned()),
        (json!({ "type": "integer", "minimum": 0.2, "maximum": 0.8 }), "/maximum leaves no whole number between the bounds, which are -9007199254740991 to 9007199254740991 at most".to_owned()),
        (json!({ "type": "number", "multipleOf": 0 }), "/multipleOf must be a number greater than 0 that a double can hold".to_owned()),
        (json!({ "type": "string", "format": "ipv4" }), "/format must be date-time, date, uuid, email, uri or decimal".to_owned()),
        (json!({ "format": "uuid" }), " must have \"type\": \"string\", because it has a format".to_owned()),
        (json!({ "type": "string", "pattern": "(?=a)" }), "/pattern may have groups ( and (?: only".to_owned()),
        (json!({ "type": "string", "pattern": "(a)\\1" }), "/pattern has an escape that is not supported: \\1".to_owned()),
        (json!({ "type": "string", "pattern": "a)" }), "/pattern is not a regular expression: unopened group".to_owned()),
        (json!({ "type": "string", "pattern": "((a{100}){100}){100}" }), "/pattern is too large when compiled".to_owned()),
        (json!({ "type": "string", "pattern": "b" }), format!("/pattern {unshown}")),
        (json!({ "pattern": "a", "examples": [] }), format!("/pattern {unshown}")),
        (json!({ "items": { "pattern": "a" }, "properties": { "a": { "pattern": "b" } } }), format!("/items/pattern {unshown}\n/item/properties/x/properties/a/pattern {unshown}")),
        (json!({ "additionalProperties": { "pattern": "a" } }), format!("/additionalProperties/pattern {unshown}")),
        (json!({ "enum": [] }), "/enum must have at least one value".to_owned()),
        (json!({ "enum": [1, 1.0] }), "/enum/1 must not be given more than once".to_owned()),
        (json!({ "type": "string", "enum": ["a", 5] }), "/enum/1 is refused by its own schema: it must be a string, not a number".to_owned()),
        (json!({ "enum": ["a"], "const": "a" }), "/const must not stand beside enum".to_owned()),
        (json!({ "$ref": "#/properties/text" }), "/$ref must be #/$defs/ and the name of a schema in the item's $defs".to_owned()),
        (json!({ "$ref": "https://example.org/x" }), "/$ref must be #/$defs/ and the name of a schema in the item's $defs".to_owned()),
        (json!({ "$ref": "#/$defs/x" }), "/$ref must name a schema in the item's $defs".to_owned()),
        (json!({ "$ref": "#/$defs/x", "type": "string" }), "/type must not stand beside $ref\n/item/properties/x/$ref must name a schema in the item's $defs".to_owned()),
        (json!({ "$defs": {} }), "/$defs must stand in the item's schema, not in one inside it".to_owned()),
        (json!({ "additionalProperties": 5 }), "/additionalProperties must be an object, which is a schema".to_owned()),
        (json!({ "type": "string", "default": 5 }), "/default is refused by its own schema: it must be a string, not a number".to_owned()),
        (json!({ "type": "array", "items": { "default": 5 } }), "/items/default must stand in the schema of a property: nothing else can be filled in".to_owned()),
        (json!({ "required": ["a"], "properties": { "a": { "default": 5 } } }), "/properties/a/default means nothing for a required property, which clients must send".to_owned()),
        (json!({ "type": "string", "examples": [5] }), "/examples/0 is refused by its own schema: it must be a string, not a number".to_owned()),
        (json!({ "type": "string", "examples": "x" }), "/examples must be an array, such as [\"x\"]".to_owned()),
    ] {
        expect(&with("/item/properties/x", schema), &format!("/item/properties/x{sentence}"));
    }
}

#[test]
fn examples_of_regular_expressions() {
    for schema in [
        json!({ "pattern": "a", "examples": ["a"] }),
        json!({ "pattern": "a", "enum": ["a", "ba"] }),
        json!({ "pattern": "a", "const": "a" }),
        json!({ "type": "array", "items": { "pattern": "a" }, "examples": [["a"]] }),
        json!({ "properties": { "y": { "properties": { "z": { "pattern": "a" } } } }, "examples": [{}] }),
    ] {
        let parsed = Definition::parse(&with("/item/properties/x", schema));
        assert!(parsed.is_ok_and(|definition| definition.item.example().is_some()));
    }
    let mut definition: Value =
        serde_json::from_str(&with("/item/$defs", json!({ "a": { "pattern": "a" } }))).unwrap();
    definition["item"]["properties"]["x"] = json!({ "$ref": "#/$defs/a", "examples": ["a"] });
    expect(
        &definition.to_string(),
        "/item/$defs/a/pattern must have examples beside it or in a schema around it, because none is made from a regular expression",
    );
    definition["item"]["examples"] = json!([{ "text": "" }]);
    assert!(Definition::parse(&definition.to_string()).is_ok());
}

#[test]
fn nesting() {
    let circle = json!({ "a": { "items": { "$ref": "#/$defs/b" } }, "b": { "$ref": "#/$defs/a" } });
    expect(
        &with("/item/$defs", circle).replace(r#""x":{}"#, r##""x":{"$ref":"#/$defs/a"}"##),
        "/item/$defs/b/$ref must not lead back to itself",
    );
    let nested = |levels: usize| {
        (0..levels).fold(json!({ "type": "string" }), |inner, _| json!({ "type": "array", "items": inner }))
    };
    assert!(Definition::parse(&with("/item/properties/x", nested(31))).is_ok());
    expect(&with("/item/properties/x", nested(32)), "/item declares items of more than 32 levels");
    let mut pointer = "/item/properties/x".to_owned();
    pointer.push_str(&"/items".repeat(64));
    let deep = format!("{}{{}}{}", r#"{"items":"#.repeat(100_000), "}".repeat(100_000));
    let text = with("/item/properties/x", json!("HERE")).replace("\"HERE\"", &deep);
    expect(&text, &format!("{pointer} is nested deeper than 64 schemas"));
    // Ten schemas that each lead twice to the next are ten schemas.
    let defs: serde_json::Map<_, _> = (0..30)
        .map(|at| {
            let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
            (format!("d{at}"), json!({ "type": "object", "properties": { "a": next, "b": next } }))
        })
        .chain([("d30".to_owned(), json!({ "type": "null" }))])
        .collect();
    let text = with("/item/$defs", json!(defs)).replace(r#""x":{}"#, r##""x":{"$ref":"#/$defs/d0"}"##);
    let definition = Definition::parse(&text).unwrap();
    assert!(definition.item.parse_drafts(br#"{"text":"","x":{"a":{"b":{}}}}"#, 1).is_ok());
    assert!(definition.item.parse_drafts(br#"{"text":"","x":{"a":{"b":[]}}}"#, 1).is_err());
    assert!(definition.item.example().is_some());
}

/// Files of a directory of its own.
fn load(files: &[(&str, String)]) -> Result<Definitions, String> {
    static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let directory =
        std::env::temp_dir().join(format!("pagebucket-definitions-{}-{count}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for (name, text) in files {
        std::fs::write(directory.join(name), text).unwrap();
    }
    let loaded = Definitions::of_directory(&directory).map_err(|error| error.to_string());
    std::fs::remove_dir_all(&directory).unwrap();
    loaded.map_err(|error| {
        error
            .replace(&format!("{}/", directory.display()), "")
            .replace(&directory.display().to_string(), "DIR")
    })
}

#[test]
fn definitions_agree() {
    let good = good().to_string();
    let notes = |changes: &[(&str, &str)]| {
        let mut text = good.replace("messages", "notes").replace("Message", "Note");
        for (from, to) in changes {
            text = text.replace(from, to);
        }
        text
    };
    let both = load(&[("a.json", good.clone()), ("b.json", notes(&[])), ("README.md", "no JSON".to_owned())])
        .unwrap();
    let names: Vec<_> = both.iter().map(|definition| &*definition.name).collect();
    assert_eq!(names, ["messages", "notes"]);
    assert_eq!(both.get("notes").unwrap().title, "Note");
    assert!(both.get("trades").is_none());
    for (second, sentence) in [
        (
            notes(&[("notes", "messages")]),
            "b.json: /history must not be messages, which another file defines",
        ),
        (
            notes(&[("notes", "rooms"), ("\"rooms\",\"field\"", "\"flats\",\"field\"")]),
            "b.json: /history must not be rooms, which is a collection of owners",
        ),
        (
            notes(&[("rooms", "messages")]),
            "b.json: /owner/collection must not be messages, which is a history",
        ),
        (
            notes(&[("\"type\":\"string\"},\"pageSize\"", "\"type\":\"integer\"},\"pageSize\"")]),
            "b.json: /owner must have the field roomId of type string, because another history of rooms has",
        ),
        (
            notes(&[("roomId", "chatId")]),
            "b.json: /owner must have the field roomId of type string, because another history of rooms has",
        ),
        (
            notes(&[("\"Note\"", "\"Message\"")]),
            "b.json: /title makes the name Message in the OpenAPI document, which messages has",
        ),
        (
            notes(&[("\"Note\"", "\"MessagePage\"")]),
            "b.json: /title makes the name MessagePage in the OpenAPI document, which messages has",
        ),
        (
            notes(&[("\"Note\"", "\"MessageInput\"")]),
            "b.json: /title makes the name MessageInput in the OpenAPI document, which messages has",
        ),
        // A client in Go would have two of them.
        (
            notes(&[("\"Note\"", "\"NewMessage\"")]),
            "b.json: /title makes the name NewMessage in the OpenAPI document, which messages has",
        ),
        (
            notes(&[("notes", "message-batch")]),
            "b.json: /history makes the name appendMessageBatch in the OpenAPI document, which messages has",
        ),
        (
            notes(&[("\"Note\"", "\"Problem\"")]),
            "b.json: /title makes the name Problem in the OpenAPI document, which the server has itself",
        ),
        (
            notes(&[("\"Note\"", "\"Room\"")]),
            "b.json: /title makes the name Room in the OpenAPI document, which messages has",
        ),
        (
            notes(&[("notes", "messages-of-rooms")]),
            "b.json: /history makes the name uploadMessagesOfRooms in the OpenAPI document, which messages has",
        ),
        (
            notes(&[("roomId", "link"), ("rooms", "links")]).replace("\"link\"", "\"notes\""),
            "b.json: /owner/field must not be notes, which is a history of links",
        ),
        (
            notes(&[("notes", "a-1"), ("rooms", "a1")]),
            "b.json: /owner/collection must differ from a-1 by more than hyphens",
        ),
        ("{".to_owned(), "b.json: the document is not JSON: EOF while parsing an object at line 1 column 1"),
    ] {
        assert_eq!(load(&[("a.json", good.clone()), ("b.json", second)]).unwrap_err(), sentence);
    }
    // Also of several files.
    let both =
        load(&[("a.json", with("/pageSize", json!(1))), ("b.json", "[]".to_owned()), ("c.json", good)]);
    assert_eq!(
        both.unwrap_err(),
        "a.json: /pageSize must be a whole number from 2 to 200\nb.json: the document must be an object, which is a definition"
    );
    assert_eq!(load(&[("README.md", String::new())]).unwrap_err(), "DIR has no file that ends with .json");
    let missing = Definitions::of_directory(Path::new("/nowhere/at/all")).unwrap_err().to_string();
    assert!(missing.starts_with("/nowhere/at/all cannot be read: "), "{missing}");
}

#[test]
fn the_definitions_that_are_shipped_are_good() {
    let trades = Definitions::built_in();
    let trades = trades.get("trades").unwrap();
    assert_eq!(
        (trades.key_field(), trades.page_size.get(), trades.owner.kind),
        ("key", 10, OwnerType::Integer)
    );
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("test_data/example_histories");
    let examples = Definitions::of_directory(&examples).unwrap();
    for definition in examples.iter().chain([trades]) {
        assert_eq!(definition.item.example(), Some(definition.source["examples"][0].clone()));
    }
    let executions = examples.get("executions").unwrap();
    assert_eq!((executions.item.noun().one(), executions.owner.noun().as_str()), ("execution", "account"));
    assert!(executions.item.columns().is_ok() && executions.date.required);
    assert!(examples.get("messages").unwrap().item.columns().is_err());
}
