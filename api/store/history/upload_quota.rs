//! The part of the queue for uploads. If there is no room, a single append is refused, but an upload waits.
//!
//! All uploads together hold at most half of the queue, so a single append finds room at once, however many
//! uploads there are. Waiting uploads are served in order. Single appends may also take the uploads' half. Then
//! an upload looks for room at intervals and reserves no room meanwhile.
//!
//! The same holds for each customer's part of the queue: uploads wait if, together with the customer's single
//! appends, they would hold more than half of it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::outcome::Cause;
use crate::domain::CustomerId;
use crate::store::Error;
use crate::store::group_commit::{Full, Queue, Room};

/// The longest wait of an upload for room: longer than it takes to commit all that the largest number of
/// uploads can have waiting.
const LONGEST: Duration = Duration::from_secs(60);

/// The time between two looks for room that single appends have taken.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// How much of the queue uploads may hold, in trades.
#[derive(Debug)]
pub(super) struct UploadQuota(Arc<Semaphore>);

impl UploadQuota {
    /// Half of a queue of `queued_trades`.
    pub(super) fn of(queued_trades: usize) -> Self {
        Self(Arc::new(Semaphore::new((queued_trades / 2).max(1))))
    }
}

/// How an upload waits for room.
#[derive(Debug)]
pub struct Waiting {
    /// Cancelled when the upload must stop waiting and send nothing more.
    pub stop: CancellationToken,
    /// How long the upload has waited so far.
    pub waited: Duration,
}

impl UploadQuota {
    /// The most trades that an upload may append at once: half of what a customer may hold in the queue.
    pub(super) fn most_at_once(queue: &Queue) -> usize {
        (queue.most_of_a_key() / 2).max(1)
    }

    /// Waits for room in the queue for at most [`UploadQuota::most_at_once`] trades.
    ///
    /// # Errors
    /// There was no room for too long, or the upload was stopped.
    pub(super) async fn room(
        &self,
        queue: &Queue,
        customer: CustomerId,
        trades: usize,
        waiting: &mut Waiting,
    ) -> Result<Room, Cause> {
        let began = Instant::now();
        let room = tokio::select! {
            biased;
            () = waiting.stop.cancelled() => Err(stopped().into()),
            room = self.wait_for_room(queue, customer, trades, began + LONGEST) => room,
        };
        waiting.waited += began.elapsed();
        room
    }

    async fn wait_for_room(
        &self,
        queue: &Queue,
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
                    let part = Arc::clone(&self.0).acquire_many_owned(permits);
                    let Ok(Ok(part)) = timeout_at(until, part).await else { return Err(Cause::Overloaded) };
                    part
                }
            };
            match queue.room(customer.get(), trades, Self::most_at_once(queue)) {
                Ok(room) => return Ok(room.with(part)),
                Err(full) if Instant::now() + BETWEEN_LOOKS >= until => return Err(full.into()),
                // Keeps its turn among the uploads.
                Err(Full::Queue) => kept = Some(part),
                // The customer's commit may take long: uploads of other customers may use this part meanwhile.
                Err(Full::Key) => drop(part),
            }
            sleep(BETWEEN_LOOKS).await;
        }
    }
}

/// The error of an upload that was stopped.
pub(super) fn stopped() -> Error {
    Error::Unavailable("an upload was stopped".to_owned())
}
