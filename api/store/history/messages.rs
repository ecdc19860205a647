use super::batch::Settled;
use super::dedup::Registration;
use super::request::Request;
use super::tail::Tail;
use crate::domain::OwnerId;
use crate::store::group_commit::Messages;

/// The types of the messages that committers of items receive.
pub(super) enum Appends {}

impl Messages for Appends {
    type Key = OwnerId;
    type Request = Request;
    type Settled = Settled;
    type Message = Message;
}

/// The messages besides requests and outcomes of batches.
#[derive(Debug)]
pub(super) enum Message {
    /// A key to register, which happens before its request is sent.
    Register(Registration),
    /// Tails that were read for the registration of keys.
    Found(Vec<(OwnerId, Tail)>),
}
