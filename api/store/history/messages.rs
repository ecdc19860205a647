use super::batch::Settled;
use super::dedup::Registration;
use super::request::Request;
use super::tail::Tail;
use crate::domain::CustomerId;
use crate::store::group_commit::Messages;

/// What a committer of trades is told.
pub(super) enum Appends {}

impl Messages for Appends {
    type Key = CustomerId;
    type Request = Request;
    type Settled = Settled;
    type Message = Message;
}

/// What else it is told, besides requests and what became of them.
#[derive(Debug)]
pub(super) enum Message {
    /// A new request with a key: that comes first.
    Register(Registration),
    /// Tails that were read for keys.
    Found(Vec<Tail>),
}
