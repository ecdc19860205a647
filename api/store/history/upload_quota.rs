//! Uploads' part of the queue. Where a single append is refused, an upload waits.
//!
//! All uploads together have at most half of the queue, so that a single append finds room at once, however
//! many uploads there are. Those that wait have their turns in order. What single appends have taken of the
//! other half they may take of the uploads', too: then an upload looks again and again, and does not keep
//! for itself what becomes free meanwhile.
//!
//! The same holds of each customer's part of the queue: uploads wait where they would hold more than half of it
//! together with the customer's single appends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::Trades;
use super::append::{AppendError, Appended, Cause, Request};
use crate::domain::{CustomerId, Trade};
use crate::store::group_commit::{Full, Room, Ticket};
use crate::store::{COMMAND, Deadline, Error};

/// How long an upload waits for room: longer than it takes to commit what as many uploads as there may be
/// have waiting.
const LONGEST: Duration = Duration::from_secs(60);

/// How often is looked for room that single appends have taken.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// What uploads may have of the queue, in trades.
#[derive(Debug)]
pub(super) struct UploadQuota(Arc<Semaphore>);

impl UploadQuota {
    /// Half of a queue for `queued_trades`.
    pub(super) fn of(queued_trades: usize) -> Self {
        Self(Arc::new(Semaphore::new((queued_trades / 2).max(1))))
    }
}

/// How an upload waits for room.
#[derive(Debug)]
pub struct Waiting {
    /// Cancelled when it is to wait no longer, and to send nothing more.
    pub stop: CancellationToken,
    /// How long it has waited.
    pub waited: Duration,
}

impl Trades {
    /// The most trades of an upload in one append: half of what a customer may have in the queue.
    pub fn most_of_an_upload(&self) -> usize {
        (self.0.queue.most_of_a_key() / 2).max(1)
    }

    /// As [`Trades::append`], but waits for room, and has a command's time from then on. At most
    /// [`Trades::most_of_an_upload`].
    ///
    /// # Errors
    /// See [`AppendError`].
    pub async fn append_part(
        &self,
        customer: CustomerId,
        trades: Vec<Trade>,
        waiting: &mut Waiting,
    ) -> Result<Appended, AppendError> {
        let room = self.room_of_an_upload(customer, trades.len(), waiting).await;
        let room = room.map_err(|cause| AppendError { ranges: Vec::new(), unknown: 0, cause })?;
        let (ticket, pending) = Ticket::new(Deadline::within(COMMAND), room);
        self.enqueue(Request::new(customer, trades, ticket), pending).await.whole()
    }

    /// # Errors
    /// There is none for too long, or it is over.
    pub(super) async fn room_of_an_upload(
        &self,
        customer: CustomerId,
        trades: usize,
        waiting: &mut Waiting,
    ) -> Result<Room, Cause> {
        let began = Instant::now();
        let room = tokio::select! {
            biased;
            () = waiting.stop.cancelled() => Err(stopped().into()),
            room = self.wait_for_room(customer, trades, began + LONGEST) => room,
        };
        waiting.waited += began.elapsed();
        room
    }

    async fn wait_for_room(
        &self,
        customer: CustomerId,
        trades: usize,
        until: Instant,
    ) -> Result<Room, Cause> {
        let permits = trades.try_into().unwrap_or(u32::MAX);
        let mut kept = None;
        loop {
            let part: OwnedSemaphorePermit = match kept.take() {
                Some(part) => part,
                None => {
                    let part = Arc::clone(&self.0.upload_quota.0).acquire_many_owned(permits);
                    let Ok(Ok(part)) = timeout_at(until, part).await else { return Err(Cause::Overloaded) };
                    part
                }
            };
            match self.0.queue.room(customer.get(), trades, self.most_of_an_upload()) {
                Ok(room) => return Ok(room.with(part)),
                Err(full) if Instant::now() + BETWEEN_LOOKS >= until => return Err(full.into()),
                // It keeps its turn.
                Err(Full::Queue) => kept = Some(part),
                // Its customer's commit may take long: uploads of others may have its part meanwhile.
                Err(Full::Key) => drop(part),
            }
            sleep(BETWEEN_LOOKS).await;
        }
    }
}

/// Why an upload that was stopped went no further.
pub(super) fn stopped() -> Error {
    Error::Unavailable("an upload was stopped".to_owned())
}
