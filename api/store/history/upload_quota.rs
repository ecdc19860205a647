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

use super::outcome::Cause;
use crate::domain::CustomerId;
use crate::store::Error;
use crate::store::group_commit::{Full, Queue, Room};

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

impl UploadQuota {
    /// The most trades of an upload in one append: half of what a customer may have in the queue.
    pub(super) fn most_at_once(queue: &Queue) -> usize {
        (queue.most_of_a_key() / 2).max(1)
    }

    /// Waits for room in the queue; at most [`UploadQuota::most_at_once`] trades.
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
