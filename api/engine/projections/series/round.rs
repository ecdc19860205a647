//! One round of a feeder: what some owners have after their positions is announced and inserted.

use std::collections::{HashMap, HashSet};

use mongodb::bson::raw::{RawArrayBuf, RawBson, RawDocument, cstr};
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use pagebucket_model::domain::{OwnerId, PageNumber, Seq};
use pagebucket_model::metric::SERIES_ITEMS;

use super::control::{Announced, Build, BuildState, owned, owner};
use super::generations::is_of;
use super::measurement::measurement;
use crate::mongo::values::{int64, whole_number};
use crate::mongo::{COMMAND, Deadline, Error, Result, durable};
use crate::store::buckets::bucket_id::Tail;
use crate::store::buckets::document::Bucket;
use crate::store::buckets::tails::Tails;
use crate::store::collection::{HistoryCollection, owner_bson, owner_in, page_of};

/// The most owners of a round: their announcement is written each time.
const MOST_OWNERS: usize = 500;

/// The number of owners whose positions one command reads. It examines each of their buckets.
const POSITIONS_AT_ONCE: usize = 25;

const MOST_PAGES: usize = 2_000;

/// The most documents of an insert: a server refuses more than 100,000.
const MOST_DOCUMENTS: i64 = 100_000;

/// Bytes of measurements in one command, and one more measurement.
const MOST_BYTES: usize = 8_000_000;

/// The most positions that are remembered. They can be read again.
const MOST_POSITIONS: usize = 200_000;

/// How many owners a round may have: two pages of each fit into memory.
pub(crate) fn most_owners(source: &HistoryCollection) -> usize {
    (source.most_buckets() / 2).clamp(1, MOST_OWNERS)
}

/// How far an owner is fed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FedTo {
    /// Of this generation.
    generation: i64,
    /// The last `seq`; 0 if it has none.
    last: u64,
}

/// What a round is about.
pub(crate) struct Round<'a> {
    pub(crate) build: Build<'a>,
    pub(crate) state: &'a BuildState,
    pub(crate) positions: &'a mut HashMap<OwnerId, FedTo>,
}

/// What a round is to insert.
#[derive(Default)]
pub(crate) struct FeederBatch {
    pub(crate) announced: Vec<Announced>,
    pub(crate) measurements: Vec<RawDocumentBuf>,
    /// Owners that have more.
    pub(crate) unfinished: HashSet<OwnerId>,
    /// Owners that were forgotten and have nothing more, with their generations.
    pub(crate) fed: Vec<(OwnerId, i64)>,
}

impl Round<'_> {
    /// The last `seq` up to which an owner is fed.
    fn position(&self, owner: &OwnerId) -> u64 {
        self.positions.get(owner).map_or(0, |fed| fed.last)
    }

    /// Reads what these owners have after their positions, a bounded part of it.
    pub(crate) async fn read(&mut self, owners: &[OwnerId]) -> Result<FeederBatch> {
        let (source, deadline) = (self.build.source, Deadline::within(COMMAND));
        if self.positions.len() > MOST_POSITIONS {
            self.positions.clear();
        }
        // First: what is read after this under a generation that is raised meanwhile does not count.
        let generations = self.build.generations(owners, deadline).await?;
        let generation = |owner: &OwnerId| generations.get(owner).copied().unwrap_or_default();
        let unknown: Vec<_> = owners
            .iter()
            .filter(|owner| {
                self.positions.get(*owner).is_none_or(|fed| fed.generation != generation(owner).current)
            })
            .map(|owner| (owner.clone(), generation(owner).current))
            .collect();
        for owners in unknown.chunks(POSITIONS_AT_ONCE) {
            self.find_positions(owners, Deadline::within(COMMAND)).await?;
        }
        let deadline = Deadline::within(COMMAND);
        let tails = Tails::read(source, owners, None, deadline).await;
        let (mut batch, mut wanted) = (FeederBatch::default(), Vec::new());
        let pages = MOST_PAGES.min(source.most_buckets()) / owners.len().max(1);
        for owner in owners {
            let current = generation(owner);
            let position = self.position(owner);
            match tails.of(owner) {
                Ok(Some(tail)) if tail.last_seq().get() > position => {
                    let first = source.page_size().page_of(Seq::new(position + 1).unwrap_or(Seq::FIRST));
                    wanted.push((owner.clone(), first, tail));
                }
                // Without pages, fed, or erased. A damaged owner is not fed: `verify` tells of it.
                ended @ (Ok(_) | Err(Error::Gone(_) | Error::Corrupt(_))) => {
                    if let Err(error @ Error::Corrupt(_)) = ended {
                        tracing::warn!(%owner, %error, "a time series is not fed with the items of an owner");
                    }
                    batch.fed.extend(current.pending.then(|| (owner.clone(), current.current)));
                }
                // It is not known what the owner has.
                Err(error) => return Err(error),
            }
        }
        let mut buckets = self.buckets(&wanted, pages.max(2) as u64, deadline).await?;
        for (owner, first, tail) in wanted {
            let (current, found) = (generation(&owner), buckets.remove(&owner).unwrap_or_default());
            if found.is_empty() {
                // The pages before the first one that is there are retired.
                match self.first_page(&owner, first, deadline).await? {
                    Some(page) if page > first => {
                        let before = source.page_size().first_seq(page).get() - 1;
                        let fed = FedTo { generation: current.current, last: before };
                        self.positions.insert(owner.clone(), fed);
                        batch.unfinished.insert(owner);
                    }
                    // Erased meanwhile, or damaged.
                    _ => batch.fed.extend(current.pending.then_some((owner, current.current))),
                }
                continue;
            }
            let position = self.position(&owner);
            let last = self.add(&mut batch, &owner, current.current, &found);
            match position < last && last < tail.last_seq().get() {
                true => drop(batch.unfinished.insert(owner)),
                false => batch.fed.extend(current.pending.then_some((owner, current.current))),
            }
        }
        Ok(batch)
    }

    /// Adds what these pages have after the position of the owner. Returns the last `seq`.
    fn add(&self, batch: &mut FeederBatch, owner: &OwnerId, generation: i64, buckets: &[Bucket]) -> u64 {
        let position = self.position(owner);
        let (definition, meta) = (&self.build.source.definition, &self.state.meta);
        let (mut from, mut to) = (None, position);
        for (place, bucket) in buckets.iter().enumerate() {
            // What was read later may show what comes after something that was not read.
            let follows = place == 0 || bucket.first_seq().get() == to + 1;
            if !follows {
                break;
            }
            for item in bucket.items().filter(|item| item.seq.get() > position) {
                from.get_or_insert(item.seq.get() - 1);
                to = item.seq.get();
                batch.measurements.push(measurement(item, definition, meta, owner, generation));
            }
        }
        if let Some(from) = from {
            batch.announced.push(Announced { owner: owner.clone(), generation, from, to });
        }
        to
    }

    /// Reads how far these owners are fed, from what is there: of each generation a beginning.
    async fn find_positions(&mut self, owners: &[(OwnerId, i64)], deadline: Deadline) -> Result<()> {
        if owners.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = owners.iter().map(|(owner, _)| owner_bson(owner)).collect();
        // By the whole metaField: the database answers this from the bounds of its buckets, without opening
        // them.
        let command = doc! {
            "aggregate": self.build.collection(),
            "pipeline": [
                { "$match": { "meta.owner": { "$in": ids } } },
                { "$group": { "_id": "$meta", "last": { "$max": "$seq" } } },
            ],
            "cursor": { "batchSize": i32::MAX },
        };
        let source = self.build.source;
        let kind = source.definition.owner.kind;
        let read = move |group: &RawDocument| {
            let group = owned(group)?;
            let meta = group.get_document("_id").ok();
            let owner = meta.and_then(|meta| owner(meta.get("owner")?, kind));
            let generation = meta.and_then(|meta| meta.get("generation")).and_then(whole_number).unwrap_or(0);
            let last = group.get("last").and_then(whole_number).and_then(|last| u64::try_from(last).ok());
            Ok(owner.zip(last).map(|(owner, last)| (owner, generation, last)))
        };
        let found = source.reads.find(command, deadline, read).await?;
        let unfed = |current: &i64| FedTo { generation: *current, last: 0 };
        self.positions.extend(owners.iter().map(|(owner, current)| (owner.clone(), unfed(current))));
        for (owner, generation, last) in found.into_iter().flatten() {
            if let Some(fed) = self.positions.get_mut(&owner).filter(|fed| fed.generation == generation) {
                fed.last = fed.last.max(last);
            }
        }
        Ok(())
    }

    /// Up to `most` pages of each of these owners from a page on, in their order.
    async fn buckets(
        &self,
        wanted: &[(OwnerId, PageNumber, Tail)],
        most: u64,
        deadline: Deadline,
    ) -> Result<HashMap<OwnerId, Vec<Bucket>>> {
        if wanted.is_empty() {
            return Ok(HashMap::new());
        }
        let source = self.build.source;
        let condition = |(owner, first, tail): &(OwnerId, PageNumber, Tail)| {
            let last = (first.get() + most - 1).min(tail.page.get());
            let pages =
                doc! { "page": { "$gte": first, "$lte": int64(last) }, "since": { "$exists": false } };
            Bson::from(source.of(owner, deadline).filter(pages))
        };
        let conditions: Vec<_> = wanted.iter().map(condition).collect();
        let command = doc! {
            "find": source.collection(), "filter": { "$or": conditions }, "hint": source.by_page(),
            "batchSize": i32::MAX,
        };
        let definition = source.definition.clone();
        let read = move |document: &RawDocument| {
            let owner = owner_in(document, &definition.owner);
            Ok(owner.map(|owner| (Bucket::read(document, &owner, &definition), page_of(document), owner)))
        };
        let (mut found, mut damaged) = (HashMap::<OwnerId, Vec<Bucket>>::new(), HashMap::new());
        for (bucket, page, owner) in source.reads.find(command, deadline, read).await?.into_iter().flatten() {
            match bucket {
                Ok(bucket) => found.entry(owner).or_default().push(bucket),
                Err(error) => {
                    tracing::warn!(%owner, %error, "a time series is not fed with a damaged page and what follows it");
                    let first = damaged.entry(owner).or_insert(page);
                    *first = page.min(*first);
                }
            }
        }
        // When it is repaired, its items must come before those after it.
        for (owner, first) in damaged {
            found.entry(owner).or_default().retain(|bucket| Some(bucket.page()) < first);
        }
        found.values_mut().for_each(|buckets| buckets.sort_by_key(Bucket::page));
        Ok(found)
    }

    /// The first page of an owner that is there, from a page on.
    async fn first_page(
        &self,
        owner: &OwnerId,
        from: PageNumber,
        deadline: Deadline,
    ) -> Result<Option<PageNumber>> {
        let of = self.build.source.of(owner, deadline);
        let mut command = of.at_most(doc! { "page": { "$gte": from }, "since": { "$exists": false } }, 1);
        command.insert("projection", doc! { "page": 1 });
        Ok(of.find(command, |bucket| Ok(page_of(bucket))).await?.pop().flatten())
    }

    /// Inserts a batch that is announced, once. After an error the outcome is unknown, or a part was refused.
    pub(crate) async fn insert(
        &mut self,
        announced: Vec<Announced>,
        measurements: Vec<RawDocumentBuf>,
    ) -> Result<()> {
        let count = measurements.len() as u64;
        insert(self.build, measurements).await?;
        metrics::counter!(SERIES_ITEMS, "collection" => self.build.history().to_owned()).increment(count);
        for Announced { owner, generation, to, .. } in announced {
            self.positions.insert(owner, FedTo { generation, last: to });
        }
        Ok(())
    }
}

/// Inserts measurements, each once. After an error the outcome is unknown, or a part was refused.
pub(crate) async fn insert(build: Build<'_>, measurements: Vec<RawDocumentBuf>) -> Result<()> {
    let (mut documents, mut count, mut bytes) = (RawArrayBuf::new(), 0, 0);
    for measurement in measurements {
        bytes += measurement.as_bytes().len();
        documents.push(RawBson::Document(measurement));
        count += 1;
        if bytes >= MOST_BYTES || count >= MOST_DOCUMENTS {
            insert_once(build, std::mem::take(&mut documents), std::mem::take(&mut count)).await?;
            bytes = 0;
        }
    }
    if count > 0 {
        insert_once(build, documents, count).await?;
    }
    Ok(())
}

async fn insert_once(build: Build<'_>, documents: RawArrayBuf, count: i64) -> Result<()> {
    let deadline = Deadline::within(COMMAND);
    let head = doc! { "insert": build.collection(), "ordered": false, "writeConcern": durable(deadline) };
    let mut command = RawDocumentBuf::try_from(&head).map_err(Error::internal)?;
    command.append(cstr!("documents"), documents);
    let database = build.source.reads.database.clone();
    // The driver does not repeat such a command.
    let reply = deadline.read(async move { Ok(database.run_raw_command(command).await?) }).await?;
    confirm(build.source, &reply, count)
}

/// Whether an answer says that all is stored, at a majority.
fn confirm(source: &HistoryCollection, reply: &Document, count: i64) -> Result<()> {
    if let Some(error) = reply.get("writeErrors").or(reply.get("writeConcernError")) {
        return Err(Error::unavailable(error.to_string()));
    }
    if reply.get("n").and_then(whole_number) != Some(count) {
        return Err(Error::unavailable(format!("{count} measurements were to be inserted: {reply}")));
    }
    source.reads.time.learn(reply.get_timestamp("operationTime").ok());
    Ok(())
}

/// A filter for the measurements of an owner in a generation.
pub(crate) fn of_generation(owner: &OwnerId, generation: i64) -> Document {
    doc! { "meta.owner": owner_bson(owner), "meta.generation": is_of(generation) }
}
