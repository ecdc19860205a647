//! What is wrong with a definition: each mistake with its place, all of them at once.

use std::fmt;

/// A mistake in a definition: where, and which rule it breaks. One sentence: "/pageSize must be a whole
/// number from 2 to 200".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {rule}", if .pointer.is_empty() { "the document" } else { .pointer })]
pub struct Mistake {
    /// A JSON Pointer (RFC 6901), empty for the whole document.
    pub pointer: String,
    /// The rule, as a sentence without a subject and a full stop.
    pub rule: String,
}

impl Mistake {
    /// A mistake at this place.
    pub fn new(pointer: impl Into<String>, rule: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), rule: rule.into() }
    }
}

/// All mistakes of a definition in the order in which they were found, which depends on its text alone: the
/// first [`Mistakes::KEPT`] in full, of the rest only the number.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
pub struct Mistakes {
    kept: Vec<Mistake>,
    omitted: usize,
}

impl Mistakes {
    /// How many mistakes are kept in full.
    pub const KEPT: usize = 50;

    pub(crate) fn push(&mut self, mistake: Mistake) {
        if self.kept.len() < Self::KEPT {
            self.kept.push(mistake);
        } else {
            self.omitted += 1;
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Those that are kept in full.
    pub fn kept(&self) -> &[Mistake] {
        &self.kept
    }

    /// Whether the value at this place, or a part of it, has a mistake. Nothing more can be said of such a
    /// value.
    pub(crate) fn are_within(&self, pointer: &str) -> bool {
        let is_within = |mistake: &Mistake| {
            mistake.pointer.strip_prefix(pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.omitted > 0 || self.kept.iter().any(is_within)
    }

    /// A line for each that is kept, and one with the number of the others.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let more = (self.omitted > 0).then(|| format!("has {} more mistakes", self.omitted));
        self.kept.iter().map(Mistake::to_string).chain(more)
    }
}

impl From<Mistake> for Mistakes {
    fn from(mistake: Mistake) -> Self {
        Self { kept: vec![mistake], omitted: 0 }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().collect::<Vec<_>>().join("\n"))
    }
}
