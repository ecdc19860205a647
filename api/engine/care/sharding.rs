//! Distributes the collections of a database over the shards of a cluster.
//!
//! Every collection that grows is sharded by a key that each of its unique indexes begins with, and that
//! every command on it names by equality: the owner's field, ranged, because the unique index needs it; a
//! record's `_id`; page and minute. Exceptions are lists of owners, the most viewed pages, exports of all
//! owners, `verify`, retirement, which walks over the list of owners, and erasure. What is small stays on the
//! primary shard of the database.

use std::sync::Arc;

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Document, doc};
use pagebucket_model::definition::{Definition, Definitions};

use super::collection_guards::PAGE_VIEWS;
use crate::append::keys::RECORDS;
use crate::mongo::values::binary;
use crate::mongo::{Error, Result};
use crate::projections::summaries::tiles::{COLLECTION as TILES, KEPT as KEPT_TILES};

/// Documents that are sampled for each chunk, to find where to split.
const SAMPLED: u64 = 20;

/// How a collection is distributed.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardKey {
    /// Name of the collection.
    pub collection: String,
    /// The fields, all ascending.
    pub key: Document,
}

/// The collections that are sharded, and by what: histories by their owner, records of idempotency keys by
/// their hash, tiles of summaries by their `_id`, page views by page and minute.
pub fn shard_keys(definitions: &Definitions) -> Vec<ShardKey> {
    let history = |definition: &Arc<Definition>| ShardKey {
        collection: definition.name.to_string(),
        key: doc! { &*definition.owner.field: 1 },
    };
    let others = [
        ShardKey { collection: RECORDS.to_owned(), key: doc! { "_id": 1 } },
        ShardKey { collection: TILES.to_owned(), key: doc! { "_id": 1 } },
        ShardKey { collection: KEPT_TILES.to_owned(), key: doc! { "_id": 1 } },
        ShardKey { collection: PAGE_VIEWS.to_owned(), key: doc! { "page": 1, "timestamp": 1 } },
    ];
    definitions.iter().map(history).chain(others).collect()
}

/// Shards the collections, and splits each into at least `chunks` chunks. What is sharded or split already
/// stays as it is. Returns how many chunks each collection has.
///
/// A history and page views are split where their data is, so that an empty collection keeps one chunk until
/// this is done again.
pub(crate) async fn shard(
    database: &Database,
    definitions: &Definitions,
    chunks: u64,
) -> Result<Vec<(ShardKey, u64)>> {
    let admin = database.client().database("admin");
    let mut sharded = Vec::new();
    for shard_key in shard_keys(definitions) {
        let namespace = format!("{}.{}", database.name(), shard_key.collection);
        admin.run_command(doc! { "shardCollection": &namespace, "key": &shard_key.key }).await?;
        let existing = boundaries(database, &namespace).await?;
        let mut count = existing.len() as u64;
        if count < chunks {
            let points = match &*shard_key.collection {
                RECORDS => even_hashes(chunks),
                _ => quantiles(&sample(database, &shard_key, chunks).await?, chunks),
            };
            for middle in points.iter().filter(|point| !existing.contains(point)) {
                admin.run_command(doc! { "split": &namespace, "middle": middle }).await?;
                count += 1;
            }
        }
        sharded.push((shard_key, count));
    }
    Ok(sharded)
}

/// The lower bounds of the chunks of a collection.
async fn boundaries(database: &Database, namespace: &str) -> Result<Vec<Document>> {
    let config = database.client().database("config");
    let collection = config.collection::<Document>("collections").find_one(doc! { "_id": namespace }).await?;
    let uuid = collection.and_then(|collection| collection.get("uuid").cloned());
    let uuid =
        uuid.ok_or_else(|| Error::internal(format!("the cluster does not say that {namespace} is sharded")))?;
    let chunks = config.collection::<Document>("chunks").find(doc! { "uuid": uuid }).await?;
    let chunks: Vec<Document> = chunks.try_collect().await?;
    Ok(chunks.into_iter().filter_map(|chunk| chunk.get_document("min").cloned().ok()).collect())
}

/// The keys of some documents, in their order.
async fn sample(database: &Database, shard_key: &ShardKey, chunks: u64) -> Result<Vec<Document>> {
    let mut fields = doc! { "_id": 0 };
    fields.extend(shard_key.key.clone());
    let pipeline = [
        doc! { "$sample": { "size": (chunks * SAMPLED) as i64 } },
        doc! { "$project": fields },
        doc! { "$sort": &shard_key.key },
    ];
    let found = database.collection::<Document>(&shard_key.collection).aggregate(pipeline).await?;
    Ok(found.try_collect().await?)
}

/// Where to split so that each of `chunks` chunks has about as many of these keys, which are in order; each
/// point once.
fn quantiles(keys: &[Document], chunks: u64) -> Vec<Document> {
    let at = |chunk: u64| keys.get((chunk as usize * keys.len()) / chunks as usize).cloned();
    let mut points: Vec<Document> = (1..chunks).filter_map(at).collect();
    points.dedup();
    // The first key is the lower end of the first chunk.
    points.retain(|point| Some(point) != keys.first());
    points
}

/// Where to split the space of hashes evenly: by their first two bytes.
fn even_hashes(chunks: u64) -> Vec<Document> {
    let chunks = chunks.min(1 << 16);
    let point = |chunk: u64| {
        let first = ((chunk << 16) / chunks) as u16;
        let bytes: Vec<u8> = first.to_be_bytes().into_iter().chain([0; 30]).collect();
        doc! { "_id": binary(bytes) }
    };
    (1..chunks).map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_have_equal_parts_of_the_keys() {
        let keys: Vec<Document> = (0..1_000_i64).map(|id| doc! { "customerId": id }).collect();
        let points = quantiles(&keys, 4);
        assert_eq!(points, [250_i64, 500, 750].map(|id| doc! { "customerId": id }));
        assert_eq!(quantiles(&keys, 1), []);
        assert_eq!(quantiles(&[], 64), []);
        let one: Vec<Document> = (0..100).map(|_| doc! { "customerId": 7_i64 }).collect();
        assert_eq!(quantiles(&one, 64), [], "one owner is never split");
        assert_eq!(quantiles(&keys[..3], 64).len(), 2);
    }

    #[test]
    fn hashes_are_split_evenly() {
        let first = |point: &Document| point.get_binary_generic("_id").unwrap()[..2].to_vec();
        let points = even_hashes(4);
        assert_eq!(points.iter().map(first).collect::<Vec<_>>(), [[0x40, 0], [0x80, 0], [0xc0, 0]]);
        assert!(points.iter().all(|point| point.get_binary_generic("_id").unwrap().len() == 32));
        assert_eq!(even_hashes(1), []);
    }
}
