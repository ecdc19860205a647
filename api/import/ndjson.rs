//! One JSON object a line.

use super::columns::{Columns, PerRole, Role};
use super::extended_json;
use super::trade::{Cell, trade};
use crate::domain::{CustomerId, Json, Trade};

/// Which fields to look for.
pub(super) struct Fields {
    /// The names of each role, in the order in which they are tried.
    names: PerRole<Vec<String>>,
    /// Whether the user named the field of the type, so that it must be there.
    side_required: bool,
}

impl Fields {
    pub fn new(columns: &Columns) -> Self {
        Self {
            names: Role::ALL.map(|role| columns.names(role).into_iter().map(str::to_owned).collect()),
            side_required: columns.given(Role::Side).is_some(),
        }
    }

    /// The trade of one line, and whose it is.
    ///
    /// # Errors
    /// All that is wrong with it, as one sentence.
    pub fn trade(&self, line: &[u8], customer: Option<CustomerId>) -> Result<(CustomerId, Trade), String> {
        let raw = Json::check(line).map_err(|error| {
            // Of one line, serde_json says that it is line 1.
            format!("is not JSON: {}", error.to_string().replace(" at line 1 column ", ", at byte "))
        })?;
        let members = match Json::read(raw) {
            Json::Object(members) => members,
            other => return Err(format!("must be an object, not {}", other.kind())),
        };
        let mut cells: PerRole<Option<Cell<'_>>> = [const { None }; Role::ALL.len()];
        for role in Role::ALL {
            for name in &self.names[role as usize] {
                let mut named = members.iter().filter(|member| member.name.as_deref() == Some(name));
                let Some(value) = named.next().and_then(|member| extended_json::read(member.value)) else {
                    continue;
                };
                if named.next().is_some() {
                    return Err(format!("gives {name:?} more than once"));
                }
                cells[role as usize] = Some(Cell { name, value });
                break;
            }
        }
        trade(&cells, customer, self.side_required, |role| {
            let names: Vec<_> = self.names[role as usize].iter().map(|name| format!("{name:?}")).collect();
            format!("has no field {}", names.join(" or "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<(CustomerId, Trade), String> {
        Fields::new(&Columns::default()).trade(line.as_bytes(), None)
    }

    #[test]
    fn one_trade_in_many_spellings() {
        let expected = parse(
            r#"{"customerId":7,"type":"sell","ticker":"AMD","qty":448,"price":15.50,"date":"2004-01-09"}"#,
        )
        .unwrap();
        assert_eq!(expected.1.price.unwrap().to_string(), "15.50");
        for line in [
            r#"{"customer_id":{"$numberLong":"7"},"symbol":"AMD","amount":{"$numberInt":"-448"},"price":{"$numberDecimal":"15.50"},"timestamp":{"$date":"2004-01-09T00:00:00Z"},"type":null}"#,
            r#"{"_id":{"$oid":"6553e2b0c0ffee0000000000"},"customerId":"7","type":"sell","ticker":"AMD","qty":{"$numberDouble":"448.0"},"price":"15.50","date":{"$date":{"$numberLong":"1073606400000"}},"tags":["a","a"]}"#,
            r#"{"customerId":7,"quantity":-448,"ticker":"AMD","price":15.50,"date":{"$date":1073606400000},"other":1,"other":2}"#,
        ] {
            assert_eq!(parse(line).as_ref(), Ok(&expected), "{line}");
        }
    }

    #[test]
    fn what_is_no_trade_is_told() {
        let good = r#""ticker":"AMD","qty":1,"date":"2004-01-09""#;
        for (line, part) in [
            ("[1]".to_owned(), "must be an object, not an array"),
            ("{\"a\":}".to_owned(), "is not JSON: expected value, at byte 6"),
            (format!("{{{good}}}"), "has no field \"customerId\" or \"customer_id\""),
            (format!("{{\"customerId\":7,\"qty\":2,{good}}}"), "gives \"qty\" more than once"),
            (format!("{{\"customerId\":7.0,{good}}}"), "not \"7.0\""),
            (
                r#"{"customerId":7,"ticker":7203,"qty":[],"date":true}"#.to_owned(),
                "\"ticker\" must be a string, not \"7203\"",
            ),
            (
                r#"{"customerId":7,"ticker":"A","qty":[],"date":1}"#.to_owned(),
                "\"qty\" must be a number or a string, not an array",
            ),
            (format!("{{\"customerId\":7,{good},\"price\":1e1}}"), "plain notation"),
        ] {
            let reason = parse(&line).unwrap_err();
            assert!(reason.contains(part), "{line}: {reason}");
        }
        assert!(
            Fields::new(&Columns::default())
                .trade(b"{\"a\":\"\xff\"}", None)
                .unwrap_err()
                .contains("is not JSON")
        );
    }

    #[test]
    fn a_name_given_for_the_type_must_be_there() {
        let fields = Fields::new(&Columns { side: Some("side".to_owned()), ..Columns::default() });
        let reason = fields.trade(br#"{"customerId":7,"ticker":"A","qty":1,"date":"2004-01-09"}"#, None);
        assert_eq!(reason, Err("has no field \"side\"".to_owned()));
    }
}
