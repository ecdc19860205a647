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
use pagebucket_model::item::Item;
use tokio_util::sync::CancellationToken;

use super::appender::Appender;
use super::input::{Append, UploadedSoFar};
use super::queue::stopped;
use super::request::{AppendCause, AppendError, AppendProgress, Appended, Keyed, weight};
use crate::append::keys::{KeySearch, Record, Registered, Tag, search_to_end};
use crate::append::placed::LineRefusal;
use crate::mongo::values::in_millis;
use crate::mongo::{COMMAND, Deadline};
use crate::store::buckets::identity::{Fingerprint, RecordId};

/// How often the record is touched: far more often than it could expire.
const TOUCH: Duration = Duration::from_secs(300);

/// How long the search of one part may take. It may have to read a long history that other writers have
/// added.
const SEARCH: Duration = Duration::from_secs(300);

impl Appender {
    /// Stores lines of a keyed upload, except those that an earlier attempt has stored or skipped.
    ///
    /// When the upload is stopped, it sends nothing more and only waits for what it has sent.
    pub(super) async fn append_lines(
        &self,
        mut append: Append<'_>,
        key: &IdempotencyKey,
        numbers: Vec<u64>,
        so_far: &mut Option<UploadedSoFar>,
    ) -> Appended {
        let numbers: Vec<u32> = numbers.into_iter().map_while(|number| number.try_into().ok()).collect();
        let beyond = append.items.len().saturating_sub(numbers.len());
        append.items.truncate(numbers.len());
        let mut progress = match numbers.is_empty() {
            true => AppendProgress::default(),
            false => self.append_numbered(append, key, numbers.into(), so_far).await?,
        };
        (0..beyond).for_each(|_| progress.placed.refuse(LineRefusal::BeyondNumbers));
        Ok(progress)
    }

    async fn append_numbered(
        &self,
        mut append: Append<'_>,
        key: &IdempotencyKey,
        numbers: Arc<[u32]>,
        so_far: &mut Option<UploadedSoFar>,
    ) -> Appended {
        let (owner, definition) = (append.owner.clone(), &self.parts.source.definition);
        let stop = append.waiting.as_ref().map(|waiting| waiting.stop.clone()).unwrap_or_default();
        let id = RecordId::new(definition, &owner, key);
        let registered = self.keep_record(&owner, id, append.arrived, so_far, &stop).await;
        let registered = registered.map_err(AppendError::nothing)?;
        let Some(begun) = so_far else {
            return Err(AppendError::nothing(AppendCause::OutcomeUnknown));
        };
        let items = append.take_dated(begun.date);
        let tag = Tag::new(definition, &owner, key);
        let mut search = KeySearch::of_lines(tag, numbers, Arc::clone(&items), begun.looked);
        if !begun.at_end {
            let of = self.parts.source.of(&owner, Deadline::within(SEARCH));
            let searched = stop.run_until_cancelled(search_to_end(of, id, &mut search)).await;
            searched.unwrap_or_else(|| Err(stopped())).map_err(AppendError::nothing)?;
            if search.is_over() {
                begun.looked = search.looked();
                return Ok(AppendProgress { placed: search.placed, ..AppendProgress::default() });
            }
            begun.at_end = true;
        }
        // Without room nothing was sent: the next attempt need not search.
        let rest = weight(items[search.placed.count..].iter().map(Item::size));
        let reserved = match self.reserve(&mut append, rest).await {
            Ok(reserved) => reserved,
            Err(cause) => return Err(AppendError::after(search.placed, 0, cause)),
        };
        let arrived = append.arrived;
        let keyed = Some(Keyed { id, stored: false, registered });
        let answer = self.enqueue(append, items, search, keyed, reserved).await;
        match &answer {
            Ok(progress) => begun.looked = progress.looked,
            // Lines with an unknown outcome may be stored: the next search must look for them.
            Err(_) => begun.at_end = false,
        }
        // An error here does not change the answer. The next part tries to touch the record again.
        let _ = self.keep_record(&owner, id, arrived, so_far, &stop).await;
        answer
    }

    /// Creates the record of an upload that begins, or touches the record when that is due. Returns the
    /// registered record if the upload begins here.
    async fn keep_record(
        &self,
        owner: &OwnerId,
        id: RecordId,
        now: Instant,
        so_far: &mut Option<UploadedSoFar>,
        stop: &CancellationToken,
    ) -> Result<Option<Registered>, AppendCause> {
        let time = &self.parts.source.reads.time;
        // The server's clock decides, because this machine's clock stops while the machine sleeps. A
        // standalone server reports no time; nothing is promised there.
        let since = |begun: &UploadedSoFar| Some(time.clock()? - begun.touched?);
        let is_due = |begun: &UploadedSoFar| since(begun).is_some_and(|millis| millis > in_millis(TOUCH));
        if so_far.as_ref().is_some_and(|begun| !is_due(begun)) {
            return Ok(None);
        }
        let (from, date) = so_far.as_ref().map_or((0, now), |begun| (begun.from, begun.date));
        let proposed = Record { from, fingerprint: Fingerprint::of_upload(), date, outcome: None };
        let registering = self.register(owner, id, proposed, so_far.is_some(), Deadline::within(COMMAND));
        let registered = stop.run_until_cancelled(registering).await.unwrap_or_else(|| Err(stopped()))?;
        if registered.record.fingerprint != Fingerprint::of_upload() {
            return Err(AppendCause::KeyReused);
        }
        let touched = time.clock();
        if let Some(begun) = so_far {
            begun.touched = touched;
            return Ok(None);
        }
        let (date, from) = (registered.record.date, registered.record.from);
        *so_far = Some(UploadedSoFar { date, from, looked: from, at_end: registered.is_new, touched });
        Ok(Some(registered))
    }
}
