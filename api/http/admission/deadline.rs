//! Deadlines of requests.

use std::time::Duration;

use pagebucket_engine::{self as engine, Deadline};
use pagebucket_model::domain::Wait;

/// Longest time for one request, its body included.
pub const REQUEST: Duration = Duration::from_secs(35);
/// Longest time for a long poll: what it does after its wait is a request.
pub(crate) const POLL: Duration = Duration::from_secs(Wait::MAX as u64 + REQUEST.as_secs());

/// The longest times of requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Of a request that is no long poll.
    pub request: Duration,
    /// Of a long poll.
    pub poll: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self { request: REQUEST, poll: POLL }
    }
}

/// Time that is kept back for writing the answer after the last database command.
const ANSWER: Duration = Duration::from_secs(2);

/// Longest time for the body of a request that is no upload: a commit must have enough time after it.
pub(crate) const BODY: Duration = Duration::from_secs(15);

// Inner deadlines end before outer ones.
const _: () = assert!(engine::internal::NO_PRIMARY.as_secs() < engine::internal::COMMAND.as_secs());
const _: () = assert!(engine::internal::COMMAND.as_secs() + ANSWER.as_secs() < REQUEST.as_secs());

const _: () =
    assert!(BODY.as_secs() + engine::internal::COMMIT.as_secs() + ANSWER.as_secs() < REQUEST.as_secs());

/// The deadline of the database commands of a request that begins now. Uploads ignore it, because they may
/// take longer.
pub(crate) fn from_now() -> Deadline {
    Deadline::within(REQUEST - ANSWER)
}
