//! Values that a schema gives itself: `enum`, `const`, `default` and `examples`. Each must satisfy the schema
//! that has it.

use serde_json::value::RawValue;

use super::check::ItemChecker;
use super::mistake::Mistake;
use super::node::{Node, OneOf};
use super::source::{SchemaResult, SourceValue};
use crate::domain::{Fault, Faults};
use crate::item::canonical;
use crate::item::pattern::list;
use crate::item::value_path::ValuePath;

/// The longest list of values that a sentence repeats, in bytes.
const LONGEST_LIST: usize = 200;

/// The values of the keyword `examples`.
///
/// # Errors
/// They are not an array.
pub(crate) fn examples<'a>(source: &SourceValue<'a>) -> SchemaResult<Vec<SourceValue<'a>>> {
    let value = source.raw.get();
    let hint = if value.len() <= LONGEST_LIST { format!(", such as [{value}]") } else { String::new() };
    source.array().map_err(|mistake| source.mistake(mistake.rule + &hint))
}

/// The values of `enum`, or that of `const`.
pub(crate) fn one_of(sources: &[SourceValue<'_>], node: &Node) -> OneOf {
    let mut forms = Vec::with_capacity(sources.len());
    for source in sources {
        source.keep(accept(node, source));
        let form = canonical::form(source.raw);
        if forms.contains(&form) {
            source.refuse("must not be given more than once");
        }
        forms.push(form);
    }
    let texts: Vec<_> = sources.iter().map(|source| source.raw.get().to_owned()).collect();
    let rule = rule_of(&texts);
    OneOf { forms, texts, rule }
}

/// The rule that a value breaks which is none of these.
pub(crate) fn rule_of(texts: &[String]) -> String {
    let words = list(texts, "or");
    match words.len() {
        0..=LONGEST_LIST => format!("must be {words}"),
        _ => format!("must be one of the {} values that the schema lists", texts.len()),
    }
}

/// # Errors
/// The schema that has this value refuses it.
pub(crate) fn accept(node: &Node, value: &SourceValue<'_>) -> SchemaResult<()> {
    match fault_of(node, value.raw, &value.pointer) {
        None => Ok(()),
        Some(fault) => {
            Err(Mistake::new(&*fault.pointer, format!("is refused by its own schema: it {}", fault.rule)))
        }
    }
}

/// The first fault of a value that is at `pointer`.
pub(crate) fn fault_of(node: &Node, value: &RawValue, pointer: &str) -> Option<Fault> {
    let mut faults = Faults::default();
    let mut checker = ItemChecker {
        out: Vec::new(),
        faults: &mut faults,
        most_bytes: usize::MAX,
        reserved: &|_| false,
        item: "the schema",
    };
    checker.value(node, value, &ValuePath::At(pointer));
    faults.kept().first().cloned()
}
