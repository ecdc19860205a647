//! An adoption that is killed again and again, while writers go on inserting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::bson::{DateTime, Document, doc};
use tokio::time::{Instant, sleep};

use super::followed::Following;
use super::{Moving, trade};
use crate::harness::{eventually, spawn};

/// Items of the source before it is adopted: `ADOPT_ITEMS`, 8,000 unless set; 200,000 are the full size.
fn items() -> i64 {
    std::env::var("ADOPT_ITEMS").map_or(8_000, |items| items.parse().expect("a number"))
}

/// Longer than a fifth of the copy takes, and all that was copied before.
const LONG: Duration = Duration::from_secs(300);

/// A customer has so many of them.
const EACH: i64 = 40;

const WRITERS: i64 = 2;
const BETWEEN_INSERTS: Duration = Duration::from_millis(5);

#[tokio::test(flavor = "multi_thread")]
async fn killed_five_times_nothing_is_lost_or_doubled() {
    let (moving, items) = (Moving::new().await, items());
    let customers = items / EACH;
    let customer_of = move |n: i64| n % customers + 1;
    for first in (1..=items).step_by(10_000) {
        let last = (first + 9_999).min(items);
        moving.old().insert_many((first..=last).map(|n| trade(customer_of(n), n, n))).await.unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (old, stop) = (moving.old(), Arc::clone(&stop));
            spawn(async move {
                let mut n = items + 1 + writer;
                while !stop.load(Ordering::Relaxed) {
                    let row = trade(customer_of(n), n, DateTime::now().timestamp_millis());
                    old.insert_one(row).await.unwrap();
                    n += WRITERS;
                    // A rate that a follower on a busy machine keeps up with.
                    sleep(BETWEEN_INSERTS).await;
                }
                n
            })
        })
        .collect();
    let began = Instant::now();
    for kill in 1..=4 {
        let following = Following::start(&mut moving.adopt(&["--follow"]));
        eventually("a part is copied", LONG, || async { stored(&moving).await >= items * kill / 5 }).await;
        following.kill().await;
    }
    let following = Following::start(&mut moving.adopt(&["--follow"]));
    let followed = |following: &Following| {
        following
            .said()
            .iter()
            .any(|line| line.contains("since the copy") && !line.contains("stored 0 since"))
    };
    eventually("something is followed", LONG, || async { followed(&following) }).await;
    following.kill().await;
    let following = Following::start(&mut moving.adopt(&["--follow"]));
    eventually("it is followed again", LONG, || async { followed(&following) }).await;
    stop.store(true, Ordering::Relaxed);
    let mut inserted: Vec<i64> = (1..=items).collect();
    for (writer, next) in (0..WRITERS).zip(writers) {
        inserted.extend((items + 1 + writer..next.await.unwrap()).step_by(WRITERS as usize));
    }
    following.has_no_lag().await;
    following.stop(0).await;
    println!("{} items, five kills: {:.1} s", inserted.len(), began.elapsed().as_secs_f64());
    for customer in 1..=customers {
        let found = moving.stored(customer as u64).await;
        found.holds_exactly(inserted.iter().copied().filter(|n| customer_of(*n) == customer));
        let copied: Vec<_> = found.numbers.iter().filter(|n| **n <= items).collect();
        assert!(copied.is_sorted(), "customer {customer} in order");
    }
    let checked = moving.is_clean(&[]).await;
    println!("{}", checked.out);
}

/// Number of items in the histories; 0 before they exist.
async fn stored(moving: &Moving) -> i64 {
    let sum = doc! { "$group": { "_id": null, "items": { "$sum": "$count" } } };
    let sums = moving.database.collection::<Document>("trades").aggregate([sum]).await.unwrap();
    let sums: Vec<Document> = sums.try_collect().await.unwrap();
    sums.first().map_or(0, |sum| i64::from(sum.get_i32("items").unwrap()))
}
