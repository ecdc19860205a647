//! Stores what is inserted into the source, round by round.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::bson::{Bson, Document, RawDocumentBuf, Timestamp};
use pagebucket_engine::Error;
use pagebucket_engine::internal::{ChangeLog, LogNews};
use pagebucket_model::domain::Clock;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::adoption::{Stop, Work};
use super::events::{Change, changes, same_id, time};
use super::shape::{SourcePlace, of_ids};
use super::source::SourceError;
use super::source_item::{SizedItem, read_place};
use super::watch::{AdoptionWatch, Lag};
use crate::ingest::{End, Phase};
use crate::patience::{OUTAGE, Patience};

/// Changes that are stored together.
const ROUND: usize = 5_000;

/// How long a change waits for others.
const LONGEST: Duration = Duration::from_millis(500);

/// How often a resume token is stored while nothing happens.
const IDLE: Duration = Duration::from_secs(10);

/// How long a round that is under way goes on after a signal.
const GRACE: Duration = Duration::from_secs(5);

impl<T: AdoptionWatch> Work<'_, T> {
    /// Stores the changes of a log, until the first message from `interrupts`.
    pub(crate) async fn follow(
        &mut self,
        log: ChangeLog,
        interrupts: &mut mpsc::Receiver<Phase>,
    ) -> Result<(), Stop> {
        let stop = CancellationToken::new();
        {
            let mut rounds = pin!(self.rounds(log, &stop));
            tokio::select! {
                ended = &mut rounds => return ended,
                Some(_) = interrupts.recv() => stop.cancel(),
            }
            tracing::info!("stopping: no more changes are read, and those that were read are stored");
            // While a database is away the round does not end. Its changes are not noted: the next run stores
            // them.
            tokio::select! {
                ended = rounds => ended?,
                _ = interrupts.recv() => {}
                () = sleep(GRACE) => {}
            }
        }
        self.storing.flush()
    }

    /// Stores changes, round by round, until `stop`.
    async fn rounds(&mut self, mut log: ChangeLog, stop: &CancellationToken) -> Result<(), Stop> {
        let (mut noted, mut heard) = (Instant::now(), Patience::of(OUTAGE));
        let before = self.storing.counts.stored;
        loop {
            let at = Clock::system().now();
            let events = tokio::select! {
                events = next(&mut log, &heard) => events?,
                () = stop.cancelled() => return Ok(()),
            };
            let last = events.iter().filter_map(|event| time(event)).max();
            let seconds = match events.iter().filter_map(|event| time(event)).min() {
                None => Some(0),
                // While the source is away the lag is not known.
                Some(first) => {
                    let now = self.source.now().await.ok().flatten();
                    now.map(|now| now.time.saturating_sub(first.time))
                }
            };
            let stored = self.storing.counts.stored - before;
            if let Some(seconds) = seconds {
                self.storing.watch.lag(Lag { at, seconds, events: events.len(), stored });
            }
            let goes_on = self.apply(&events, last).await?;
            if !events.is_empty() || noted.elapsed() > IDLE {
                self.adoption.token = log.place().cloned().or(self.adoption.token.take());
                self.note().await?;
                noted = Instant::now();
            }
            if !goes_on {
                return Err(SourceError::Invalidated.into());
            }
            heard.renew();
        }
    }

    /// Stores what these changes have added. Returns false if nothing comes after them.
    async fn apply(&mut self, events: &[RawDocumentBuf], last: Option<Timestamp>) -> Result<bool, Stop> {
        let (mut groups, mut grown, mut goes_on) = (Vec::new(), Vec::new(), true);
        let mut places = HashMap::new();
        for change in events.iter().flat_map(|event| changes(self.reader, event)) {
            match change {
                Change::Items(parts) => groups.push(parts),
                Change::Grown(id) => {
                    if let Entry::Vacant(place) = places.entry(same_id(&id)) {
                        place.insert(groups.len());
                        groups.push(Vec::new());
                        grown.push(id);
                    }
                }
                Change::Changed(change) => {
                    self.storing.counts.changed += 1;
                    self.storing.watch.changed(&change);
                }
                Change::Invalidated => goes_on = false,
            }
        }
        if !grown.is_empty() {
            for (id, part) in self.grown(grown, last).await? {
                if let Some(place) = places.get(&id) {
                    groups[*place].extend(part);
                }
            }
        }
        let parts: Vec<SizedItem> = groups.into_iter().flatten().collect();
        if parts.is_empty() {
            return Ok(goes_on);
        }
        let rows = self.identifier.rows(parts).await?;
        let (send, incoming) = mpsc::channel(1);
        let (_open, mut interrupts) = mpsc::channel(1);
        let feed = async move { drop(send.send(Ok(rows)).await) };
        let (report, ()) = tokio::join!(self.storing.store(incoming, &mut interrupts), feed);
        self.storing.flush()?;
        match report.end {
            None => Ok(goes_on),
            Some(End::Database(cause)) => Err(Stop::Follow(cause.to_string())),
            Some(other) => Err(Stop::Follow(format!("{other:?}"))),
        }
    }

    /// The items of these documents as they are at `last` or later.
    async fn grown(
        &self,
        ids: Vec<Bson>,
        last: Option<Timestamp>,
    ) -> Result<Vec<(Vec<u8>, Vec<SizedItem>)>, Stop> {
        let patience = Patience::of(OUTAGE);
        loop {
            match self.read_again(ids.clone(), last).await {
                Err(SourceError::Database(error)) => {
                    patience.after(error).await.map_err(SourceError::from)?;
                }
                read => return Ok(read?),
            }
        }
    }

    async fn read_again(
        &self,
        ids: Vec<Bson>,
        last: Option<Timestamp>,
    ) -> Result<Vec<(Vec<u8>, Vec<SizedItem>)>, SourceError> {
        let pipeline = of_ids(self.reader.shape, &self.reader.owner, ids);
        let mut batches = self.source.aggregate(pipeline, last, Document::new()).await?;
        let mut read = Vec::new();
        while let Some(batch) = batches.try_next().await? {
            for document in batch.doc_slices()? {
                let document = document.map_err(mongodb::error::Error::from)?;
                let Some(document) = document.as_document() else { continue };
                let place = SourcePlace::of(self.reader.shape, &self.reader.owner, document);
                let mut parts = Vec::new();
                read_place(self.reader, &place, &mut parts);
                read.push((same_id(&Bson::try_from(place.id).unwrap_or(Bson::Null)), parts));
            }
        }
        Ok(read)
    }
}

/// The next changes; none if there are no more now.
async fn next(log: &mut ChangeLog, patience: &Patience) -> Result<Vec<RawDocumentBuf>, SourceError> {
    let (mut events, began) = (Vec::new(), Instant::now());
    while events.len() < ROUND && (events.is_empty() || began.elapsed() < LONGEST) {
        match log.next().await {
            Ok(LogNews::Changes(changes)) => events.extend(changes),
            Ok(LogNews::Opened { resumed: true }) => {}
            Ok(LogNews::Quiet) => break,
            Ok(LogNews::Ended) if events.is_empty() => return Err(SourceError::Invalidated),
            // The last of the changes says it, too.
            Ok(LogNews::Ended) => break,
            // What was gathered is copied with all else.
            Ok(LogNews::PlaceLost | LogNews::Opened { resumed: false }) => return Err(SourceError::Expired),
            Ok(LogNews::Refused(why)) => return Err(Error::internal(why).into()),
            Err(error) => patience.after(error).await?,
        }
    }
    Ok(events)
}
