//! What the database remembers of adoptions: a document for each pair of a history and a source. Nothing in
//! it decides what is stored, because stored items carry their identities: it only says where to go on.

use mongodb::Database;
use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Bson, DateTime, Document, doc};

use crate::mongo::majority::MonotonicReads;
use crate::mongo::{COMMAND, Deadline, Error, Result};

pub(crate) const COLLECTION: &str = "adoptions";

/// What is known of an adoption.
#[derive(Debug, Clone, PartialEq)]
pub struct Adoption {
    /// How often it was started, this time included.
    pub runs: i64,
    /// Whether it has followed its source after a copy.
    pub followed: bool,
    /// Whether everything is copied that the source had at `token`, or at the start of the last run without
    /// one.
    pub copied: bool,
    /// The resume token of a change stream. All changes before it are in the history, once `copied` is true.
    pub token: Option<Document>,
}

/// The adoptions of a database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Adoptions {
    reads: MonotonicReads,
}

impl Adoptions {
    pub(crate) fn new(database: Database) -> Self {
        Self { reads: MonotonicReads::of(database) }
    }

    /// Notes that an adoption of this source starts, with these parameters. With others than before, nothing
    /// is copied yet.
    pub async fn start(&self, history: &str, source: &str, parameters: Document) -> Result<Adoption> {
        let parameters = doc! { "$literal": parameters };
        let are_same = doc! { "$eq": ["$parameters", &parameters] };
        let update = vec![doc! { "$set": {
            "runs": { "$add": [{ "$ifNull": ["$runs", 0_i64] }, 1_i64] },
            "started": { "$ifNull": ["$started", "$$NOW"] },
            "latest": "$$NOW",
            // An update sees the document as it was.
            "copied": { "$and": ["$copied", are_same] },
            "parameters": parameters,
        } }];
        let started = doc! {
            "findAndModify": COLLECTION, "query": { "_id": id(history, source) }, "update": update,
            "upsert": true, "new": true,
        };
        let started = self.write(started).await?;
        Ok(Adoption::of(started.get_document("value").map_err(Error::internal)?))
    }

    /// What is known of the adoption of this source, if it was ever started.
    pub async fn find(&self, history: &str, source: &str) -> Result<Option<Adoption>> {
        let read = |found: &RawDocument| {
            let found = Document::try_from(found).map_err(Error::internal)?;
            Ok(Adoption::of(&found))
        };
        self.reads.by_id(COLLECTION, id(history, source), Deadline::within(COMMAND), read).await
    }

    /// Notes how far the adoption of this source has come.
    pub async fn note(&self, history: &str, source: &str, adoption: &Adoption) -> Result<()> {
        let Adoption { runs: _, followed, copied, token } = adoption;
        let token = token.clone().map_or(Bson::Null, Bson::Document);
        let set = doc! { "followed": followed, "copied": copied, "token": token, "latest": DateTime::now() };
        let noted = doc! { "q": { "_id": id(history, source) }, "u": { "$set": set }, "upsert": true };
        self.write(doc! { "update": COLLECTION, "updates": [noted] }).await.map(drop)
    }

    async fn write(&self, command: Document) -> Result<Document> {
        let deadline = Deadline::within(COMMAND);
        deadline.retry(|| self.reads.write(command.clone(), deadline)).await
    }
}

impl Adoption {
    /// Another program may have changed the document: a field of another type is ignored.
    fn of(document: &Document) -> Self {
        let flag = |name| document.get_bool(name).unwrap_or(false);
        Self {
            runs: document.get_i64("runs").unwrap_or(0),
            followed: flag("followed"),
            copied: flag("copied"),
            token: document.get_document("token").ok().cloned(),
        }
    }
}

fn id(history: &str, source: &str) -> Document {
    doc! { "history": history, "source": source }
}
