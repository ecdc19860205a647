//! Keyed uploads: any number of lines, appended in parts; [`super::dedup`] says why each line is stored once.
//!
//! The record is that of any keyed request, with one fingerprint for all uploads: what an upload asks for
//! is not known before its end. It is touched now and then while the upload goes on, and made again from what the
//! upload knows of it where it has expired: the machine may have slept meanwhile.
//!
//! Each part begins its search where that of the part before has ended, so that an upload sent again
//! reads what it has stored once. At the end of the history it needs no search any more, but for what
//! others add, which committers look at.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::append_once::register_key;
use super::dedup::{
    Fingerprint, LineRefusal, LineSearch, NumberedTrade, Placed, Record, RecordId, Registered, Search, Tag,
};
use super::engine::Trades;
use super::outcome::Cause;
use super::request::{Answered, Keyed, Request};
use super::upload_quota::{Waiting, stopped};
use crate::domain::{CustomerId, IdempotencyKey, Instant, Seq, Totals, TradeDraft};
use crate::store::group_commit::Ticket;
use crate::store::{COMMAND, Deadline, Error};

/// The record is touched this often: far more often than it could expire.
const TOUCH: Duration = Duration::from_secs(300);

/// How long the search of one part may take: it may have to read a long history that others have written.
const SEARCH: Duration = Duration::from_secs(300);

/// What an upload has come to in one history. Holds no trades.
#[derive(Debug)]
pub struct UploadedSoFar {
    customer: CustomerId,
    key: IdempotencyKey,
    begun: Option<Begun>,
}

#[derive(Debug)]
struct Begun {
    /// Of lines that have none.
    date: Instant,
    /// None of the upload's lines is at or before this `seq`.
    from: u64,
    /// Lines that were not asked for yet are behind this `seq`, where they are.
    looked: u64,
    /// Whether the end of the history was met.
    at_end: bool,
    /// When the record was touched, in milliseconds of the server's clock, where it tells the time.
    touched: Option<i64>,
}

/// What became of some lines.
#[derive(Debug)]
pub struct AppendedLines {
    /// Of the first lines, each: where it is, now or since an earlier attempt, or why it is not.
    pub ends: Vec<Result<Seq, LineRefusal>>,
    /// What the history held right after the last of them, if some were stored now.
    pub totals: Option<Totals>,
    /// Why it went no further: how many of the next lines may or may not be stored, and the cause.
    pub failed: Option<(usize, Cause)>,
}

impl AppendedLines {
    fn failed(cause: impl Into<Cause>) -> Self {
        Self { ends: Vec::new(), totals: None, failed: Some((0, cause.into())) }
    }
}

impl UploadedSoFar {
    /// Of an upload that has not begun in this history.
    pub fn nothing(customer: CustomerId, key: IdempotencyKey) -> Self {
        Self { customer, key, begun: None }
    }
}

impl Trades {
    /// Stores lines of a keyed upload at the end of a history, but for those that an earlier attempt has
    /// stored or passed by. Their numbers ascend, also from call to call; at least one line. `now` is when
    /// the upload came.
    ///
    /// After a failure the lines that have no end may be given again, also where the outcome is unknown.
    /// It waits for room in the queue; at most [`Trades::most_of_an_upload`] lines. When it is told to stop it
    /// sends nothing any more, and only waits for what it has sent.
    pub async fn append_lines(
        &self,
        so_far: &mut UploadedSoFar,
        lines: impl IntoIterator<Item = (u64, TradeDraft)>,
        now: Instant,
        waiting: &mut Waiting,
    ) -> AppendedLines {
        let mut lines: Vec<_> = lines.into_iter().collect();
        let beyond = lines.partition_point(|(number, _)| *number <= u64::from(u32::MAX));
        let beyond = lines.split_off(beyond).len();
        let mut appended = match lines.is_empty() {
            true => AppendedLines { ends: Vec::new(), totals: None, failed: None },
            false => self.append_numbered(so_far, lines, now, waiting).await,
        };
        if appended.failed.is_none() {
            appended.ends.extend((0..beyond).map(|_| Err(LineRefusal::BeyondNumbers)));
        }
        appended
    }

    async fn append_numbered(
        &self,
        so_far: &mut UploadedSoFar,
        lines: Vec<(u64, TradeDraft)>,
        now: Instant,
        waiting: &mut Waiting,
    ) -> AppendedLines {
        let (customer, id) = (so_far.customer, RecordId::new(so_far.customer, &so_far.key));
        let registered = match self.keep_record(so_far, now, &waiting.stop).await {
            Ok(registered) => registered,
            Err(cause) => return AppendedLines::failed(cause),
        };
        let (begins, inserted) = match registered {
            Some(Registered::New { record, inserted }) => (record.from == 0, inserted),
            Some(Registered::Found(_)) | None => (false, None),
        };
        let Some(begun) = &mut so_far.begun else { return AppendedLines::failed(Cause::OutcomeUnknown) };
        let numbered = |(number, draft): (u64, TradeDraft)| NumberedTrade {
            number: u32::try_from(number).unwrap_or(u32::MAX),
            trade: draft.dated(begun.date),
        };
        let lines: Arc<[NumberedTrade]> = lines.into_iter().map(numbered).collect();
        let search = LineSearch::new(Tag::new(customer, &so_far.key), Arc::clone(&lines), begun.looked);
        let (mut search, mut placed) = (Search::Lines(search), Placed::default());
        if !begun.at_end {
            let searching = self.find(customer, id, search, Deadline::within(SEARCH));
            (search, placed) = match unless(&waiting.stop, searching).await {
                Ok(found) => found,
                Err(error) => return AppendedLines::failed(error),
            };
            if search.is_over(&placed) {
                begun.looked = search.looked();
                return AppendedLines { ends: ends(&placed), totals: None, failed: None };
            }
            begun.at_end = true;
        }
        let room = match self.room_of_an_upload(customer, lines.len() - placed.count, waiting).await {
            Ok(room) => room,
            Err(cause) => {
                return AppendedLines { failed: Some((0, cause)), totals: None, ends: ends(&placed) };
            }
        };
        let trades = lines.iter().map(|line| line.trade.clone()).collect();
        let keyed = Keyed { id, search, stored: false, begins, inserted };
        let (ticket, pending) = Ticket::new(Deadline::within(COMMAND), room);
        let request = Request::keyed(customer, trades, placed, keyed, ticket);
        let Answered { placed, looked, stored, failed } = self.enqueue(request, pending).await;
        if failed.is_none() {
            begun.looked = looked;
        } else {
            // What was appended, perhaps, is to be found.
            begun.at_end = false;
        }
        // What is stored is answered in any case. The next part tries to touch the record again.
        let _ = self.keep_record(so_far, now, &waiting.stop).await;
        let last = placed.ranges.last().map(|range| range.last).filter(|_| stored);
        let totals = last.map(|last| Totals::ending_with(Some(last)));
        AppendedLines { ends: ends(&placed), totals, failed }
    }

    /// Makes the record of an upload that begins, or touches it when that is due. What it was found to be, where
    /// the upload begins.
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
        let id = RecordId::new(so_far.customer, &so_far.key);
        let keeps = so_far.begun.is_some();
        let registering = register_key(self, so_far.customer, id, proposed, keeps, Deadline::within(COMMAND));
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
    /// Whether the record is to be touched. The server's clock decides: this machine's stops while it sleeps. A
    /// standalone server tells no time, and keeps no promise.
    fn is_due(&self, now: Option<i64>) -> bool {
        let since = |(touched, now): (i64, i64)| now - touched > TOUCH.as_millis() as i64;
        self.touched.zip(now).is_some_and(since)
    }
}

/// What stores no trade may be cut off.
async fn unless<T>(
    stop: &CancellationToken,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::select! {
        done = work => done,
        () = stop.cancelled() => Err(stopped()),
    }
}

fn ends(placed: &Placed) -> Vec<Result<Seq, LineRefusal>> {
    let each = |range: &crate::domain::SeqRange| {
        let first = range.first;
        (0..range.count() as usize).map(move |index| first.plus(index))
    };
    placed.ends(placed.ranges.iter().flat_map(each)).collect()
}
