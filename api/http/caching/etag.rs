//! The condition `If-None-Match` on entity tags (RFC 9110, 13.1.2), and the tags of compressed answers.

use axum::http::{HeaderMap, HeaderValue, header};

use super::control::EntityTag;

/// The tags that the client already has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IfNoneMatch {
    /// No tag. Also for a malformed header: a superfluous answer does no harm.
    Nothing,
    /// `*`: any tag of this address.
    Anything,
    /// A list of these tags, as the client wrote it.
    Tags(HeaderValue),
}

impl IfNoneMatch {
    /// From all the lines of the header.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut lines = headers.get_all(header::IF_NONE_MATCH).iter();
        let Some(first) = lines.next() else { return Self::Nothing };
        let mut line = first.clone();
        for more in lines {
            let both = HeaderValue::from_bytes(&[line.as_bytes(), b",", more.as_bytes()].concat());
            line = both.expect("two values with a comma between them");
        }
        if line == "*" {
            return Self::Anything;
        }
        if is_list(line.as_bytes()) { Self::Tags(line) } else { Self::Nothing }
    }

    /// The tag for a 304, if the client has this one by weak comparison. It is weak if the client's is,
    /// because the client then has a compressed copy.
    pub(crate) fn known(&self, tag: &EntityTag) -> Option<HeaderValue> {
        let Self::Tags(line) = self else { return None };
        let tag = tag.header();
        let strong = |known: &&[u8]| *known.strip_prefix(b"W/").unwrap_or(known) == *tag.as_bytes();
        let mut same = tags(line.as_bytes()).flatten().filter(strong).peekable();
        same.peek()?;
        Some(if same.any(|known| known.starts_with(b"W/")) { weak(&tag) } else { tag })
    }

    /// Like [`IfNoneMatch::known`], but `*` matches too: for an address that has content.
    pub(crate) fn met_by(&self, tag: &EntityTag) -> Option<HeaderValue> {
        if *self == Self::Anything { Some(tag.header()) } else { self.known(tag) }
    }
}

/// The tags of `#entity-tag`, with their quotes; `None` is the last if the list is malformed. A tag may
/// contain a comma.
fn tags(mut rest: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    std::iter::from_fn(move || {
        let between = |byte: &u8| *byte == b',' || byte.is_ascii_whitespace();
        rest = &rest[rest.iter().take_while(|byte| between(byte)).count()..];
        if rest.is_empty() {
            return None;
        }
        let first = first(rest);
        rest = first.map_or(&[], |(_, after)| after);
        Some(first.map(|(tag, _)| tag))
    })
}

fn is_list(line: &[u8]) -> bool {
    let mut tags = tags(line);
    matches!(tags.next(), Some(Some(_))) && tags.all(|tag| tag.is_some())
}

/// The tag with which a list begins, and the rest of the list.
fn first(list: &[u8]) -> Option<(&[u8], &[u8])> {
    let quoted = list.strip_prefix(b"W/").unwrap_or(list);
    // etagc: no controls, no space, no quote.
    let ends = |&byte: &u8| byte <= b' ' || byte == 0x7f || byte == b'"';
    let len = quoted.strip_prefix(b"\"")?.iter().position(ends)? + 1;
    quoted[len..].starts_with(b"\"").then_some(())?;
    let (tag, after) = list.split_at(list.len() - quoted.len() + len + 1);
    let after = after.trim_ascii_start();
    (after.is_empty() || after.starts_with(b",")).then_some((tag, after))
}

/// Weakens the tag of a compressed body, which has other bytes.
pub(crate) fn weaken_if_compressed(headers: &mut HeaderMap) {
    if headers.contains_key(header::CONTENT_ENCODING) {
        weaken(headers);
    }
}

/// Weakens the tag of an answer that may have other bytes under the same tag, which mean the same.
pub(crate) fn weaken(headers: &mut HeaderMap) {
    if let Some(tag) = headers.get_mut(header::ETAG) {
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
