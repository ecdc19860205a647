//! Deadlines of requests.

use std::time::Duration;

use pagebucket_engine::{self as engine, Deadline};

/// Longest time for one request, its body included.
pub const REQUEST: Duration = Duration::from_secs(35);
/// Time that is kept back for writing the answer after the last database command.
const ANSWER: Duration = Duration::from_secs(2);

/// Longest time for the body of a request that is no upload: a commit must have enough time after it.
pub const BODY: Duration = Duration::from_secs(15);

// Inner deadlines end before outer ones.
const _: () = assert!(engine::internal::NO_PRIMARY.as_secs() < engine::internal::COMMAND.as_secs());
const _: () = assert!(engine::internal::COMMAND.as_secs() + ANSWER.as_secs() < REQUEST.as_secs());

const _: () =
    assert!(BODY.as_secs() + engine::internal::COMMIT.as_secs() + ANSWER.as_secs() < REQUEST.as_secs());

/// The deadline of the database commands of a request that begins now. Every request under `/v1` has one as an
/// extension. Uploads ignore it, because they may take longer.
pub fn from_now() -> Deadline {
    Deadline::within(REQUEST - ANSWER)
}
