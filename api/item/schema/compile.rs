//! A schema's JSON becomes nodes. Only what is understood is accepted: a keyword that would be ignored is a mistake, because
//! its author means to refuse something.

use std::collections::HashMap;
use std::sync::Arc;

use super::check::Checker;
use super::constant::Constant;
use super::keywords::{Keywords, check_annotations};
use super::mistake::Mistake;
use super::node::{
    Array, Bound, Kinds, Node, NumberKind, Numbers, Object, OneOf, Others, Property, Side, Text,
};
use super::source::Source;
use crate::domain::{Faults, Json};
use crate::item::decimal::Decimal;
use crate::item::format::Format;
use crate::item::levels::MOST_LEVELS;
use crate::item::name;
use crate::item::number::{MAX_INTEGER, double};
use crate::item::pattern::{Pattern, list};
use crate::item::place::Place;

/// How deep schemas may stand in each other, references included.
const DEEPEST: usize = 64;

/// The longest list of values that a sentence repeats, in bytes.
const LONGEST_LIST: usize = 200;

const REFERENCE: &str = "#/$defs/";

/// Compiles the schema of an item.
///
/// # Errors
/// The first mistake.
pub(super) fn compile(source: &Source<'_>) -> Result<Arc<Node>, Mistake> {
    let mut keywords = Keywords::read(source)?;
    let mut compiler = Compiler { definitions: HashMap::new(), compiled: HashMap::new(), open: Vec::new() };
    if let Some(definitions) = keywords.take("$defs") {
        for (name, definition) in definitions.object("an object of schemas")? {
            if !name::declarable(&name) {
                return Err(definition.mistake(NAME_RULE));
            }
            compiler.definitions.insert(name, definition);
        }
    }
    let node = compiler.schema(source, keywords, 0)?;
    // Also what is not used has to be right.
    let unused: Vec<_> = compiler.definitions.values().cloned().collect();
    for definition in unused {
        compiler.node(&definition, 1)?;
    }
    if node.levels > MOST_LEVELS {
        return Err(source.mistake(format!("declares items of more than {MOST_LEVELS} levels")));
    }
    Ok(node)
}

const NAME_RULE: &str = "must have a name of A-Z, a-z, 0-9, \"_\" and \"-\" that begins with a letter and has at most 64 characters";

struct Compiler<'a> {
    definitions: HashMap<String, Source<'a>>,
    compiled: HashMap<String, Arc<Node>>,
    /// The references that lead to the schema that is compiled now.
    open: Vec<String>,
}

impl<'a> Compiler<'a> {
    fn node(&mut self, source: &Source<'a>, depth: usize) -> Result<Arc<Node>, Mistake> {
        if depth > DEEPEST {
            return Err(source.mistake(format!("is nested deeper than {DEEPEST} schemas")));
        }
        let mut keywords = Keywords::read(source)?;
        match keywords.take("$ref") {
            Some(reference) => {
                keywords.check_rest("$ref")?;
                self.reference(&reference, depth)
            }
            None => self.schema(source, keywords, depth),
        }
    }

    fn reference(&mut self, source: &Source<'a>, depth: usize) -> Result<Arc<Node>, Mistake> {
        let text = source.text()?;
        let name = text
            .strip_prefix(REFERENCE)
            .ok_or_else(|| source.mistake("must be #/$defs/ and the name of a schema in the item's $defs"))?;
        if let Some(node) = self.compiled.get(name) {
            return Ok(node.clone());
        }
        if self.open.iter().any(|open| open == name) {
            return Err(source.mistake("must not lead back to itself"));
        }
        let definition = self.definitions.get(name).cloned();
        let definition =
            definition.ok_or_else(|| source.mistake("must name a schema in the item's $defs"))?;
        self.open.push(name.to_owned());
        let node = self.node(&definition, depth + 1)?;
        self.open.pop();
        self.compiled.insert(name.to_owned(), node.clone());
        Ok(node)
    }

    fn schema(
        &mut self,
        source: &Source<'a>,
        mut keywords: Keywords<'a>,
        depth: usize,
    ) -> Result<Arc<Node>, Mistake> {
        let (kinds, integers) = kinds(&mut keywords)?;
        keywords.check_for(kinds)?;
        let text = text(&mut keywords)?;
        if text.format.is_some() && kinds.is_none_or(|kinds| !kinds.has(Kinds::STRING)) {
            return Err(source.mistake("must have \"type\": \"string\", because it has a format"));
        }
        let numbers = numbers(&mut keywords, integers, &text, kinds)?;
        let array = self.array(&mut keywords, depth)?;
        let object = self.object(&mut keywords, depth)?;
        let (one_of, examples) = (keywords.take("enum"), keywords.take("examples"));
        let constant = keywords.take("const");
        check_annotations(&mut keywords)?;
        let below = array.items.iter().map(|node| node.levels);
        let below = below.chain(object.properties.iter().map(|property| property.node.levels));
        let others = if let Others::Each(node) = &object.others { node.levels } else { 0 };
        let nests = kinds.is_some_and(|kinds| kinds.has(Kinds::ARRAY) || kinds.has(Kinds::OBJECT));
        let levels = below.chain([others]).max().unwrap_or(0) + u32::from(nests);
        let kinds = kinds.unwrap_or(Kinds::ALL);
        let mut node =
            Node { kinds, numbers, one_of: None, text, array, object, examples: Vec::new(), levels };
        node.one_of = match (one_of, constant) {
            (Some(_), Some(constant)) => return Err(constant.mistake("must not stand beside enum")),
            (Some(values), None) => Some(values_of(&values, &node)?),
            (None, Some(value)) => Some(of_values(vec![value], &node)?),
            (None, None) => None,
        };
        for example in examples.map(|examples| examples.array()).transpose()?.into_iter().flatten() {
            accept(&node, &example)?;
            node.examples.push(example.raw().get().to_owned());
        }
        Ok(Arc::new(node))
    }

    fn array(&mut self, keywords: &mut Keywords<'a>, depth: usize) -> Result<Array, Mistake> {
        let items = keywords.take("items").map(|items| self.node(&items, depth + 1)).transpose()?;
        let (least, most) = counts(keywords, "minItems", "maxItems")?;
        let unique = keywords.take("uniqueItems").map(|unique| unique.boolean()).transpose()?;
        Ok(Array { items, least, most, unique: unique.unwrap_or(false) })
    }

    fn object(&mut self, keywords: &mut Keywords<'a>, depth: usize) -> Result<Object, Mistake> {
        let mut properties = Vec::new();
        if let Some(declared) = keywords.take("properties") {
            for (name, source) in declared.object("an object of schemas")? {
                if !name::declarable(&name) {
                    return Err(source.mistake(NAME_RULE));
                }
                let node = self.node(&source, depth + 1)?;
                properties.push(Property { name, node, required: false });
            }
        }
        if let Some(required) = keywords.take("required") {
            for source in required.array()? {
                let name = source.text()?;
                let declared = properties.iter_mut().find(|property| property.name == name);
                let declared = declared.ok_or_else(|| source.mistake("must name one of the properties"))?;
                if std::mem::replace(&mut declared.required, true) {
                    return Err(source.mistake("must not be given more than once"));
                }
            }
        }
        let others = match keywords.take("additionalProperties") {
            None => Others::Free,
            Some(others) => match others.raw().get() {
                "true" => Others::Free,
                "false" => Others::Refused,
                _ => Others::Each(self.node(&others, depth + 1)?),
            },
        };
        Ok(Object::new(properties, others))
    }
}

/// The kinds that `type` names, and how their numbers are stored.
fn kinds(keywords: &mut Keywords<'_>) -> Result<(Option<Kinds>, NumberKind), Mistake> {
    let Some(source) = keywords.take("type") else { return Ok((None, NumberKind::AsWritten)) };
    let names = match Json::read(source.raw()) {
        Json::Array(_) => source.array()?,
        _ => vec![source.clone()],
    };
    if names.is_empty() {
        return Err(source.mistake("must name at least one type"));
    }
    let (mut kinds, mut numbers) = (Kinds::NONE, None);
    for source in names {
        let (kind, number) = match source.text()?.as_str() {
            "null" => (Kinds::NULL, None),
            "boolean" => (Kinds::BOOLEAN, None),
            "integer" => (Kinds::NUMBER, Some(NumberKind::Integer)),
            "number" => (Kinds::NUMBER, Some(NumberKind::Double)),
            "string" => (Kinds::STRING, None),
            "array" => (Kinds::ARRAY, None),
            "object" => (Kinds::OBJECT, None),
            _ => {
                return Err(source.mistake(
                    "must be one of \"string\", \"integer\", \"number\", \"boolean\", \"array\", \"object\" and \"null\"",
                ));
            }
        };
        if kinds.has(kind) {
            return Err(source.mistake("must not name a type twice (a number may be an integer)"));
        }
        (kinds, numbers) = (kinds.with(kind), numbers.or(number));
    }
    Ok((Some(kinds), numbers.unwrap_or(NumberKind::AsWritten)))
}

fn text(keywords: &mut Keywords<'_>) -> Result<Text, Mistake> {
    let (least, most) = counts(keywords, "minLength", "maxLength")?;
    let pattern = match keywords.take("pattern") {
        None => None,
        Some(source) => Some(Pattern::new(&source.text()?).map_err(|rule| source.mistake(rule))?),
    };
    let format = match keywords.take("format") {
        None => None,
        Some(source) => {
            let name = source.text()?;
            let found = Format::ALL.into_iter().find(|format| format.name() == name);
            let names = Format::ALL.map(Format::name);
            Some(found.ok_or_else(|| source.mistake(format!("must be {}", list(&names, "or"))))?)
        }
    };
    Ok(Text { least, most, pattern, format })
}

fn counts(keywords: &mut Keywords<'_>, least: &str, most: &str) -> Result<(usize, Option<usize>), Mistake> {
    let (least_source, most_source) = (keywords.take(least), keywords.take(most));
    let count = |source: &Option<Source<'_>>| source.as_ref().map(Source::count).transpose();
    let (lower, upper) = (count(&least_source)?.unwrap_or(0), count(&most_source)?);
    match most_source {
        Some(source) if upper.is_some_and(|upper| upper < lower) => {
            Err(source.mistake(format!("must not be less than {least}")))
        }
        _ => Ok((lower, upper)),
    }
}

fn numbers(
    keywords: &mut Keywords<'_>,
    kind: NumberKind,
    text: &Text,
    kinds: Option<Kinds>,
) -> Result<Numbers, Mistake> {
    let mut bounds = Vec::new();
    let (mut least, mut most) = (-MAX_INTEGER, MAX_INTEGER);
    let decimals = text.format == Some(Format::Decimal);
    let sides = [
        ("minimum", Side::AtLeast),
        ("exclusiveMinimum", Side::Above),
        ("maximum", Side::AtMost),
        ("exclusiveMaximum", Side::Below),
    ];
    for (keyword, side) in sides {
        let Some(source) = keywords.take(keyword) else { continue };
        if !decimals && kinds.is_some_and(|kinds| !kinds.has(Kinds::NUMBER)) {
            return Err(source.mistake("means nothing for a string whose format is not decimal"));
        }
        let text = source.number()?;
        let double = double(text).ok_or_else(|| source.mistake("must be a number that a double can hold"))?;
        let decimal = Decimal::parse_number(text);
        if decimals && decimal.is_none() {
            return Err(source.mistake("must have at most 34 significant digits"));
        }
        // Integers beyond a bound: `as` saturates, and no integer is near the ends.
        match side {
            Side::AtLeast => least = least.max(double.ceil() as i64),
            Side::Above => least = least.max((double.floor() as i64).saturating_add(1)),
            Side::AtMost => most = most.min(double.floor() as i64),
            Side::Below => most = most.min((double.ceil() as i64).saturating_sub(1)),
        }
        bounds.push((source, Bound { side, double, decimal, text: text.to_owned() }));
    }
    if let Some(source) = empty_range(&bounds) {
        return Err(source.mistake("leaves no number between the bounds"));
    }
    if let Some((source, _)) = bounds.last().filter(|_| kind == NumberKind::Integer && least > most) {
        return Err(source.mistake(format!(
            "leaves no whole number between the bounds, which are -{MAX_INTEGER} to {MAX_INTEGER} at most"
        )));
    }
    let multiple_of =
        match keywords.take("multipleOf") {
            None => None,
            Some(source) => {
                if kinds.is_some_and(|kinds| !kinds.has(Kinds::NUMBER)) {
                    return Err(source.mistake("means nothing for a string"));
                }
                let number = double(source.number()?).filter(|number| *number > 0.0);
                Some(number.ok_or_else(|| {
                    source.mistake("must be a number greater than 0 that a double can hold")
                })?)
            }
        };
    let bounds = bounds.into_iter().map(|(_, bound)| bound).collect();
    Ok(Numbers { kind, least, most, bounds, multiple_of })
}

/// The upper bound that is below a lower one, or leaves nothing above it.
fn empty_range<'s, 'a>(bounds: &'s [(Source<'a>, Bound)]) -> Option<&'s Source<'a>> {
    let lower = bounds.iter().filter(|(_, bound)| matches!(bound.side, Side::AtLeast | Side::Above));
    for (_, lower) in lower {
        for (source, upper) in bounds {
            let open = match (lower.side, upper.side) {
                (Side::AtLeast, Side::AtMost) => false,
                (_, Side::AtMost | Side::Below) => true,
                _ => continue,
            };
            if upper.double < lower.double || (open && upper.double == lower.double) {
                return Some(source);
            }
        }
    }
    None
}

fn values_of(source: &Source<'_>, node: &Node) -> Result<OneOf, Mistake> {
    let values = source.array()?;
    if values.is_empty() {
        return Err(source.mistake("must have at least one value"));
    }
    of_values(values, node)
}

fn of_values(sources: Vec<Source<'_>>, node: &Node) -> Result<OneOf, Mistake> {
    let mut values = Vec::with_capacity(sources.len());
    for source in &sources {
        accept(node, source)?;
        let value = Constant::new(source.raw());
        let value = value.ok_or_else(|| source.mistake("must be a value that JSON can hold"))?;
        if values.contains(&value) {
            return Err(source.mistake("must not be given more than once"));
        }
        values.push(value);
    }
    let texts: Vec<_> = sources.iter().map(|source| source.raw().get().to_owned()).collect();
    let words = list(&texts, "or");
    let rule = match words.len() {
        0..=LONGEST_LIST => format!("must be {words}"),
        _ => format!("must be one of the {} values that the schema lists", values.len()),
    };
    Ok(OneOf { values, texts, rule })
}

/// # Errors
/// The schema that has this value refuses it.
fn accept(node: &Node, value: &Source<'_>) -> Result<(), Mistake> {
    let mut faults = Faults::default();
    let mut checker = Checker::new(Vec::new(), &mut faults, usize::MAX, &|_| false, "the schema");
    checker.value(node, value.raw(), &Place::At(value.pointer()), 1);
    match faults.kept().first() {
        None => Ok(()),
        Some(fault) => Err(Mistake::new(
            fault.pointer.clone(),
            format!("is refused by its own schema: it {}", fault.detail),
        )),
    }
}
