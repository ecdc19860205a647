//! What the database remembers of adoptions: a document for each pair of a history and a source. Nothing in
//! it decides what is stored, because stored items carry their identities: it only says where to go on.

use mongodb::bson::{Bson, DateTime, Document, doc};
use mongodb::options::{Acknowledgment, ReturnDocument, WriteConcern};
use mongodb::{Collection, Database};

use crate::mongo::{COMMAND, Deadline, Result};

/// Name of the collection.
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
    database: Database,
}

impl Adoptions {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    fn collection(&self) -> Collection<Document> {
        self.database.collection(COLLECTION)
    }

    /// Notes that an adoption of this source starts, with these parameters. With others than before, nothing
    /// is copied yet.
    ///
    /// # Errors
    /// The database does not answer in time.
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
        let deadline = Deadline::within(COMMAND);
        let started = deadline.retry(|| {
            let (collection, id, update) = (self.collection(), id(history, source), update.clone());
            deadline.read(async move {
                let started = collection.find_one_and_update(id, update).upsert(true);
                Ok(started.return_document(ReturnDocument::After).write_concern(durable()).await?)
            })
        });
        Ok(Adoption::of(&started.await?.unwrap_or_default()))
    }

    /// What is known of the adoption of this source, if it was ever started.
    ///
    /// # Errors
    /// The database does not answer in time.
    pub async fn find(&self, history: &str, source: &str) -> Result<Option<Adoption>> {
        let deadline = Deadline::within(COMMAND);
        let found = deadline.retry(|| {
            let (collection, id) = (self.collection(), id(history, source));
            deadline.read(async move { Ok(collection.find_one(id).await?) })
        });
        let found = found.await?;
        Ok(found.as_ref().map(Adoption::of))
    }

    /// Notes how far the adoption of this source has come.
    ///
    /// # Errors
    /// The database does not answer in time.
    pub async fn note(&self, history: &str, source: &str, adoption: &Adoption) -> Result<()> {
        let Adoption { runs: _, followed, copied, token } = adoption;
        let token = token.clone().map_or(Bson::Null, Bson::Document);
        let set = doc! { "followed": followed, "copied": copied, "token": token, "latest": DateTime::now() };
        let deadline = Deadline::within(COMMAND);
        let noted = deadline.retry(|| {
            let (collection, id, set) = (self.collection(), id(history, source), set.clone());
            deadline.read(async move {
                let noted = collection.update_one(id, doc! { "$set": set }).upsert(true);
                Ok(noted.write_concern(durable()).await?)
            })
        });
        noted.await.map(drop)
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
    doc! { "_id": { "history": history, "source": source } }
}

fn durable() -> WriteConcern {
    WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build()
}
