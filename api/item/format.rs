//! The formats of strings, and what they accept.

use super::decimal::Decimal;
use crate::domain::{Instant, Invalid};

/// What a string stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
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

impl Format {
    /// All of them.
    pub(super) const ALL: [Self; 6] =
        [Self::DateTime, Self::Date, Self::Uuid, Self::Email, Self::Uri, Self::Decimal];

    /// The format's name in a schema.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::DateTime => "date-time",
            Self::Date => "date",
            Self::Uuid => "uuid",
            Self::Email => "email",
            Self::Uri => "uri",
            Self::Decimal => "decimal",
        }
    }

    /// Checks a text that is stored as it is.
    pub(super) fn check(self, text: &str) -> Result<(), Invalid> {
        let (accepted, rule) = match self {
            Self::DateTime => return Instant::parse_rfc3339(text).map(|_| ()),
            Self::Date => return Instant::parse_date(text).map(|_| ()),
            Self::Uuid => (uuid(text), "must be a UUID, such as \"123e4567-e89b-42d3-a456-426614174000\""),
            Self::Email => (email(text), "must be an email address, such as \"ann@example.org\""),
            Self::Uri => {
                (uri(text), "must be a URI with a scheme (RFC 3986), such as \"https://example.org/\"")
            }
            Self::Decimal => (
                Decimal::parse(text).is_ok(),
                "must be a decimal number in plain notation, such as \"15.54\"",
            ),
        };
        if accepted { Ok(()) } else { Err(Invalid(rule.to_owned())) }
    }
}

fn uuid(text: &str) -> bool {
    let hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match hyphen(at) {
            true => byte == b'-',
            false => byte.is_ascii_hexdigit(),
        })
}

/// RFC 5321, section 4.1.2, without quoted strings and address literals.
fn email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let atom = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte))
    };
    let label = |part: &str| {
        (1..=63).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    local.len() <= 64 && domain.len() <= 255 && local.split('.').all(atom) && domain.split('.').all(label)
}

/// RFC 3986: the characters, percent-encoding, and where `#`, `[` and `]` may stand.
fn uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let scheme_is_good = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (hierarchy, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = match hierarchy.strip_prefix("//") {
        None => hierarchy,
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if !uri_authority(authority) {
                return false;
            }
            path
        }
    };
    scheme_is_good
        && uri_characters(path, b":@/")
        && uri_characters(query, b":@/?")
        && uri_characters(fragment, b":@/?")
}

fn uri_authority(text: &str) -> bool {
    let (user, address) = text.rsplit_once('@').unwrap_or(("", text));
    let (host, port) = match address.strip_prefix('[') {
        Some(literal) => {
            let Some((literal, port)) = literal.split_once(']') else { return false };
            let inside = !literal.is_empty()
                && literal.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte));
            if !inside || !(port.is_empty() || port.starts_with(':')) {
                return false;
            }
            ("", port.trim_start_matches(':'))
        }
        None => address.split_once(':').unwrap_or((address, "")),
    };
    uri_characters(user, b":") && uri_characters(host, b"") && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Unreserved characters, sub-delimiters, `also`, and percent-encoded bytes.
fn uri_characters(text: &str, also: &[u8]) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let accepted = match byte {
            b'%' => [bytes.next(), bytes.next()]
                .into_iter()
                .all(|digit| digit.is_some_and(|digit| digit.is_ascii_hexdigit())),
            _ => byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte) || also.contains(&byte),
        };
        if !accepted {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(format: Format, good: &[&str], bad: &[&str]) {
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
            Format::Uuid,
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
        judge(Format::Email, &["ann@example.org", "a.b+c@localhost", "x_y@1.example"], &bad);
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
            "https://a:b/",
            "a:[",
            "a:\\",
        ];
        judge(Format::Uri, &good, &bad);
    }

    #[test]
    fn days() {
        judge(Format::Date, &["2004-02-29"], &["2005-02-29", "2004-2-29", "", "2004-02-29Z"]);
    }
}
