//! Keyed uploads: any number of lines, appended in parts. [`super::dedup`] explains why each line is stored
//! once.
//!
//! An upload has a record as any keyed request has. All uploads have the same fingerprint, because the content
//! of an upload is not known before its end. The record is touched at intervals while the upload goes on. If it
//! has expired, for example because the machine slept, it is created again from what the upload knows of it.
//!
//! The search of each part begins where the search of the previous part ended, so a repeated upload reads what
//! it has stored only once. At the end of the history the upload itself needs no further search; committers
//! search what other writers add.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::append_once::register_key;
use super::append_queue::{Waiting, stopped};
use super::dedup::{
    Fingerprint, LineRefusal, LineSearch, NumberedItem, Placed, Record, RecordId, Registered, Search, Tag,
};
use super::engine::Engine;
use super::outcome::{AppendError, Cause, Progress};
use super::request::{Keyed, Request, weight};
use crate::domain::{IdempotencyKey, Instant, OwnerId};
use crate::item::Draft;
use crate::store::group_commit::Ticket;
use crate::store::{COMMAND, Deadline, Error};

/// How often the record is touched: far more often than it could expire.
const TOUCH: Duration = Duration::from_secs(300);

/// How long the search of one part may take. It may have to read a long history that other writers have added.
const SEARCH: Duration = Duration::from_secs(300);

/// The progress of an upload in one history. It holds no items.
#[derive(Debug)]
pub struct UploadedSoFar {
    owner: OwnerId,
    key: IdempotencyKey,
    begun: Option<Begun>,
}

#[derive(Debug)]
struct Begun {
    /// The date of lines that have no date of their own.
    date: Instant,
    /// All of the upload's lines are after this `seq`.
    from: u64,
    /// The lines still to come, if they are stored, are after this `seq`.
    looked: u64,
    /// Whether the search has reached the end of the history.
    at_end: bool,
    /// When the record was last touched, in milliseconds of the server's clock. `None` if that clock is not
    /// known.
    touched: Option<i64>,
}

impl UploadedSoFar {
    /// The progress of an upload that has not begun in this history.
    pub fn nothing(owner: OwnerId, key: IdempotencyKey) -> Self {
        Self { owner, key, begun: None }
    }
}

impl Engine {
    /// Stores lines of a keyed upload at the end of a history, except those that an earlier attempt has stored
    /// or skipped. `lines` has at least one and at most [`Engine::most_of_an_upload`] bytes. Their numbers
    /// ascend, also from call to call. `now` is the time at which the upload arrived.
    ///
    /// After a failure, the lines without an end may be given again, even if their outcome is unknown. The call
    /// waits for room in the queue. When it is stopped, it sends nothing more and only waits for what it has
    /// sent.
    pub async fn append_lines(
        &self,
        so_far: &mut UploadedSoFar,
        lines: impl IntoIterator<Item = (u64, Draft)>,
        now: Instant,
        waiting: &mut Waiting,
    ) -> Result<Progress, AppendError> {
        let mut lines: Vec<_> = lines.into_iter().collect();
        let beyond = lines.partition_point(|(number, _)| *number <= u64::from(u32::MAX));
        let beyond = lines.split_off(beyond).len();
        let mut progress = match lines.is_empty() {
            true => Progress::default(),
            false => self.append_numbered(so_far, lines, now, waiting).await?,
        };
        (0..beyond).for_each(|_| progress.placed.refuse(LineRefusal::BeyondNumbers));
        Ok(progress)
    }

    async fn append_numbered(
        &self,
        so_far: &mut UploadedSoFar,
        lines: Vec<(u64, Draft)>,
        now: Instant,
        waiting: &mut Waiting,
    ) -> Result<Progress, AppendError> {
        let (owner, definition) = (so_far.owner.clone(), self.definition());
        let id = RecordId::new(definition, &owner, &so_far.key);
        let registered = self.keep_record(so_far, now, &waiting.stop).await.map_err(AppendError::nothing)?;
        let (begins, inserted) = match registered {
            Some(Registered::New { record, inserted }) => (record.from == 0, inserted),
            Some(Registered::Found(_)) | None => (false, None),
        };
        let Some(begun) = &mut so_far.begun else { return Err(AppendError::nothing(Cause::OutcomeUnknown)) };
        let numbered = |(number, draft): (u64, Draft)| NumberedItem {
            number: u32::try_from(number).expect("lines beyond the last number were split off"),
            item: draft.dated(begun.date),
        };
        let lines: Arc<[NumberedItem]> = lines.into_iter().map(numbered).collect();
        let search =
            LineSearch::new(Tag::new(definition, &owner, &so_far.key), Arc::clone(&lines), begun.looked);
        let (mut search, mut placed) = (Search::Lines(search), Placed::default());
        if !begun.at_end {
            let searching = self.find(&owner, id, search, Deadline::within(SEARCH));
            (search, placed) = unless(&waiting.stop, searching).await.map_err(AppendError::nothing)?;
            if search.is_over(&placed) {
                begun.looked = search.looked();
                return Ok(Progress { placed, ..Progress::default() });
            }
            begun.at_end = true;
        }
        let rest = weight(lines[placed.count..].iter().map(|line| line.item.size()));
        let room = match self.0.queue.room_of_an_upload(&owner, rest, waiting).await {
            Ok(room) => room,
            Err(cause) => {
                let progress = Progress { placed, ..Progress::default() };
                return Err(AppendError { progress, unknown: 0, cause });
            }
        };
        let items = lines.iter().map(|line| line.item.clone()).collect();
        let keyed = Keyed { id, search, stored: false, begins, inserted };
        let (ticket, pending) = Ticket::new(Deadline::within(COMMAND), room);
        let request = Request::keyed(owner, items, placed, keyed, ticket);
        let answer = self.enqueue(request, pending).await;
        match &answer {
            Ok(progress) => begun.looked = progress.looked,
            // Lines with an unknown outcome may be stored: the next search must look for them.
            Err(_) => begun.at_end = false,
        }
        // An error here does not change the answer. The next part tries to touch the record again.
        let _ = self.keep_record(so_far, now, &waiting.stop).await;
        answer
    }

    /// Creates the record of an upload that begins, or touches the record when that is due. Returns the
    /// registered record if the upload begins here.
    async fn keep_record(
        &self,
        so_far: &mut UploadedSoFar,
        now: Instant,
        stop: &CancellationToken,
    ) -> Result<Option<Registered>, Cause> {
        let server_time = &self.0.connection.server_time;
        if so_far.begun.as_ref().is_some_and(|begun| !begun.is_due(server_time.now())) {
            return Ok(None);
        }
        let (from, date) = so_far.begun.as_ref().map_or((0, now), |begun| (begun.from, begun.date));
        let proposed = Record { from, fingerprint: Fingerprint::of_upload(), date, outcome: None };
        let id = RecordId::new(self.definition(), &so_far.owner, &so_far.key);
        let keeps = so_far.begun.is_some();
        let registering = register_key(self, &so_far.owner, id, proposed, keeps, Deadline::within(COMMAND));
        let registered = unless(stop, registering).await?;
        let (Registered::New { record, .. } | Registered::Found(record)) = &registered;
        if record.fingerprint != Fingerprint::of_upload() {
            return Err(Cause::KeyReused);
        }
        let touched = server_time.now();
        if let Some(begun) = &mut so_far.begun {
            begun.touched = touched;
            return Ok(None);
        }
        let at_end = matches!(registered, Registered::New { .. });
        let (date, from) = (record.date, record.from);
        so_far.begun = Some(Begun { date, from, looked: from, at_end, touched });
        Ok(Some(registered))
    }
}

impl Begun {
    /// Whether the record must be touched. The server's clock decides, because this machine's clock stops while
    /// the machine sleeps. A standalone server reports no time; nothing is promised there.
    fn is_due(&self, now: Option<i64>) -> bool {
        let since = |(touched, now): (i64, i64)| now - touched > TOUCH.as_millis() as i64;
        self.touched.zip(now).is_some_and(since)
    }
}

/// Runs work that stores no item, and drops it when `stop` is cancelled.
async fn unless<T>(
    stop: &CancellationToken,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::select! {
        done = work => done,
        () = stop.cancelled() => Err(stopped()),
    }
}
