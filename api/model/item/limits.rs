//! What every item keeps to, whatever its schema says.

/// The longest name, in bytes, that a schema may declare and that is repeated to the client.
pub(crate) const LONGEST_NAME: usize = 64;

/// How deep arrays and objects of an item may stand in each other; the item itself is the first. It bounds
/// the recursion of all that reads items.
pub(crate) const MOST_LEVELS: u32 = 32;

/// Whether a name can be a field of a document that commands address by paths: no `.`, no leading `$`, no
/// NUL.
pub(crate) fn is_storable(name: &str) -> bool {
    !name.starts_with('$') && !name.contains(['.', '\0'])
}

/// Whether a schema may declare it: `[A-Za-z][A-Za-z0-9_-]*`.
pub(crate) fn is_declarable(name: &str) -> bool {
    name.len() <= LONGEST_NAME
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
