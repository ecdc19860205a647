/// What an item is called in sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noun {
    one: String,
    many: String,
}

impl Noun {
    /// The words of a name in camel case, in lower case: `AuditEntry` is an "audit entry", `FXTrade` an "fx trade".
    pub fn of_name(name: &str) -> Self {
        let mut one = String::with_capacity(name.len() + 4);
        let letters: Vec<char> = name.chars().collect();
        for (at, letter) in letters.iter().enumerate() {
            let next_is_lower = letters.get(at + 1).is_some_and(char::is_ascii_lowercase);
            let after_upper = at.checked_sub(1).is_some_and(|before| letters[before].is_ascii_uppercase());
            if at > 0 && letter.is_ascii_uppercase() && (!after_upper || next_is_lower) {
                one.push(' ');
            }
            one.push(letter.to_ascii_lowercase());
        }
        let ends = |ends: &[&str]| ends.iter().any(|end| one.ends_with(end));
        let many = match one.strip_suffix('y') {
            Some(stem) if !ends(&["ay", "ey", "oy", "uy"]) => format!("{stem}ies"),
            _ if ends(&["s", "x", "z", "ch", "sh"]) => format!("{one}es"),
            _ => format!("{one}s"),
        };
        Self { one, many }
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
    pub fn article(&self) -> String {
        let article = if self.one.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
        format!("{article} {}", self.one)
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
            assert_eq!((noun.article().as_str(), noun.many()), (one, many), "{name}");
        }
    }
}
