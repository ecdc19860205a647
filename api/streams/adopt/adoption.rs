//! An adoption from its start to its end: copy, then follow.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pagebucket_engine::internal::adoptions::{Adoption, Adoptions};
use pagebucket_engine::internal::{ChangeLog, LogNews};
use pagebucket_engine::{Engine, Error};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::identify::{self, RowIdentifier};
use super::item::DocumentReader;
use super::rejects::{self, Rejects};
use super::rows;
use super::source::{Source, SourceError};
use super::source_item::SizedItem;
use super::store_rows::Storing;
use super::watch::{AdoptionCounts, AdoptionWatch};
use crate::ingest::{End, Phase, Report};
use crate::patience::{OUTAGE, Patience};

/// How an adoption ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// What became of the items.
    pub counts: AdoptionCounts,
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

/// What is adopted, and how.
#[derive(Debug)]
pub struct Adopting<'a> {
    /// The collection.
    pub source: &'a Arc<Source>,
    /// How its documents become items.
    pub reader: &'a Arc<DocumentReader>,
    /// The histories that they go to.
    pub engine: &'a Engine,
    /// What the database remembers of adoptions.
    pub adoptions: &'a Adoptions,
    /// Where refused items go.
    pub rejects: Option<Rejects>,
    /// Whether what is inserted meanwhile is stored, too, until an interrupt.
    pub follows: bool,
}

/// Adopts, until the first message from `interrupts`.
///
/// # Errors
/// Why it stopped; run again, it goes on.
pub async fn adopt<T: AdoptionWatch>(
    adopting: Adopting<'_>,
    interrupts: &mut mpsc::Receiver<Phase>,
    watch: &mut T,
) -> Result<Ended, Stop> {
    let Adopting { source, reader, engine, adoptions, rejects, follows } = adopting;
    if follows {
        source.can_be_followed()?;
    }
    if !source.has_unique_ids() {
        watch.line(format_args!(
            "the source is read once before anything is stored, to see that each `_id` is unique"
        ));
        tokio::select! {
            identified = rows::identify(source, reader) => identified?,
            Some(_) = interrupts.recv() => {
                let report = Report { end: Some(End::Interrupted), ..Report::default() };
                return Ok(Ended { report: Some(report), ..Ended::default() });
            }
        }
    }
    let history = engine.definition().name.to_string();
    let adoption = adoptions.start(&history, &reader.source, reader.parameters()).await?;
    let identifier = RowIdentifier::new(engine, adoption.runs == 1);
    let storing = Storing { engine: engine.clone(), watch, rejects, counts: AdoptionCounts::default() };
    let mut work = Work { source, reader, adoptions, history, adoption, storing, identifier };
    if !follows {
        let began = Instant::now();
        let report = Some(work.copy(interrupts).await?);
        return Ok(Ended { counts: work.storing.counts, report, took: began.elapsed() });
    }
    let mut ended = Ended::default();
    loop {
        let log = work.open().await?;
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
        match work.follow(log, interrupts).await {
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
pub async fn adopt_rejects<T: AdoptionWatch>(
    file: &Path,
    reader: &DocumentReader,
    engine: &Engine,
    rejects: Option<Rejects>,
    interrupts: &mut mpsc::Receiver<Phase>,
    watch: &mut T,
) -> Result<Ended, Stop> {
    const LINES: usize = 1_000;
    let mut storing = Storing { engine: engine.clone(), watch, rejects, counts: AdoptionCounts::default() };
    let (send, parts) = mpsc::channel(4);
    let mut lines = rejects::read(file, reader).map_err(Stop::Rejects)?;
    let feed = async move {
        loop {
            // The lines before a wrong one are stored.
            let mut wrong = None;
            let read =
                lines.by_ref().take(LINES).map_while(|line| line.map_err(|why| wrong = Some(why)).ok());
            let batch: Vec<SizedItem> = read.collect();
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
    let (rows, began) = (identify::rows(parts, RowIdentifier::new(engine, false)), Instant::now());
    let (report, ()) = tokio::join!(storing.store(rows, interrupts), feed);
    storing.flush()?;
    Ok(Ended { counts: storing.counts, report: Some(report), took: began.elapsed() })
}

/// An adoption that is under way.
pub(crate) struct Work<'a, T> {
    pub(crate) source: &'a Arc<Source>,
    pub(crate) reader: &'a Arc<DocumentReader>,
    adoptions: &'a Adoptions,
    history: String,
    pub(crate) adoption: Adoption,
    pub(crate) storing: Storing<'a, T>,
    pub(crate) identifier: RowIdentifier,
}

impl<T: AdoptionWatch> Storing<'_, T> {
    pub(crate) fn flush(&mut self) -> Result<(), Stop> {
        self.rejects.as_mut().map_or(Ok(()), Rejects::flush).map_err(Stop::Rejects)
    }
}

impl<T: AdoptionWatch> Work<'_, T> {
    pub(crate) async fn note(&self) -> Result<(), Stop> {
        let patience = Patience::of(OUTAGE);
        while let Err(error) = self.adoptions.note(&self.history, &self.reader.source, &self.adoption).await {
            patience.after(error).await?;
        }
        Ok(())
    }

    async fn copy(&mut self, interrupts: &mut mpsc::Receiver<Phase>) -> Result<Report, Stop> {
        // What was inserted before is read, also from a secondary; what is inserted later is in the change
        // stream.
        let after = self.source.now().await?;
        let parts = rows::read(Arc::clone(self.source), Arc::clone(self.reader), after, OUTAGE);
        let rows = identify::rows(parts, self.identifier.clone());
        let report = self.storing.store(rows, interrupts).await;
        self.storing.flush()?;
        // From here on some of it is stored.
        self.identifier = self.identifier.later();
        Ok(report)
    }

    /// Opens the change stream where the last one stopped, if it can be; otherwise everything is copied, once
    /// more.
    async fn open(&mut self) -> Result<ChangeLog, Stop> {
        let mut log = self.source.changes(self.adoption.token.as_ref());
        loop {
            match log.next().await.map_err(SourceError::from)? {
                LogNews::Opened { resumed: true } => return Ok(log),
                LogNews::Opened { resumed: false } => break,
                LogNews::PlaceLost => self.begin_again(),
                LogNews::Refused(why) => return Err(SourceError::from(Error::internal(why)).into()),
                LogNews::Ended => return Err(SourceError::Invalidated.into()),
                LogNews::Changes(_) | LogNews::Quiet => {}
            }
        }
        (self.adoption.token, self.adoption.copied) = (log.place().cloned(), false);
        self.note().await?;
        Ok(log)
    }

    fn begin_again(&mut self) {
        (self.adoption.token, self.adoption.copied) = (None, false);
        self.storing.watch.line(format_args!(
            "{}: everything is copied once more, and nothing is stored twice",
            SourceError::Expired
        ));
    }
}
