//! Regular expressions of schemas: those of ECMA-262 with the flag `u`, without look-around and
//! back-references, so that a search takes linear time.

use regex::{Regex, RegexBuilder};
use regex_syntax::Parser;
use regex_syntax::hir::Look;

use crate::domain::Invalid;

/// A compiled `pattern`.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// Bytes of the longest text that matches, if the expression says where a text begins and ends.
    pub(crate) longest: Option<usize>,
    /// The message for a text that does not match.
    pub(crate) rule: String,
}

/// Bounds of a compiled expression, in bytes: the crate's defaults are 10 MB, for one `pattern` of many.
const COMPILED_SIZE: usize = 1 << 20;

impl Pattern {
    /// # Errors
    /// The expression is not of this kind, or too large; the error says why.
    pub(crate) fn new(source: &str) -> Result<Self, Invalid> {
        let translated = translate(source)?;
        let regex = RegexBuilder::new(&translated)
            .size_limit(COMPILED_SIZE)
            .dfa_size_limit(COMPILED_SIZE)
            .nest_limit(50)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => Invalid::new("is too large when compiled"),
                error => {
                    let text = error.to_string();
                    let cause = text.lines().rev().find_map(|line| line.strip_prefix("error: "));
                    let cause = cause.unwrap_or("it cannot be compiled");
                    Invalid(format!("is not a regular expression: {cause}"))
                }
            })?;
        let rule = match one_class(source) {
            Some(words) => format!("must be {words}"),
            None => format!("must match the regular expression {source}"),
        };
        Ok(Self { regex, longest: longest(&translated), rule })
    }

    /// Whether any part of the text matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// Bytes of the longest text that a translated expression matches from its beginning to its end.
fn longest(translated: &str) -> Option<usize> {
    let parsed = Parser::new().parse(translated).ok()?;
    let properties = parsed.properties();
    let is_whole = properties.look_set_prefix().contains(Look::Start)
        && properties.look_set_suffix().contains(Look::End);
    properties.maximum_len().filter(|_| is_whole)
}

/// "1 to 12", "12".
pub(crate) fn range(least: usize, most: usize) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

/// The same expression for the crate, whose classes are Unicode's and nest.
fn translate(source: &str) -> Result<String, Invalid> {
    let mut out = String::with_capacity(source.len() + 16);
    let mut rest = source.chars().peekable();
    let mut in_class = false;
    while let Some(next) = rest.next() {
        match next {
            '\\' => {
                let escaped = rest.next().ok_or_else(|| Invalid::new("ends with a backslash"))?;
                match escaped {
                    'd' => out.push_str("[0-9]"),
                    'D' => out.push_str("[^0-9]"),
                    'w' => out.push_str("[0-9A-Za-z_]"),
                    'W' => out.push_str("[^0-9A-Za-z_]"),
                    's' => out.push_str(r"[\t\n\x0B\x0C\r\x{2028}\x{2029}\x{FEFF}\p{Zs}]"),
                    'S' => out.push_str(r"[^\t\n\x0B\x0C\r\x{2028}\x{2029}\x{FEFF}\p{Zs}]"),
                    'b' | 'B' if !in_class => out.push_str(&format!(r"(?-u:\{escaped})")),
                    'b' => out.push_str(r"\x08"),
                    'n' | 'r' | 't' | 'f' | 'v' | 'u' | 'x' | 'p' | 'P' => out.extend(['\\', escaped]),
                    syntax if r"^$\.*+?()[]{}|/-".contains(syntax) => out.extend(['\\', syntax]),
                    other => return Err(Invalid(format!("has an escape that is not supported: \\{other}"))),
                }
            }
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // ECMA-262 reads `[]` as a class of nothing, the crate as the beginning of one with `]`.
                if rest.peek() == Some(&']') {
                    return Err(Invalid::new("has an empty class"));
                }
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            // Set operations and nested classes of the crate.
            '[' | '&' | '~' if in_class => out.extend(['\\', next]),
            '-' if in_class && rest.peek() == Some(&'-') => {
                return Err(Invalid::new("has -- in a class: write \\- for a hyphen"));
            }
            '.' if !in_class => out.push_str(r"[^\n\r\x{2028}\x{2029}]"),
            '(' if !in_class && rest.next_if_eq(&'?').is_some() => match rest.next() {
                Some(':') => out.push_str("(?:"),
                _ => return Err(Invalid::new("may have groups ( and (?: only")),
            },
            other => out.push(other),
        }
    }
    Ok(out)
}

/// The expression `^[…]{least,most}$`, whose class has single characters and ranges of ASCII only, in words:
/// the most frequent one.
fn one_class(source: &str) -> Option<String> {
    let (class, counts) = source.strip_prefix("^[")?.split_once(']')?;
    let counts = counts.strip_prefix('{')?.strip_suffix("}$")?;
    let (least, most) = counts.split_once(',').unwrap_or((counts, counts));
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'[' | b'^');
    if class.is_empty() || !class.bytes().all(plain) {
        return None;
    }
    let (mut words, mut rest) = (Vec::new(), class);
    while !rest.is_empty() {
        let is_range = rest.len() > 2 && rest[1..].starts_with('-');
        let (part, others) = rest.split_at(if is_range { 3 } else { 1 });
        words.push(if is_range { part.to_owned() } else { format!("\"{part}\"") });
        rest = others;
    }
    let counts = range(least.parse().ok()?, most.parse().ok()?);
    Some(format!("{counts} of the characters {}", list(&words, "and")))
}

/// "a, b and c".
pub fn list<T: AsRef<str>>(words: &[T], and: &str) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} {and} {last}", others.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simple_class_is_put_into_words() {
        for (source, rule) in [
            ("^[A-Z0-9.-]{1,12}$", "must be 1 to 12 of the characters A-Z, 0-9, \".\" and \"-\""),
            ("^[a-f]{3}$", "must be 3 of the characters a-f"),
            ("^[A-Z]+$", "must match the regular expression ^[A-Z]+$"),
            ("^[^A-Z]{1,2}$", "must match the regular expression ^[^A-Z]{1,2}$"),
        ] {
            assert_eq!(Pattern::new(source).unwrap().rule, rule);
        }
    }

    #[test]
    fn means_what_ecmascript_means() {
        for (source, good, bad) in [
            ("b", "abc", "ac"),
            (r"^\d+$", "123", "١"),
            (r"^[\d.]+$", "1.5", "x"),
            (r"^\w$", "_", "ä"),
            (r"^[^\W]$", "a", "-"),
            (r"^\s$", "\u{feff}", "\u{85}"),
            (r"^.$", "😀", "\r"),
            (r"^a$", "a", "a\n"),
            ("^[a[b]$", "[", "]"),
            ("^[a&&b]$", "&", "&&"),
            (r"^[a\-z]$", "-", "b"),
            (r"\bb\b", "a b c", "abc"),
            (r"^A$", "A", "a"),
            (r"^\p{Lu}$", "Ä", "ä"),
            (r"^(?:ab|c){2}$", "abc", "ac"),
            ("^[a(?)]$", "?", "b"),
        ] {
            let pattern = Pattern::new(source).unwrap_or_else(|error| panic!("{source}: {error}"));
            assert!(pattern.matches(good), "{source} {good:?}");
            assert!(!pattern.matches(bad), "{source} {bad:?}");
        }
    }

    #[test]
    fn refuses_what_is_slow_large_or_not_ecmascripts() {
        for source in [
            "(",
            "[",
            "[]",
            "[+--]",
            "a{2,1}",
            "*",
            r"\",
            r"(a)\1",
            "(?=a)",
            "(?!a)",
            "(?<=a)",
            "(?i)a",
            "(?P<a>b)",
            r"\Aa",
            r"a\z",
            r"\cA",
            "((a{100}){100}){100}",
            r"\k<a>",
            r"\p{Nonsense}",
        ] {
            assert!(Pattern::new(source).is_err(), "{source}");
        }
    }
}
