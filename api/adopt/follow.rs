//! An adoption from its start to its end: copy, then follow.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::bson::{Bson, Document, RawDocumentBuf, Timestamp, serialize_to_document};
use mongodb::change_stream::ChangeStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::copy;
use super::events::{Change, changes, same_id, time};
use super::item::Reader;
use super::mark::{Marker, Patience};
use super::pipeline::{Place, of_ids};
use super::rejects::{self, Rejects};
use super::rows::{self, Part, found};
use super::source::{Source, SourceError};
use super::store_rows::Storing;
use super::told::{Counts, Lag, Told};
use crate::domain::Clock;
use crate::ingest::{End, Report};
use crate::store::Error;
use crate::store::adoptions::{Adoption, Adoptions};
use crate::store::history::Engine;

/// Changes that are stored together.
const ROUND: usize = 5_000;

/// How long a change waits for others.
const LONGEST: Duration = Duration::from_millis(500);

/// How often a resume token is stored while nothing happens.
const IDLE: Duration = Duration::from_secs(10);

/// How long a round that is under way goes on after a signal.
const GRACE: Duration = Duration::from_secs(5);

/// How long a source may fail without giving anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// How an adoption ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// What became of the items.
    pub counts: Counts,
    /// The report of the copy, if there was one.
    pub report: Option<Report>,
    /// How long the copy took.
    pub took: Duration,
}

/// Why an adoption stopped.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// The source.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The database of the histories.
    #[error(transparent)]
    Store(#[from] Error),
    /// The file of refused items.
    #[error("the file of refused items: {0}")]
    Rejects(io::Error),
    /// Items that were followed are not stored.
    #[error("the changes of the source are not stored: {0}")]
    Follow(String),
}

/// Copies the source, and follows it if `follows`, until the first message from `interrupts`.
///
/// # Errors
/// Why it stopped; run again, it goes on.
#[expect(clippy::too_many_arguments, reason = "each is another thing")]
pub async fn adopt<T: Told>(
    source: &Arc<Source>,
    reader: &Arc<Reader>,
    engine: &Engine,
    adoptions: &Adoptions,
    rejects: Option<Rejects>,
    follows: bool,
    interrupts: &mut mpsc::Receiver<()>,
    told: &mut T,
) -> Result<Ended, Stop> {
    let history = engine.definition().name.to_string();
    let adoption = adoptions.start(&history, &reader.source, reader.parameters()).await?;
    let marker = Marker::new(engine, adoption.runs == 1);
    let storing = Storing { engine: engine.clone(), told, rejects, counts: Counts::default() };
    let mut work = Work { source, reader, adoptions, history, adoption, storing, marker };
    if !follows {
        let began = Instant::now();
        let report = Some(work.copy(interrupts).await?);
        return Ok(Ended { counts: work.storing.counts, report, took: began.elapsed() });
    }
    let mut ended = Ended::default();
    loop {
        let stream = work.open().await?;
        if !work.adoption.copied {
            let began = Instant::now();
            let report = work.copy(interrupts).await?;
            let (complete, signalled) = (report.end.is_none(), report.signalled);
            (ended.report, ended.took) = (Some(report), began.elapsed());
            if complete {
                (work.adoption.copied, work.adoption.followed) = (true, true);
                work.note().await?;
            }
            if !complete || signalled {
                break;
            }
        }
        match work.follow(stream, interrupts).await {
            Ok(()) => break,
            Err(Stop::Source(SourceError::Expired)) => work.begin_again(),
            Err(stop) => return Err(stop),
        }
    }
    Ok(Ended { counts: work.storing.counts, ..ended })
}

/// Adopts the items of a file of rejects.
///
/// # Errors
/// Why it stopped; run again, it goes on.
pub async fn adopt_rejects<T: Told>(
    file: &Path,
    reader: &Reader,
    engine: &Engine,
    rejects: Option<Rejects>,
    interrupts: &mut mpsc::Receiver<()>,
    told: &mut T,
) -> Result<Ended, Stop> {
    const LINES: usize = 1_000;
    let mut storing = Storing { engine: engine.clone(), told, rejects, counts: Counts::default() };
    let (send, parts) = mpsc::channel(4);
    let mut lines = rejects::read(file, reader).map_err(Stop::Rejects)?;
    let feed = async move {
        loop {
            // The lines before a wrong one are stored.
            let mut wrong = None;
            let read =
                lines.by_ref().take(LINES).map_while(|line| line.map_err(|why| wrong = Some(why)).ok());
            let batch: Vec<Part> = read.collect();
            let ended = batch.is_empty() || wrong.is_some();
            if send.send(Ok(batch)).await.is_err() {
                return;
            }
            if let Some(why) = wrong {
                drop(send.send(Err(SourceError::Shape(why.to_string()))).await);
            }
            if ended {
                return;
            }
        }
    };
    let (rows, began) = (copy::rows(parts, Marker::new(engine, false)), Instant::now());
    let (report, ()) = tokio::join!(storing.store(rows, interrupts), feed);
    storing.flush()?;
    Ok(Ended { counts: storing.counts, report: Some(report), took: began.elapsed() })
}

struct Work<'a, T> {
    source: &'a Arc<Source>,
    reader: &'a Arc<Reader>,
    adoptions: &'a Adoptions,
    history: String,
    adoption: Adoption,
    storing: Storing<'a, T>,
    marker: Marker,
}

impl<T: Told> Storing<'_, T> {
    fn flush(&mut self) -> Result<(), Stop> {
        self.rejects.as_mut().map_or(Ok(()), Rejects::flush).map_err(Stop::Rejects)
    }
}

impl<T: Told> Work<'_, T> {
    async fn note(&self) -> Result<(), Stop> {
        let patience = Patience::new();
        while let Err(error) = self.adoptions.note(&self.history, &self.reader.source, &self.adoption).await {
            patience.after(error).await?;
        }
        Ok(())
    }

    async fn copy(&mut self, interrupts: &mut mpsc::Receiver<()>) -> Result<Report, Stop> {
        // What was inserted before is read, also from a secondary; what is inserted later is in the change stream.
        let after = self.source.now().await?;
        let parts = rows::read(Arc::clone(self.source), Arc::clone(self.reader), after, PATIENCE);
        let rows = copy::rows(parts, self.marker.clone());
        let report = self.storing.store(rows, interrupts).await;
        self.storing.flush()?;
        // From here on some of it is stored.
        self.marker = self.marker.later();
        Ok(report)
    }

    /// Opens the change stream where the last one stopped, if it can be; otherwise everything is copied, once more.
    async fn open(&mut self) -> Result<ChangeStream<RawDocumentBuf>, Stop> {
        if let Some(token) = &self.adoption.token {
            match self.source.watch(Some(token)).await {
                Err(SourceError::Expired) => self.begin_again(),
                opened => return Ok(opened?),
            }
        }
        let stream = self.source.watch(None).await?;
        (self.adoption.token, self.adoption.copied) = (token(&stream), false);
        self.note().await?;
        Ok(stream)
    }

    fn begin_again(&mut self) {
        (self.adoption.token, self.adoption.copied) = (None, false);
        self.storing.told.line(format_args!(
            "{}: everything is copied once more, and nothing is stored twice",
            SourceError::Expired
        ));
    }

    async fn follow(
        &mut self,
        stream: ChangeStream<RawDocumentBuf>,
        interrupts: &mut mpsc::Receiver<()>,
    ) -> Result<(), Stop> {
        let stop = CancellationToken::new();
        {
            let mut rounds = pin!(self.rounds(stream, &stop));
            tokio::select! {
                ended = &mut rounds => return ended,
                Some(()) = interrupts.recv() => stop.cancel(),
            }
            // While a database is away the round does not end. Its changes are not noted: the next run stores them.
            tokio::select! {
                ended = rounds => ended?,
                _ = interrupts.recv() => {}
                () = sleep(GRACE) => {}
            }
        }
        self.storing.flush()
    }

    /// Stores changes, round by round, until `stop`.
    async fn rounds(
        &mut self,
        mut stream: ChangeStream<RawDocumentBuf>,
        stop: &CancellationToken,
    ) -> Result<(), Stop> {
        let (mut noted, mut heard) = (Instant::now(), Patience::new());
        let before = self.storing.counts.stored;
        loop {
            let at = Clock::system().now();
            let events = tokio::select! {
                events = self.next(&mut stream, &heard) => events?,
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
                self.storing.told.lag(Lag { at, seconds, events: events.len(), stored });
            }
            let goes_on = self.apply(&events, last).await?;
            if !events.is_empty() || noted.elapsed() > IDLE {
                self.adoption.token = token(&stream).or(self.adoption.token.take());
                self.note().await?;
                noted = Instant::now();
            }
            if !goes_on {
                return Err(SourceError::Invalidated.into());
            }
            heard = Patience::new();
        }
    }

    /// The next changes; none if there are no more now. After an error they are read by a new stream, from the noted token
    /// on: the old one goes on after changes that it gave before the error, which are lost.
    async fn next(
        &self,
        stream: &mut ChangeStream<RawDocumentBuf>,
        patience: &Patience,
    ) -> Result<Vec<RawDocumentBuf>, SourceError> {
        let mut gathered = gather(stream).await;
        while let Err(SourceError::Database(error)) = gathered {
            patience.after(error).await?;
            let token = self.adoption.token.as_ref().ok_or(SourceError::Expired)?;
            gathered = match self.source.watch(Some(token)).await {
                Ok(reopened) => {
                    *stream = reopened;
                    gather(stream).await
                }
                Err(error) => Err(error),
            };
        }
        gathered
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
                    self.storing.told.changed(&change);
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
        let parts: Vec<Part> = groups.into_iter().flatten().collect();
        if parts.is_empty() {
            return Ok(goes_on);
        }
        let rows = self.marker.rows(parts).await?;
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
    ) -> Result<Vec<(Vec<u8>, Vec<Part>)>, Stop> {
        let patience = Patience::new();
        loop {
            match self.read_again(ids.clone(), last).await {
                Err(SourceError::Database(error)) => {
                    patience.after(error).await.map_err(SourceError::from)?
                }
                read => return Ok(read?),
            }
        }
    }

    async fn read_again(
        &self,
        ids: Vec<Bson>,
        last: Option<Timestamp>,
    ) -> Result<Vec<(Vec<u8>, Vec<Part>)>, SourceError> {
        let pipeline = of_ids(self.reader.shape, &self.reader.owner, ids);
        let mut batches = self.source.aggregate(pipeline, last, Document::new()).await?;
        let mut read = Vec::new();
        while let Some(batch) = batches.try_next().await? {
            for document in batch.doc_slices()? {
                let document = document.map_err(mongodb::error::Error::from)?;
                let Some(document) = document.as_document() else { continue };
                let place = Place::of(self.reader.shape, &self.reader.owner, document);
                let mut parts = Vec::new();
                found(self.reader, &place, &mut parts);
                read.push((same_id(&Bson::try_from(place.id).unwrap_or(Bson::Null)), parts));
            }
        }
        Ok(read)
    }
}

/// The next changes; none if there are no more now.
async fn gather(stream: &mut ChangeStream<RawDocumentBuf>) -> Result<Vec<RawDocumentBuf>, SourceError> {
    let (mut events, began) = (Vec::new(), Instant::now());
    while events.len() < ROUND && (events.is_empty() || began.elapsed() < LONGEST) {
        match stream.next_if_any().await? {
            Some(event) => events.push(event),
            // The next call finds it again.
            None if !stream.is_alive() && events.is_empty() => return Err(SourceError::Invalidated),
            None => break,
        }
    }
    Ok(events)
}

fn token(stream: &ChangeStream<RawDocumentBuf>) -> Option<Document> {
    serialize_to_document(&stream.resume_token()?).ok()
}
