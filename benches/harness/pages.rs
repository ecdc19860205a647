//! What the suites of summaries and of time series share: trades that are written past the service, and a
//! question whose answer has pages.

use std::time::Instant;

use mongodb::bson::{Bson, Document, doc};
use serde_json::Value;

use super::{Client, Result, bucket_id, flat_id};

/// A full page of trades as a bucket, and as one document each.
pub fn page_of(customer: u64, page: u64, trades: Vec<Document>) -> (Document, Vec<Document>) {
    let flat = trades.iter().zip(1..).map(|(trade, place)| {
        let mut document = doc! { "_id": flat_id(customer, page, place), "customerId": customer as i64 };
        document.extend(trade.clone());
        document
    });
    let flat = flat.collect();
    let date = |trade: Option<&Document>| trade.and_then(|trade| trade.get("date")).cloned();
    let (first, last) = (date(trades.first()), date(trades.last()));
    let bucket = doc! {
        "_id": bucket_id(customer, page), "customerId": customer as i64, "page": page as i64, "count": trades.len() as i32,
        "first": first, "last": last, "history": trades.into_iter().map(Bson::from).collect::<Vec<_>>(),
    };
    (bucket, flat)
}

/// Follows all pages of a summary: seconds, requests and points.
pub async fn walk(client: &mut Client, first: &str) -> Result<(f64, u64, u64)> {
    let (began, mut requests, mut points) = (Instant::now(), 0, 0);
    let mut path = first.to_owned();
    loop {
        let answer = client.get(&path, "").await?;
        let body: Value = serde_json::from_slice(answer.body)?;
        if answer.status != 200 {
            return Err(format!("{path}: {body}").into());
        }
        requests += 1;
        points += body["points"].as_array().map_or(0, Vec::len) as u64;
        match body["links"]["next"].as_str() {
            Some(next) => path = next.to_owned(),
            None => return Ok((began.elapsed().as_secs_f64(), requests, points)),
        }
    }
}
