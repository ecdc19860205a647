//! The compiled schema.

use std::sync::Arc;

use super::constant::Constant;
use crate::item::decimal::Decimal;
use crate::item::format::Format;
use crate::item::number::MAX_INTEGER;
use crate::item::pattern::{Pattern, list};

/// What a value may be. What it does not name is free.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kinds: Kinds,
    pub(super) numbers: Numbers,
    /// The values of `enum` or `const`, and the sentence for others.
    pub(super) one_of: Option<OneOf>,
    pub(super) text: Text,
    pub(super) array: Array,
    pub(super) object: Object,
    /// The JSON of the examples, for documentation.
    pub(super) examples: Vec<String>,
    /// How deep a value that the schema declares may be nested; 1 for a scalar.
    pub(super) levels: u32,
}

/// The values that are accepted, and the sentence for others.
#[derive(Debug)]
pub(super) struct OneOf {
    pub(super) values: Vec<Constant>,
    /// Their JSON, for documentation.
    pub(super) texts: Vec<String>,
    pub(super) rule: String,
}

/// A set of the types of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const NUMBER: Self = Self(4);
    pub(super) const STRING: Self = Self(8);
    pub(super) const ARRAY: Self = Self(16);
    pub(super) const OBJECT: Self = Self(32);
    pub(super) const NUMBER_OR_STRING: Self = Self(4 | 8);
    pub(super) const NONE: Self = Self(0);
    pub(super) const ALL: Self = Self(63);

    pub(super) const fn has(self, kind: Self) -> bool {
        self.0 & kind.0 != 0
    }

    pub(super) fn with(self, kind: Self) -> Self {
        Self(self.0 | kind.0)
    }

    /// "a string or null".
    pub(super) fn words(self) -> String {
        const WORDS: [(Kinds, &str); 6] = [
            (Kinds::STRING, "a string"),
            (Kinds::NUMBER, "a number"),
            (Kinds::BOOLEAN, "a boolean"),
            (Kinds::ARRAY, "an array"),
            (Kinds::OBJECT, "an object"),
            (Kinds::NULL, "null"),
        ];
        let words: Vec<_> =
            WORDS.into_iter().filter(|(kind, _)| self.has(*kind)).map(|(_, word)| word).collect();
        list(&words, "or")
    }
}

/// How numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberKind {
    /// As int64: `"type": "integer"`.
    Integer,
    /// As doubles: `"type": "number"`.
    Double,
    /// Integers as int64, others as doubles: without a type.
    AsWritten,
}

/// The rules of numbers, and the bounds of decimals.
#[derive(Debug)]
pub(super) struct Numbers {
    pub(super) kind: NumberKind,
    /// The range of integers. The bounds below are in it.
    pub(super) least: i64,
    pub(super) most: i64,
    pub(super) bounds: Vec<Bound>,
    pub(super) multiple_of: Option<f64>,
}

/// One of `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) side: Side,
    pub(super) double: f64,
    pub(super) decimal: Option<Decimal>,
    /// As the schema has it, for sentences.
    pub(super) text: String,
}

/// On which side of a bound the values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    AtLeast,
    AtMost,
    Above,
    Below,
}

impl Bound {
    pub(super) fn rule(&self) -> String {
        let side = match self.side {
            Side::AtLeast => "at least",
            Side::AtMost => "at most",
            Side::Above => "greater than",
            Side::Below => "less than",
        };
        format!("must be {side} {}", self.text)
    }
}

/// The rules of strings.
#[derive(Debug)]
pub(super) struct Text {
    /// In characters.
    pub(super) least: usize,
    pub(super) most: Option<usize>,
    pub(super) pattern: Option<Pattern>,
    pub(super) format: Option<Format>,
}

/// The rules of arrays.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) items: Option<Arc<Node>>,
    pub(super) least: usize,
    pub(super) most: Option<usize>,
    pub(super) unique: bool,
}

/// The rules of objects.
#[derive(Debug)]
pub(super) struct Object {
    /// In the order in which they are written.
    pub(super) properties: Vec<Property>,
    /// The indices of the properties, ordered by name, if there are many.
    pub(super) by_name: Vec<usize>,
    pub(super) others: Others,
}

/// A declared member of an object.
#[derive(Debug)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) node: Arc<Node>,
    pub(super) required: bool,
}

/// What members may be that are not declared.
#[derive(Debug)]
pub(super) enum Others {
    Free,
    Refused,
    Each(Arc<Node>),
}

/// Any value.
pub(super) static ANY: Node = Node::any();

impl Node {
    /// Any value.
    pub(super) const fn any() -> Self {
        Self {
            kinds: Kinds::ALL,
            numbers: Numbers {
                kind: NumberKind::AsWritten,
                least: -MAX_INTEGER,
                most: MAX_INTEGER,
                bounds: Vec::new(),
                multiple_of: None,
            },
            one_of: None,
            text: Text { least: 0, most: None, pattern: None, format: None },
            array: Array { items: None, least: 0, most: None, unique: false },
            object: Object { properties: Vec::new(), by_name: Vec::new(), others: Others::Free },
            examples: Vec::new(),
            levels: 1,
        }
    }
}

/// Up to this many properties, names are compared one after the other.
const FEW: usize = 12;

impl Object {
    pub(super) fn new(properties: Vec<Property>, others: Others) -> Self {
        let mut by_name = Vec::new();
        if properties.len() > FEW {
            by_name.extend(0..properties.len());
            by_name.sort_by(|one, other| properties[*one].name.cmp(&properties[*other].name));
        }
        Self { properties, by_name, others }
    }

    /// The index of a property. `expected` is looked at first: clients mostly send an order.
    pub(super) fn find(&self, name: &str, expected: usize) -> Option<usize> {
        let name_of = |index: usize| self.properties[index].name.as_str();
        if expected < self.properties.len() && name_of(expected) == name {
            return Some(expected);
        }
        if self.by_name.is_empty() {
            return self.properties.iter().position(|property| property.name == name);
        }
        let found = self.by_name.binary_search_by(|index| name_of(*index).cmp(name));
        found.ok().map(|at| self.by_name[at])
    }
}
