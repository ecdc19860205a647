//! Makes a value that a schema accepts, for documentation.

use serde_json::{Map, Number, Value, json};

use super::check;
use super::node::{ArrayRules, Kinds, Node, NumberKind, NumberRules, ObjectRules, TextRules};
use crate::item::decimal::is_multiple;
use crate::item::format::StringFormat;

/// Values in one example. A schema that demands more has an example that no reader wants.
const MOST_VALUES: usize = 500;
/// Members that are not required are shown down to this level.
const SHOWN_LEVELS: u32 = 5;
/// The longest text that is made.
const LONGEST_TEXT: usize = 500;

/// A value for the schema, most likely accepted: the caller checks. `None` if none is found. Only with `all`
/// it has members that are not required.
pub(crate) fn example(node: &Node, all: bool) -> Option<Value> {
    Maker { left: MOST_VALUES, all }.value(node, 0, 1)
}

struct Maker {
    left: usize,
    all: bool,
}

impl Maker {
    /// `variant` counts up where values must not be equal.
    fn value(&mut self, node: &Node, variant: usize, level: u32) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        if let Some(given) = node.examples.get(variant) {
            return serde_json::from_str(given).ok();
        }
        if let Some(one_of) = &node.one_of {
            return serde_json::from_str(one_of.texts.get(variant)?).ok();
        }
        let kinds = node.kinds;
        if kinds.has(Kinds::STRING) {
            text(&node.text, &node.numbers, variant).map(Value::String)
        } else if kinds.has(Kinds::NUMBER) {
            number(&node.numbers, variant).map(Value::Number)
        } else if kinds.has(Kinds::OBJECT) {
            self.object(&node.object, variant, level).map(Value::Object)
        } else if kinds.has(Kinds::ARRAY) {
            self.array(&node.array, variant, level).map(Value::Array)
        } else if kinds.has(Kinds::BOOLEAN) && variant < 2 {
            Some(json!(variant == 0))
        } else {
            (variant == 0 || kinds.has(Kinds::BOOLEAN) && variant == 2).then_some(Value::Null)
        }
    }

    fn object(&mut self, rules: &ObjectRules, variant: usize, level: u32) -> Option<Map<String, Value>> {
        let mut members = Map::new();
        for property in &rules.properties {
            if !property.required && (!self.all || level > SHOWN_LEVELS) {
                continue;
            }
            match self.value(&property.node, variant, level + 1) {
                Some(value) => drop(members.insert(property.name.clone(), value)),
                None if property.required => return None,
                None => {}
            }
        }
        Some(members)
    }

    fn array(&mut self, rules: &ArrayRules, variant: usize, level: u32) -> Option<Vec<Value>> {
        let wanted = rules.count.least.max(usize::from(rules.count.most != Some(0)));
        let mut items = Vec::new();
        for index in 0..wanted {
            let variant = if rules.unique { variant + index } else { variant };
            let item = match &rules.items {
                Some(node) => self.value(node, variant, level + 1),
                None => Some(json!(variant)),
            };
            match item {
                Some(item) => items.push(item),
                None if index >= rules.count.least => break,
                None => return None,
            }
        }
        Some(items)
    }
}

fn number(rules: &NumberRules, variant: usize) -> Option<Number> {
    let whole = |number: &f64| number.fract() == 0.0;
    let mut found = candidates(rules);
    if rules.kind == NumberKind::Integer {
        found.retain(whole);
        return found
            .get(variant)
            .map(|number| *number as i64)
            .or(Some(rules.integers().0))
            .map(Number::from);
    }
    match *found.get(variant)? {
        number if whole(&number) && number.abs() < 1e15 => Some((number as i64).into()),
        number => Number::from_f64(number),
    }
}

/// Numbers that the rules admit.
fn candidates(rules: &NumberRules) -> Vec<f64> {
    let ends = |lower: bool| rules.bounds.iter().filter(move |bound| bound.side.lower == lower);
    let low = ends(true).map(|bound| bound.double).fold(f64::NEG_INFINITY, f64::max);
    let high = ends(false).map(|bound| bound.double).fold(f64::INFINITY, f64::min);
    let start = if low.is_finite() { low } else { high.min(0.0) };
    let step = rules.multiple_of.unwrap_or(1.0);
    let first = (start / step).floor();
    let grid = (-2..40).map(|steps| {
        let number = (first + f64::from(steps)) * step;
        // Without the noise of binary fractions: 0.30000000000000004.
        format!("{number:.12}").parse().unwrap_or(number)
    });
    let fine = [start, (low + high) / 2.0, low + (high - low) / 3.0, high];
    let mut found: Vec<f64> = [1.0].into_iter().chain(grid).chain(fine).collect();
    found.retain(|number| {
        rules.bounds.iter().all(|bound| bound.admits(*number))
            && rules.multiple_of.is_none_or(|of| is_multiple(*number, of))
    });
    found.dedup();
    found
}

fn text(rules: &TextRules, numbers: &NumberRules, variant: usize) -> Option<String> {
    // The schema of a regular expression has examples of its own, or is within one that has.
    if rules.pattern.is_some() {
        return None;
    }
    let hex = variant % 0x1000;
    Some(match rules.format {
        Some(StringFormat::DateTime) => format!("2004-01-09T00:00:00.{:03}Z", variant % 1000),
        Some(StringFormat::Date) => format!("2004-01-{:02}", 9 + variant % 20),
        Some(StringFormat::Uuid) => format!("123e4567-e89b-42d3-a456-426614174{hex:03x}"),
        Some(StringFormat::Email) => format!("ann{}@example.org", suffix(variant)),
        Some(StringFormat::Uri) => format!("https://example.org/{}", suffix(variant)),
        Some(StringFormat::Decimal) => decimal(numbers, variant)?,
        None => {
            let mut text = format!("text{}", suffix(variant));
            while text.len() < rules.count.least.min(LONGEST_TEXT) {
                text.push_str(" text");
            }
            text.truncate(rules.count.most.unwrap_or(usize::MAX));
            if rules.count.least > 0 { text.trim_end().to_owned() } else { text }
        }
    })
}

fn suffix(variant: usize) -> String {
    if variant == 0 { String::new() } else { variant.to_string() }
}

fn decimal(rules: &NumberRules, variant: usize) -> Option<String> {
    let halves = (0..20).map(|number| format!("{number}.50"));
    let given = rules.bounds.iter().map(|bound| bound.text.clone()).chain(["-1".to_owned()]);
    let others = candidates(rules).into_iter().map(|number| number.to_string());
    let all = ["15.54".to_owned()].into_iter().chain(halves).chain(given).chain(others);
    all.filter(|text| check::decimal(text, &rules.bounds).is_ok()).nth(variant)
}
