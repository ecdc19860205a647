//! Entity tags (RFC 9110, 8.8.3), and the condition `If-None-Match` on them (13.1.2).

use std::borrow::Cow;
use std::fmt;

use axum::http::{HeaderMap, HeaderValue, header};

/// A strong tag: equal tags of one address mean equal bytes, before compression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityTag(HeaderValue);

impl EntityTag {
    /// From the text between the quotes: visible ASCII without a quote.
    pub fn new(opaque: impl fmt::Display) -> Self {
        Self(HeaderValue::try_from(format!("\"{opaque}\"")).expect("visible ASCII"))
    }

    /// The tag of a part of what has this tag.
    #[must_use]
    pub fn of_part(&self, part: impl fmt::Display) -> Self {
        let whole = self.0.to_str().expect("visible ASCII");
        Self::new(format_args!("{}.{part}", whole.trim_matches('"')))
    }

    /// As the value of `ETag`.
    pub fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

/// The tags that the client already has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfNoneMatch {
    /// No tag. Also for a malformed header: a superfluous answer does no harm.
    Nothing,
    /// `*`: any tag of this address.
    Anything,
    /// These tags, as the client wrote them.
    Tags(Vec<Vec<u8>>),
}

impl IfNoneMatch {
    /// From all the lines of the header.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut lines = headers.get_all(header::IF_NONE_MATCH).iter().map(HeaderValue::as_bytes);
        let Some(first) = lines.next() else { return Self::Nothing };
        let mut line = Cow::Borrowed(first);
        for more in lines {
            line.to_mut().extend([b",", more].concat());
        }
        if *line == *b"*" { Self::Anything } else { tags(&line).map_or(Self::Nothing, Self::Tags) }
    }

    /// The tag for a 304, if the client has this one by weak comparison. It is weak if the client's is, because the
    /// client then has a compressed copy.
    pub fn known(&self, tag: &EntityTag) -> Option<HeaderValue> {
        let Self::Tags(tags) = self else { return None };
        let strong = |known: &&Vec<u8>| *known.strip_prefix(b"W/").unwrap_or(known) == *tag.0.as_bytes();
        let mut same = tags.iter().filter(strong).peekable();
        same.peek()?;
        Some(if same.any(|known| known.starts_with(b"W/")) { weak(&tag.0) } else { tag.header() })
    }

    /// Like [`IfNoneMatch::known`], but `*` matches too: for an address that has content.
    pub fn met_by(&self, tag: &EntityTag) -> Option<HeaderValue> {
        if *self == Self::Anything { Some(tag.header()) } else { self.known(tag) }
    }
}

/// Parses `#entity-tag`; `None` if it is malformed. A tag may contain a comma.
fn tags(mut rest: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut tags = Vec::new();
    loop {
        let between = |byte: &u8| *byte == b',' || byte.is_ascii_whitespace();
        rest = &rest[rest.iter().take_while(|byte| between(byte)).count()..];
        if rest.is_empty() {
            return Some(tags).filter(|tags| !tags.is_empty());
        }
        let quoted = rest.strip_prefix(b"W/").unwrap_or(rest);
        // etagc: no controls, no space, no quote.
        let ends = |&byte: &u8| byte <= b' ' || byte == 0x7f || byte == b'"';
        let len = quoted.strip_prefix(b"\"")?.iter().position(ends)? + 1;
        let (tag, after) = rest.split_at(rest.len() - quoted.len() + len);
        rest = after.strip_prefix(b"\"")?.trim_ascii_start();
        if !rest.is_empty() && !rest.starts_with(b",") {
            return None;
        }
        tags.push([tag, b"\""].concat());
    }
}

/// Weakens the tag of a compressed body, which has other bytes.
pub fn weaken(headers: &mut HeaderMap) {
    if headers.contains_key(header::CONTENT_ENCODING)
        && let Some(tag) = headers.get_mut(header::ETAG)
    {
        *tag = weak(tag);
    }
}

fn weak(tag: &HeaderValue) -> HeaderValue {
    if tag.as_bytes().starts_with(b"W/") {
        return tag.clone();
    }
    let weak = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat());
    weak.expect("two visible characters before what is a header's value already")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(lines: &[&str]) -> IfNoneMatch {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::IF_NONE_MATCH, HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        IfNoneMatch::of(&headers)
    }

    #[test]
    fn a_tag_is_found_in_any_list() {
        let tag = EntityTag::new("a.1,b");
        for lines in [
            &["\"a.1,b\""][..],
            &["\"x\", \"a.1,b\""],
            &["\"x\",\"a.1,b\" , \"y\""],
            &[" ,, \"a.1,b\" ,"],
            &["\"x\"", "\"a.1,b\""],
            &["\"\", \"a.1,b\""],
            &["\"ä\", \"a.1,b\""],
        ] {
            assert_eq!(given(lines).known(&tag).unwrap(), "\"a.1,b\"", "{lines:?}");
        }
        for lines in [&["W/\"a.1,b\""][..], &["\"a.1,b\", W/\"a.1,b\""], &["W/\"x\", W/\"a.1,b\""]] {
            assert_eq!(given(lines).known(&tag).unwrap(), "W/\"a.1,b\"", "{lines:?}");
        }
        for lines in [&["\"a.1\""][..], &["\"x\", \"y\""], &["W/\"A.1,b\""]] {
            assert_eq!(given(lines).known(&tag), None, "{lines:?}");
        }
    }

    #[test]
    fn what_is_malformed_is_ignored() {
        for line in [
            "",
            " ",
            ",",
            "a",
            "\"a",
            "a\"",
            "w/\"a\"",
            "W/a",
            "W/ \"a\"",
            "\"a\" \"a\"",
            "\"a\";x",
            "\"a\", b",
            "*, \"a\"",
            "\"a\", *",
            "\"a b\", \"a\"",
            "'a'",
        ] {
            assert_eq!(given(&[line]), IfNoneMatch::Nothing, "{line:?}");
        }
    }

    #[test]
    fn a_star_is_met_by_whatever_there_is() {
        let tag = EntityTag::new("a");
        assert_eq!((given(&["*"]).known(&tag), given(&["*"]).met_by(&tag)), (None, Some(tag.header())));
        assert_eq!(given(&["*", "\"a\""]), IfNoneMatch::Nothing);
    }
}
