//! Appends: a request enters the queue, and the committer's answer becomes the caller's.

use super::engine::Trades;
use super::outcome::{AppendError, Cause, Progress};
use super::request::{Answer, Request};
use super::upload_quota::{UploadQuota, Waiting};
use crate::domain::{CustomerId, Trade};
use crate::store::group_commit::{Full, NoAnswer, Pending, Room, Ticket};
use crate::store::{COMMAND, Deadline, Error};

impl Trades {
    /// Stores at least one trade at the end of a history, in the given order.
    ///
    /// The append goes on to its end even if the caller stops waiting. `deadline` is shortened to one
    /// command's.
    ///
    /// # Errors
    /// See [`AppendError`]. Each trade that the error does not count as unknown is stored exactly once or not
    /// at all.
    pub async fn append(
        &self,
        customer: CustomerId,
        trades: Vec<Trade>,
        deadline: Deadline,
    ) -> Result<Progress, AppendError> {
        let (ticket, pending) =
            Ticket::new(deadline, self.room(customer, trades.len()).map_err(AppendError::nothing)?);
        self.enqueue(Request::new(customer, trades, ticket), pending).await
    }

    /// The most trades that an upload may append at once.
    pub fn most_of_an_upload(&self) -> usize {
        UploadQuota::most_at_once(&self.0.queue)
    }

    /// Same as [`Trades::append`] for at most [`Trades::most_of_an_upload`] trades, but waits for room in the
    /// queue. The time for one command starts when there is room.
    ///
    /// # Errors
    /// See [`AppendError`].
    pub async fn append_part(
        &self,
        customer: CustomerId,
        trades: Vec<Trade>,
        waiting: &mut Waiting,
    ) -> Result<Progress, AppendError> {
        let room = self.room_of_an_upload(customer, trades.len(), waiting).await;
        let room = room.map_err(AppendError::nothing)?;
        let (ticket, pending) = Ticket::new(Deadline::within(COMMAND), room);
        self.enqueue(Request::new(customer, trades, ticket), pending).await
    }

    /// Waits for room in the queue for a part of an upload.
    ///
    /// # Errors
    /// There was no room for too long, or the upload was stopped.
    pub(super) async fn room_of_an_upload(
        &self,
        customer: CustomerId,
        trades: usize,
        waiting: &mut Waiting,
    ) -> Result<Room, Cause> {
        self.0.upload_quota.room(&self.0.queue, customer, trades, waiting).await
    }

    /// Takes room in the queue.
    ///
    /// # Errors
    /// The queue is full, or the customer's part of it.
    pub(super) fn room(&self, customer: CustomerId, trades: usize) -> Result<Room, Full> {
        let queue = &self.0.queue;
        queue.room(customer.get(), trades, queue.most_of_a_key())
    }

    /// Sends a request to its committer, and waits for its answer.
    pub(super) async fn enqueue(&self, request: Request, pending: Pending<Answer>) -> Answer {
        let (placed, rest) = (request.placed.clone(), request.rest().len());
        // The committer has said nothing: what was placed before is still there.
        let unanswered = |unknown, cause| {
            let progress = Progress { placed, ..Progress::default() };
            AppendError { progress, unknown, cause }
        };
        if !self.committer(request.customer).request(request) {
            return Err(unanswered(0, Error::Internal("a committer has ended".to_owned()).into()));
        }
        match pending.answer().await {
            Ok(answer) => answer,
            Err(NoAnswer::Withdrawn) => Err(unanswered(0, Cause::Late)),
            Err(NoAnswer::Lost) => Err(unanswered(rest, Cause::OutcomeUnknown)),
        }
    }
}
