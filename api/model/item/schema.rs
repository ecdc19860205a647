//! The compiled schema of an item, and what it says of items. [`check`] parses items of clients by it.
//!
//! A definition's schema is compiled once into a checker of our own: exact messages, linear regular
//! expressions, no recursion without a bound. It is a documented subset of JSON Schema 2020-12. Any other
//! keyword is a mistake in the definition, because ignoring it would accept items that the author meant to
//! refuse. The crate `jsonschema` is a dev-dependency, and the oracle of a property test.

mod check;
mod compile;
mod example;
mod given;
mod hints;
mod mistake;
mod node;
mod rules;
mod source;

use serde_json::Value;
use serde_json::value::to_raw_value;

use self::check::is_reserved;
use self::node::{ANY, Count, Kinds, Node, NumberKind};
use super::format::StringFormat;
use super::limits::is_declarable;
use super::noun::Noun;
use crate::domain::{BrokenRule, DraftError, Fault, Invalid, PageSize};

pub use self::check::Schema;
pub use self::hints::{did_you_mean, unknown_member};
pub use self::mistake::{Mistake, Mistakes};
pub use self::node::{SIDES, Side};
pub use self::source::{Members, SourceValue};

/// What a definition says of its items beside their schema.
#[derive(Debug, Clone)]
pub struct Frame<'a> {
    /// The item's name in camel case, for sentences.
    pub title: &'a str,
    /// The property that is the item's date; `None` if the definition does not say.
    pub date: Option<&'a str>,
    /// Names that an item must not use. Names that begin with `_` are reserved too.
    pub reserved: Vec<String>,
    /// How many items a bucket has.
    pub page_size: PageSize,
    /// Bytes of a stored item, its index in the bucket and the engine's key included.
    pub max_item_bytes: usize,
    /// The engine's field for the key.
    pub key_field: &'a str,
}

impl Schema {
    /// Compiles the schema of an item. Its mistakes are among those of `source`: if there are any, it may
    /// only be asked for its properties. `None` if it is not an object.
    pub fn parse(source: &SourceValue<'_>, frame: Frame<'_>) -> Option<Self> {
        let Frame { title, date, reserved, page_size, max_item_bytes, key_field } = frame;
        let root = compile::compile(source)?;
        let below = |part: String, rule: &str| {
            source.add(Mistake::new(format!("{}/{part}", source.pointer), rule));
        };
        let properties = &root.object.properties;
        for node::Property { name, .. } in properties {
            // Others have been refused already.
            if is_declarable(name) && is_reserved(&reserved, name) {
                below(format!("properties/{name}"), "has a name that is reserved");
            }
        }
        let position = date.map(|date| properties.iter().position(|property| property.name == date));
        match (date, position) {
            (Some(date), Some(None)) => {
                let names = properties.iter().map(|property| &*property.name);
                let rule = format!("must name a property of the item{}", did_you_mean(date, names));
                source.add(Mistake::new("/date", rule));
            }
            (Some(date), Some(Some(at))) if !is_plain_date(&properties[at].node) => {
                let place = format!("properties/{date}");
                if !source.has_mistakes_within(&format!("{}/{place}", source.pointer)) {
                    let rule =
                        "must be { \"type\": \"string\", \"format\": \"date-time\" }, because date names it";
                    below(place, rule);
                }
            }
            (Some(date), Some(Some(at))) if properties[at].default.is_some() => {
                below(
                    format!("properties/{date}/default"),
                    "must not be given: a missing date is the time of arrival",
                );
            }
            _ => {}
        }
        let index_digits = (page_size.get() - 1).to_string().len();
        // An element of the array, and in its document a key of 12 bytes: type, name, length, subtype, bytes.
        let around = (1 + index_digits + 1) + (1 + key_field.len() + 1 + 4 + 1 + 12);
        let (noun, max_document_bytes) = (Noun::of_name(title), max_item_bytes.saturating_sub(around));
        let date = position.flatten().unwrap_or_default();
        let schema = Self { root, noun, date, reserved, max_item_bytes, max_document_bytes };
        if !source.has_mistakes() {
            schema.check_examples(source);
        }
        Some(schema)
    }

    /// Checks the examples also by what the engine asks for beside the schema.
    fn check_examples(&self, source: &SourceValue<'_>) {
        for (number, example) in self.root.examples.iter().enumerate() {
            if let Err(DraftError::Invalid(faults)) = self.parse_drafts(example.as_bytes(), 1)
                && let Some(Fault { pointer, rule, .. }) = faults.kept().first()
            {
                let place = format!("{}/examples/{number}{pointer}", source.pointer);
                source.add(Mistake::new(place, format!("is no item: it {rule}")));
            }
        }
    }

    /// What an item is called.
    pub fn noun(&self) -> &Noun {
        &self.noun
    }

    /// Whether a missing property of an item may be filled in, beside the date.
    pub fn has_defaults(&self) -> bool {
        self.root.object.properties.iter().any(|property| property.default.is_some())
    }

    /// Whether clients must send the date.
    pub fn date_is_required(&self) -> bool {
        self.root.object.properties[self.date].required
    }

    /// An item that the schema accepts, for documentation: its own example, or one that is made. `None` if
    /// none is found, as for regular expressions that contradict a length.
    pub fn example(&self) -> Option<Value> {
        let mut candidates = [true, false].into_iter().filter_map(|all| example::example(&self.root, all));
        candidates.find(|item| self.parse_drafts(item.to_string().as_bytes(), 1).is_ok())
    }

    /// The properties of an item, in their order.
    pub fn properties(&self) -> impl Iterator<Item = ItemProperty<'_>> {
        self.root.object.properties.iter().map(|property| ItemProperty {
            name: &property.name,
            values: values_of(&property.node),
            required: property.required,
        })
    }

    /// Whether this is a property whose values are texts that are stored as they are.
    pub fn has_text(&self, name: &str) -> bool {
        self.properties()
            .any(|property| property.name == name && property.values.kind == Some(ColumnKind::Text))
    }

    /// How long the texts of a property are: bytes of those that it lists or that its regular expression
    /// bounds, otherwise characters. `None` if the schema does not bound them.
    pub fn longest_text(&self, name: &str) -> Option<usize> {
        let node = &self.root.object.properties.iter().find(|property| property.name == name)?.node;
        let listed = node.one_of.as_ref().map(|listed| {
            let texts = listed.texts.iter().filter_map(|json| serde_json::from_str::<String>(json).ok());
            texts.map(|text| text.len()).max().unwrap_or(0)
        });
        let format = match node.text.format {
            Some(StringFormat::Date) => Some("2004-01-09".len()),
            Some(StringFormat::Uuid) => Some("123e4567-e89b-42d3-a456-426614174000".len()),
            _ => None,
        };
        let pattern = node.text.pattern.as_ref().and_then(|pattern| pattern.longest);
        [listed, format, pattern, node.text.count.most].into_iter().flatten().min()
    }

    /// Checks a text by the schema of a property.
    ///
    /// # Errors
    /// No item has this text there.
    pub fn check_text(&self, name: &str, text: &str) -> Result<(), Invalid> {
        let properties = &self.root.object.properties;
        let Some(property) = properties.iter().find(|property| property.name == name) else { return Ok(()) };
        let json = to_raw_value(text).expect("a text is JSON");
        let Some(fault) = given::fault_of(&property.node, &json, "") else { return Ok(()) };
        // A text is never null: the sentence names the texts alone.
        Err(match &property.node.one_of {
            Some(one_of) => {
                let strings = one_of.texts.iter().filter(|text| text.starts_with('"')).cloned();
                Invalid(given::rule_of(&strings.collect::<Vec<_>>()))
            }
            None => Invalid(fault.rule.to_string()),
        })
    }

    /// The rule that a value of this property breaks which should be a number, and is none that JSON can
    /// write.
    pub fn not_a_number(&self, name: &str) -> BrokenRule {
        let property = self.root.object.properties.iter().find(|property| property.name == name);
        check::not_a_number(property.map_or(&ANY, |property| &property.node))
    }

    /// What the members may be that are no properties; `None` if there must not be any.
    pub fn other_members(&self) -> Option<ValueKinds> {
        self.root.object.other().map(values_of)
    }

    /// Names that no item has on its first level, beside all that begin with `_`.
    pub fn reserved(&self) -> &[String] {
        &self.reserved
    }

    /// The names of the properties as columns of a table, in their order, if each is a scalar of one type and
    /// an item has no others.
    ///
    /// # Errors
    /// Items are no rows of a table: the end of a sentence says why.
    pub fn columns(&self) -> Result<Vec<&str>, Invalid> {
        if self.other_members().is_some() {
            let article = self.noun.article();
            return Err(Invalid(format!("{article} may have members that are no properties")));
        }
        let columns = self.properties().map(|ItemProperty { name, values, .. }| match values {
            ValueKinds { kind: None, .. } => Err(Invalid(format!("`{name}` is no scalar of one type"))),
            ValueKinds { null: true, .. } => {
                Err(Invalid(format!("`{name}` may be null, and an empty cell is an absent property")))
            }
            _ => Ok(name),
        });
        columns.collect()
    }
}

fn values_of(node: &Node) -> ValueKinds {
    let null = node.kinds.has(Kinds::NULL);
    let only = |kind: Kinds| node.kinds == kind || node.kinds == kind.with(Kinds::NULL);
    let kind = match (node.text.format, node.numbers.kind) {
        (Some(StringFormat::DateTime), _) if only(Kinds::STRING) => Some(ColumnKind::Date),
        (Some(StringFormat::Decimal), _) if only(Kinds::STRING) => Some(ColumnKind::Decimal),
        _ if only(Kinds::STRING) => Some(ColumnKind::Text),
        (_, NumberKind::Integer) if only(Kinds::NUMBER) => Some(ColumnKind::Integer),
        _ if only(Kinds::NUMBER) => Some(ColumnKind::Number),
        _ if only(Kinds::BOOLEAN) => Some(ColumnKind::Boolean),
        _ => None,
    };
    ValueKinds { kind, null }
}

/// A property of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemProperty<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it may be.
    pub values: ValueKinds,
    /// Whether each item has it.
    pub required: bool,
}

/// What a member of an item may be, roughly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueKinds {
    /// The only type of its values, null aside; `None` if there are several, or they are nested.
    pub kind: Option<ColumnKind>,
    /// Whether it may be null.
    pub null: bool,
}

/// What a cell of a table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// A string in JSON.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A string in JSON: RFC 3339.
    Date,
    /// A string in JSON: a decimal number in plain notation.
    Decimal,
}

fn is_plain_date(node: &Node) -> bool {
    let text = &node.text;
    node.kinds == Kinds::STRING
        && text.format == Some(StringFormat::DateTime)
        && node.one_of.is_none()
        && text.count == Count::default()
        && text.pattern.is_none()
}
