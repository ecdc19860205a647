//! What a database remembers of native time series: the collection `series`.
//!
//! - `{_id: "trades", current?, latest, building?}`: the number of the build that is read, the greatest
//!   number that was used, and the number of one that is being made. It stays when the time series is
//!   dropped, without `current`. No number is used twice, also after a backup was restored ([`next_number`]).
//!   So a build never adopts a collection that is there, and what a feeder of a dropped one brings late is in
//!   no other.
//! - `{_id: "trades/1", meta, granularity, expireAfterDays?, term, holder?, until, place?, scanned,
//!   scanAfter?, upTo?, raises, batch}`: a build, and how far its feeder has come.

use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::oid::ObjectId;
use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Bson, DateTime, Document, doc};
use pagebucket_model::definition::TimeSeries;
use pagebucket_model::domain::{OwnerId, OwnerType};

use crate::mongo::lease::{Lease, until};
use crate::mongo::log_place::LogPlace;
use crate::mongo::values::{int64, whole_number};
use crate::mongo::{COMMAND, Corruption, Deadline, Error, Result};
use crate::store::collection::{HistoryCollection, owner_bson};

pub(crate) const COLLECTION: &str = "series";

/// How long a lease lasts. It decides only which instance feeds. Safety comes from the term.
pub(crate) const LEASE: Duration = Duration::from_secs(10);

/// The native time series of a history.
#[derive(Debug)]
pub struct Series {
    pub(crate) source: Arc<HistoryCollection>,
}

/// The builds of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Builds {
    /// The one that is read.
    pub(crate) current: i64,
    /// The greatest number that was used.
    pub(crate) latest: i64,
    /// One that is being made.
    pub(crate) building: Option<i64>,
}

/// A build of a history: one native time-series collection. What it knows of the generations of owners is in
/// [`generations`](mod@super::generations).
#[derive(Clone, Copy)]
pub(crate) struct Build<'a> {
    pub(crate) source: &'a HistoryCollection,
    pub(crate) number: i64,
}

/// The sequence numbers of one owner in a batch that was announced: those after `from`, up to `to`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) owner: OwnerId,
    pub(crate) generation: i64,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// How far a feeder has come.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FeederProgress {
    /// All changes before this place of the log are fed.
    pub(crate) place: Option<LogPlace>,
    /// Whether all owners that there were at the beginning are fed.
    pub(crate) scanned: bool,
    /// If not, the last owner whose pages were compared.
    pub(crate) scan_after: Option<OwnerId>,
    /// All that was acknowledged before this moment is fed, in milliseconds since 1970 by the clock of the
    /// database.
    pub(crate) up_to: Option<i64>,
}

/// The document of a build.
#[derive(Debug, Clone)]
pub(crate) struct BuildState {
    /// The properties that the metaField has beside the owner.
    pub(crate) meta: Vec<String>,
    pub(crate) granularity: String,
    pub(crate) expire_after_days: Option<i64>,
    /// The number of the lease. An announcement compares it.
    pub(crate) term: i64,
    /// It grows with each change of a generation, before anything is deleted because of it.
    pub(crate) raises: i64,
    pub(crate) progress: FeederProgress,
    pub(crate) batch: Vec<Announced>,
}

impl Builds {
    pub(crate) fn all(self) -> impl Iterator<Item = i64> {
        [Some(self.current), self.building].into_iter().flatten()
    }

    /// `None` if the history has no time series.
    pub(crate) async fn of(source: &HistoryCollection, deadline: Deadline) -> Result<Option<Self>> {
        let read = |document: &RawDocument| {
            let document = owned(document)?;
            let number = |field| document.get(field).and_then(whole_number);
            let id = document.get_str("_id").unwrap_or_default();
            let corrupt = || Corruption::new(format!("{id} of {COLLECTION}"), "latest", "is no number");
            let latest = number("latest").ok_or_else(corrupt)?;
            Ok(number("current").map(|current| Self { current, latest, building: number("building") }))
        };
        Ok(source.reads.by_id(COLLECTION, source.collection(), deadline, read).await?.flatten())
    }

    /// The build that is read.
    pub(crate) fn current(self, source: &HistoryCollection) -> Build<'_> {
        Build { source, number: self.current }
    }
}

impl<'a> Build<'a> {
    pub(crate) fn history(self) -> &'a str {
        self.source.collection()
    }

    /// The `_id` of its document.
    pub(crate) fn id(self) -> String {
        format!("{}/{}", self.history(), self.number)
    }

    /// The name of its collection. No history has a `_` in its name.
    pub(crate) fn collection(self) -> String {
        match self.is_public() {
            true => public_name(self.history()),
            false => format!("{}_{}", public_name(self.history()), self.number),
        }
    }

    /// Whether its collection has the public name itself. The first builds of earlier versions have it.
    pub(crate) fn is_public(self) -> bool {
        self.number == 1
    }

    pub(crate) async fn state(self, deadline: Deadline) -> Result<Option<BuildState>> {
        let kind = self.source.definition.owner.kind;
        let read = move |document: &RawDocument| BuildState::read(&owned(document)?, kind);
        self.source.reads.by_id(COLLECTION, self.id(), deadline, read).await
    }

    /// Takes the lease, if it is free or this holder's, under a new term. A majority has the term then, so
    /// nothing more is announced under an earlier one.
    pub(crate) async fn take(self, holder: ObjectId) -> Result<Option<BuildState>> {
        let set = doc! { "holder": holder, "term": { "$add": ["$term", 1_i64] } };
        let taken = self.lease(doc! { "holder": holder }).take(set, Deadline::within(COMMAND)).await?;
        let kind = self.source.definition.owner.kind;
        taken.map(|document| BuildState::read(&document, kind)).transpose()
    }

    /// Announces a batch, and notes that the one before is confirmed and how far the feeder has come. Renews
    /// the lease. Returns `raises`; `None` if the term is over.
    pub(crate) async fn announce(
        self,
        term: i64,
        progress: &FeederProgress,
        batch: &[Announced],
    ) -> Result<Option<i64>> {
        let FeederProgress { place, scanned, scan_after, up_to } = progress;
        let batch: Vec<_> = batch.iter().map(Announced::bson).collect();
        let optional = |value: Option<Bson>| value.unwrap_or(Bson::Null);
        let set = doc! {
            "until": until(LEASE),
            "place": optional(place.as_ref().map(|place| place.to_string().into())),
            "scanned": *scanned,
            "scanAfter": { "$literal": optional(scan_after.as_ref().map(owner_bson)) },
            "upTo": optional(up_to.map(|up_to| DateTime::from_millis(up_to).into())),
            "batch": { "$literal": batch },
        };
        // Without the batch, which may be long.
        let command = doc! {
            "findAndModify": COLLECTION,
            "query": { "_id": self.id(), "term": term },
            "update": [{ "$set": set }],
            "fields": { "raises": 1 },
            "new": true,
        };
        let reply = self.source.reads.write(command, Deadline::within(COMMAND)).await?;
        let raises = reply.get_document("value").ok().and_then(|value| value.get("raises"));
        Ok(raises.and_then(whole_number))
    }

    /// Says that a generation has changed: readers that have begun read again.
    pub(crate) async fn note_raise(self) -> Result<()> {
        let update = doc! { "q": { "_id": self.id() }, "u": { "$inc": { "raises": 1_i64 } } };
        self.source.update(COLLECTION, [update], Deadline::within(COMMAND)).await.map(drop)
    }

    /// The lease of this build, for a holder or a term.
    fn lease(self, mut mine: Document) -> Lease {
        mine.insert("_id", self.id());
        Lease { reads: self.source.reads.clone(), collection: COLLECTION, mine, length: LEASE }
    }

    /// Does what may take longer than a lease lasts, and renews it meanwhile.
    pub(crate) async fn keeping<T>(self, term: i64, step: impl Future<Output = Result<T>>) -> Result<T> {
        self.lease(doc! { "term": term }).keeping(step, |error| Some(Err(error))).await
    }

    pub(crate) fn lost() -> Error {
        Error::Overtaken("another instance feeds the time series")
    }

    pub(crate) async fn release(self, term: i64, deadline: Deadline) -> Result<()> {
        let update = doc! { "q": { "_id": self.id(), "term": term }, "u": { "$set": { "until": DateTime::from_millis(0) } } };
        self.source.update(COLLECTION, [update], deadline).await.map(drop)
    }
}

impl Announced {
    fn bson(&self) -> Bson {
        let Self { owner, generation, from, to } = self;
        Bson::from(doc! { "o": owner_bson(owner), "g": generation, "from": int64(*from), "to": int64(*to) })
    }

    fn read(value: &Bson, kind: OwnerType) -> Option<Self> {
        let document = value.as_document()?;
        let number = |field| document.get(field).and_then(whole_number);
        let count = |field| number(field).and_then(|number| u64::try_from(number).ok());
        let owner = owner(document.get("o")?, kind)?;
        Some(Self { owner, generation: number("g")?, from: count("from")?, to: count("to")? })
    }
}

impl BuildState {
    fn read(document: &Document, kind: OwnerType) -> Result<Self> {
        let id = document.get_str("_id").unwrap_or_default();
        let corrupt =
            |field: &str| Corruption::new(format!("{id} of {COLLECTION}"), field, "is not as it was written");
        let number = |field| document.get(field).and_then(whole_number);
        let meta = document.get_array("meta").map_err(|_| corrupt("meta"))?;
        let batch = document.get_array("batch").map_err(|_| corrupt("batch"))?;
        let batch = batch.iter().map(|announced| Announced::read(announced, kind)).collect::<Option<_>>();
        let progress = FeederProgress {
            place: document.get_str("place").ok().and_then(|place| LogPlace::parse(place).ok()),
            scanned: document.get_bool("scanned").unwrap_or(false),
            scan_after: document.get("scanAfter").and_then(|after| owner(after, kind)),
            up_to: document.get_datetime("upTo").ok().map(|up_to| up_to.timestamp_millis()),
        };
        Ok(Self {
            meta: meta.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
            granularity: document.get_str("granularity").unwrap_or_default().to_owned(),
            expire_after_days: number("expireAfterDays"),
            term: number("term").ok_or_else(|| corrupt("term"))?,
            raises: number("raises").ok_or_else(|| corrupt("raises"))?,
            progress,
            // Without its batch it is unknown what may still come.
            batch: batch.ok_or_else(|| corrupt("batch"))?,
        })
    }

    /// Whether its metaField and its granularity are those of a definition. The expiry may differ: it changes
    /// in place.
    pub(crate) fn is_of(&self, series: &TimeSeries) -> bool {
        self.meta == series.meta && self.granularity == series.granularity.to_string()
    }
}

/// The name under which the time series of a history is read by others.
pub(crate) fn public_name(history: &str) -> String {
    format!("{history}_series")
}

/// A number that no build has had: the time of the database in seconds, or the one after the latest. The
/// latest alone may have been used: a restored backup remembers an earlier one. It is greater than `there`,
/// too, the numbers of collections that there are.
pub(crate) fn next_number(there: i64) -> Document {
    let seconds = doc! { "$divide": [{ "$toLong": "$$NOW" }, 1_000_i64] };
    let after = |number: Bson| doc! { "$add": [number, 1_i64] };
    let latest = after(doc! { "$ifNull": ["$latest", 0_i64] }.into());
    doc! { "$max": [latest, after(there.into()), { "$toLong": seconds }] }
}

/// The owner that a stored value is the id of.
pub(crate) fn owner(value: &Bson, kind: OwnerType) -> Option<OwnerId> {
    match value {
        Bson::Int64(id) => kind.parse(&id.to_string()).ok().filter(|_| !kind.is_text()),
        Bson::String(id) if kind.is_text() => kind.parse_stored(id),
        _ => None,
    }
}

pub(crate) fn owned(document: &RawDocument) -> Result<Document> {
    Document::try_from(document).map_err(Error::internal)
}
