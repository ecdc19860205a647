//! Compares a native time series with the pages of its history: counts and sums, by days and groups of the
//! metaField.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::doc;
use mongodb::bson::raw::RawDocument;
use pagebucket_model::domain::{Instant, Limit, OwnerId, PageNumber, Seq, SeqRange};
use pagebucket_model::summary::{
    Aggregate, GroupKey, PartialSummary, SpanLength, Spans, SummaryShape, TimeSpan, Zone,
};
use parking_lot::Mutex;
use tokio::time::sleep;

use super::control::Series;
use super::snapshot::SeriesSnapshot;
use crate::mongo::{Deadline, Error, Result};
use crate::store::buckets::document::Bucket;
use crate::store::buckets::tails::Tails;
use crate::store::collection::HistoryCollection;
use crate::store::reads::owners::owner_ids;

/// How long a feeder may take until it has what was read.
const PATIENCE: Duration = Duration::from_secs(60);

const LOOK: Duration = Duration::from_millis(500);

const MILLIS_OF_DAY: i64 = 86_400_000;

/// What is compared.
struct ComparedPages {
    /// What the pages add up to.
    pages: PartialSummary,
    /// Which items of them were read.
    owners: HashMap<OwnerId, SeqRange>,
}

impl Series {
    /// A line for each day and group in which the time series has other items than the pages. `read` is told
    /// how many pages each command has read, and may wait. Each command may take `within`, but the time
    /// series itself is read by one, which may take an hour.
    ///
    /// # Errors
    /// The database does not answer in time, no instance feeds the time series, or owners were erased
    /// meanwhile.
    pub async fn check(&self, within: Duration, read: &mut impl AsyncFnMut(u64)) -> Result<Vec<String>> {
        let source = &*self.source;
        let Some(series) = &source.definition.time_series else { return Ok(Vec::new()) };
        let values = source.definition.summaries.as_ref().map(|summaries| summaries.values.clone());
        let shape = Arc::new(SummaryShape {
            spans: Spans { length: SpanLength::parse("1d").expect("a length"), zone: Zone::UTC },
            groups: series.meta.clone(),
            values: values.unwrap_or_default(),
        });
        let before = SeriesSnapshot::take(source, Deadline::within(within)).await?;
        let pages = PartialSummary::new(Arc::clone(&shape));
        let mut compared = ComparedPages { pages, owners: HashMap::new() };
        let mut after = None;
        loop {
            let step = Deadline::within(within);
            let (owners, next) = owner_ids(source, after, Limit::MOST, step).await?;
            let tails = Tails::read(source, &owners, None, step).await;
            for owner in &owners {
                match tails.of(owner) {
                    Ok(Some(tail)) => {
                        compared.read_pages(source, owner, tail.last_seq(), within, read).await?;
                    }
                    // Erased, or a finding by itself.
                    Ok(None) | Err(Error::Gone(_) | Error::Corrupt(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            after = next;
            if after.is_none() {
                break;
            }
        }
        let snapshot = until_fed(source, within).await?;
        let ComparedPages { pages, owners } = compared;
        let measured = Arc::new(Mutex::new((PartialSummary::new(Arc::clone(&shape)), BTreeSet::new())));
        let adding = Arc::clone(&measured);
        let owners = Arc::new(owners);
        let take = move |owner: OwnerId, seq: Seq, date: Instant, document: &RawDocument| {
            let (summary, strangers) = &mut *adding.lock();
            match owners.get(&owner) {
                Some(read) if read.contains(seq) => summary.add(seq, date, document),
                // Retired, or later than what was read.
                Some(_) => {}
                None => drop(strangers.insert(owner)),
            }
            true
        };
        let long = Deadline::within(Duration::from_secs(3600));
        snapshot.read(&shape, doc! {}, take, long).await?;
        // Also of pages that were read before.
        if !before.still_counts(Deadline::within(within)).await? {
            let sentence = "owners were erased, or copied, while the time series was compared";
            return Err(Error::unavailable(sentence.to_owned()));
        }
        let measured = measured.lock().clone();
        let (measured, strangers) = measured;
        let mut found = strange(source, strangers, within).await?;
        let now = source.server_time(Deadline::within(within)).await?;
        let horizon = snapshot.expire_after_days.map_or(i64::MIN, |days| now - (days - 1) * MILLIS_OF_DAY);
        found.extend(differences(&pages, &measured, &shape, horizon));
        Ok(found)
    }
}

impl ComparedPages {
    async fn read_pages(
        &mut self,
        source: &HistoryCollection,
        owner: &OwnerId,
        last: Seq,
        within: Duration,
        read: &mut impl AsyncFnMut(u64),
    ) -> Result<()> {
        let (mut from, mut first) = (PageNumber::FIRST, None);
        loop {
            let of = source.of(owner, Deadline::within(within));
            let condition = doc! { "page": { "$gte": from }, "since": { "$exists": false } };
            let most = source.most_buckets().min(1_000);
            let command = of.at_most(condition, most);
            let (definition, id) = (source.definition.clone(), owner.clone());
            let bucket = move |bucket: &RawDocument| Ok(Bucket::read(bucket, &id, &definition)?);
            let buckets = of.find(command, bucket).await?;
            for bucket in &buckets {
                for item in bucket.items().filter(|item| item.seq <= last) {
                    first.get_or_insert(item.seq);
                    self.pages.add(item.seq, item.date(), item.document());
                }
                from = bucket.page().next();
            }
            read(buckets.len() as u64).await;
            if buckets.len() < most {
                break;
            }
        }
        if let Some(first) = first {
            self.owners.insert(owner.clone(), SeqRange { first, last });
        }
        Ok(())
    }
}

/// Waits until the feeder has all that was acknowledged before.
async fn until_fed(source: &HistoryCollection, within: Duration) -> Result<SeriesSnapshot<'_>> {
    let now = source.server_time(Deadline::within(within)).await?;
    let patience = Deadline::within(PATIENCE);
    loop {
        let snapshot = SeriesSnapshot::take(source, Deadline::within(within)).await?;
        if snapshot.up_to.is_some_and(|up_to| up_to >= now) {
            return Ok(snapshot);
        }
        if patience.passed() {
            let sentence =
                "the time series is behind, and is compared only when it is not: does a server run?";
            return Err(Error::unavailable(sentence.to_owned()));
        }
        sleep(LOOK).await;
    }
}

/// Owners that have measurements, and no items.
async fn strange(
    source: &HistoryCollection,
    owners: BTreeSet<OwnerId>,
    within: Duration,
) -> Result<Vec<String>> {
    let (owners, mut found) = (Vec::from_iter(owners), Vec::new());
    Tails::read_each(source, &owners, within, |owner, tail| {
        match tail {
            Err(error @ Error::Unavailable(_)) => return Err(error),
            Ok(None) | Err(Error::Gone(_)) => found.push(format!("{owner} has measurements, and no items")),
            // Its first items came meanwhile, or its tail is a finding by itself.
            _ => {}
        }
        Ok(())
    })
    .await?;
    Ok(found)
}

fn differences(
    pages: &PartialSummary,
    series: &PartialSummary,
    shape: &SummaryShape,
    horizon: i64,
) -> Vec<String> {
    let points = |summary: &PartialSummary| -> BTreeMap<(TimeSpan, GroupKey), Aggregate> {
        let of_span = |(span, groups): (TimeSpan, &BTreeMap<GroupKey, Aggregate>)| {
            let points = groups.iter().map(move |(group, one)| ((span, group.clone()), one.clone()));
            points.collect::<Vec<_>>()
        };
        summary.spans().filter(|(span, _)| span.start >= horizon).flat_map(of_span).collect()
    };
    let (pages, mut series) = (points(pages), points(series));
    let say = |one: Option<&Aggregate>| match one {
        None => "no items".to_owned(),
        Some(one) => {
            let mut measured = one.measured(&shape.values);
            // Of items of several owners with equal dates either may be the first or the last.
            for value in &mut measured {
                (value.open, value.close) = (None, None);
            }
            let measured = serde_json::to_string(&measured).unwrap_or_default();
            format!("{} items {measured}", one.count())
        }
    };
    let mut found = Vec::new();
    let mut compare =
        |(span, group): &(TimeSpan, GroupKey), one: Option<&Aggregate>, other: Option<&Aggregate>| {
            let (one, other) = (say(one), say(other));
            if one != other {
                let start = Instant::from_millis(span.start)
                    .map_or_else(|_| span.start.to_string(), |day| day.to_string());
                let group: Vec<_> = group.iter().map(|text| text.as_deref().unwrap_or("none")).collect();
                found.push(format!(
                    "{start} {}: the pages have {one}, the time series has {other}",
                    group.join(",")
                ));
            }
        };
    for (place, one) in &pages {
        compare(place, Some(one), series.remove(place).as_ref());
    }
    for (place, other) in &series {
        compare(place, None, Some(other));
    }
    found.sort();
    found
}
