//! Long histories, written directly: full pages, as the contender itself would have left them.

use futures_util::future::try_join_all;
use mongodb::Database;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Document, doc};

use super::{COLLECTION, Layout, Result};

/// Second of page 1; page n has the n-th second after that. In the past, so that what is appended comes
/// after.
const FIRST_SECOND: u64 = 1_600_000_000;

/// Pages in one `insertMany`.
const BATCH: usize = 200;

/// Senders at once: as many as two cores can use.
const WRITERS: usize = 4;

/// First and last customer, and how many full pages each of these has.
pub type History = (u64, u64, u64);

/// Writes a history, the first page of each customer before the second of any: the order in which they would
/// have come.
pub async fn write_history(database: &Database, layout: Layout, history: History) -> Result<()> {
    let (first, last, pages) = history;
    let of_all = |page| (first..=last).map(move |customer| (customer, page));
    let places: Vec<(u64, u64)> = (1..=pages).flat_map(of_all).collect();
    let batches: Vec<&[(u64, u64)]> = places.chunks(BATCH).collect();
    let collection = database.collection::<Document>(COLLECTION);
    let writers = (0..WRITERS).map(async |writer| {
        for batch in batches.iter().skip(writer).step_by(WRITERS) {
            let documents = batch.iter().flat_map(|(customer, page)| documents(layout, *customer, *page));
            collection.insert_many(documents).ordered(false).await?;
        }
        Ok(())
    });
    try_join_all(writers).await.map(drop)
}

/// A page's documents.
fn documents(layout: Layout, customer: u64, page: u64) -> Vec<Document> {
    let trade = |place| {
        let qty = quantity(page, place) as i64;
        doc! { "type": "buy", "ticker": "MDB", "qty": qty, "date": date(page) }
    };
    if !matches!(layout, Layout::Ours | Layout::Manual) {
        let flat = |place| {
            let mut document = doc! { "_id": flat_id(customer, page, place), "customerId": customer as i64 };
            document.extend(trade(place));
            document
        };
        return (1..=10).map(flat).collect();
    }
    let mut bucket = doc! { "_id": bucket_id(customer, page), "customerId": customer as i64 };
    if layout == Layout::Ours {
        bucket.extend(doc! { "page": page as i64, "first": date(page), "last": date(page) });
    }
    let history: Vec<Bson> = (1..=10).map(|place| trade(place).into()).collect();
    bucket.extend(doc! { "count": 10, "history": history });
    vec![bucket]
}

pub fn bucket_id(customer: u64, page: u64) -> String {
    format!("{customer}_{:010}", FIRST_SECOND + page)
}

/// An id that can be computed, and grows with time: seconds, and then what is unique within them.
pub fn flat_id(customer: u64, page: u64, place: u64) -> ObjectId {
    let seconds = (FIRST_SECOND + page) as u32;
    let unique = customer << 8 | place;
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&seconds.to_be_bytes());
    bytes[4..].copy_from_slice(&unique.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

/// The date of all trades of a page.
fn date(page: u64) -> DateTime {
    DateTime::from_millis((FIRST_SECOND + page) as i64 * 1000)
}

/// What the trade at a place, 1 to 10, was of: its number in the history, by which an answer can be checked.
pub fn quantity(page: u64, place: u64) -> u64 {
    (page - 1) * 10 + place
}
