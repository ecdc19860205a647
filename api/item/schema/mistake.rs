use std::fmt;

/// A mistake in a definition: where, and which rule it breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl fmt::Display for Mistake {
    /// One sentence: "/pageSize must be a whole number from 2 to 200".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = if self.pointer.is_empty() { "the document" } else { &self.pointer };
        write!(f, "{subject} {}", self.rule)
    }
}

impl std::error::Error for Mistake {}
