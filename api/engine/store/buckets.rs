//! What is stored of a history: buckets and markers, how each is read from its document, and which of them is
//! the tail.

pub(crate) mod bucket_id;
pub(crate) mod catalog;
pub(crate) mod document;
pub(crate) mod identity;
pub(crate) mod marker;
pub(crate) mod tails;
