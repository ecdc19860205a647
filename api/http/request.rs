//! What a handler asks of a request: its parameters and its body.

pub(crate) mod body;
pub(crate) mod params;
pub(crate) mod unreserved;
