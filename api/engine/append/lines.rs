//! Keyed uploads: any number of lines, appended in parts. [`crate::append::keys`] explains why each line is
//! stored once.
//!
//! An upload has a record as any keyed request has. All uploads have the same fingerprint, because the
//! content of an upload is not known before its end. The record is touched at intervals while the upload goes
//! on. If it has expired, for example because the machine slept, it is created again from what the upload
//! knows of it.
//!
//! The search of each part begins where the search of the previous part ended, so a repeated upload reads
//! what it has stored only once. At the end of the history the upload itself needs no further search;
//! committers search what other writers add.

use std::sync::Arc;
use std::time::Duration;

use pagebucket_model::domain::{IdempotencyKey, Instant, OwnerId};
use pagebucket_model::item::Draft;
use tokio_util::sync::CancellationToken;

use super::appender::Appender;
use super::queue::{Waiting, stopped};
use super::request::{AppendCause, AppendError, AppendProgress, Appended, Keyed, Placement, weight};
use crate::append::keys::{KeySearch, NumberedItem, Record, Registered, Tag, search_to_end};
use crate::append::placed::LineRefusal;
use crate::mongo::{COMMAND, Deadline};
use crate::store::buckets::identity::{Fingerprint, RecordId};

/// How often the record is touched: far more often than it could expire.
const TOUCH: Duration = Duration::from_secs(300);

/// How long the search of one part may take. It may have to read a long history that other writers have
/// added.
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

impl Appender {
    /// Stores lines of a keyed upload at the end of a history, except those that an earlier attempt has
    /// stored or skipped. `lines` has at least one and at most [`Appender::most_of_an_upload`] bytes. Their
    /// numbers ascend, also from call to call. `now` is the time at which the upload arrived.
    ///
    /// After a failure, the lines without an end may be given again, even if their outcome is unknown. The
    /// call waits for room in the queue. When it is stopped, it sends nothing more and only waits for what it
    /// has sent.
    #[doc(hidden)]
    pub async fn append_lines(
        &self,
        so_far: &mut UploadedSoFar,
        lines: impl IntoIterator<Item = (u64, Draft)>,
        now: Instant,
        waiting: &mut Waiting,
    ) -> Appended {
        let mut lines: Vec<_> = lines.into_iter().collect();
        let beyond = lines.partition_point(|(number, _)| *number <= u64::from(u32::MAX));
        let beyond = lines.split_off(beyond).len();
        let mut progress = match lines.is_empty() {
            true => AppendProgress::default(),
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
    ) -> Appended {
        let (owner, definition) = (so_far.owner.clone(), &self.parts.source.definition);
        let id = RecordId::new(definition, &owner, &so_far.key);
        let registered = self.keep_record(so_far, id, now, &waiting.stop).await;
        let registered = registered.map_err(AppendError::nothing)?;
        let Some(begun) = &mut so_far.begun else {
            return Err(AppendError::nothing(AppendCause::OutcomeUnknown));
        };
        let numbered = |(number, draft): (u64, Draft)| NumberedItem {
            number: u32::try_from(number).expect("lines beyond the last number were split off"),
            item: draft.dated(begun.date),
        };
        let lines: Arc<[NumberedItem]> = lines.into_iter().map(numbered).collect();
        let tag = Tag::new(definition, &owner, &so_far.key);
        let mut search = KeySearch::of_lines(tag, Arc::clone(&lines), begun.looked);
        if !begun.at_end {
            let of = self.parts.source.of(&owner, Deadline::within(SEARCH));
            let searching = search_to_end(of, id, &mut search);
            let searched = waiting.stop.run_until_cancelled(searching).await;
            searched.unwrap_or_else(|| Err(stopped())).map_err(AppendError::nothing)?;
            if search.is_over() {
                begun.looked = search.looked();
                return Ok(AppendProgress { placed: search.placed, ..AppendProgress::default() });
            }
            begun.at_end = true;
        }
        let rest = weight(lines[search.placed.count..].iter().map(|line| line.item.size()));
        // Without room nothing was sent: the next attempt need not search.
        let room = match self.parts.queue.room_of_an_upload(&owner, self.client, rest, waiting).await {
            Ok(room) => room,
            Err(cause) => return Err(AppendError::after(search.placed, 0, cause)),
        };
        let items = lines.iter().map(|line| line.item.clone()).collect();
        let stage = Placement::once(search, Some(Keyed { id, stored: false, registered }));
        let answer = self.enqueue(owner, items, stage, room, Deadline::within(COMMAND).into()).await;
        match &answer {
            Ok(progress) => begun.looked = progress.looked,
            // Lines with an unknown outcome may be stored: the next search must look for them.
            Err(_) => begun.at_end = false,
        }
        // An error here does not change the answer. The next part tries to touch the record again.
        let _ = self.keep_record(so_far, id, now, &waiting.stop).await;
        answer
    }

    /// Creates the record of an upload that begins, or touches the record when that is due. Returns the
    /// registered record if the upload begins here.
    async fn keep_record(
        &self,
        so_far: &mut UploadedSoFar,
        id: RecordId,
        now: Instant,
        stop: &CancellationToken,
    ) -> Result<Option<Registered>, AppendCause> {
        let time = &self.parts.source.reads.time;
        // The server's clock decides, because this machine's clock stops while the machine sleeps. A
        // standalone server reports no time; nothing is promised there.
        let since = |begun: &Begun| Some(time.clock()? - begun.touched?);
        let is_due = |begun: &Begun| since(begun).is_some_and(|millis| millis > TOUCH.as_millis() as i64);
        if so_far.begun.as_ref().is_some_and(|begun| !is_due(begun)) {
            return Ok(None);
        }
        let (from, date) = so_far.begun.as_ref().map_or((0, now), |begun| (begun.from, begun.date));
        let proposed = Record { from, fingerprint: Fingerprint::of_upload(), date, outcome: None };
        let keeps = so_far.begun.is_some();
        let registering = self.register(&so_far.owner, id, proposed, keeps, Deadline::within(COMMAND));
        let registered = stop.run_until_cancelled(registering).await.unwrap_or_else(|| Err(stopped()))?;
        if registered.record.fingerprint != Fingerprint::of_upload() {
            return Err(AppendCause::KeyReused);
        }
        let touched = time.clock();
        if let Some(begun) = &mut so_far.begun {
            begun.touched = touched;
            return Ok(None);
        }
        let (date, from) = (registered.record.date, registered.record.from);
        so_far.begun = Some(Begun { date, from, looked: from, at_end: registered.is_new, touched });
        Ok(Some(registered))
    }
}
