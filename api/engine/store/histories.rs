//! The definitions that a database remembers: the collection `histories`, one document for each history that
//! it has.
//!
//! `{_id, owner: {collection, field, type}, pageSize, date, maxItemBytes, item, itemSha256, ready, markers}`.
//! A history's owner, page size and date never change, because the buckets depend on them. `maxItemBytes` may
//! grow, and instances that run learn it. `item` is for information: it concerns only what is written from
//! now on, and instances may differ in it. `ready` says that the history is complete, `markers` how many
//! markers were written.

use std::collections::BTreeMap;

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Document, doc};
use mongodb::options::ReadConcern;
use pagebucket_model::definition::Definition;
use pagebucket_model::item::Mistakes;
use serde_json::json;

use crate::mongo::values::whole_number;
use crate::mongo::{Corruption, Error, Result};

pub(crate) const COLLECTION: &str = "histories";

/// What a database remembers of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownHistory {
    /// Its name, which is that of its collection.
    pub name: String,
    /// The collection of its owners, the first part of its route.
    pub owners: String,
    /// The field of an owner's id.
    pub owner_field: String,
    /// The type of an owner's id: `integer`, `string` or `uuid`.
    pub owner_type: String,
    /// Items on a full page.
    pub page_size: i64,
    /// The property that spans of time go by.
    pub date: String,
    /// Bytes of a stored item, at most.
    pub max_item_bytes: i64,
}

impl KnownHistory {
    pub(crate) fn read(name: String, document: &Document) -> Result<Self> {
        let corrupt = |field: &str| {
            let id = format!("{name} of {COLLECTION}");
            Error::from(Corruption::new(id, field, "is missing, or of another type"))
        };
        let number = |field| document.get(field).and_then(whole_number).ok_or_else(|| corrupt(field));
        let owner = document.get_document("owner").map_err(|_| corrupt("owner"))?;
        let owner = |field| owner.get_str(field).map(str::to_owned).map_err(|_| corrupt("owner"));
        Ok(Self {
            owners: owner("collection")?,
            owner_field: owner("field")?,
            owner_type: owner("type")?,
            page_size: number("pageSize")?,
            date: document.get_str("date").map_err(|_| corrupt("date"))?.to_owned(),
            max_item_bytes: number("maxItemBytes")?,
            name,
        })
    }

    /// A definition of this history. It says of its items only that they have the date.
    pub(crate) fn definition(&self) -> Result<Definition> {
        let text = json!({
            "history": self.name,
            "title": "Item",
            "owner": { "collection": self.owners, "field": self.owner_field, "type": self.owner_type },
            "pageSize": self.page_size,
            "maxItemBytes": self.max_item_bytes,
            "date": self.date,
            "item": {
                "type": "object",
                "properties": { &self.date: { "type": "string", "format": "date-time" } },
            },
        });
        let corrupt = |mistakes: Mistakes| {
            let id = format!("{} of {COLLECTION}", self.name);
            Corruption::new(id, "its definition", mistakes.to_string())
        };
        Ok(Definition::parse(&text.to_string()).map_err(corrupt)?)
    }
}

/// Whether the collection, the validator and the indexes of a history are created.
pub(crate) fn is_complete(stored: &Document) -> bool {
    stored.get_bool("ready").unwrap_or(false)
}

/// How many markers of deleted pages a history has, by its document; `None` if the number is damaged.
pub(crate) fn markers(history: &Document) -> Option<i64> {
    // Earlier versions did not count.
    history.get("markers").map_or(Some(0), whole_number).filter(|markers| *markers >= 0)
}

/// The documents of all histories, by name.
pub(crate) async fn all(database: &Database) -> Result<BTreeMap<String, Document>> {
    let histories = database.collection::<Document>(COLLECTION);
    let found = histories.find(doc! {}).read_concern(ReadConcern::majority());
    let found: Vec<Document> = found.await?.try_collect().await?;
    let named = |document: Document| Some((document.get_str("_id").ok()?.to_owned(), document));
    Ok(found.into_iter().filter_map(named).collect())
}
