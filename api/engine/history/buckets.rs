//! What is stored of a history: buckets and markers, how each is read from its document, and which of them is
//! the tail.

pub(super) mod bucket_id;
pub(super) mod catalog;
pub(super) mod document;
pub(super) mod marker;
pub(super) mod tails;
