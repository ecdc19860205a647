//! The `detail` of a problem with faults: the first of them as a sentence, for clients that show no more, and
//! how many more there are.

use std::fmt::Display;

use pagebucket_model::domain::Fault;

/// Most characters of a client's name or pointer that the sentence repeats. `errors` has all of it.
const MOST_REPEATED: usize = 100;

/// "`/qty` is required; 2 more faults are in `errors`." Of `faults`, at least one, `errors` lists the first
/// `listed`.
pub(crate) fn summary(place: &str, rule: impl Display, faults: usize, listed: usize) -> String {
    let first = format!("{place} {rule}");
    match (faults - 1, faults - listed) {
        (0, _) => format!("{first}."),
        (1, 0) => format!("{first}; 1 more fault is in `errors`."),
        (more, 0) => format!("{first}; {more} more faults are in `errors`."),
        (more, omitted) => format!("{first}; of {more} more faults, {} are in `errors`.", more - omitted),
    }
}

/// Where a fault is. `whole` is the document.
pub(crate) fn place(Fault { line, pointer, .. }: &Fault, whole: &str) -> String {
    match (line, pointer.is_empty()) {
        (None, true) => whole.to_owned(),
        (None, false) => quoted(pointer),
        (Some(line), true) => format!("Line {line}"),
        (Some(line), false) => format!("{} in line {line}", quoted(pointer)),
    }
}

/// A client's name or pointer between backticks: cut if it is long, and without characters that a terminal
/// obeys or that end the quotation.
pub(crate) fn quoted(name: &str) -> String {
    let mut shown = String::new();
    for character in name.chars().take(MOST_REPEATED) {
        match character {
            '`' => shown.push_str("\\u{60}"),
            '"' | '\'' => shown.push(character),
            other => shown.extend(other.escape_debug()),
        }
    }
    let cut = if name.chars().nth(MOST_REPEATED).is_some() { "…" } else { "" };
    format!("`{shown}{cut}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fault_is_a_sentence() {
        let of = |faults, listed| summary("`/qty`", "is required", faults, listed);
        assert_eq!(of(1, 1), "`/qty` is required.");
        assert_eq!(of(2, 2), "`/qty` is required; 1 more fault is in `errors`.");
        assert_eq!(of(3, 3), "`/qty` is required; 2 more faults are in `errors`.");
        assert_eq!(of(151, 100), "`/qty` is required; of 150 more faults, 99 are in `errors`.");
    }

    #[test]
    fn a_fault_is_in_a_document_or_in_a_line() {
        let of = |line, pointer: &str| {
            place(&Fault { pointer: pointer.to_owned(), line, rule: "is required".into() }, "The body")
        };
        assert_eq!([of(None, ""), of(None, "/0/qty")], ["The body", "`/0/qty`"]);
        assert_eq!([of(Some(7), ""), of(Some(7), "/path")], ["Line 7", "`/path` in line 7"]);
    }

    #[test]
    fn what_a_client_wrote_is_short_and_harmless() {
        assert_eq!(quoted("/it's \"ä\"/🎈"), "`/it's \"ä\"/🎈`");
        assert_eq!(quoted("/`\n\u{1b}[31m\u{202e}"), "`/\\u{60}\\n\\u{1b}[31m\\u{202e}`");
        assert_eq!(quoted(&"ä".repeat(100)), format!("`{}`", "ä".repeat(100)));
        assert_eq!(quoted(&"ä".repeat(101)), format!("`{}…`", "ä".repeat(100)));
    }
}
