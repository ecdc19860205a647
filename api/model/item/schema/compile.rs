//! A schema's JSON becomes nodes. Only what is understood is accepted: a keyword that would be ignored is a mistake, because
//! its author means to refuse something.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::check::ItemChecker;
use super::node::{
    ArrayRules, Bound, Count, Kinds, Node, NumberKind, NumberRules, ObjectRules, OneOf, Property, SIDES,
    TYPES, TextRules,
};
use super::source::{Members, Mistake, Result, Source};
use crate::domain::{Fault, Faults, Json};
use crate::item::canonical;
use crate::item::decimal::Decimal;
use crate::item::format::StringFormat;
use crate::item::limits::{MOST_LEVELS, is_declarable};
use crate::item::number::{MAX_INTEGER, double};
use crate::item::pattern::{Pattern, list};
use crate::item::place::Place;

/// How deep schemas may stand in each other, references included.
const DEEPEST: usize = 64;

/// The longest list of values that a sentence repeats, in bytes.
const LONGEST_LIST: usize = 200;

const REFERENCE: &str = "#/$defs/";

const NAME_RULE: &str = "must have a name of A-Z, a-z, 0-9, \"_\" and \"-\" that begins with a letter and has at most 64 characters";

/// Compiles the schema of an item.
///
/// # Errors
/// The first mistake.
pub(super) fn compile(source: &Source<'_>) -> Result<Arc<Node>> {
    let mut keywords = keywords(source)?;
    let definitions = keywords.read("$defs", declared)?.unwrap_or_default();
    // An item is an object with the members of this schema: nothing else is looked at.
    for keyword in ["$ref", "enum", "const"] {
        if let Some(found) = keywords.take(keyword) {
            return Err(found.mistake("must not stand in the item's own schema"));
        }
    }
    let by_name = definitions.iter().cloned().collect();
    let mut compiler = Compiler { definitions: by_name, compiled: HashMap::new() };
    let node = compiler.schema(source, keywords, 0)?;
    // Also what is not used has to be right.
    for (_, definition) in &definitions {
        compiler.node(definition, 1)?;
    }
    if node.levels > MOST_LEVELS {
        return Err(source.mistake(format!("declares items of more than {MOST_LEVELS} levels")));
    }
    Ok(node)
}

/// The types that a keyword of the subset says something of; annotations and others say it of all. `None`: it is not of the
/// subset.
fn subject(keyword: &str) -> Option<Kinds> {
    Some(match keyword {
        "properties" | "required" | "additionalProperties" => Kinds::OBJECT,
        "items" | "minItems" | "maxItems" | "uniqueItems" => Kinds::ARRAY,
        // A string of the format decimal has bounds too; the compiler looks at the format.
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            Kinds::NUMBER.with(Kinds::STRING)
        }
        "minLength" | "maxLength" | "pattern" | "format" => Kinds::STRING,
        "$ref" | "$defs" | "type" | "enum" | "const" | "title" | "description" | "examples" | "default"
        | "deprecated" => Kinds::ALL,
        _ => return None,
    })
}

fn keywords<'a>(schema: &Source<'a>) -> Result<Members<'a>> {
    let known = |keyword: &str| subject(keyword).is_some();
    schema.object("an object, which is a schema", known, "is not a keyword that a definition may use")
}

/// Schemas by their names: `properties` or `$defs`.
fn declared<'a>(source: &Source<'a>) -> Result<Vec<(String, Source<'a>)>> {
    Ok(source.object("an object of schemas", is_declarable, NAME_RULE)?.rest)
}

/// Removes the annotations, and checks their form. Examples are checked with the schema.
fn check_annotations(keywords: &mut Members<'_>) -> Result<()> {
    keywords.read("title", Source::text)?;
    keywords.read("description", Source::text)?;
    keywords.read("deprecated", Source::boolean)?;
    keywords.take("default");
    Ok(())
}

struct Compiler<'a> {
    definitions: HashMap<String, Source<'a>>,
    /// What references lead to. `None` while it is compiled.
    compiled: HashMap<String, Option<Arc<Node>>>,
}

impl<'a> Compiler<'a> {
    fn node(&mut self, source: &Source<'a>, depth: usize) -> Result<Arc<Node>> {
        if depth > DEEPEST {
            return Err(source.mistake(format!("is nested deeper than {DEEPEST} schemas")));
        }
        let mut keywords = keywords(source)?;
        let Some(reference) = keywords.take("$ref") else { return self.schema(source, keywords, depth) };
        keywords.read("examples", Source::array)?;
        check_annotations(&mut keywords)?;
        match keywords.rest.first() {
            Some((_, other)) => Err(other.mistake("must not stand beside $ref")),
            None => self.reference(&reference, depth),
        }
    }

    fn reference(&mut self, source: &Source<'a>, depth: usize) -> Result<Arc<Node>> {
        let text = source.text()?;
        let name = text
            .strip_prefix(REFERENCE)
            .ok_or_else(|| source.mistake("must be #/$defs/ and the name of a schema in the item's $defs"))?;
        if let Some(compiled) = self.compiled.get(name) {
            return compiled.clone().ok_or_else(|| source.mistake("must not lead back to itself"));
        }
        let definition = self.definitions.get(name).cloned();
        let definition =
            definition.ok_or_else(|| source.mistake("must name a schema in the item's $defs"))?;
        self.compiled.insert(name.to_owned(), None);
        let node = self.node(&definition, depth + 1)?;
        self.compiled.insert(name.to_owned(), Some(node.clone()));
        Ok(node)
    }

    fn schema(&mut self, source: &Source<'a>, mut keywords: Members<'a>, depth: usize) -> Result<Arc<Node>> {
        let types = keywords.take("type");
        let (kinds, number_kind) = types.as_ref().map(kinds).transpose()?.unwrap_or_default();
        for (name, keyword) in &keywords.rest {
            if name == "$defs" {
                return Err(keyword.mistake("must stand in the item's schema, not in one inside it"));
            }
            if subject(name).is_some_and(|subject| !subject.has(kinds)) {
                return Err(keyword.mistake("means nothing for the type of this schema"));
            }
        }
        let text = text(&mut keywords)?;
        if text.format.is_some() && types.is_none() {
            return Err(source.mistake("must have \"type\": \"string\", because it has a format"));
        }
        let numbers = numbers(&mut keywords, number_kind, kinds, text.format)?;
        let array = ArrayRules {
            items: keywords.read("items", |items| self.node(items, depth + 1))?,
            count: count(&mut keywords, "minItems", "maxItems")?,
            unique: keywords.read("uniqueItems", Source::boolean)?.unwrap_or_default(),
        };
        let object = self.object(&mut keywords, depth)?;
        check_annotations(&mut keywords)?;
        let properties = object.properties.iter().map(|property| &property.node);
        let below = properties.chain(&array.items).chain(&object.others).map(|node| node.levels).max();
        let nests = types.is_some() && kinds.has(Kinds::ARRAY.with(Kinds::OBJECT));
        let levels = below.unwrap_or(0) + u32::from(nests);
        let mut node =
            Node { kinds, numbers, one_of: None, text, array, object, examples: Vec::new(), levels };
        node.one_of = match (keywords.take("enum"), keywords.take("const")) {
            (Some(_), Some(constant)) => return Err(constant.mistake("must not stand beside enum")),
            (Some(values), None) => match values.array()? {
                none if none.is_empty() => return Err(values.mistake("must have at least one value")),
                values => Some(one_of(&values, &node)?),
            },
            (None, Some(value)) => Some(one_of(&[value], &node)?),
            (None, None) => None,
        };
        for example in keywords.read("examples", Source::array)?.unwrap_or_default() {
            accept(&node, &example)?;
            node.examples.push(example.raw.get().to_owned());
        }
        Ok(Arc::new(node))
    }

    fn object(&mut self, keywords: &mut Members<'a>, depth: usize) -> Result<ObjectRules> {
        let mut object = ObjectRules::default();
        for (name, source) in keywords.read("properties", declared)?.unwrap_or_default() {
            let node = self.node(&source, depth + 1)?;
            object.by_name.insert(name.clone(), object.properties.len());
            object.properties.push(Property { name, node, required: false });
        }
        for source in keywords.read("required", Source::array)?.unwrap_or_default() {
            let index = object.by_name.get(&source.text()?);
            let index = *index.ok_or_else(|| source.mistake("must name one of the properties"))?;
            if std::mem::replace(&mut object.properties[index].required, true) {
                return Err(source.mistake("must not be given more than once"));
            }
        }
        match keywords.take("additionalProperties") {
            Some(others) if others.raw.get() == "false" => object.closed = true,
            Some(others) if others.raw.get() != "true" => {
                object.others = Some(self.node(&others, depth + 1)?);
            }
            _ => {}
        }
        Ok(object)
    }
}

/// The kinds that `type` names, and how their numbers are stored.
fn kinds(source: &Source<'_>) -> Result<(Kinds, NumberKind)> {
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
            return Err(source.mistake(
                "must be one of \"string\", \"integer\", \"number\", \"boolean\", \"array\", \"object\" and \"null\"",
            ));
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

fn text(keywords: &mut Members<'_>) -> Result<TextRules> {
    let count = count(keywords, "minLength", "maxLength")?;
    let pattern = keywords
        .read("pattern", |source| Pattern::new(&source.text()?).map_err(|rule| source.mistake(rule)))?;
    let format = keywords.read("format", |source| {
        let name = source.text()?;
        let found = StringFormat::ALL.into_iter().find(|(known, _)| *known == name);
        let rule = || format!("must be {}", list(&StringFormat::ALL.map(|(name, _)| name), "or"));
        found.map(|(_, format)| format).ok_or_else(|| source.mistake(rule()))
    })?;
    Ok(TextRules { count, pattern, format })
}

fn count(keywords: &mut Members<'_>, least: &str, most: &str) -> Result<Count> {
    let lower = keywords.read(least, Source::count)?.unwrap_or_default();
    let Some(source) = keywords.take(most) else { return Ok(Count { least: lower, most: None }) };
    match source.count()? {
        upper if upper < lower => Err(source.mistake(format!("must not be less than {least}"))),
        upper => Ok(Count { least: lower, most: Some(upper) }),
    }
}

fn numbers(
    keywords: &mut Members<'_>,
    kind: NumberKind,
    kinds: Kinds,
    format: Option<StringFormat>,
) -> Result<NumberRules> {
    let decimals = format == Some(StringFormat::Decimal);
    let (mut sources, mut bounds) = (Vec::new(), Vec::new());
    for side in &SIDES {
        let Some(source) = keywords.take(side.keyword) else { continue };
        if !decimals && !kinds.has(Kinds::NUMBER) {
            return Err(source.mistake("means nothing for a string whose format is not decimal"));
        }
        let text = source.number()?;
        let double = double(text).ok_or_else(|| source.mistake("must be a number that a double can hold"))?;
        let decimal = Decimal::parse_number(text);
        if decimals && decimal.is_none() {
            return Err(source.mistake("must have at most 34 significant digits"));
        }
        bounds.push(Bound { side, double, decimal, text: text.to_owned() });
        sources.push(source);
    }
    // An upper bound that is below a lower one, or leaves nothing above it.
    let empty = bounds.iter().position(|upper| {
        let meets = |lower: &Bound| lower.admits(upper.double) && upper.admits(lower.double);
        !upper.side.lower && bounds.iter().any(|lower| lower.side.lower && !meets(lower))
    });
    if let Some(upper) = empty {
        return Err(sources[upper].mistake("leaves no number between the bounds"));
    }
    let multiple_of = keywords.read("multipleOf", |source| {
        if !kinds.has(Kinds::NUMBER) {
            return Err(source.mistake("means nothing for a string"));
        }
        let number = double(source.number()?).filter(|number| *number > 0.0);
        number.ok_or_else(|| source.mistake("must be a number greater than 0 that a double can hold"))
    })?;
    let numbers = NumberRules { kind, bounds, multiple_of };
    let (least, most) = numbers.integers();
    match sources.last() {
        Some(source) if kind == NumberKind::Integer && least > most => Err(source.mistake(format!(
            "leaves no whole number between the bounds, which are -{MAX_INTEGER} to {MAX_INTEGER} at most"
        ))),
        _ => Ok(numbers),
    }
}

fn one_of(sources: &[Source<'_>], node: &Node) -> Result<OneOf> {
    let mut forms = Vec::with_capacity(sources.len());
    for source in sources {
        accept(node, source)?;
        let form = canonical::form(source.raw);
        if forms.contains(&form) {
            return Err(source.mistake("must not be given more than once"));
        }
        forms.push(form);
    }
    let texts: Vec<_> = sources.iter().map(|source| source.raw.get().to_owned()).collect();
    let words = list(&texts, "or");
    let rule = match words.len() {
        0..=LONGEST_LIST => format!("must be {words}"),
        _ => format!("must be one of the {} values that the schema lists", forms.len()),
    };
    Ok(OneOf { forms, texts, rule })
}

/// # Errors
/// The schema that has this value refuses it.
fn accept(node: &Node, value: &Source<'_>) -> Result<()> {
    match fault_of(node, value.raw, &value.pointer) {
        None => Ok(()),
        Some(fault) => {
            Err(Mistake::new(&*fault.pointer, format!("is refused by its own schema: it {}", fault.rule)))
        }
    }
}

/// The first fault of a value that is at `pointer`.
pub(super) fn fault_of(node: &Node, value: &RawValue, pointer: &str) -> Option<Fault> {
    let mut faults = Faults::default();
    let mut checker = ItemChecker {
        out: Vec::new(),
        faults: &mut faults,
        most_bytes: usize::MAX,
        reserved: &|_| false,
        item: "the schema",
    };
    checker.value(node, value, &Place::At(pointer));
    faults.kept().first().cloned()
}
