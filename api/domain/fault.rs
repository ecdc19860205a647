/// One thing wrong with an input, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where in the JSON document: a JSON Pointer (RFC 6901), empty for the whole document.
    pub pointer: String,
    /// Of a text of many lines: in which line, counted from 1, that JSON document is.
    pub line: Option<u64>,
    /// What is wrong there, as a sentence without a full stop.
    pub detail: String,
}

/// All that is wrong with an input: the first [`Faults::KEPT`] in full, the rest as a number, so
/// that a hostile body cannot make a large answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    kept: Vec<Fault>,
    omitted: usize,
    /// In which what is pushed now was found.
    line: Option<u64>,
}

impl Faults {
    /// How many faults are kept in full.
    pub const KEPT: usize = 100;

    /// Adds a fault. `pointer` is only built when the fault is kept.
    pub fn push(&mut self, pointer: impl FnOnce() -> String, detail: impl Into<String>) {
        if self.kept.len() < Self::KEPT {
            self.kept.push(Fault { pointer: pointer(), line: self.line, detail: detail.into() });
        } else {
            self.omitted += 1;
        }
    }

    /// What is added from now on is in this line, counted from 1.
    pub fn in_line(&mut self, line: u64) {
        self.line = Some(line);
    }

    /// True when nothing is wrong.
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

    /// How many more there were.
    pub fn omitted(&self) -> usize {
        self.omitted
    }
}

/// Why a value is not one of ours, as a sentence without a full stop. Names the rule, and never
/// repeats the input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

impl Invalid {
    pub(crate) fn new(rule: impl Into<String>) -> Self {
        Self(rule.into())
    }
}
