//! Appends: from a request in the queue to the statements of a commit, and back to the answer of each request.

pub(super) mod appender;
pub(super) mod batch;
pub(super) mod commit;
pub(super) mod identified;
pub(super) mod lines;
pub(super) mod policy;
pub(super) mod queue;
pub(super) mod request;
pub(super) mod statement;
