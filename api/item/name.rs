//! Names of members.

/// The longest name, in bytes, that a schema may declare and that is repeated to the client.
pub(super) const LONGEST: usize = 64;

/// Whether a name can be a field of a document that commands address by paths: no `.`, no leading `$`, no NUL.
pub(super) fn storable(name: &str) -> bool {
    !name.starts_with('$') && !name.bytes().any(|byte| matches!(byte, b'.' | 0))
}

/// Whether a schema may declare it: `[A-Za-z][A-Za-z0-9_-]*`.
pub(super) fn declarable(name: &str) -> bool {
    name.len() <= LONGEST
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
