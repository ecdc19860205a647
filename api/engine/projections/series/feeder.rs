//! The feeder: one instance at a time feeds a build from the changes of its history.
//!
//! It takes the lease under a new term, settles the batch that was announced last
//! ([`settle`](mod@super::settle)), and follows the change stream from its last place. Without a place, or
//! with one that is too old, it compares the pages of all owners with their measurements. After any failure
//! it takes the lease again, under another term, and settles again.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::oid::ObjectId;
use pagebucket_model::domain::{Limit, OwnerId};
use pagebucket_model::metric::SERIES_LAG;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::control::{Build, BuildState, Builds, FeederProgress, LEASE, Series};
use super::feeder_stream::{FeederNews, FeederStream};
use super::round::{FedTo, FeederBatch, Round, most_owners};
use super::settle::settle;
use super::unused_builds::drop_late;
use crate::mongo::values::in_millis;
use crate::mongo::{COMMAND, Deadline, NO_PRIMARY, Result, Topology};
use crate::store::collection::HistoryCollection;
use crate::store::reads::owners::owner_ids;
use crate::tasks::KeptTasks;

/// How often an instance that does not feed looks for the lease.
const LOOK: Duration = Duration::from_secs(2);

/// How long a feeder waits after a failure.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// The same at most after failures that do not pass by themselves, such as a missing privilege.
const AFTER_FAILURES: Duration = Duration::from_secs(60);

/// How late a build may be when it becomes the one that is read: its next feeder has nearly nothing left to
/// feed.
const NEAR_MILLIS: i64 = 5_000;

/// How often a feeder that has nothing to feed says how far it has come.
const SAY: Duration = Duration::from_secs(2);

impl Series {
    /// Feeds the time series as long as the handle is kept, if the definition has one. One instance at a time
    /// does it; the others wait for their turn.
    pub(crate) fn feed(&self, tasks: &KeptTasks) -> Option<AbortOnDropHandle<()>> {
        let source = Arc::clone(&self.source);
        source.definition.time_series.as_ref()?;
        Some(tasks.keep("series-feeder", move || feed_on(Arc::clone(&source))))
    }
}

async fn feed_on(source: Arc<HistoryCollection>) {
    if source.topology() == Topology::Standalone {
        tracing::error!(
            history = source.collection(),
            "a standalone server has no change streams: the time series is not fed"
        );
        return;
    }
    let holder = ObjectId::new();
    // When this instance last fed, or saw that another one does.
    let (mut fed, mut pause) = (Instant::now(), AFTER_FAILURE);
    loop {
        let began = Instant::now();
        let Err(error) = feed(&source, holder, &mut fed).await else { continue };
        tracing::warn!(history = source.collection(), %error, "the time series is not fed; this is tried again");
        report_lag(&source, in_millis(fed.elapsed()));
        let passes = fed > began || error.passes();
        pause = if passes { AFTER_FAILURE } else { (pause * 2).min(AFTER_FAILURES) };
        sleep(pause).await;
    }
}

/// Feeds the build that is read, until that is another one, or looks for a while whether the lease is free.
async fn feed(source: &Arc<HistoryCollection>, holder: ObjectId, fed: &mut Instant) -> Result<()> {
    let Some(builds) = Builds::of(source, Deadline::within(NO_PRIMARY)).await? else {
        *fed = Instant::now();
        sleep(LOOK).await;
        return Ok(());
    };
    let Some(mut feeder) = Feeder::take(Arc::clone(source), builds.current, holder).await? else {
        report_lag_of_another(builds.current(source)).await?;
        *fed = Instant::now();
        sleep(LOOK).await;
        return Ok(());
    };
    let mut looked = Instant::now();
    loop {
        feeder.go_on().await?;
        *fed = Instant::now();
        if feeder.is_idle() || looked.elapsed() >= LOOK {
            looked = Instant::now();
            let builds = Builds::of(source, Deadline::within(NO_PRIMARY)).await?;
            if builds.is_none_or(|builds| builds.current != feeder.number) {
                return feeder.end().await;
            }
        }
    }
}

/// Of an instance that does not feed: none, as long as the one that feeds says how far it has come.
async fn report_lag_of_another(build: Build<'_>) -> Result<()> {
    let state = build.state(Deadline::within(NO_PRIMARY)).await?;
    let behind = lag(build.source, state.and_then(|state| state.progress.up_to)).await?;
    report_lag(build.source, if behind > in_millis(LEASE) { behind } else { 0 });
    Ok(())
}

/// How far this moment is behind the clock of the database, in milliseconds; 0 if it is not known.
async fn lag(source: &HistoryCollection, up_to: Option<i64>) -> Result<i64> {
    let now = source.server_time(Deadline::within(NO_PRIMARY)).await?;
    Ok(up_to.map_or(0, |up_to| now - up_to))
}

fn report_lag(source: &HistoryCollection, millis: i64) {
    let history = source.collection().to_owned();
    metrics::gauge!(SERIES_LAG, "collection" => history).set(millis.max(0) as f64 / 1000.0);
}

pub(crate) struct Feeder {
    source: Arc<HistoryCollection>,
    /// The number of its build.
    number: i64,
    state: BuildState,
    stream: FeederStream,
    positions: HashMap<OwnerId, FedTo>,
    /// Owners that may have something which is not fed.
    todo: BTreeSet<OwnerId>,
    /// How far it is when there is nothing to do.
    reached: FeederProgress,
    /// How far it is.
    progress: FeederProgress,
    said: Instant,
    sweep: Instant,
    is_idle: bool,
}

impl Feeder {
    /// Takes the lease of a build; `None` if another instance has it.
    pub(crate) async fn take(
        source: Arc<HistoryCollection>,
        number: i64,
        holder: ObjectId,
    ) -> Result<Option<Self>> {
        let build = Build { source: &source, number };
        let Some(state) = build.take(holder).await? else { return Ok(None) };
        build.keeping(state.term, settle(build, state.term, &state.batch)).await?;
        let mut progress = state.progress.clone();
        // To go on from a place far behind may take long.
        report_lag(&source, lag(&source, progress.up_to).await?);
        let opening = FeederStream::open(&source, progress.place.as_ref());
        let (stream, resumed) = build.keeping(state.term, opening).await?;
        if !resumed {
            if progress.place.is_some() {
                tracing::warn!(
                    history = build.history(),
                    "a time series has lost its place in the changes: all owners are looked at"
                );
            }
            (progress.place, progress.scanned, progress.scan_after) = (None, false, None);
        }
        let todo = build.pending().await?.into_iter().collect();
        // Soon after a batch was settled, and then as often as housekeeping looks for late pages.
        let sweep = Instant::now() + source.markers.ages.tail;
        tracing::info!(history = build.history(), term = state.term, "feeds the time series");
        let now = Instant::now();
        let mut feeder = Self {
            source,
            number,
            state,
            stream,
            positions: HashMap::new(),
            todo,
            reached: progress.clone(),
            progress,
            said: now,
            sweep,
            is_idle: false,
        };
        // The batch is settled: what is announced next may name the same owners.
        feeder.say().await?;
        Ok(Some(feeder))
    }

    fn build(&self) -> Build<'_> {
        Build { source: &self.source, number: self.number }
    }

    /// Whether all is fed that there was when it looked last.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// Whether nearly all is fed, also while others append.
    pub(crate) async fn is_near(&self) -> Result<bool> {
        let now = self.source.server_time(Deadline::within(NO_PRIMARY)).await?;
        let up_to = self.reached.up_to.filter(|_| self.reached.scanned);
        Ok(up_to.is_some_and(|up_to| now - up_to < NEAR_MILLIS))
    }

    /// Feeds what there is, or waits for changes. After an error the outcome of the last batch may be
    /// unknown.
    pub(crate) async fn go_on(&mut self) -> Result<()> {
        let has_more = !self.todo.is_empty() || !self.progress.scanned;
        let news = if has_more { self.stream.now().transpose()? } else { Some(self.stream.next().await?) };
        let is_quiet = news.as_ref().is_none_or(|news| news.owners.is_empty() && !news.is_stalled);
        if let Some(news) = news {
            self.note(news);
        }
        self.scan().await?;
        while !self.todo.is_empty() {
            let owners: Vec<_> = self.todo.iter().take(most_owners(&self.source)).cloned().collect();
            self.feed(&owners).await?;
            // Rounds that find nothing keep the lease, too.
            if self.said.elapsed() >= SAY {
                self.say().await?;
            }
        }
        self.reached = self.progress.clone();
        self.is_idle = is_quiet && self.progress.scanned;
        if self.said.elapsed() >= SAY {
            self.say().await?;
        }
        let behind = if self.is_idle { 0 } else { lag(&self.source, self.reached.up_to).await? };
        report_lag(&self.source, behind);
        self.sweep_if_due().await
    }

    /// Gives the lease back, when there is nothing to do.
    pub(crate) async fn end(mut self) -> Result<()> {
        self.say().await?;
        self.build().release(self.state.term, Deadline::within(NO_PRIMARY)).await
    }

    fn note(&mut self, news: FeederNews) {
        let FeederNews { owners, everyone, is_stalled: _, place, up_to } = news;
        self.todo.extend(owners);
        if everyone {
            (self.progress.scanned, self.progress.scan_after) = (false, None);
        }
        self.progress.place = place.or(self.progress.place.take());
        if self.progress.scanned {
            self.progress.up_to = up_to.max(self.progress.up_to);
        }
    }

    /// The next of the owners that existed at the beginning.
    async fn scan(&mut self) -> Result<()> {
        if self.progress.scanned {
            return Ok(());
        }
        let after = self.progress.scan_after.clone();
        let (owners, next) = owner_ids(&self.source, after, Limit::MOST, Deadline::within(COMMAND)).await?;
        (self.progress.scanned, self.progress.scan_after) = (next.is_none(), next);
        self.todo.extend(owners);
        Ok(())
    }

    /// Feeds some owners, a bounded part of what they have.
    async fn feed(&mut self, owners: &[OwnerId]) -> Result<()> {
        let build = Build { source: &self.source, number: self.number };
        let mut round = Round { build, state: &self.state, positions: &mut self.positions };
        let FeederBatch { announced, measurements, unfinished, fed } =
            build.keeping(self.state.term, round.read(owners)).await?;
        if !announced.is_empty() {
            let raises = build.announce(self.state.term, &self.reached, &announced).await?;
            self.said = Instant::now();
            let raises = raises.ok_or_else(Build::lost)?;
            round.insert(announced, measurements).await?;
            self.look_at_raises(raises).await?;
        }
        for (owner, generation) in fed {
            self.build().fed(&owner, generation).await?;
        }
        owners.iter().filter(|owner| !unfinished.contains(*owner)).for_each(|owner| {
            self.todo.remove(owner);
        });
        Ok(())
    }

    /// Says how far it has come, and that the last batch is confirmed.
    async fn say(&mut self) -> Result<()> {
        let raises = self.build().announce(self.state.term, &self.reached, &[]).await?;
        self.said = Instant::now();
        self.look_at_raises(raises.ok_or_else(Build::lost)?).await
    }

    /// Learns of owners that were forgotten.
    async fn look_at_raises(&mut self, raises: i64) -> Result<()> {
        if raises != self.state.raises {
            let pending = self.build().pending().await?;
            self.todo.extend(pending);
            self.state.raises = raises;
            // What was read before may have come since.
            self.sweep = self.sweep.min(Instant::now() + self.source.markers.ages.tail);
        }
        Ok(())
    }

    /// Deletes what has come late and does not count, and collections of unused builds.
    async fn sweep_if_due(&mut self) -> Result<()> {
        if Instant::now() < self.sweep {
            return Ok(());
        }
        let build = self.build();
        let all = build.changed(None, Deadline::within(COMMAND)).await?.into_iter();
        let changed: Vec<_> = all.map(|(owner, generation)| (owner, generation.current)).collect();
        let delete = async {
            for part in changed.chunks(100) {
                build.delete_older(part, Deadline::within(COMMAND)).await?;
            }
            Ok(())
        };
        build.keeping(self.state.term, delete).await?;
        drop_late(&self.source).await?;
        // Also if the erasure could not write that it had raised them.
        let pending = build.pending().await?;
        self.todo.extend(pending);
        self.sweep = Instant::now() + self.source.markers.ages.late;
        Ok(())
    }
}
