//! The records of API keys, each found by the SHA-256 of its key. The database never has the key itself.
//!
//! Revoking marks a record and keeps it: its name stays taken, so that a name in a log means one key.

use std::sync::Arc;

use mongodb::Collection;
use mongodb::bson::raw::{RawBsonRef, RawDocument};
use mongodb::bson::{Bson, Document, RawBson, doc};
use mongodb::options::{Acknowledgment, WriteConcern};
use pagebucket_model::domain::{Instant, Scope, Scopes};

use crate::mongo::majority::MonotonicReads;
use crate::mongo::reply::Verdict;
use crate::mongo::session::{Sessions, WriteCommand};
use crate::mongo::values::{self, binary, date};
use crate::mongo::{COMMAND, Corruption, Deadline, Error, Result, durable};

pub(crate) const COLLECTION: &str = "api_keys";

/// The SHA-256 of a key, the `_id` of its record. `Debug` does not show it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, derive_more::Debug)]
#[debug("KeyHash(..)")]
pub struct KeyHash(pub [u8; 32]);

/// What the database knows of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// Its unique name: 1 to 64 of the characters `A`-`Z`, `a`-`z`, `0`-`9`, `-`, `_` and `.`.
    pub name: String,
    /// What its clients may do.
    pub scopes: Scopes,
    /// Whose histories they may use: `7`, `customers=7` or `*`, at least one. `None`: those of every owner.
    pub owners: Option<Vec<String>>,
    /// When it was created.
    pub created: Instant,
    /// The hour of its last use, if it was used.
    pub last_used: Option<Instant>,
    /// From when it is refused, if ever.
    pub expires: Option<Instant>,
    /// When it was revoked.
    pub revoked: Option<Instant>,
}

/// Why a key cannot be created.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CreateError {
    /// Another key has the name, or had it before it was revoked.
    #[error("a key of this name exists")]
    NameTaken,
    /// The database does not answer, or refuses the record.
    #[error(transparent)]
    Database(#[from] Error),
}

/// What revoking a key found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revocation {
    /// The key is revoked now.
    Revoked,
    /// The key was revoked before.
    AlreadyRevoked,
    /// No key has the name.
    UnknownName,
}

/// The API keys of a database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ApiKeys {
    reads: MonotonicReads,
    sessions: Arc<Sessions>,
}

impl ApiKeys {
    pub(crate) fn new(reads: MonotonicReads, sessions: Arc<Sessions>) -> Self {
        Self { reads, sessions }
    }

    /// Stores the record of a new key, durably on a majority.
    pub async fn create(
        &self,
        hash: KeyHash,
        record: &KeyRecord,
        deadline: Deadline,
    ) -> Result<(), CreateError> {
        let deadline = deadline.or_within(COMMAND);
        let record = RawBson::try_from(Bson::from(record.document(hash)));
        let command = WriteCommand::insert(COLLECTION, [record], false, durable(deadline));
        let answer = self.sessions.commit(&self.reads, command, deadline).await;
        let unknown = "no final answer came in time; the key may exist: list the keys, and revoke it";
        let answer = answer.map_err(|unanswered| unanswered.or_unavailable(unknown))?;
        match answer.verdicts.first() {
            Some(Verdict::Stored) => Ok(()),
            Some(Verdict::Refused) => Err(CreateError::NameTaken),
            other => Err(Error::internal(format!("the record of a key was refused: {other:?}")).into()),
        }
    }

    /// The records of all keys, in the order of their names.
    pub async fn all(&self, deadline: Deadline) -> Result<Vec<KeyRecord>> {
        let command = doc! { "find": COLLECTION, "sort": { "name": 1 } };
        self.reads.find(command, deadline.or_within(COMMAND), |record| Ok(KeyRecord::read(record)?)).await
    }

    /// The record of the key with this hash, at majority.
    pub async fn find(&self, hash: KeyHash, deadline: Deadline) -> Result<Option<KeyRecord>> {
        let (id, deadline) = (binary(hash.0), deadline.or_within(COMMAND));
        self.reads.by_id(COLLECTION, id, deadline, |record| Ok(KeyRecord::read(record)?)).await
    }

    /// Revokes the key with this name at the time `at`, durably on a majority. Repeating it changes nothing.
    /// After an error the key may be revoked.
    pub async fn revoke(&self, name: &str, at: Instant, deadline: Deadline) -> Result<Revocation> {
        let deadline = deadline.or_within(COMMAND);
        // The first revocation keeps its date.
        let revoked = doc! { "$ifNull": ["$revoked", date(at)] };
        let concern = WriteConcern::builder().w(Acknowledgment::Majority).journal(true);
        let concern = concern.w_timeout(deadline.remaining()).build();
        let (records, query) = (self.records(), doc! { "name": name });
        let update = vec![doc! { "$set": { "revoked": revoked } }];
        let update = async move { Ok(records.update_one(query, update).write_concern(concern).await?) };
        let updated = deadline.read(update).await?;
        Ok(match (updated.matched_count, updated.modified_count) {
            (0, _) => Revocation::UnknownName,
            (_, 0) => Revocation::AlreadyRevoked,
            _ => Revocation::Revoked,
        })
    }

    /// Notes that the key with this hash was used in this hour. One server has it in memory afterwards: it
    /// may be lost.
    pub async fn note_use(&self, hash: KeyHash, hour: Instant) -> Result<()> {
        let (query, update) = (doc! { "_id": binary(hash.0) }, doc! { "$max": { "lastUsed": date(hour) } });
        let concern = WriteConcern::builder().w(Acknowledgment::Nodes(1)).build();
        let records = self.records();
        let noting =
            async move { Ok(records.update_one(query, update).write_concern(concern).await.map(drop)?) };
        Deadline::within(COMMAND).read(noting).await
    }

    fn records(&self) -> Collection<Document> {
        self.reads.database.collection(COLLECTION)
    }
}

impl KeyRecord {
    fn document(&self, hash: KeyHash) -> Document {
        let Self { name, scopes, owners, created, last_used, expires, revoked } = self;
        let scopes: Vec<_> = scopes.iter().map(|scope| scope.to_string()).collect();
        let mut document =
            doc! { "_id": binary(hash.0), "name": name, "scopes": scopes, "created": date(*created) };
        let owners = owners.as_ref().map(|owners| ("owners", Bson::from(owners.clone())));
        let dates = [("lastUsed", last_used), ("expires", expires), ("revoked", revoked)];
        let dates = dates.into_iter().filter_map(|(field, at)| Some((field, date((*at)?).into())));
        document.extend(owners.into_iter().chain(dates).map(|(field, value)| (field.to_owned(), value)));
        document
    }

    fn read(document: &RawDocument) -> Result<Self, Corruption> {
        let name = document.get_str("name").unwrap_or("a record without a name").to_owned();
        let corrupt =
            |field: &str| Corruption::new(format!("{name} of {COLLECTION}"), field, "is of another type");
        let texts = |field: &str| match document.get(field) {
            Ok(None) => Ok(None),
            Ok(Some(RawBsonRef::Array(items))) => {
                let text = |item| match item {
                    Ok(RawBsonRef::String(text)) => Ok(str::to_owned(text)),
                    _ => Err(corrupt(field)),
                };
                items.into_iter().map(text).collect::<Result<Vec<_>, _>>().map(Some)
            }
            _ => Err(corrupt(field)),
        };
        let instant = |field: &str| match document.get(field) {
            Ok(None) => Ok(None),
            Ok(Some(RawBsonRef::DateTime(at))) => values::instant(at).map(Some).ok_or_else(|| corrupt(field)),
            _ => Err(corrupt(field)),
        };
        let scopes = texts("scopes")?.ok_or_else(|| corrupt("scopes"))?;
        Ok(Self {
            // A scope of a later version gives no right here.
            scopes: scopes.iter().filter_map(|scope| Scope::parse(scope).ok()).collect(),
            owners: texts("owners")?,
            created: instant("created")?.ok_or_else(|| corrupt("created"))?,
            last_used: instant("lastUsed")?,
            expires: instant("expires")?,
            revoked: instant("revoked")?,
            name,
        })
    }
}
