//! What is wrong with an input: faults, their places and the rules that are broken.

use derive_more::Display;
use serde_json::value::RawValue;

use super::{Json, NotJson};

/// One fault of an input, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The place in the JSON document: a JSON Pointer (RFC 6901), empty for the whole document.
    pub pointer: String,
    /// The line of the JSON document, counted from 1, if each line of the input is a document.
    pub line: Option<u64>,
    /// What is wrong.
    pub rule: BrokenRule,
}

/// The rule that an input breaks. It is displayed as a sentence without a subject and a full stop.
#[derive(Debug, Clone, PartialEq, Eq, Display)]
pub enum BrokenRule {
    /// A value has another type of JSON.
    #[display("{rule}, not {found}")]
    Type {
        /// Such as "must be a string".
        rule: String,
        /// The type that it has, such as "a number".
        found: &'static str,
    },
    /// A number is not a whole one within these bounds, both included.
    #[display("must be a whole number from {least} to {most}, written without a fraction or an exponent")]
    WholeNumber {
        /// The least.
        least: i64,
        /// The greatest.
        most: i64,
    },
    /// Any other rule, as the sentence.
    #[display("{_0}")]
    Other(String),
}

impl BrokenRule {
    /// Memory on the heap, in bytes.
    pub fn heap(&self) -> usize {
        match self {
            Self::Type { rule, found: _ } | Self::Other(rule) => rule.capacity(),
            Self::WholeNumber { .. } => 0,
        }
    }
}

impl From<String> for BrokenRule {
    fn from(rule: String) -> Self {
        Self::Other(rule)
    }
}

impl From<&str> for BrokenRule {
    fn from(rule: &str) -> Self {
        Self::Other(rule.to_owned())
    }
}

impl From<Invalid> for BrokenRule {
    fn from(Invalid(rule): Invalid) -> Self {
        Self::Other(rule)
    }
}

/// All faults of an input: the first [`Faults::KEPT`] in full, of the rest only the number, so that a hostile
/// body cannot cause a large answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    kept: Vec<Fault>,
    omitted: usize,
    /// The line of the faults that are pushed now.
    line: Option<u64>,
}

impl Faults {
    /// How many faults are kept in full.
    pub const KEPT: usize = 100;

    /// Adds a fault. `pointer` is only called if the fault is kept.
    pub fn push(&mut self, pointer: impl FnOnce() -> String, rule: impl Into<BrokenRule>) {
        if self.kept.len() < Self::KEPT {
            self.kept.push(Fault { pointer: pointer(), line: self.line, rule: rule.into() });
        } else {
            self.omitted += 1;
        }
    }

    /// One fault, of the whole document.
    pub fn of_whole(rule: impl Into<BrokenRule>) -> Self {
        let mut faults = Self::default();
        faults.push(String::new, rule);
        faults
    }

    /// Keeps only the first `most` in full.
    pub fn truncate(&mut self, most: usize) {
        self.omitted += self.kept.len().saturating_sub(most);
        self.kept.truncate(most);
        self.kept.shrink_to_fit();
    }

    /// Sets the line, counted from 1, of the faults that are added from now on.
    pub fn in_line(&mut self, line: u64) {
        self.line = Some(line);
    }

    /// Whether there are no faults.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// How many faults there are, kept or not.
    pub fn count(&self) -> usize {
        self.kept.len() + self.omitted
    }

    /// The faults kept in full, in the order in which they were found.
    pub fn kept(&self) -> &[Fault] {
        &self.kept
    }

    /// How many further faults were found.
    pub fn omitted(&self) -> usize {
        self.omitted
    }
}

/// Why a text cannot be parsed as the expected objects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// The text is not JSON.
    #[error(transparent)]
    NotJson(#[from] NotJson),
    /// The text is JSON, but does not have the expected form.
    #[error("not of its form")]
    Invalid(Faults),
}

/// Why a value is not accepted, as a sentence without a full stop. It names the rule and never repeats the
/// input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

impl Invalid {
    /// By the rule that is broken, such as `must be a string`.
    pub fn new(rule: impl Into<String>) -> Self {
        Self(rule.into())
    }
}

/// Parses a JSON text that is one item or an array of 1 to `max` items, and finds all its faults. `nouns` are
/// one item, one with an article, and many. `read` gets each item with its JSON Pointer.
///
/// # Errors
/// See [`DraftError`].
pub fn one_or_many<T>(
    bytes: &[u8],
    max: usize,
    nouns: [&str; 3],
    read: impl FnMut(&RawValue, &str, &mut Faults) -> Option<T>,
) -> Result<Vec<T>, DraftError> {
    parse(bytes, true, max, nouns, read)
}

/// The same of an array alone.
///
/// # Errors
/// See [`DraftError`].
pub fn many<T>(
    bytes: &[u8],
    max: usize,
    nouns: [&str; 3],
    read: impl FnMut(&RawValue, &str, &mut Faults) -> Option<T>,
) -> Result<Vec<T>, DraftError> {
    parse(bytes, false, max, nouns, read)
}

fn parse<T>(
    bytes: &[u8],
    may_be_one: bool,
    max: usize,
    [one, article, many]: [&str; 3],
    mut read: impl FnMut(&RawValue, &str, &mut Faults) -> Option<T>,
) -> Result<Vec<T>, DraftError> {
    let raw = Json::check(bytes)?;
    let (mut all, mut faults) = (Vec::new(), Faults::default());
    // The members of a single object are read once, by `read`.
    let is_one = may_be_one && raw.get().starts_with('{');
    match (!is_one).then(|| Json::read(raw)) {
        None => all.extend(read(raw, "", &mut faults)),
        Some(Json::Array(items)) => {
            if items.is_empty() {
                faults.push(String::new, format!("must have at least one {one}"));
            } else if items.len() > max {
                faults.push(String::new, format!("must have at most {max} {many}"));
            }
            for (index, item) in items.into_iter().enumerate() {
                all.extend(read(item, &format!("/{index}"), &mut faults));
            }
        }
        Some(other) => {
            let one = if may_be_one { format!("{article} or ") } else { String::new() };
            faults.push(String::new, format!("must be {one}an array of {many}, not {}", other.kind()));
        }
    }
    if faults.is_empty() { Ok(all) } else { Err(DraftError::Invalid(faults)) }
}
