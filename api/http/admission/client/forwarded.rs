//! Addresses of clients in the headers of proxies: `Forwarded` (RFC 7239) and `X-Forwarded-For`.
//!
//! Each proxy adds the address of its own client at the end, so a list is read from its end: what stands
//! before the first address that is not a trusted proxy's may have been made up.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName, header};

/// The header that most proxies write. No standard describes it.
pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The addresses in one of the two headers, the last one first; `None` for an element that is no address.
pub(crate) fn addresses<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = Option<IpAddr>> + use<'a> {
    let address: fn(&str) -> _ = match *name == header::FORWARDED {
        true => of_element,
        false => |element| of_node(element.trim()),
    };
    // Many lines are one list.
    let lines: Vec<_> = headers.get_all(name).iter().collect();
    lines.into_iter().rev().flat_map(move |line| {
        let mut left = Some(line.to_str().unwrap_or("?"));
        std::iter::from_fn(move || {
            let (before, last) = last_element(left?);
            left = before;
            Some(address(last))
        })
    })
}

/// What stands before the last comma that is not in quotation marks, if there is one, and what stands after
/// it.
fn last_element(list: &str) -> (Option<&str>, &str) {
    let mut quoted = false;
    for (at, byte) in list.bytes().enumerate().rev() {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted => return (Some(&list[..at]), &list[at + 1..]),
            _ => {}
        }
    }
    (None, list)
}

/// The address in an element of `Forwarded`: that of its one parameter `for`.
fn of_element(element: &str) -> Option<IpAddr> {
    // No address has a semicolon, quoted or not.
    let pairs = element.split(';').filter_map(|pair| pair.trim().split_once('='));
    let mut nodes = pairs.filter(|(name, _)| name.eq_ignore_ascii_case("for")).map(|(_, node)| node);
    let (node, None) = (nodes.next()?, nodes.next()) else { return None };
    of_node(node.strip_prefix('"').and_then(|node| node.strip_suffix('"')).unwrap_or(node))
}

/// An address as proxies write it: perhaps in brackets, perhaps with a port.
fn of_node(node: &str) -> Option<IpAddr> {
    let bare = node.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(node);
    let with_port = || node.parse::<SocketAddr>().map(|address| address.ip());
    bare.parse::<IpAddr>().or_else(|_| with_port()).ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(lines: &[(&'static str, &'static str)]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let shown = |address: Option<IpAddr>| address.map_or("?".to_owned(), |address| address.to_string());
        let name = HeaderName::from_static(lines.first().map_or("forwarded", |(name, _)| name));
        addresses(&headers, &name).map(shown).collect()
    }

    #[test]
    fn lists_are_read_from_their_end() {
        for (lines, expected) in [
            (&[][..], &[][..]),
            (&[("x-forwarded-for", "192.0.2.1, 198.51.100.2")], &["198.51.100.2", "192.0.2.1"]),
            (
                &[("x-forwarded-for", "192.0.2.1,192.0.2.2"), ("x-forwarded-for", "192.0.2.3")],
                &["192.0.2.3", "192.0.2.2", "192.0.2.1"],
            ),
            (
                &[("x-forwarded-for", "2001:db8::1, [2001:db8::2]:8, 192.0.2.1:80, ::ffff:192.0.2.2")],
                &["192.0.2.2", "192.0.2.1", "2001:db8::2", "2001:db8::1"],
            ),
            (&[("x-forwarded-for", "192.0.2.1, unknown, ")], &["?", "?", "192.0.2.1"]),
            (
                &[(
                    "forwarded",
                    "for=192.0.2.1;proto=http, FOR = 192.0.2.2, by=192.0.2.9;For=\"[2001:db8::1]:47\"",
                )],
                &["2001:db8::1", "?", "192.0.2.1"],
            ),
            (
                &[
                    ("forwarded", "for=192.0.2.1"),
                    ("x-forwarded-for", "192.0.2.2"),
                    ("forwarded", "for=192.0.2.3"),
                ],
                &["192.0.2.3", "192.0.2.1"],
            ),
            (
                &[(
                    "forwarded",
                    "for=_hidden, for=unknown, for=\"192.0.2.1:_port\", proto=http, for=1.1.1.1;for=2.2.2.2",
                )],
                &["?", "?", "?", "?", "?"],
            ),
        ] {
            assert_eq!(read(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn what_stands_before_hides_nothing() {
        // As if a client had sent an open quotation mark, and its proxy added the address.
        for start in ["\"", "for=\"", "for=\"\\\"", "host=\",", ";;,,=\""] {
            let line: &'static str = format!("{start}, for=\"192.0.2.1:8080\";proto=https").leak();
            assert_eq!(read(&[("forwarded", line)])[0], "192.0.2.1", "{line}");
        }
    }
}
