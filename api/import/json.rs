//! Writes JSON.

use crate::domain::{Instant, Json};

/// Appends a number, or `otherwise` if it is none of JSON.
pub(super) fn write_number(text: &str, otherwise: &[u8], out: &mut Vec<u8>) {
    // JSON allows white space around a number.
    let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && text.ends_with(|last: char| last.is_ascii_digit())
        && Json::check(text.as_bytes()).is_ok();
    out.extend_from_slice(if is_number { text.as_bytes() } else { otherwise });
}

/// Appends a JSON string.
pub(super) fn write_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a vector takes all bytes, and a text can be written");
}

/// Appends a date as a JSON string.
pub(super) fn write_instant(instant: Instant, out: &mut Vec<u8>) {
    write_string(&instant.to_string(), out);
}
