//! Long histories, written directly: full pages, as the contender itself would have left them.

use std::ops::RangeInclusive;

use futures_util::future::try_join_all;
use mongodb::Database;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Document, doc};

use super::Result;
use super::check::COLLECTION;

/// The documents that a customer's page is made of.
pub type Page = fn(customer: u64, page: u64) -> Vec<Document>;

/// Second of page 1; page n has the n-th second after that. In the past, so that what is appended comes after.
const FIRST_SECOND: u64 = 1_600_000_000;

/// Pages in one `insertMany`.
const BATCH: usize = 200;

/// Senders at once: as many as two cores can use.
const WRITERS: usize = 4;

/// Gives each customer so many full pages, the first of each customer before the second of any: as they would have
/// come by and by.
pub async fn write(
    database: &Database,
    form: Page,
    customers: RangeInclusive<u64>,
    pages: u64,
) -> Result<()> {
    let of_all = |page| customers.clone().map(move |customer| (customer, page));
    let places: Vec<(u64, u64)> = (1..=pages).flat_map(of_all).collect();
    let batches: Vec<&[(u64, u64)]> = places.chunks(BATCH).collect();
    let collection = database.collection::<Document>(COLLECTION);
    let writers = (0..WRITERS).map(async |writer| {
        for batch in batches.iter().skip(writer).step_by(WRITERS) {
            let documents = batch.iter().flat_map(|(customer, page)| form(*customer, *page));
            collection.insert_many(documents).ordered(false).await?;
        }
        Ok(())
    });
    try_join_all(writers).await.map(drop)
}

pub fn ours(customer: u64, page: u64) -> Vec<Document> {
    let of_ours = doc! { "page": page as i64, "first": date(page), "last": date(page) };
    vec![bucket(customer, page, of_ours)]
}

pub fn manual(customer: u64, page: u64) -> Vec<Document> {
    vec![bucket(customer, page, doc! {})]
}

/// A page's trades, each a document.
pub fn flat(customer: u64, page: u64) -> Vec<Document> {
    let trade = |place| {
        doc! {
            "_id": flat_id(customer, page, place), "customerId": customer as i64, "type": "buy", "ticker": "MDB",
            "qty": quantity(page, place) as i64, "date": date(page),
        }
    };
    (1..=10).map(trade).collect()
}

/// An id that can be told beforehand, and grows as time goes by: seconds, and then what is unique within them.
pub fn flat_id(customer: u64, page: u64, place: u64) -> ObjectId {
    let seconds = (date(page).timestamp_millis() / 1000) as u32;
    let unique = customer << 8 | place;
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&seconds.to_be_bytes());
    bytes[4..].copy_from_slice(&unique.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

/// The date of all trades of a page.
pub fn date(page: u64) -> DateTime {
    DateTime::from_millis((FIRST_SECOND + page) as i64 * 1000)
}

/// What the trade at a place, 1 to 10, was of: its number in the history, by which an answer can be judged.
pub fn quantity(page: u64, place: u64) -> u64 {
    (page - 1) * 10 + place
}

pub fn bucket_id(customer: u64, page: u64) -> String {
    format!("{customer}_{:010}", FIRST_SECOND + page)
}

fn bucket(customer: u64, page: u64, between: Document) -> Document {
    let trade = |place| {
        let qty = quantity(page, place) as i64;
        Bson::from(doc! { "type": "buy", "ticker": "MDB", "qty": qty, "date": date(page) })
    };
    let history: Vec<Bson> = (1..=10).map(trade).collect();
    let mut bucket = doc! { "_id": bucket_id(customer, page), "customerId": customer as i64 };
    bucket.extend(between);
    bucket.extend(doc! { "count": 10, "history": history });
    bucket
}
