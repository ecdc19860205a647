//! What files of trades have that a definition cannot say.

use super::value::CellValue;
use pagebucket_model::definition::Definition;
use pagebucket_model::item::ColumnKind;

/// The property that the sign of the quantity stands for.
pub(crate) const SIDE: &str = "type";
/// The quantity.
pub(crate) const QTY: &str = "qty";

/// The names that are tried in order where the user gives none. pandas writes an empty name over the index of
/// a table.
pub(crate) fn default_names(definition: &Definition, property: &str) -> Vec<String> {
    let names: &[&str] = match property {
        _ if !definition.is_trades() => &[property],
        "customerId" => &["customerId", "customer_id"],
        "ticker" => &["ticker", "symbol"],
        "qty" => &["qty", "amount", "quantity"],
        "date" => &["date", "timestamp", ""],
        _ => &[property],
    };
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Whether a negative quantity is a sale where there is no type.
pub(crate) fn may_be_signed(definition: &Definition) -> bool {
    let has = |name: &str, kind| {
        let mut properties = definition.item.properties();
        properties.any(|property| property.name == name && property.values.kind == Some(kind))
    };
    definition.is_trades() && has(SIDE, ColumnKind::Text) && has(QTY, ColumnKind::Integer)
}

/// The type that the sign of a quantity stands for, and the quantity without it.
pub(crate) fn split_sign<'v>(value: &'v CellValue<'_>) -> (&'static str, Option<CellValue<'v>>) {
    let split = |text: &'v str| match text.strip_prefix('-') {
        Some(digits) => ("sell", digits.into()),
        None => ("buy", text.into()),
    };
    let (side, unsigned) = match value {
        CellValue::Text(text) | CellValue::Date(text) => {
            let (side, digits) = split(text);
            (side, CellValue::Text(digits))
        }
        CellValue::Number(text) | CellValue::Decimal(text) => {
            let (side, digits) = split(text);
            (side, CellValue::Number(digits))
        }
        _ => return ("buy", None),
    };
    (side, Some(unsigned))
}

/// The rule of a quantity that may be negative, of at most `most` items.
pub(crate) fn signed_rule(most: i64) -> String {
    format!(
        "must be a whole number other than 0, negative where sold, at most {most} either way, written without a fraction \
         or an exponent"
    )
}
