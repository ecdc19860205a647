//! What files of trades have that a definition cannot say.

use super::value::Value;
use crate::definition::Definition;
use crate::item::ColumnKind;

/// The property that the sign of the quantity stands for.
pub(super) const SIDE: &str = "type";
/// The quantity.
pub(super) const QTY: &str = "qty";

/// The names that are tried in order where the user gives none. pandas writes an empty name over the index of a table.
pub(super) fn default_names(definition: &Definition, property: &str) -> Option<&'static [&'static str]> {
    match property {
        _ if !definition.is_trades() => None,
        "customerId" => Some(&["customerId", "customer_id"]),
        "ticker" => Some(&["ticker", "symbol"]),
        "qty" => Some(&["qty", "amount", "quantity"]),
        "date" => Some(&["date", "timestamp", ""]),
        _ => None,
    }
}

/// Whether a negative quantity is a sale where there is no type.
pub(super) fn may_be_signed(definition: &Definition) -> bool {
    let has = |name: &str, kind| {
        let mut properties = definition.item.properties();
        properties.any(|property| property.name == name && property.values.kind == Some(kind))
    };
    definition.is_trades() && has(SIDE, ColumnKind::Text) && has(QTY, ColumnKind::Integer)
}

/// The type that the sign of a quantity stands for, and the quantity without it.
pub(super) fn split_sign<'v>(value: &'v Value<'_>) -> (&'static str, Option<&'v str>) {
    match value {
        Value::Text(text) | Value::Number(text) => match text.strip_prefix('-') {
            Some(digits) => ("sell", Some(digits)),
            None => ("buy", Some(text)),
        },
        _ => ("buy", None),
    }
}

/// The rule of a quantity, for one that may be negative.
pub(super) fn signed_rule(rule: &str) -> String {
    let parts = rule.strip_prefix("must be a whole number from 1 to ").and_then(|rest| rest.split_once(", "));
    match parts {
        Some((most, rest)) => {
            format!(
                "must be a whole number other than 0, negative where sold, at most {most} either way, {rest}"
            )
        }
        None => rule.to_owned(),
    }
}
