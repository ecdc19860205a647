//! The nouns of sentences: one item, an item, many items.

/// What an item is called in sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noun {
    one: String,
    many: String,
    article: String,
}

impl Noun {
    /// The words of a name in camel case, in lower case: `AuditEntry` is an "audit entry", `FXTrade` an "fx
    /// trade".
    pub fn of_name(name: &str) -> Self {
        let mut one = String::with_capacity(name.len() + 4);
        let mut after_upper = true;
        for (at, letter) in name.char_indices() {
            let before_lower = name[at..].chars().nth(1).is_some_and(|next| next.is_ascii_lowercase());
            if at > 0 && letter.is_ascii_uppercase() && (!after_upper || before_lower) {
                one.push(' ');
            }
            one.push(letter.to_ascii_lowercase());
            after_upper = letter.is_ascii_uppercase();
        }
        let ends = |ends: &[&str]| ends.iter().any(|end| one.ends_with(end));
        let many = match one.strip_suffix('y') {
            Some(stem) if !ends(&["ay", "ey", "oy", "uy"]) => format!("{stem}ies"),
            _ if ends(&["s", "x", "z", "ch", "sh"]) => format!("{one}es"),
            _ => format!("{one}s"),
        };
        let article = if one.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
        Self { article: format!("{article} {one}"), one, many }
    }

    /// One: "trade".
    pub fn one(&self) -> &str {
        &self.one
    }

    /// Many: "trades".
    pub fn many(&self) -> &str {
        &self.many
    }

    /// One, with its article: "a trade", "an execution".
    pub fn article(&self) -> &str {
        &self.article
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_read_from_a_name() {
        for (name, one, many) in [
            ("Trade", "a trade", "trades"),
            ("Execution", "an execution", "executions"),
            ("AuditEntry", "an audit entry", "audit entries"),
            ("FXTrade", "a fx trade", "fx trades"),
            ("Relay", "a relay", "relays"),
            ("Batch", "a batch", "batches"),
            ("Box2", "a box2", "box2s"),
        ] {
            let noun = Noun::of_name(name);
            assert_eq!((noun.article(), noun.many()), (one, many), "{name}");
        }
    }
}
