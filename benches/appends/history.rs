//! Long histories, written directly: full pages, as the contender itself would have left them.

use futures_util::future::try_join_all;
use mongodb::bson::{Bson, DateTime, Document, doc};
use mongodb::{Collection, Database};

use crate::Result;
use crate::check::COLLECTION;

/// Customers 1 to this have the history. A limit to what has to be written before the first block:
/// 32 customers with 10,000 pages are 320,000 buckets a contender.
pub const CUSTOMERS: u64 = 32;

/// Whose buckets.
#[derive(Clone, Copy)]
pub enum Layout {
    Ours,
    Manual,
}

/// Second of page 1; page n has the n-th second after that. In the past, so that what is appended comes after.
const FIRST_SECOND: u64 = 1_600_000_000;

/// Documents in one `insertMany`.
const BATCH: u64 = 1000;

/// Gives each customer so many full pages.
pub async fn write(database: &Database, layout: Layout, pages: u64) -> Result<()> {
    let collection = database.collection(COLLECTION);
    // Four at once: as many as two cores can use.
    let writers = (0..4).map(|writer| {
        let customers = (1..=CUSTOMERS).filter(move |customer| customer % 4 == writer);
        write_customers(collection.clone(), customers, layout, pages)
    });
    try_join_all(writers).await?;
    Ok(())
}

async fn write_customers(
    collection: Collection<Document>,
    customers: impl Iterator<Item = u64>,
    layout: Layout,
    pages: u64,
) -> Result<()> {
    for customer in customers {
        for first in (1..=pages).step_by(BATCH as usize) {
            let batch = first..=pages.min(first + BATCH - 1);
            let buckets = batch.map(|page| bucket(layout, customer, page));
            collection.insert_many(buckets).await?;
        }
    }
    Ok(())
}

fn bucket(layout: Layout, customer: u64, page: u64) -> Document {
    let second = FIRST_SECOND + page;
    let date = DateTime::from_millis(second as i64 * 1000);
    // Quantity 1: no trade of a block has it, see `block::take_quantities`.
    let trade = doc! { "type": "buy", "ticker": "MDB", "qty": 1_i64, "date": date };
    let history: Vec<Bson> = std::iter::repeat_n(Bson::from(trade), 10).collect();
    let mut bucket = doc! { "_id": format!("{customer}_{second:010}"), "customerId": customer as i64 };
    if matches!(layout, Layout::Ours) {
        bucket.extend(doc! { "page": page as i64, "first": date, "last": date });
    }
    bucket.extend(doc! { "count": 10, "history": history });
    bucket
}
