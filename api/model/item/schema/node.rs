//! The compiled schema.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::value::RawValue;

use crate::item::decimal::Decimal;
use crate::item::format::StringFormat;
use crate::item::number::MAX_INTEGER;
use crate::item::pattern::{Pattern, list, range};

/// What a value may be. What it does not name is free.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) kinds: Kinds,
    pub(crate) numbers: NumberRules,
    /// The values of `enum` or `const`, and the sentence for others.
    pub(crate) one_of: Option<OneOf>,
    pub(crate) text: TextRules,
    pub(crate) array: ArrayRules,
    pub(crate) object: ObjectRules,
    /// The JSON of the examples, for documentation.
    pub(crate) examples: Vec<String>,
    /// How deep a value that the schema declares may be nested; 0 for a scalar.
    pub(crate) levels: u32,
}

/// Any value.
pub(crate) static ANY: LazyLock<Node> = LazyLock::new(Node::default);

/// The values that are accepted, and the sentence for others.
#[derive(Debug)]
pub(crate) struct OneOf {
    /// Their canonical forms.
    pub(crate) forms: Vec<Vec<u8>>,
    /// Their JSON, for documentation.
    pub(crate) texts: Vec<String>,
    pub(crate) rule: String,
}

/// A set of the types of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kinds(u8);

/// The types by their names, `integer` aside, and the same in a sentence.
pub(crate) const TYPES: [(&str, Kinds, &str); 6] = [
    ("string", Kinds::STRING, "a string"),
    ("number", Kinds::NUMBER, "a number"),
    ("boolean", Kinds::BOOLEAN, "a boolean"),
    ("array", Kinds::ARRAY, "an array"),
    ("object", Kinds::OBJECT, "an object"),
    ("null", Kinds::NULL, "null"),
];

impl Default for Kinds {
    fn default() -> Self {
        Self::ALL
    }
}

impl Kinds {
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOLEAN: Self = Self(2);
    pub(crate) const NUMBER: Self = Self(4);
    pub(crate) const STRING: Self = Self(8);
    pub(crate) const ARRAY: Self = Self(16);
    pub(crate) const OBJECT: Self = Self(32);
    pub(crate) const NUMBER_OR_STRING: Self = Self(4 | 8);
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const ALL: Self = Self(63);

    /// Whether they have a type in common.
    pub(crate) fn has(self, kind: Self) -> bool {
        self.0 & kind.0 != 0
    }

    pub(crate) fn with(self, kind: Self) -> Self {
        Self(self.0 | kind.0)
    }

    /// "a string or null".
    pub(crate) fn words(self) -> String {
        let named = TYPES.into_iter().filter(|(_, kind, _)| self.has(*kind));
        let words: Vec<_> = named.map(|(.., words)| words).collect();
        list(&words, "or")
    }
}

/// How numbers are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum NumberKind {
    /// As int64: `"type": "integer"`.
    Integer,
    /// As doubles: `"type": "number"`.
    Double,
    /// Integers as int64, others as doubles: without a type.
    #[default]
    AsWritten,
}

/// The rules of numbers, and the bounds of decimals.
#[derive(Debug, Default)]
pub(crate) struct NumberRules {
    pub(crate) kind: NumberKind,
    pub(crate) bounds: Vec<Bound>,
    pub(crate) multiple_of: Option<f64>,
}

impl NumberRules {
    /// The least and the greatest integer within the bounds.
    pub(crate) fn integers(&self) -> (i64, i64) {
        let (mut least, mut most) = (-MAX_INTEGER, MAX_INTEGER);
        for Bound { side, double, .. } in &self.bounds {
            let beyond = i64::from(side.open && double.fract() == 0.0);
            // `as` saturates, and no integer is near the ends.
            match side.lower {
                true => least = least.max((double.ceil() as i64).saturating_add(beyond)),
                false => most = most.min((double.floor() as i64).saturating_sub(beyond)),
            }
        }
        (least, most)
    }
}

/// One of `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) side: &'static Side,
    pub(crate) double: f64,
    pub(crate) decimal: Option<Decimal>,
    /// As the schema has it, for sentences.
    pub(crate) text: String,
}

/// On which side of a bound the values are.
#[derive(Debug)]
pub struct Side {
    /// The keyword of the bound.
    pub keyword: &'static str,
    /// In a sentence: "at least".
    pub words: &'static str,
    /// Whether the values are above the bound.
    pub lower: bool,
    /// Whether the bound is none of the values.
    pub open: bool,
}

/// All of them.
pub static SIDES: [Side; 4] = [
    Side { keyword: "minimum", words: "at least", lower: true, open: false },
    Side { keyword: "exclusiveMinimum", words: "greater than", lower: true, open: true },
    Side { keyword: "maximum", words: "at most", lower: false, open: false },
    Side { keyword: "exclusiveMaximum", words: "less than", lower: false, open: true },
];

impl Side {
    /// Whether a value is on this side, by its order to the bound.
    pub fn has(&self, order: Ordering) -> bool {
        match order {
            Ordering::Equal => !self.open,
            Ordering::Greater => self.lower,
            Ordering::Less => !self.lower,
        }
    }
}

impl Bound {
    pub(crate) fn admits(&self, number: f64) -> bool {
        number.partial_cmp(&self.double).is_some_and(|order| self.side.has(order))
    }

    /// By value, without rounding.
    pub(crate) fn admits_decimal(&self, number: &Decimal) -> bool {
        self.decimal.is_none_or(|bound| self.side.has(number.compare(&bound)))
    }

    pub(crate) fn rule(&self) -> String {
        format!("must be {} {}", self.side.words, self.text)
    }
}

/// The rules of strings.
#[derive(Debug, Default)]
pub(crate) struct TextRules {
    /// Of characters.
    pub(crate) count: Count,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) format: Option<StringFormat>,
}

/// The rules of arrays.
#[derive(Debug, Default)]
pub(crate) struct ArrayRules {
    /// `None`: they are free.
    pub(crate) items: Option<Arc<Node>>,
    pub(crate) count: Count,
    pub(crate) unique: bool,
}

/// How many characters or items there may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) least: usize,
    pub(crate) most: Option<usize>,
}

impl Count {
    pub(crate) fn admits(self, count: usize) -> bool {
        count >= self.least && self.most.is_none_or(|most| count <= most)
    }

    /// "must have 1 to 64 characters", "must have at most 10 items".
    pub(crate) fn rule(self, what: &str) -> String {
        let (count, last) = match (self.least, self.most) {
            (0, Some(most)) => (format!("at most {most}"), most),
            (least, Some(most)) => (range(least, most), most),
            (least, None) => (format!("at least {least}"), least),
        };
        let plural = if last == 1 { "" } else { "s" };
        format!("must have {count} {what}{plural}")
    }
}

/// The rules of objects.
#[derive(Debug, Default)]
pub(crate) struct ObjectRules {
    /// In the order in which they are written.
    pub(crate) properties: Vec<Property>,
    /// Their indices.
    pub(crate) by_name: BTreeMap<String, usize>,
    /// Whether there must be no other members.
    pub(crate) closed: bool,
    /// What other members are. `None`: they are free.
    pub(crate) others: Option<Arc<Node>>,
}

/// A declared member of an object.
#[derive(Debug)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) node: Arc<Node>,
    pub(crate) required: bool,
    /// The value of a missing one. The node accepts it.
    pub(crate) default: Option<Box<RawValue>>,
}

impl ObjectRules {
    /// What the members are that are not declared; `None` if there must be none.
    pub(crate) fn other(&self) -> Option<&Node> {
        (!self.closed).then(|| self.others.as_deref().unwrap_or(&ANY))
    }

    /// The index of a property. `expected` is looked at first: clients mostly send an order.
    pub(crate) fn find(&self, name: &str, expected: usize) -> Option<usize> {
        match self.properties.get(expected) {
            Some(property) if property.name == name => Some(expected),
            _ => self.by_name.get(name).copied(),
        }
    }
}
