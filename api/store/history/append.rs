//! Appends: a request enters the queue, and the committer's answer becomes the caller's.

use super::append_queue::Waiting;
use super::engine::Engine;
use super::outcome::{AppendError, Cause, Progress};
use super::request::{Answer, Request, weight};
use crate::domain::OwnerId;
use crate::item::Item;
use crate::store::group_commit::{NoAnswer, Pending, Ticket};
use crate::store::{COMMAND, Deadline, Error};

impl Engine {
    /// Stores at least one item at the end of a history, in the given order.
    ///
    /// The append goes on to its end even if the caller stops waiting. `deadline` is shortened to one
    /// command's.
    ///
    /// # Errors
    /// See [`AppendError`]. Each item that the error does not count as unknown is stored exactly once or not
    /// at all.
    pub async fn append(
        &self,
        owner: OwnerId,
        items: Vec<Item>,
        deadline: Deadline,
    ) -> Result<Progress, AppendError> {
        let (ticket, pending) = Ticket::new(
            deadline,
            self.0.queue.room(&owner, weight(items.iter().map(Item::size))).map_err(AppendError::nothing)?,
        );
        self.enqueue(Request::new(owner, items, ticket), pending).await
    }

    /// The most bytes of items that an upload may append at once, unless a single item has more: [`Item::size`] and 64
    /// for each.
    pub fn most_of_an_upload(&self) -> usize {
        self.0.queue.most_of_an_upload()
    }

    /// Same as [`Engine::append`] for at most [`Engine::most_of_an_upload`] bytes, but waits for room in the
    /// queue. The time for one command starts when there is room.
    ///
    /// # Errors
    /// See [`AppendError`].
    pub async fn append_part(
        &self,
        owner: OwnerId,
        items: Vec<Item>,
        waiting: &mut Waiting,
    ) -> Result<Progress, AppendError> {
        let room =
            self.0.queue.room_of_an_upload(&owner, weight(items.iter().map(Item::size)), waiting).await;
        let room = room.map_err(AppendError::nothing)?;
        let (ticket, pending) = Ticket::new(Deadline::within(COMMAND), room);
        self.enqueue(Request::new(owner, items, ticket), pending).await
    }

    /// Sends a request to its committer, and waits for its answer.
    pub(super) async fn enqueue(&self, request: Request, pending: Pending<Answer>) -> Answer {
        let (placed, rest) = (request.placed.clone(), request.rest().len());
        // The committer has said nothing: what was placed before is still there.
        let unanswered = |unknown, cause| {
            let progress = Progress { placed, ..Progress::default() };
            AppendError { progress, unknown, cause }
        };
        if !self.committer(&request.owner).request(request) {
            return Err(unanswered(0, Error::Internal("a committer has ended".to_owned()).into()));
        }
        match pending.answer().await {
            Ok(answer) => answer,
            Err(NoAnswer::Withdrawn) => Err(unanswered(0, Cause::Late)),
            Err(NoAnswer::Lost) => Err(unanswered(rest, Cause::OutcomeUnknown)),
        }
    }
}
