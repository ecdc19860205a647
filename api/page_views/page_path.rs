//! The path that identifies a page of a web site.

use std::sync::Arc;

use pagebucket_model::domain::Invalid;
use serde::Serialize;

/// Identifies a page of a web site by the path of its URL: 1 to 512 bytes of UTF-8 that begin with `/`,
/// without control characters, query or fragment. Paths are equal if their bytes are equal: nothing is
/// decoded or normalised. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, derive_more::Display)]
#[serde(transparent)]
pub struct PagePath(Arc<str>);

impl PagePath {
    /// The longest path, in bytes.
    pub const MAX_LEN: usize = 512;

    /// # Errors
    /// The text is not such a path.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if !text.starts_with('/') {
            return Err(Invalid::new("must begin with \"/\""));
        }
        if text.len() > Self::MAX_LEN {
            return Err(Invalid::new(format!("must have at most {} bytes in UTF-8", Self::MAX_LEN)));
        }
        if text.contains(['?', '#']) {
            return Err(Invalid::new(
                "must be a path alone, without a query or a fragment: no \"?\", no \"#\"",
            ));
        }
        if text.contains(char::is_control) {
            return Err(Invalid::new("must not hold control characters"));
        }
        Ok(Self(text.into()))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_kept_as_it_is() {
        let longest = format!("/{}", "x".repeat(511));
        let wide = format!("/{}a", "ä".repeat(255));
        for text in ["/", "/index.htm", "//a/../b", "/a b", "/ä/日本", "/%3F", "/a\u{2028}", &longest, &wide]
        {
            assert_eq!(PagePath::parse(text).unwrap().as_str(), text);
        }
        assert_ne!(PagePath::parse("/a").unwrap(), PagePath::parse("/A").unwrap());
        assert_ne!(PagePath::parse("/a").unwrap(), PagePath::parse("/a/").unwrap());
    }

    #[test]
    fn refuses_what_is_no_path() {
        for (text, part) in [
            ("", "begin"),
            ("index.htm", "begin"),
            (" /", "begin"),
            ("http://example.com/", "begin"),
            ("/a?b", "query"),
            ("/a#b", "fragment"),
            ("/a\0", "control"),
            ("/a\n", "control"),
            ("/\u{7f}", "control"),
            ("/\u{85}", "control"),
            (&format!("/{}", "x".repeat(512)), "512 bytes"),
            (&format!("/{}", "ä".repeat(256)), "512 bytes"),
        ] {
            let rule = PagePath::parse(text).unwrap_err().to_string();
            assert!(rule.contains(part), "{text:?}: {rule}");
        }
    }
}
