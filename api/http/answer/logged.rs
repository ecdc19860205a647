//! What a client chooses, as it may stand in the log or in a problem, before it is known who the client is.

use std::borrow::Cow;

/// Most bytes of a path: any of ours is shorter.
pub(crate) const MOST_OF_PATH: usize = 1024;

/// The beginning of a path that is too long.
pub(crate) fn path(path: &str) -> &str {
    let beginning = beginning(path, MOST_OF_PATH);
    // Without half of a percent-encoded byte.
    let end = beginning.rfind('%').filter(|at| beginning.len() < path.len() && at + 3 > beginning.len());
    &beginning[..end.unwrap_or(beginning.len())]
}

/// The beginning of a text, of at most this number of bytes.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// The name of a client as one word. The `sub` of a token may have spaces, and in the format for people a
/// space is what separates the parts of a line.
pub(crate) fn one_word(name: &str) -> Cow<'_, str> {
    if name.contains(' ') { name.replace(' ', "%20").into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_cut() {
        assert_eq!(path("/v1/customers/7"), "/v1/customers/7");
        assert_eq!(path(&"/a%20".repeat(300)).len(), 1022);
        assert_eq!(path(&"/abc".repeat(256)).len(), 1024);
        assert_eq!(path(&format!("{}%2", "/".repeat(1023))), "/".repeat(1023));
        assert_eq!(path(&format!("/{}", "é".repeat(1024))).len(), 1023);
    }

    #[test]
    fn a_name_is_one_word() {
        assert_eq!(one_word("auth0|7"), "auth0|7");
        assert_eq!(one_word("ann b: c"), "ann%20b:%20c");
    }
}
