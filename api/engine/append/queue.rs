//! The queue of appends to all histories, and the part of it for uploads. If there is no room, a single
//! append is refused, but an upload waits.
//!
//! All uploads together hold at most half of the queue, so a single append finds room at once, however many
//! uploads there are. Waiting uploads are served in order. Single appends may also take the uploads' half.
//! Then an upload looks for room at intervals and reserves no room meanwhile.
//!
//! The same holds for each owner's part of the queue, and for each client's: uploads wait if, together with
//! the single appends of the owner or of the client, they would hold more than half of it.

use std::sync::Arc;
use std::time::Duration;

use pagebucket_model::domain::OwnerId;
use pagebucket_model::metric::QUEUED_BYTES;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::request::AppendCause;
use crate::append::group_commit::{Full, Queue, QueueClient, QueueReservation};
use crate::capacity::Capacity;
use crate::mongo::Error;

/// The longest wait of an upload for room: longer than it takes to commit all that the largest number of
/// uploads can have waiting.
const LONGEST: Duration = Duration::from_secs(60);

/// The time between two looks for room that single appends have taken.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// The queue of the appends to all histories. Its units are bytes of memory. Clones share the limits.
#[derive(Debug, Clone)]
pub(crate) struct AppendQueue {
    pub(crate) all: Queue,
    /// How much of it uploads may hold: half.
    uploads: Arc<Semaphore>,
}

/// How an upload waits for room.
#[derive(Debug)]
pub struct Waiting {
    /// Cancelled when the upload must stop waiting and send nothing more.
    pub stop: CancellationToken,
    /// How long the upload has waited so far.
    pub waited: Duration,
}

impl AppendQueue {
    pub(crate) fn new(capacity: Capacity) -> Self {
        let all = Queue::new(capacity.queued_bytes, capacity.commit_time, QUEUED_BYTES);
        let uploads = Arc::new(Semaphore::new(half(&all)));
        Self { all, uploads }
    }

    /// The most bytes that an upload may append at once, unless a single item has more: half of what an
    /// owner, or a client, may hold in the queue.
    pub(crate) fn most_of_an_upload(&self) -> usize {
        (self.all.most_of_a_key() / 2).max(1)
    }

    /// Takes room for `bytes` of an owner, and of a client if it is known. An upload waits for it, with at
    /// most [`AppendQueue::most_of_an_upload`] bytes.
    pub(crate) async fn reserve(
        &self,
        owner: &OwnerId,
        client: Option<QueueClient>,
        bytes: usize,
        waiting: Option<&mut Waiting>,
    ) -> Result<QueueReservation, AppendCause> {
        let Some(waiting) = waiting else {
            return Ok(self.all.reserve(owner.spread(), client, bytes, self.all.most_of_a_key())?);
        };
        let began = Instant::now();
        let reserved = tokio::select! {
            biased;
            () = waiting.stop.cancelled() => Err(stopped().into()),
            reserved = self.wait_for_room(owner, client, bytes, began + LONGEST) => reserved,
        };
        waiting.waited += began.elapsed();
        reserved
    }

    async fn wait_for_room(
        &self,
        owner: &OwnerId,
        client: Option<QueueClient>,
        bytes: usize,
        until: Instant,
    ) -> Result<QueueReservation, AppendCause> {
        // A single item may be larger than all that uploads may hold.
        let permits = bytes.min(half(&self.all)) as u32;
        let mut part = None;
        loop {
            if part.is_none() {
                let acquired = Arc::clone(&self.uploads).acquire_many_owned(permits);
                let Ok(Ok(acquired)) = timeout_at(until, acquired).await else {
                    return Err(AppendCause::Overloaded);
                };
                part = Some(acquired);
            }
            match self.all.reserve(owner.spread(), client, bytes, self.most_of_an_upload()) {
                Ok(reserved) => return Ok(reserved.with(part)),
                Err(full) if Instant::now() + BETWEEN_LOOKS >= until => return Err(full.into()),
                // Keeps its turn among the uploads.
                Err(Full::Queue) => {}
                // The owner's commit may take long: uploads of other owners and clients may use this part
                // meanwhile.
                Err(Full::Key | Full::Client) => part = None,
            }
            sleep(BETWEEN_LOOKS).await;
        }
    }
}

/// How much of a queue uploads may hold. Its size fits into 32 bits.
fn half(queue: &Queue) -> usize {
    (queue.size() / 2).max(1)
}

/// The error of an upload that was stopped.
pub(crate) fn stopped() -> Error {
    Error::unavailable("an upload was stopped")
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// A single item may be larger than all that uploads may hold, or than the queue.
    #[tokio::test]
    async fn an_upload_of_any_size_has_room_in_an_empty_queue() {
        let queue = AppendQueue::new(Capacity { queued_bytes: 100, ..Capacity::default() });
        for bytes in [50, 60, 1_000] {
            let mut waiting = Waiting { stop: CancellationToken::new(), waited: Duration::ZERO };
            let room = queue.reserve(&OwnerId::Integer(1), client("ann"), bytes, Some(&mut waiting));
            let room = timeout_at(Instant::now() + Duration::from_secs(10), room).await.expect("at once");
            drop(room.unwrap());
        }
    }

    fn client(name: &str) -> Option<QueueClient> {
        Some(QueueClient::new(&name))
    }

    fn at_once(
        queue: &AppendQueue,
        owner: &OwnerId,
        client: Option<QueueClient>,
        bytes: usize,
    ) -> Option<QueueReservation> {
        let mut waiting = Waiting { stop: CancellationToken::new(), waited: Duration::ZERO };
        queue.reserve(owner, client, bytes, Some(&mut waiting)).now_or_never().map(Result::unwrap)
    }

    #[tokio::test]
    async fn beside_uploads_to_an_owner_there_is_room_for_its_single_appends() {
        let queue = AppendQueue::new(Capacity { queued_bytes: 800, ..Capacity::default() });
        let (one, other) = (OwnerId::Integer(1), OwnerId::Integer(2));
        // An eighth of the queue.
        let mut held: Vec<_> = std::iter::from_fn(|| at_once(&queue, &one, None, 10)).collect();
        assert_eq!(held.len(), 10);
        held.extend(at_once(&queue, &other, None, 10));
        assert_eq!(held.len(), 11, "uploads to others do not wait for it");
        // Together a quarter.
        let single = || queue.all.reserve(one.spread(), None, 10, queue.all.most_of_a_key()).ok();
        held.extend(std::iter::from_fn(single));
        assert_eq!(held.len(), 11 + 10);
        held.clear();
        // The single appends of the owner count, too.
        held.extend(std::iter::from_fn(single));
        assert_eq!(held.len(), 20);
        assert!(at_once(&queue, &one, None, 10).is_none() && at_once(&queue, &other, None, 10).is_some());
    }

    /// An eighth of the queue, however many owners they have.
    #[tokio::test]
    async fn uploads_of_one_client_leave_room_for_others_and_for_its_single_appends() {
        let queue = AppendQueue::new(Capacity { queued_bytes: 800, ..Capacity::default() });
        let [ann, bob] = ["ann", "bob"].map(client);
        let mut owners = (1..).map(OwnerId::Integer);
        let mut next = || owners.next().unwrap();
        let mut held: Vec<_> = std::iter::from_fn(|| at_once(&queue, &next(), ann, 10)).collect();
        assert_eq!(held.len(), 10);
        held.extend(std::iter::from_fn(|| at_once(&queue, &next(), bob, 10)));
        assert_eq!(held.len(), 20);
        let most = queue.all.most_of_a_key();
        held.extend(std::iter::from_fn(|| queue.all.reserve(next().spread(), ann, 10, most).ok()));
        assert_eq!(held.len(), 20 + 10);
    }
}
