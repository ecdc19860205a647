//! All that is wrong with one row, apart from the values that it has.

use std::fmt;

/// Most faults of a row that are kept. A row of 64 KiB may have ten thousand.
const MOST: usize = 10;

/// One fault of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowFault {
    /// The rule that is broken, as a sentence without a full stop.
    rule: String,
    /// What the row has instead, for the end of the sentence.
    found: Option<String>,
}

impl RowFault {
    /// By the rule that is broken.
    pub(crate) fn new(rule: String) -> Self {
        Self { rule, found: None }
    }

    /// By the rule that is broken, and what the row has instead.
    pub(crate) fn but_found(rule: String, found: impl Into<String>) -> Self {
        Self { rule, found: Some(found.into()) }
    }
}

/// All that is wrong with a row, in the order of its columns. It is displayed as one sentence without a full
/// stop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowFaults {
    kept: Vec<RowFault>,
    /// Number of further faults.
    omitted: usize,
}

impl RowFaults {
    /// These, and `omitted` more.
    pub(crate) fn new(mut faults: Vec<RowFault>, mut omitted: usize) -> Self {
        omitted += faults.len().saturating_sub(MOST);
        faults.truncate(MOST);
        Self { kept: faults, omitted }
    }

    /// The rules that are broken, without what the row has instead: the same for all rows with these faults.
    pub fn rules(&self) -> String {
        self.sentence(|fault| fault.rule.clone())
    }

    /// Bytes of the sentence, roughly.
    pub fn size(&self) -> usize {
        self.kept.iter().map(|fault| fault.rule.len() + fault.found.as_ref().map_or(0, String::len)).sum()
    }

    fn sentence(&self, words: impl FnMut(&RowFault) -> String) -> String {
        let mut sentence: Vec<_> = self.kept.iter().map(words).collect();
        if self.omitted > 0 {
            sentence.push(format!("and {} more faults", self.omitted));
        }
        sentence.join("; ")
    }
}

impl From<RowFault> for RowFaults {
    fn from(fault: RowFault) -> Self {
        Self { kept: vec![fault], omitted: 0 }
    }
}

impl From<String> for RowFaults {
    fn from(rule: String) -> Self {
        RowFault::new(rule).into()
    }
}

impl fmt::Display for RowFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence(|RowFault { rule, found }| match found {
            Some(found) => format!("{rule}, not {found}"),
            None => rule.clone(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_other_values_break_the_same_rules() {
        let faults = |found: &str| {
            let fault = RowFault::but_found("\"a; b, not c\" must be a number".to_owned(), found);
            RowFaults::new(vec![fault, RowFault::new("has no field \"d\"".to_owned())], 2)
        };
        let (one, other) = (faults("\"x, not y; z\""), faults("null"));
        assert_eq!(
            one.to_string(),
            "\"a; b, not c\" must be a number, not \"x, not y; z\"; has no field \"d\"; and 2 more faults"
        );
        assert_eq!(one.rules(), "\"a; b, not c\" must be a number; has no field \"d\"; and 2 more faults");
        assert_eq!(one.rules(), other.rules());
    }
}
