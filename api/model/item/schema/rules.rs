//! The keywords that bound a scalar: its type, its length, its regular expression, its format, and numbers.

use super::hints;
use super::node::{Bound, Count, Kinds, NumberKind, NumberRules, SIDES, Side, TYPES, TextRules};
use super::source::{Members, SchemaResult, SourceValue};
use crate::domain::{Invalid, Json};
use crate::item::decimal::Decimal;
use crate::item::format::StringFormat;
use crate::item::number::{MAX_INTEGER, double};
use crate::item::pattern::{Pattern, list};

/// The kinds that `type` names, and how their numbers are stored.
pub(crate) fn kinds(source: &SourceValue<'_>) -> SchemaResult<(Kinds, NumberKind)> {
    let names = match Json::read(source.raw) {
        Json::Array(_) => source.array()?,
        _ => vec![source.clone()],
    };
    if names.is_empty() {
        return Err(source.mistake("must name at least one type"));
    }
    let (mut kinds, mut numbers) = (Kinds::NONE, NumberKind::AsWritten);
    for source in names {
        let name = source.text()?;
        let numeric = if name == "integer" { "number" } else { &name };
        let Some((_, kind, _)) = TYPES.into_iter().find(|(known, ..)| *known == numeric) else {
            let hint = hints::of_type(&name);
            return Err(source.mistake(format!(
                "must be one of \"string\", \"integer\", \"number\", \"boolean\", \"array\", \"object\" and \"null\"{hint}"
            )));
        };
        if kinds.has(kind) {
            return Err(source.mistake("must not name a type twice (a number may be an integer)"));
        }
        kinds = kinds.with(kind);
        match &*name {
            "integer" => numbers = NumberKind::Integer,
            "number" => numbers = NumberKind::Double,
            _ => {}
        }
    }
    Ok((kinds, numbers))
}

pub(crate) fn text(keywords: &mut Members<'_>) -> TextRules {
    let count = count(keywords, "minLength", "maxLength");
    let pattern = keywords.read("pattern", |source| {
        Pattern::new(&source.text()?).map_err(|Invalid(rule)| source.mistake(rule))
    });
    let format = keywords.read("format", |source| {
        let name = source.text()?;
        let found = StringFormat::ALL.into_iter().find(|(known, _)| *known == name);
        let known = StringFormat::ALL.map(|(name, _)| name);
        let rule = || format!("must be {}{}", list(&known, "or"), hints::of_format(&name, &known));
        found.map(|(_, format)| format).ok_or_else(|| source.mistake(rule()))
    });
    TextRules { count, pattern, format }
}

pub(crate) fn count(keywords: &mut Members<'_>, least: &str, most: &str) -> Count {
    let lower = keywords.read(least, SourceValue::count).unwrap_or_default();
    let most = keywords.read(most, |source| match source.count()? {
        upper if upper < lower => Err(source.mistake(format!("must not be less than {least}"))),
        upper => Ok(upper),
    });
    Count { least: lower, most }
}

pub(crate) fn numbers(
    keywords: &mut Members<'_>,
    kind: NumberKind,
    kinds: Kinds,
    format: Option<StringFormat>,
) -> NumberRules {
    let decimals = format == Some(StringFormat::Decimal);
    let (mut sources, mut bounds) = (Vec::new(), Vec::new());
    for side in &SIDES {
        let Some(source) = keywords.take(side.keyword) else { continue };
        if let Some(bound) = source.keep(bound(side, &source, decimals, kinds)) {
            bounds.push(bound);
            sources.push(source);
        }
    }
    // An upper bound that is below a lower one, or leaves nothing above it.
    let empty = bounds.iter().position(|upper| {
        let meets = |lower: &Bound| lower.admits(upper.double) && upper.admits(lower.double);
        !upper.side.lower && bounds.iter().any(|lower| lower.side.lower && !meets(lower))
    });
    if let Some(upper) = empty {
        sources[upper].refuse("leaves no number between the bounds");
    }
    let multiple_of = keywords.read("multipleOf", |source| {
        if !kinds.has(Kinds::NUMBER) {
            return Err(source.mistake("means nothing for a string"));
        }
        let number = double(source.number()?).filter(|number| *number > 0.0);
        number.ok_or_else(|| source.mistake("must be a number greater than 0 that a double can hold"))
    });
    let numbers = NumberRules { kind, bounds, multiple_of };
    let (least, most) = numbers.integers();
    if kind == NumberKind::Integer
        && least > most
        && empty.is_none()
        && let Some(source) = sources.last()
    {
        source.refuse(format!(
            "leaves no whole number between the bounds, which are -{MAX_INTEGER} to {MAX_INTEGER} at most"
        ));
    }
    numbers
}

fn bound(side: &'static Side, source: &SourceValue<'_>, decimals: bool, kinds: Kinds) -> SchemaResult<Bound> {
    if !decimals && !kinds.has(Kinds::NUMBER) {
        let hint = hints::of_other_type(side.keyword, kinds);
        return Err(source.mistake(format!("means nothing for a string whose format is not decimal{hint}")));
    }
    if side.open && source.boolean().is_ok() {
        let closed = if side.lower { "minimum" } else { "maximum" };
        let rule = format!("must be a number: it is the bound, and stands instead of {closed:?}");
        return Err(source.mistake(rule));
    }
    let text = source.number()?;
    let double = double(text).ok_or_else(|| source.mistake("must be a number that a double can hold"))?;
    let decimal = Decimal::parse_number(text);
    if decimals && decimal.is_none() {
        return Err(source.mistake("must have at most 34 significant digits"));
    }
    Ok(Bound { side, double, decimal, text: text.to_owned() })
}
