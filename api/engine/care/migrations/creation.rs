//! Creates the histories of the definitions, and what they are in the database.
//!
//! A history that is new gets its collection with the guards of [`append`](mod@crate::append). Every
//! command may be run again, so that the next start completes an interrupted creation. What is remembered is
//! enough for that, so a history whose definition is missing is completed too, because owners are erased from
//! it.
//!
//! The migrations 0001 and 0004 made the collection of trades: they are recorded and no longer run. In a
//! database from before, 0007 makes `histories`, and trades are then created once more as a history, which
//! replaces their validator and leaves the pages alone.
//!
//! # The validator
//!
//! The validator knows the engine's fields alone: the owner's field, page, count, `first`, `last`,
//! `count == size(history)`, and that an item is an object whose date is a date. What else an item holds is
//! the service's business. A translation of the item's schema was refused: on mongod 6.0.5 it cost a third to
//! twice the server's time of an append (243 µs without, 351 µs with it, at 500 bytes); `$jsonSchema` has no
//! words for half of the keywords and formats; and an update validates the whole bucket, so a stricter schema
//! would refuse every append to a bucket that is open.
//!
//! An index on ids of items was refused, too: 72 to 94 bytes a trade, where a trade takes 16 to 31.

use std::sync::Arc;

use mongodb::Database;
use mongodb::bson::{Bson, Document, Timestamp, doc};
use mongodb::options::WriteConcern;
use pagebucket_model::definition::{Definition, Definitions};
use pagebucket_model::domain::{MAX_SAFE_INTEGER, OwnerType};
use sha2::{Digest, Sha256};

use super::error::MigrationError;
use super::run::run;
use crate::mongo::Result;
use crate::mongo::values::whole_number;
use crate::store::histories::{COLLECTION, KnownHistory, all, is_complete};

/// The histories of `definitions` that the database does not have yet, or that grow, and those without a
/// definition whose creation is not complete.
pub(crate) async fn pending(
    database: &Database,
    definitions: &Definitions,
) -> Result<Vec<Arc<Definition>>, MigrationError> {
    let known = all(database).await?;
    let mut pending = Vec::new();
    for definition in definitions.iter() {
        let is_ready = match known.get(&*definition.name) {
            None => false,
            Some(stored) => {
                same(definition, stored)?;
                let grows = most_bytes(stored).is_none_or(|most| most < definition.max_item_bytes as i64);
                is_complete(stored) && !grows
            }
        };
        if !is_ready {
            pending.push(Arc::clone(definition));
        }
    }
    let undefined = known.into_iter().filter(|(name, _)| definitions.get(name).is_none());
    for (name, stored) in undefined.filter(|(_, stored)| !is_complete(stored)) {
        match KnownHistory::read(name, &stored).and_then(|known| known.definition()) {
            Ok(definition) => pending.push(Arc::new(definition)),
            Err(error) => tracing::warn!(%error, "a history without a definition cannot be completed"),
        }
    }
    Ok(pending)
}

/// A new history, in a list of migrations.
pub(crate) fn pending_name(history: &Definition) -> String {
    format!("history {}", history.name)
}

/// Creates the histories that the database does not have yet. With `again`, creates what is missing of the
/// others too. Returns the names of those that are new or have grown.
pub(crate) async fn create(
    database: &Database,
    definitions: &Definitions,
    again: bool,
) -> Result<Vec<String>, MigrationError> {
    let pending = pending(database, definitions).await?;
    let is_pending = |one: &Definition| pending.iter().any(|pending| pending.name == one.name);
    for definition in definitions.iter().filter(|definition| again || is_pending(definition)) {
        // First, so that the collection counts as ours if this is interrupted.
        remember(database, definition).await?;
        create_one(database, definition).await?;
        let migration = pending_name(definition);
        tracing::info!(migration, why = "a definition names it", "applied a migration");
    }
    for definition in pending.iter().filter(|definition| definitions.get(&definition.name).is_none()) {
        create_one(database, definition).await?;
        let migration = pending_name(definition);
        tracing::info!(migration, why = "the database remembers it", "applied a migration");
    }
    Ok(pending.iter().map(|definition| pending_name(definition)).collect())
}

/// Remembers what an item of each history is now, and logs which histories have no definition.
pub(crate) async fn note(database: &Database, definitions: &Definitions) -> Result<()> {
    let known = all(database).await?;
    for definition in definitions.iter() {
        let stored = known.get(&*definition.name).and_then(|stored| stored.get_str("itemSha256").ok());
        if stored != Some(&sha256(definition)) {
            remember(database, definition).await?;
        }
    }
    for name in known.keys().filter(|name| definitions.get(name).is_none()) {
        tracing::warn!(history = name, "a history of this database has no definition: it is not served");
    }
    Ok(())
}

/// Refuses another value of what never changes.
fn same(definition: &Definition, stored: &Document) -> Result<(), MigrationError> {
    let differs = |member: &str, stored: String, given: String| {
        let (history, member) = (definition.name.to_string(), member.to_owned());
        Err(MigrationError::Redefined { history, member, stored, given })
    };
    for (member, given) in &fixed(definition) {
        let stored = stored.get(member);
        if stored != Some(given) {
            let stored = stored.map_or_else(|| "nothing".to_owned(), Bson::to_string);
            return differs(member, stored, given.to_string());
        }
    }
    match most_bytes(stored) {
        Some(most) if most > definition.max_item_bytes as i64 => {
            differs("maxItemBytes", most.to_string(), definition.max_item_bytes.to_string())
        }
        _ => Ok(()),
    }
}

fn most_bytes(stored: &Document) -> Option<i64> {
    stored.get("maxItemBytes").and_then(whole_number)
}

/// What never changes.
fn fixed(definition: &Definition) -> Document {
    doc! {
        "owner": {
            "collection": &definition.owner.collection,
            "field": &definition.owner.field,
            "type": definition.owner.kind.to_string(),
        },
        "pageSize": definition.page_size,
        "date": &definition.date.name,
    }
}

/// Writes the document of a history.
async fn remember(database: &Database, definition: &Definition) -> Result<()> {
    // As text: names in a schema may begin with `$`, and the order of properties has a meaning.
    let set = doc! { "item": definition.source.to_string(), "itemSha256": sha256(definition) };
    database
        .collection::<Document>(COLLECTION)
        .update_one(
            doc! { "_id": &*definition.name },
            doc! {
                "$setOnInsert": fixed(definition),
                "$max": { "maxItemBytes": definition.max_item_bytes as i64 },
                "$set": set,
            },
        )
        .upsert(true)
        .write_concern(WriteConcern::majority())
        .await?;
    Ok(())
}

/// SHA-256 of what an item is, in hexadecimal digits.
fn sha256(definition: &Definition) -> String {
    format!("{:x}", Sha256::digest(definition.source.to_string()))
}

/// Creates what is missing of a history that the database remembers.
async fn create_one(database: &Database, definition: &Definition) -> Result<(), MigrationError> {
    let name = pending_name(definition);
    for command in commands(definition) {
        run(database, &name, command).await?;
    }
    let ready = doc! { "q": { "_id": &*definition.name }, "u": { "$set": { "ready": true } } };
    run(database, &name, doc! { "update": COLLECTION, "updates": [ready] }).await
}

/// What creates a history: a collection that is clustered, so that a bucket is one write and one read without
/// a separate index on `_id`; its validator; and its indexes.
pub(crate) fn commands(definition: &Definition) -> [Document; 3] {
    let (name, owner, size) = (&*definition.name, &*definition.owner.field, definition.page_size);
    let id = match definition.owner.kind {
        OwnerType::Integer => {
            doc! { "bsonType": "long", "minimum": 1_i64, "maximum": MAX_SAFE_INTEGER as i64 }
        }
        OwnerType::String => {
            doc! { "bsonType": "string", "minLength": 1, "maxLength": OwnerType::MAX_LEN as i32 }
        }
        OwnerType::Uuid => doc! { "bsonType": "string", "pattern": OwnerType::STORED_UUID },
    };
    let item = doc! {
        "bsonType": "object",
        "required": [&*definition.date.name],
        "properties": { &*definition.date.name: { "bsonType": "date" } },
    };
    let schema = doc! {
        "bsonType": "object",
        "required": ["_id", owner, "page", "count", "first", "last", "history"],
        "additionalProperties": false,
        "properties": {
            "_id": { "bsonType": "string" },
            owner: id,
            "page": { "bsonType": "long", "minimum": 1_i64 },
            "count": { "bsonType": "int", "minimum": 0, "maximum": size },
            "first": { "bsonType": "date" },
            "last": { "bsonType": "date" },
            "history": { "bsonType": "array", "maxItems": size, "items": item },
            "firstPage": { "bsonType": "long", "minimum": 1_i64 },
            "second": { "bsonType": "long", "minimum": 0_i64 },
            "since": { "bsonType": "date" },
            "erased": { "bsonType": "date" },
            "swept": { "bsonType": "bool" },
            "opened": { "bsonType": "timestamp" },
            "openable": { "bsonType": "timestamp" },
        },
        // Only a marker has no items.
        "anyOf": [
            { "properties": { "count": { "minimum": 1 } } },
            { "required": ["firstPage", "second", "since"] },
        ],
    };
    let by_page = doc! {
        "key": { owner: 1, "page": 1 }, "name": format!("{owner}_1_page_1"), "unique": true,
    };
    // Of full pages alone, which never change: an append writes to it once a page. `first` and `last` judge a
    // page; `count` and `page` make the choice possible in the index alone. Measured:
    // docs/explanation/reading.md.
    let by_date = doc! {
        "key": { owner: 1, "count": 1, "last": 1, "first": 1, "page": 1 },
        "name": format!("{owner}_1_count_1_last_1_first_1_page_1"),
        "partialFilterExpression": { "count": size },
    };
    // Finds the erasures that are not at their end: any instance may finish them.
    let unswept = doc! {
        "key": { "swept": 1 }, "name": "swept_1", "partialFilterExpression": { "swept": false },
    };
    [
        doc! { "create": name, "clusteredIndex": { "key": { "_id": 1 }, "unique": true, "name": "_id_" } },
        doc! {
            "collMod": name,
            // The guard against a statement from an old tail must stay the only clause named $expr at the
            // top: the answer that it alone is not satisfied is read as "refused". A statement that opens
            // page 1 may meet the marker that has its place: a marker never gets items. A page that was
            // inserted has two times, which are the fence; one that was upserted has neither, and passes.
            "validator": {
                "$jsonSchema": schema,
                "$expr": { "$and": [
                    { "$eq": [{ "$size": "$history" }, { "$cond": ["$firstPage", 0, "$count"] }] },
                    { "$lte": ["$opened", "$openable"] },
                    { "$ne": ["$opened", Timestamp { time: 0, increment: 0 }] },
                ] },
            },
            "validationLevel": "strict",
            "validationAction": "error",
        },
        doc! { "createIndexes": name, "indexes": [by_page, by_date, unswept] },
    ]
}
