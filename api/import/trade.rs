//! From the cells of a row to a trade.

use std::borrow::Cow;

use super::columns::{PerRole, Role};
use super::date;
use crate::domain::{CustomerId, Invalid, MAX_SAFE_INTEGER, Price, Quantity, Side, Ticker, Trade};

/// The value of a row under one name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cell<'a> {
    /// The column or field it was found under.
    pub name: &'a str,
    pub value: Value<'a>,
}

/// What a cell holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A CSV field, or a JSON string.
    Text(Cow<'a, str>),
    /// A number of JSON, by its digits.
    Number(Cow<'a, str>),
    /// Certainly milliseconds since 1970.
    Millis(Cow<'a, str>),
    /// Another kind of value, such as "an array".
    Other(&'static str),
}

/// The trade, and its customer.
///
/// `customer` is the customer of all rows, if there is one; `missing` is the sentence about a role without a cell.
///
/// # Errors
/// All that is wrong with the row, as one sentence.
pub(super) fn trade(
    cells: &PerRole<Option<Cell<'_>>>,
    customer: Option<CustomerId>,
    side_required: bool,
    missing: impl Fn(Role) -> String,
) -> Result<(CustomerId, Trade), String> {
    let mut faults = Vec::new();
    let cell = |role: Role| cells[role as usize].as_ref();

    let customer = customer.or_else(|| {
        parse(cell(Role::Customer), &mut faults, || missing(Role::Customer), |value| number(value)?.parse())
    });
    let (side, qty) = match cell(Role::Side) {
        None if !side_required => parse(cell(Role::Qty), &mut faults, || missing(Role::Qty), signed).unzip(),
        side => (
            parse(side, &mut faults, || missing(Role::Side), |value| Side::parse(text(value)?)),
            parse(
                cell(Role::Qty),
                &mut faults,
                || missing(Role::Qty),
                |value| Quantity::parse(number(value)?),
            ),
        ),
    };
    let ticker =
        parse(cell(Role::Ticker), &mut faults, || missing(Role::Ticker), |value| Ticker::parse(text(value)?));
    let priced = cell(Role::Price).filter(|cell| cell.value != Value::Text(Cow::Borrowed("")));
    let price =
        priced.and_then(|cell| parse(Some(cell), &mut faults, String::new, |v| Price::parse(number(v)?)));
    let date = parse(
        cell(Role::Date),
        &mut faults,
        || missing(Role::Date),
        |value| match value {
            Value::Millis(text) => date::parse_millis(text),
            value => date::parse(number(value)?),
        },
    );

    match (customer, side, ticker, qty, date) {
        (Some(customer), Some(side), Some(ticker), Some(qty), Some(date)) if faults.is_empty() => {
            Ok((customer, Trade { side, ticker, qty, price, date }))
        }
        _ => Err(faults.join("; ")),
    }
}

fn parse<T>(
    cell: Option<&Cell<'_>>,
    faults: &mut Vec<String>,
    missing: impl FnOnce() -> String,
    parse: impl FnOnce(&Value<'_>) -> Result<T, Invalid>,
) -> Option<T> {
    let Some(cell) = cell else {
        faults.push(missing());
        return None;
    };
    parse(&cell.value)
        .map_err(|Invalid(rule)| faults.push(format!("{:?} {rule}{}", cell.name, shown(&cell.value))))
        .ok()
}

/// Number of characters of a value that a message repeats.
const SHOWN: usize = 40;

/// The value, for the end of a sentence, with control characters escaped.
fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Text(text) | Value::Number(text) | Value::Millis(text) => {
            let beginning: String = text.chars().take(SHOWN).collect();
            let more = if beginning.len() < text.len() { "…" } else { "" };
            format!(", not {beginning:?}{more}")
        }
        Value::Other(kind) => format!(", not {kind}"),
    }
}

fn text<'v>(value: &'v Value<'_>) -> Result<&'v str, Invalid> {
    match value {
        Value::Text(text) => Ok(text),
        _ => Err(Invalid::new("must be a string")),
    }
}

/// A number, or a text of it.
fn number<'v>(value: &'v Value<'_>) -> Result<&'v str, Invalid> {
    match value {
        Value::Text(text) | Value::Number(text) => Ok(text),
        Value::Millis(_) => Err(Invalid::new("must be a number")),
        Value::Other(_) => Err(Invalid::new("must be a number or a string")),
    }
}

/// A quantity whose sign says what the type would: bought, or sold where negative.
fn signed(value: &Value<'_>) -> Result<(Side, Quantity), Invalid> {
    let text = number(value)?;
    let (side, digits) = text.strip_prefix('-').map_or((Side::Buy, text), |digits| (Side::Sell, digits));
    let rule = |_| {
        Invalid::new(format!(
            "must be a whole number other than 0, negative where sold, at most {MAX_SAFE_INTEGER} either way, written without a fraction or an exponent"
        ))
    };
    Ok((side, Quantity::parse(digits).map_err(rule)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row with a customer of its own, by the texts of its cells; "-" is no cell.
    fn row(texts: [&'static str; 6]) -> Result<(CustomerId, Trade), String> {
        let mut texts = texts.into_iter();
        let cells = Role::ALL.map(|role| {
            let text = texts.next().filter(|text| *text != "none")?;
            Some(Cell { name: role.default_names()[0], value: Value::Text(text.into()) })
        });
        trade(&cells, None, false, |role| format!("has no {role:?}"))
    }

    #[test]
    fn the_sign_is_the_type_where_there_is_none() {
        let (customer, sold) = row(["7", "none", "CERN", "-697", "4.82375000001", "2004-01-12"]).unwrap();
        assert_eq!((customer.get(), sold.side, sold.qty.get()), (7, Side::Sell, 697));
        assert_eq!(sold.price.unwrap().to_string(), "4.82375000001");
        let (_, bought) = row(["7", "none", "AMD", "448", "", "2004-01-09"]).unwrap();
        assert_eq!((bought.side, bought.price), (Side::Buy, None));
        assert_eq!(row(["7", "sell", "AMD", "448", "none", "2004-01-09"]).unwrap().1.side, Side::Sell);
        for qty in ["0", "-0", "+5", "--5", "5.0", "", "-", "1e3"] {
            let reason = row(["7", "none", "AMD", qty, "", "2004-01-09"]).unwrap_err();
            assert!(reason.starts_with("\"qty\" must be a whole number other than 0"), "{reason}");
        }
        assert!(row(["7", "buy", "AMD", "-448", "", "2004-01-09"]).unwrap_err().contains("from 1 to"));
    }

    #[test]
    fn all_that_is_wrong_is_told_once() {
        let reason = row(["07", "hold", "amd\u{1b}[2J", "4.5", "1e3", "none"]).unwrap_err();
        assert_eq!(reason.matches("; ").count(), 5, "{reason}");
        for part in [
            "\"customerId\" must be a whole number",
            "\"type\" must be \"buy\" or \"sell\", not \"hold\"",
            "not \"amd\\u{1b}[2J\"",
            "not \"4.5\"",
            "plain notation, such as \"15.54\", not \"1e3\"",
            "has no Date",
        ] {
            assert!(reason.contains(part), "{part}: {reason}");
        }
    }
}
