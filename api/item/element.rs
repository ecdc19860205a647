//! Elements of BSON documents, written straight into bytes (bsonspec.org, version 1.1).

pub(super) const DOUBLE: u8 = 0x01;
pub(super) const STRING: u8 = 0x02;
pub(super) const DOCUMENT: u8 = 0x03;
pub(super) const ARRAY: u8 = 0x04;
pub(super) const BOOLEAN: u8 = 0x08;
pub(super) const DATE: u8 = 0x09;
pub(super) const NULL: u8 = 0x0A;
pub(super) const INT64: u8 = 0x12;
pub(super) const DECIMAL128: u8 = 0x13;

/// Writes the name of an element, which has no NUL. Returns the place of its type.
pub(super) fn open(out: &mut Vec<u8>, name: &[u8]) -> usize {
    let at = out.len();
    out.push(0);
    out.extend_from_slice(name);
    out.push(0);
    at
}

/// Begins a document or an array. Returns its place, for [`end`].
pub(super) fn begin(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    at
}

/// Ends what [`begin`] began.
pub(super) fn end(out: &mut Vec<u8>, at: usize) {
    out.push(0);
    // A request is far smaller than 2 GiB.
    let len = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&len.to_le_bytes());
}

pub(super) fn string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// Writes an element that is a date.
pub(super) fn date(out: &mut Vec<u8>, name: &str, millis: i64) {
    let at = open(out, name.as_bytes());
    out[at] = DATE;
    out.extend_from_slice(&millis.to_le_bytes());
}

/// How many bytes [`date`] writes.
pub(super) fn date_len(name: &str) -> usize {
    1 + name.len() + 1 + 8
}
