//! A schema's JSON becomes nodes. Only what is understood is accepted: a keyword that would be ignored is a
//! mistake, because its author means to refuse something.

use std::collections::HashMap;
use std::sync::Arc;

use super::given::{accept, examples, one_of};
use super::hints;
use super::mistake::Mistake;
use super::node::{ArrayRules, Kinds, Node, NumberKind, NumberRules, ObjectRules, Property};
use super::rules::{count, kinds, numbers, text};
use super::source::{Members, SourceValue};
use crate::item::limits::{MOST_LEVELS, is_declarable};

/// How deep schemas may stand in each other, references included.
const DEEPEST: usize = 64;

const REFERENCE: &str = "#/$defs/";

const NAME_RULE: &str = "must have a name of A-Z, a-z, 0-9, \"_\" and \"-\" that begins with a letter and has at most 64 characters";

const NO_EXAMPLES: &str =
    "must have examples beside it or in a schema around it, because none is made from a regular expression";

/// Compiles the schema of an item. What has a mistake is left out, so that the nodes refuse less. `None` if
/// it is not an object.
pub(crate) fn compile(source: &SourceValue<'_>) -> Option<Arc<Node>> {
    let mut keywords = keywords(source)?;
    let definitions = keywords.take("$defs").map(|defs| declared(&defs)).unwrap_or_default();
    // An item is an object with the members of this schema: nothing else is looked at.
    for keyword in ["$ref", "enum", "const", "default"] {
        if let Some(found) = keywords.take(keyword) {
            found.refuse("must not stand in the item's own schema");
        }
    }
    let is_object = keywords
        .take("type")
        .is_some_and(|types| kinds(&types).is_ok_and(|(kinds, _)| kinds == Kinds::OBJECT));
    if !is_object {
        source.add(Mistake::new(format!("{}/type", source.pointer), "must be \"object\""));
    }
    let by_name = definitions.iter().cloned().collect();
    let around = Around { depth: 0, has_examples: gives_values(&keywords) };
    let has_examples = around.has_examples;
    let mut compiler = Compiler { definitions: by_name, compiled: HashMap::new(), has_examples };
    let node = compiler.schema(source, keywords, Some((Kinds::OBJECT, NumberKind::AsWritten)), around);
    // Also what is not used has to be right.
    for (name, definition) in &definitions {
        compiler.definition(name, definition, 1);
    }
    if node.levels > MOST_LEVELS {
        source.refuse(format!("declares items of more than {MOST_LEVELS} levels"));
    }
    Some(node)
}

/// The keywords of the subset, and the types that each says something of; annotations and others say it of
/// all.
const KEYWORDS: [(&str, Kinds); 26] = [
    ("$ref", Kinds::ALL),
    ("$defs", Kinds::ALL),
    ("type", Kinds::ALL),
    ("enum", Kinds::ALL),
    ("const", Kinds::ALL),
    ("title", Kinds::ALL),
    ("description", Kinds::ALL),
    ("examples", Kinds::ALL),
    ("default", Kinds::ALL),
    ("deprecated", Kinds::ALL),
    ("properties", Kinds::OBJECT),
    ("required", Kinds::OBJECT),
    ("additionalProperties", Kinds::OBJECT),
    ("items", Kinds::ARRAY),
    ("minItems", Kinds::ARRAY),
    ("maxItems", Kinds::ARRAY),
    ("uniqueItems", Kinds::ARRAY),
    ("minLength", Kinds::STRING),
    ("maxLength", Kinds::STRING),
    ("pattern", Kinds::STRING),
    ("format", Kinds::STRING),
    // A string of the format decimal has bounds too; the compiler looks at the format.
    ("minimum", Kinds::NUMBER_OR_STRING),
    ("maximum", Kinds::NUMBER_OR_STRING),
    ("exclusiveMinimum", Kinds::NUMBER_OR_STRING),
    ("exclusiveMaximum", Kinds::NUMBER_OR_STRING),
    ("multipleOf", Kinds::NUMBER_OR_STRING),
];

fn keywords<'a>(schema: &SourceValue<'a>) -> Option<Members<'a>> {
    let known = KEYWORDS.map(|(keyword, _)| keyword);
    let unknown =
        |keyword: &str| (!known.contains(&keyword)).then(|| hints::unknown_keyword(keyword, &known));
    schema.object("an object, which is a schema", unknown)
}

/// Schemas by their names: `properties` or `$defs`. One with a name that breaks the rule is kept, so that
/// what refers to it is no other mistake.
fn declared<'a>(source: &SourceValue<'a>) -> Vec<(String, SourceValue<'a>)> {
    let declared = source.object("an object of schemas", |_| None).map(|members| members.rest);
    let declared = declared.unwrap_or_default();
    for (_, schema) in declared.iter().filter(|(name, _)| !is_declarable(name)) {
        schema.refuse(NAME_RULE);
    }
    declared
}

/// Removes the annotations, and checks their form. Examples are checked with the schema.
fn check_annotations(keywords: &mut Members<'_>) {
    keywords.read("title", SourceValue::text);
    keywords.read("description", SourceValue::text);
    keywords.read("deprecated", SourceValue::boolean);
}

/// Whether a schema says itself what its values are. If it says so wrongly, that is another mistake.
fn gives_values(keywords: &Members<'_>) -> bool {
    keywords.rest.iter().any(|(name, given)| match &**name {
        "enum" | "const" => true,
        "examples" => !given.array().is_ok_and(|examples| examples.is_empty()),
        _ => false,
    })
}

/// What a schema stands in.
#[derive(Clone, Copy)]
struct Around {
    /// How many schemas, references included.
    depth: usize,
    /// Whether one of them has examples, which the documentation then shows.
    has_examples: bool,
}

impl Around {
    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

struct Compiler<'a> {
    definitions: HashMap<String, SourceValue<'a>>,
    /// What references lead to. `None` while it is compiled.
    compiled: HashMap<String, Option<Arc<Node>>>,
    /// Whether the item's own schema has examples.
    has_examples: bool,
}

impl<'a> Compiler<'a> {
    fn node(&mut self, source: &SourceValue<'a>, around: Around) -> Arc<Node> {
        let (node, default) = self.property(source, around);
        if let Some(default) = default {
            default.refuse("must stand in the schema of a property: nothing else can be filled in");
        }
        node
    }

    /// A schema, and the `default` that only that of a property may have.
    fn property(&mut self, source: &SourceValue<'a>, around: Around) -> (Arc<Node>, Option<SourceValue<'a>>) {
        if around.depth > DEEPEST {
            source.refuse(format!("is nested deeper than {DEEPEST} schemas"));
            return Default::default();
        }
        let Some(mut keywords) = keywords(source) else { return Default::default() };
        let default = keywords.take("default");
        (self.without_default(source, keywords, around), default)
    }

    fn without_default(
        &mut self,
        source: &SourceValue<'a>,
        mut keywords: Members<'a>,
        around: Around,
    ) -> Arc<Node> {
        if let Some(reference) = keywords.take("$ref") {
            keywords.read("examples", examples);
            check_annotations(&mut keywords);
            keywords.rest.iter().for_each(|(_, other)| other.refuse("must not stand beside $ref"));
            return self.reference(&reference, around.depth).unwrap_or_default();
        }
        let types = keywords.take("type").map(|types| types.keep(kinds(&types)).unwrap_or_default());
        self.schema(source, keywords, types, around)
    }

    fn reference(&mut self, source: &SourceValue<'a>, depth: usize) -> Option<Arc<Node>> {
        let text = source.keep(source.text())?;
        let Some(name) = text.strip_prefix(REFERENCE) else {
            let name = text.rsplit('/').next().unwrap_or_default();
            let hint = match self.definitions.contains_key(name) {
                true => format!(": did you mean {:?}?", format!("{REFERENCE}{name}")),
                false => String::new(),
            };
            source.refuse(format!("must be #/$defs/ and the name of a schema in the item's $defs{hint}"));
            return None;
        };
        let Some(definition) = self.definitions.get(name).cloned() else {
            let known = self.definitions.keys().map(String::as_str);
            let hint = hints::did_you_mean(name, known);
            source.refuse(format!("must name a schema in the item's $defs{hint}"));
            return None;
        };
        let node = self.definition(name, &definition, depth + 1);
        if node.is_none() {
            source.refuse("must not lead back to itself");
        }
        node
    }

    /// Compiles what references with this name lead to, once. `None` while that is done.
    fn definition(&mut self, name: &str, source: &SourceValue<'a>, depth: usize) -> Option<Arc<Node>> {
        if let Some(compiled) = self.compiled.get(name) {
            return compiled.clone();
        }
        self.compiled.insert(name.to_owned(), None);
        let node = self.node(source, Around { depth, has_examples: self.has_examples });
        self.compiled.insert(name.to_owned(), Some(node.clone()));
        Some(node)
    }

    /// The node of a schema whose `type` was read, if it has one.
    fn schema(
        &mut self,
        source: &SourceValue<'a>,
        mut keywords: Members<'a>,
        types: Option<(Kinds, NumberKind)>,
        mut around: Around,
    ) -> Arc<Node> {
        let (kinds, number_kind) = types.unwrap_or_default();
        keywords.rest.retain(|(name, keyword)| {
            let says_nothing = KEYWORDS.iter().any(|(known, of)| known == name && !of.has(kinds));
            match &**name {
                "$defs" => keyword.refuse("must stand in the item's schema, not in one inside it"),
                "required" if keyword.boolean().is_ok() => keyword.refuse(
                    "must be an array of names, and stand in the schema of the object that has this property",
                ),
                _ if says_nothing => {
                    let hint = hints::of_other_type(name, kinds);
                    keyword.refuse(format!("means nothing for the type of this schema{hint}"));
                }
                _ => return true,
            }
            false
        });
        around.has_examples |= gives_values(&keywords);
        let (has_format, text) = (keywords.has("format"), text(&mut keywords));
        if text.pattern.is_some() && !around.has_examples {
            source.add(Mistake::new(format!("{}/pattern", source.pointer), NO_EXAMPLES));
        }
        if has_format && types.is_none() {
            source.refuse("must have \"type\": \"string\", because it has a format");
        }
        // Whether bounds mean something depends on the format.
        let numbers = match has_format && text.format.is_none() {
            true => NumberRules { kind: number_kind, ..NumberRules::default() },
            false => numbers(&mut keywords, number_kind, kinds, text.format),
        };
        let array = ArrayRules {
            items: keywords.take("items").map(|items| self.node(&items, around.deeper())),
            count: count(&mut keywords, "minItems", "maxItems"),
            unique: keywords.read("uniqueItems", SourceValue::boolean).unwrap_or_default(),
        };
        let object = self.object(&mut keywords, around.deeper());
        check_annotations(&mut keywords);
        let properties = object.properties.iter().map(|property| &property.node);
        let below = properties.chain(&array.items).chain(&object.others).map(|node| node.levels).max();
        let nests = types.is_some() && kinds.has(Kinds::ARRAY.with(Kinds::OBJECT));
        let levels = below.unwrap_or(0) + u32::from(nests);
        let mut node =
            Node { kinds, numbers, one_of: None, text, array, object, examples: Vec::new(), levels };
        let values = keywords.read("enum", |values| match values.array()? {
            none if none.is_empty() => Err(values.mistake("must have at least one value")),
            values => Ok(values),
        });
        node.one_of = match (values, keywords.take("const")) {
            (Some(_), Some(constant)) => {
                constant.refuse("must not stand beside enum");
                None
            }
            (Some(values), None) => Some(one_of(&values, &node)),
            (None, Some(value)) => Some(one_of(&[value], &node)),
            (None, None) => None,
        };
        for example in keywords.read("examples", examples).unwrap_or_default() {
            example.keep(accept(&node, &example));
            node.examples.push(example.raw.get().to_owned());
        }
        Arc::new(node)
    }

    /// `around`: what its properties stand in.
    fn object(&mut self, keywords: &mut Members<'a>, around: Around) -> ObjectRules {
        let mut object = ObjectRules::default();
        let properties = keywords.take("properties").map(|properties| declared(&properties));
        let mut defaults = Vec::new();
        for (name, source) in properties.unwrap_or_default() {
            let (node, default) = self.property(&source, around);
            object.by_name.insert(name.clone(), object.properties.len());
            object.properties.push(Property { name, node, required: false, default: None });
            defaults.push(default);
        }
        for source in keywords.read("required", SourceValue::array).unwrap_or_default() {
            let Some(name) = source.keep(source.text()) else { continue };
            match object.by_name.get(&name) {
                None => {
                    let known = object.properties.iter().map(|property| &*property.name);
                    source.refuse(format!(
                        "must name one of the properties{}",
                        hints::did_you_mean(&name, known)
                    ));
                }
                Some(&index) if object.properties[index].required => {
                    source.refuse("must not be given more than once");
                }
                Some(&index) => object.properties[index].required = true,
            }
        }
        for (property, default) in object.properties.iter_mut().zip(defaults) {
            let Some(default) = default else { continue };
            if property.required {
                default.refuse("means nothing for a required property, which clients must send");
            } else if default.keep(accept(&property.node, &default)).is_some() {
                property.default = Some(default.raw.to_owned());
            }
        }
        match keywords.take("additionalProperties") {
            Some(others) if others.raw.get() == "false" => object.closed = true,
            Some(others) if others.raw.get() != "true" => object.others = Some(self.node(&others, around)),
            _ => {}
        }
        object
    }
}
