//! Rows of files become items: of trades, in the spellings that files have, and of other definitions.

use std::io::Cursor;
use std::sync::Arc;

use pagebucket_model::definition::Definition;
use pagebucket_model::domain::OwnerId;
use pagebucket_model::item::write_members;

use crate::import::{ColumnName, Format, OpenError, RowReader, RowRules};
use crate::ingest::{Bad, Row};

fn open(
    text: &str,
    format: Format,
    definition: &Arc<Definition>,
    names: &[&str],
) -> Result<RowReader, OpenError> {
    let names: Vec<ColumnName> = names.iter().map(|name| name.parse().unwrap()).collect();
    let rules = RowRules { format, names: &names, owner: None, from_line: 1 };
    RowReader::open(Box::new(Cursor::new(text.to_owned())), definition, rules)
}

/// The rows of a file, each as the JSON of its owner and its item, or what is wrong with it.
fn read(
    text: &str,
    format: Format,
    definition: &Arc<Definition>,
    names: &[&str],
) -> Vec<Result<String, String>> {
    let mut rows = open(text, format, definition, names).unwrap();
    std::iter::from_fn(|| rows.read().unwrap()).map(|row| shown(row, definition)).collect()
}

fn shown(row: Result<Row, Bad<String>>, definition: &Definition) -> Result<String, String> {
    let row = row.map_err(|bad| bad.why)?;
    let mut json = serde_json::to_vec(&row.owner).unwrap();
    write_members(row.draft.document(), definition.key_field(), &definition.date.name, &mut json).unwrap();
    Ok(String::from_utf8(json).unwrap())
}

fn trades() -> Arc<Definition> {
    Arc::new(Definition::trades())
}

/// A line of NDJSON as a trade.
fn trade(line: &str) -> Result<String, String> {
    read(line, Format::Ndjson, &trades(), &[]).remove(0)
}

/// A trade by the texts of its cells; "none" is no cell.
fn cells(texts: [&str; 6]) -> Result<String, String> {
    let names = ["customerId", "type", "ticker", "qty", "price", "date"];
    let found = || names.iter().zip(texts).filter(|(_, text)| *text != "none");
    let header: Vec<_> = found().map(|(name, _)| *name).collect();
    let row: Vec<_> = found().map(|(_, text)| text).collect();
    let text = format!("{}\n{}\n", header.join(","), row.join(","));
    read(&text, Format::Csv, &trades(), &[]).remove(0)
}

#[test]
fn the_sign_is_the_type_where_there_is_none() {
    let date = "\"2004-01-09T00:00:00.000Z\"";
    let expected = [
        (["7", "none", "CERN", "-697", "4.82375000001", "2004-01-09"], "sell", "CERN", 697, "4.82375000001"),
        (["7", "none", "AMD", "448", "", "2004-01-09"], "buy", "AMD", 448, ""),
        (["7", "sell", "AMD", "448", "none", "2004-01-09"], "sell", "AMD", 448, ""),
    ];
    for (texts, side, ticker, qty, price) in expected {
        let price = if price.is_empty() { String::new() } else { format!(",\"price\":\"{price}\"") };
        let json = format!(r#"7,"type":"{side}","ticker":"{ticker}","qty":{qty}{price},"date":{date}"#);
        assert_eq!(cells(texts), Ok(json));
    }
    for qty in ["0", "-0", "+5", "--5", "5.0", "", "-", "1e3", " 5"] {
        let reason = cells(["7", "none", "AMD", qty, "", "2004-01-09"]).unwrap_err();
        let rule = "\"qty\" must be a whole number other than 0, negative where sold, at most 9007199254740991 either \
                    way, written without a fraction or an exponent";
        assert_eq!(reason, format!("{rule}, not {qty:?}"));
    }
    let reason = cells(["7", "buy", "AMD", "-448", "", "2004-01-09"]).unwrap_err();
    assert!(reason.contains("from 1 to") && reason.ends_with(", not \"-448\""), "{reason}");
}

#[test]
fn all_that_is_wrong_is_told_once() {
    let reason = cells(["07", "hold", "amd\u{1b}[2J", "4.5", "1e3", "soon"]).unwrap_err();
    assert_eq!(reason.matches("; ").count(), 5, "{reason}");
    for part in [
        "\"customerId\" must be a whole number",
        "\"type\" must be \"buy\" or \"sell\", not \"hold\"",
        "\"ticker\" must be 1 to 12 of the characters",
        "not \"amd\\u{1b}[2J\"",
        "\"qty\" must be a whole number from 1 to 9007199254740991, written without a fraction or an exponent, not \"4.5\"",
        "plain notation, such as \"15.54\", not \"1e3\"",
        "\"date\" must be a date-time with an offset",
    ] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    let reason = cells(["", "", "", "", "", "\"\""]).unwrap_err();
    assert_eq!(reason.matches("; ").count(), 4, "{reason}");
    assert!(
        reason.contains("; \"type\" must be \"buy\" or \"sell\", not \"\"; \"ticker\" must be 1 to"),
        "{reason}"
    );
}

#[test]
fn one_trade_in_many_spellings() {
    let expected =
        trade(r#"{"customerId":7,"type":"sell","ticker":"AMD","qty":448,"price":15.50,"date":"2004-01-09"}"#)
            .unwrap();
    assert!(expected.contains(r#""price":"15.50""#), "{expected}");
    for line in [
        r#"{"customer_id":{"$numberLong":"7"},"symbol":"AMD","amount":{"$numberInt":"-448"},"price":{"$numberDecimal":"15.50"},"timestamp":{"$date":"2004-01-09T00:00:00Z"},"type":null}"#,
        r#"{"_id":{"$oid":"6553e2b0c0ffee0000000000"},"customerId":"7","type":"sell","ticker":"AMD","qty":{"$numberDouble":"448.0"},"price":"15.50","date":{"$date":{"$numberLong":"1073606400000"}},"tags":["a","a"]}"#,
        r#"{"customerId":7,"quantity":-448,"ticker":"AMD","price":15.50,"date":{"$date":1073606400000},"other":1,"other":2}"#,
    ] {
        assert_eq!(trade(line).as_ref(), Ok(&expected), "{line}");
    }
}

#[test]
fn what_is_no_trade_is_told() {
    let good = r#""ticker":"AMD","qty":1,"date":"2004-01-09""#;
    for (line, part) in [
        ("5".to_owned(), "must be an object, not a number"),
        ("{\"a\":}".to_owned(), "is not JSON: expected value, at byte 6"),
        ("{\"a\":\"\u{1}\"}".to_owned(), "is not JSON"),
        (format!("{{{good}}}"), "has no field \"customerId\" or \"customer_id\""),
        (format!("{{\"customerId\":7,\"qty\":2,{good}}}"), "gives \"qty\" more than once"),
        (
            format!("{{\"customerId\":7,\"price\":null,\"price\":\"5\",{good}}}"),
            "gives \"price\" more than once",
        ),
        (format!("{{\"customerId\":7.5,{good}}}"), "not \"7.5\""),
        (
            r#"{"customerId":7,"ticker":7203,"qty":[],"date":true}"#.to_owned(),
            "\"ticker\" must be a string, not \"7203\"",
        ),
        (
            r#"{"customerId":7,"ticker":"A","qty":[],"date":1}"#.to_owned(),
            "\"qty\" must be a number or a string, not an array",
        ),
        (format!("{{\"customerId\":7,{good},\"price\":\"1e1\"}}"), "plain notation"),
        (format!("{{\"customerId\":7,{good},\"price\":1e40}}"), "at most 34 significant digits"),
        (
            r#"{"customerId":7}"#.to_owned(),
            "has no field \"ticker\" or \"symbol\"; has no field \"qty\" or \"amount\" or \"quantity\"; has no field \
             \"date\" or \"timestamp\" or \"\"",
        ),
    ] {
        let reason = trade(&line).unwrap_err();
        assert!(reason.contains(part), "{line}: {reason}");
    }
    // Of the first row it would be a fault of the file.
    let lines = format!("{{\"customerId\":7,{good}}}\n{{\"customerId\":7,\"amount\":5,{good}}}");
    let reason = read(&lines, Format::Ndjson, &trades(), &[]).remove(1).unwrap_err();
    assert_eq!(
        reason,
        "has \"qty\" and \"amount\", each of which may be \"qty\": say which with --column qty=NAME"
    );
    let named = read(&format!("{{\"customerId\":7,{good}}}"), Format::Ndjson, &trades(), &["type=side"]);
    assert_eq!(named, [Err("has no field \"side\"".to_owned())]);
}

/// Of the values of Extended JSON, and of JSON, each is what its type and its value say.
#[test]
fn a_number_is_read_by_its_value() {
    let item = |name: &str, value: &str| {
        let line = format!(r#"{{"deviceId":"a","name":"n","at":"2004-01-09","{name}":{value}}}"#);
        read(&line, Format::Ndjson, &flat(), &[]).remove(0)
    };
    for (name, value, stored) in [
        ("cost", r#"{"$numberDecimal":"1E-7"}"#, r#""0.0000001""#),
        ("cost", r#"{"$numberDecimal":"0E-8"}"#, r#""0.00000000""#),
        ("cost", r#"{"$numberDecimal":"1E+3"}"#, r#""1000""#),
        ("cost", r#"{"$numberDecimal":"15.50"}"#, r#""15.50""#),
        ("cost", r#"{"$numberDouble":"1e-07"}"#, r#""0.0000001""#),
        ("cost", r#"{"$numberDouble":"1.0E+21"}"#, r#""1000000000000000000000""#),
        ("cost", r#"{"$numberLong":"9007199254740993"}"#, r#""9007199254740993""#),
        ("cost", "1E-7", r#""0.0000001""#),
        ("cost", "1.0E-7", r#""0.0000001""#),
        ("cost", r#"{"$numberDecimal":"1.0E-7"}"#, r#""0.00000010""#),
        ("cost", "15.50", r#""15.50""#),
        ("count", "5.0", "5"),
        ("count", "-0.5E1", "-5"),
        ("count", r#"{"$numberDouble":"5.0"}"#, "5"),
        ("count", r#"{"$numberDecimal":"5.00"}"#, "5"),
        ("celsius", r#"{"$numberDecimal":"1E-7"}"#, "1e-7"),
        ("celsius", r#"{"$numberDouble":"1.0E-7"}"#, "1e-7"),
        ("celsius", "0.10000000000000001", "0.1"),
        ("checked", "1073606400000.0", r#""2004-01-09T00:00:00.000Z""#),
        ("checked", r#"{"$numberDecimal":"1.0736064E+12"}"#, r#""2004-01-09T00:00:00.000Z""#),
    ] {
        let expected = format!(r#""a","name":"n","{name}":{stored},"at":"2004-01-09T00:00:00.000Z""#);
        assert_eq!(item(name, value), Ok(expected), "{name}: {value}");
    }
    for (name, value, part) in [
        ("count", "5.5", "\"count\" must be a whole number"),
        ("count", r#""5.0""#, "\"count\" must be a whole number"),
        ("cost", r#"{"$numberDecimal":"NaN"}"#, "plain notation"),
        ("celsius", r#"{"$numberLong":"9007199254740993"}"#, "without rounding, not \"9007199254740993\""),
        ("celsius", "9007199254740993", "without rounding"),
        ("celsius", r#"{"$numberDecimal":"0.10000000000000000001"}"#, "without rounding"),
    ] {
        let reason = item(name, value).unwrap_err();
        assert!(reason.contains(part), "{name}: {value}: {reason}");
    }
}

/// What is no property keeps all digits of its whole numbers, as deep as it may be.
#[test]
fn no_whole_number_is_rounded() {
    let item = |value: &str| {
        let line = format!(r#"{{"teamId":7,"at":"2004-01-09","parts":[],"more":{value}}}"#);
        read(&line, Format::Ndjson, &nested(), &[]).remove(0)
    };
    for value in [
        r#"{"$numberLong":"9007199254740993"}"#,
        "9007199254740993",
        r#"{"a":[{"b":{"$numberLong":"-9007199254740993"}}]}"#,
    ] {
        let reason = item(value).unwrap_err();
        let part = "\"more\" must have whole numbers of at most 9007199254740991 either way, not ";
        assert!(reason.starts_with(part) && reason.ends_with("9007199254740993"), "{reason}");
    }
    for value in [r#"{"a":[{"$numberLong":"9007199254740991"}]}"#, "0.10000000000000000055", "1e300"] {
        item(value).unwrap();
    }
}

#[test]
fn an_owner_may_be_a_native_uuid() {
    let text = r#"{
        "history": "entries", "title": "Entry",
        "owner": { "collection": "wallets", "field": "walletId", "type": "uuid" },
        "date": "at", "item": { "type": "object", "additionalProperties": false,
            "properties": { "at": { "type": "string", "format": "date-time" } } }
    }"#;
    let definition = Arc::new(Definition::parse(text).unwrap());
    for owner in [
        r#""018F3C6E-7B1A-7C3D-9E2F-0123456789AB""#,
        r#"{"$uuid":"018f3c6e-7b1a-7c3d-9e2f-0123456789ab"}"#,
        r#"{"$binary":{"base64":"AY88bnsafD2eLwEjRWeJqw==","subType":"04"}}"#,
        r#"{"$binary":{"base64":"AY88bnsafD2eLwEjRWeJqw==","subType":"03"}}"#,
    ] {
        let line = format!(r#"{{"walletId":{owner},"at":"2004-01-09"}}"#);
        let found = read(&line, Format::Ndjson, &definition, &[]).remove(0);
        assert!(
            found.as_ref().is_ok_and(|row| row.starts_with("\"018f3c6e-7b1a-7c3d-9e2f-0123456789ab\"")),
            "{found:?}"
        );
    }
    let generic =
        r#"{"walletId":{"$binary":{"base64":"AY88bnsafD2eLwEjRWeJqw==","subType":"00"}},"at":"2004-01-09"}"#;
    let reason = read(generic, Format::Ndjson, &definition, &[]).remove(0).unwrap_err();
    assert!(reason.contains("\"walletId\" must be a string, not an object"), "{reason}");
}

/// Flat items with a property of each kind.
fn flat() -> Arc<Definition> {
    let definition = r#"{
        "history": "readings", "title": "Reading",
        "owner": { "collection": "devices", "field": "deviceId", "type": "string" },
        "date": "at",
        "item": {
            "type": "object", "required": ["name"], "additionalProperties": false,
            "properties": {
                "at": { "type": "string", "format": "date-time" },
                "name": { "type": "string" },
                "note": { "type": "string", "minLength": 0 },
                "count": { "type": "integer" },
                "celsius": { "type": "number" },
                "good": { "type": "boolean" },
                "cost": { "type": "string", "format": "decimal" },
                "checked": { "type": "string", "format": "date-time" }
            }
        }
    }"#;
    Arc::new(Definition::parse(definition).unwrap())
}

#[test]
fn a_cell_is_read_by_the_kind_of_its_property() {
    let text = "deviceId,name,note,count,celsius,good,cost,checked,at\n\
                A-1,x,,-5,1e-7,true,-0.50,2004-01-09,2004-01-09 00:00:00+00:00\n\
                a-1,\"\",\"\",,,,,,1073606400000\n\
                a_1,,,5.0,x,yes,1e3,then,now\n\
                a,1,\"a \"\"b\"\",\r\nc\",,,,,,2004-01-09\n";
    let found = read(text, Format::Csv, &flat(), &[]);
    let at = r#""at":"2004-01-09T00:00:00.000Z""#;
    let first = r#""A-1","name":"x","count":-5,"celsius":1e-7,"good":true,"cost":"-0.50","checked":"2004-01-09T00:00:00.000Z""#;
    assert_eq!(found[0], Ok(format!("{first},{at}")));
    assert_eq!(found[1], Ok(format!(r#""a-1","name":"","note":"",{at}"#)));
    let reason = found[2].as_ref().unwrap_err();
    for part in [
        "\"deviceId\" must be 1 to 64 of the characters A-Z, a-z, 0-9 and \"-\", not \"a_1\"; \"at\" must be a date-time",
        "\"name\" must not be empty; \"count\" must be a whole number from -9007199254740991 to",
        "\"celsius\" must be a number that a double can hold, not \"x\"; \"good\" must be a boolean, not \"yes\"",
        "not \"1e3\"; \"checked\" must be a date-time with an offset",
    ] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert_eq!(found[3], Ok(format!(r#""a","name":"1","note":"a \"b\",\r\nc",{at}"#)));
}

/// Open, nested items.
fn nested() -> Arc<Definition> {
    let definition = r#"{
        "history": "events", "title": "Event",
        "owner": { "collection": "teams", "field": "teamId", "type": "integer" },
        "date": "at",
        "item": {
            "type": "object", "required": ["parts"],
            "properties": {
                "parts": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer" } } } },
                "by": { "type": ["string", "null"] },
                "due": { "type": ["string", "null"], "format": "date-time" },
                "text": { "type": "string" },
                "at": { "type": "string", "format": "date-time" }
            }
        }
    }"#;
    Arc::new(Definition::parse(definition).unwrap())
}

#[test]
fn nested_and_unknown_members_are_kept() {
    let text = r#"{"teamId":7,"seq":3,"page":1,"_id":{"$oid":"a"},"at":"2004-01-09","parts":[{"n":{"$numberInt":"1"}}],"by":null,"text":null,"due":{"$date":0},"more":{"a":[null]},"rest":null}
{"teamId":7,"at":"2004-01-09","parts":[{"n":1.5}],"by":5,"a/b":{"$x":1}}
{"teamId":7,"at":"2004-01-09","parts":[],"x":1,"x":2}
{"teamId":7,"when":"2004-01-09","parts":[],"at":"kept"}"#;
    let found = read(text, Format::Ndjson, &nested(), &[]);
    let at = r#""at":"2004-01-09T00:00:00.000Z""#;
    let first =
        r#"7,"parts":[{"n":1}],"by":null,"due":"1970-01-01T00:00:00.000Z","more":{"a":[null]},"rest":null"#;
    assert_eq!(found[0], Ok(format!("{first},{at}")));
    let reason = found[1].as_ref().unwrap_err();
    for part in [
        "\"parts/0/n\" must be a whole number",
        "\"by\" must be a string or null, not \"5\"",
        "\"a~1b/$x\" must have a name without",
    ] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert_eq!(found[2], Err("\"x\" must not be given more than once".to_owned()));
    // A property has one name: what else is called as it is no other property.
    let found = read(text.lines().last().unwrap(), Format::Ndjson, &nested(), &["at=when"]);
    assert_eq!(found, [Ok(format!(r#"7,"parts":[],{at}"#))]);
    let error = open("teamId,at\n", Format::Csv, &nested(), &[]).err().unwrap().to_string();
    assert!(error.contains("events are no rows of CSV, because an event may have members"), "{error}");
}

#[test]
fn few_faults_are_told() {
    let parts = vec!["1"; 500].join(",");
    let line = format!(r#"{{"teamId":7,"at":"2004-01-09","parts":[{parts}]}}"#);
    let reason = read(&line, Format::Ndjson, &nested(), &[]).remove(0).unwrap_err();
    assert!(reason.ends_with("; and 490 more faults") && reason.matches("; ").count() == 10, "{reason}");
}

#[test]
fn one_owner_of_all_rows() {
    let text = "name,at,deviceId\nx,2004-01-09,no_id\n";
    let owner = OwnerId::Text("room".into());
    let rows = RowReader::open(
        Box::new(Cursor::new(text)),
        &flat(),
        RowRules { format: Format::Csv, names: &[], owner: Some(owner.clone()), from_line: 1 },
    );
    assert_eq!(rows.unwrap().read().unwrap().unwrap().unwrap().owner, owner);
}
