//! The formats of strings, and what they accept.

use std::sync::LazyLock;

use regex::Regex;

use crate::domain::{Instant, Invalid, UUID_RULE, is_uuid};

/// What a string stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StringFormat {
    /// RFC 3339, stored as a date.
    DateTime,
    /// A day, `2004-01-09`.
    Date,
    /// RFC 4122, in either case.
    Uuid,
    /// A mailbox: dot-atom at domain (RFC 5321).
    Email,
    /// RFC 3986, with a scheme.
    Uri,
    /// A decimal number in plain notation, stored as a decimal128.
    Decimal,
}

impl StringFormat {
    /// All of them, by their names in a schema.
    pub(crate) const ALL: [(&'static str, Self); 6] = [
        ("date-time", Self::DateTime),
        ("date", Self::Date),
        ("uuid", Self::Uuid),
        ("email", Self::Email),
        ("uri", Self::Uri),
        ("decimal", Self::Decimal),
    ];

    /// Checks a text that is stored as it is.
    pub(crate) fn check(self, text: &str) -> Result<(), Invalid> {
        let (accepted, rule) = match self {
            // They are stored as what they stand for, and checked by that.
            Self::DateTime | Self::Decimal => return Ok(()),
            Self::Date => return Instant::parse_date(text).map(|_| ()),
            Self::Uuid => (is_uuid(text), UUID_RULE),
            Self::Email => (email(text), "must be an email address, such as \"ann@example.org\""),
            Self::Uri => (
                URI.is_match(text),
                "must be a URI with a scheme (RFC 3986), such as \"https://example.org/\"",
            ),
        };
        if accepted { Ok(()) } else { Err(Invalid(rule.to_owned())) }
    }
}

/// RFC 5321, section 4.1.2, without quoted strings and address literals. Lengths are bounded by [`email`].
static EMAIL: LazyLock<Regex> = LazyLock::new(|| {
    let atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
    let label = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
    regex(&format!(r"{atom}(\.{atom})*@{label}(\.{label})*"))
});

/// RFC 3986: the characters, percent-encoding, and where `#`, `[` and `]` may stand.
static URI: LazyLock<Regex> = LazyLock::new(|| {
    let characters = |also: &str| format!("([A-Za-z0-9._~!$&'()*+,;={also}-]|%[0-9A-Fa-f]{{2}})");
    let (user, host, segment, query) =
        (characters(":"), characters(""), characters(":@"), characters(":@/?"));
    let authority = format!(r"({user}*@)?(\[[0-9A-Fa-f:.]+\](:[0-9]*)?|{host}*(:[0-9]*)?)");
    let hierarchy = format!("(//{authority}(/({segment}|/)*)?|/?({segment}({segment}|/)*)?)");
    regex(&format!(r"[A-Za-z][A-Za-z0-9+.-]*:{hierarchy}(\?{query}*)?(#{query}*)?"))
});

/// A regular expression for the whole of a text.
fn regex(source: &str) -> Regex {
    Regex::new(&format!("^(?:{source})$")).expect("a test has used it")
}

fn email(text: &str) -> bool {
    let short = |(local, domain): (&str, &str)| local.len() <= 64 && domain.len() <= 255;
    text.rsplit_once('@').is_some_and(short) && EMAIL.is_match(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(format: StringFormat, good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(format.check(text), Ok(()), "{text}");
        }
        for text in bad {
            assert!(format.check(text).is_err(), "{text}");
        }
    }

    #[test]
    fn uuids() {
        let bad = [
            "",
            "123e4567e89b42d3a456426614174000",
            "123e4567-e89b-42d3-a456-42661417400g",
            "{123e4567-e89b-42d3-a456-426614174000}",
        ];
        judge(
            StringFormat::Uuid,
            &["123e4567-e89b-42d3-a456-426614174000", "123E4567-E89B-42D3-A456-426614174000"],
            &bad,
        );
    }

    #[test]
    fn emails() {
        let bad = [
            "",
            "ann",
            "@example.org",
            "ann@",
            "a b@example.org",
            "ann@-a.org",
            "ann.@a.org",
            "ann@a..org",
            "\"a b\"@a.org",
            "ä@a.org",
        ];
        judge(StringFormat::Email, &["ann@example.org", "a.b+c@localhost", "x_y@1.example"], &bad);
    }

    #[test]
    fn uris() {
        let good = [
            "https://example.org",
            "urn:isbn:0451450523",
            "mailto:ann@example.org",
            "http://[::1]:80/a?b=c#d",
            "file:///etc/hosts",
            "a:",
            "https://ann:x@example.org:8080/%20?q=a/b?c#?/",
        ];
        let bad = [
            "",
            "example.org",
            "//example.org",
            "https://exa mple.org",
            "https://a/%2",
            "https://a/%zz",
            "1a:b",
            "https://ä.org",
            "a:b#c#d",
            "https://[::1",
            "https://[::1]::80/",
            "https://a:b/",
            "a:[",
            "a:\\",
        ];
        judge(StringFormat::Uri, &good, &bad);
    }

    #[test]
    fn days() {
        judge(StringFormat::Date, &["2004-02-29"], &["2005-02-29", "2004-2-29", "", "2004-02-29Z"]);
    }
}
