//! Readers that turn pages while clients append.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use reqwest::Method;
use serde_json::Value;
use tokio::time::sleep;

use super::clients::Desk;
use super::record::{Item, Seen, Sight, millis};
use crate::harness::{History, TOTAL};

/// Readers' sources of chance come after those of all clients.
const FIRST_READER: u64 = 1 << 15;

/// A reader waits so long for a page.
const LONGEST: Duration = Duration::from_secs(2);

/// One reader, until told to stop. What is not answered is not seen.
pub async fn read(desk: Arc<Desk>, number: usize) -> Vec<Seen> {
    let mut rng = desk.rng(FIRST_READER + number as u64);
    let mut all = Vec::new();
    while !desk.stop.load(Ordering::Relaxed) {
        let (instance, owner) = (rng.random_range(0..desk.instances.len()), desk.owner(&mut rng));
        let (at, restarts) = (desk.began.elapsed(), desk.restarts.load(Ordering::Relaxed));
        let sights = look(&desk, instance, owner, &mut rng).await;
        let seen = |sight| Seen { reader: number, instance, restarts, owner, at, sight };
        all.extend(sights.into_iter().map(seen));
        sleep(Duration::from_millis(rng.random_range(1..30))).await;
    }
    all
}

/// The first or the last page, with the totals, and then any page by its number.
async fn look(desk: &Desk, instance: usize, owner: u64, rng: &mut StdRng) -> Vec<Sight> {
    let order = if rng.random() { "asc" } else { "desc" };
    let history = desk.load.history;
    let Some(listing) = get(desk, instance, &history.at(owner, &format!("?order={order}"))).await else {
        return vec![];
    };
    let number = |field: &str| listing[field].as_u64().expect("a number");
    let pages = number("totalPages");
    let mut sights = vec![Sight::Totals { items: number(TOTAL), pages }];
    let mut shown = page(history, &listing);
    if let Sight::Page { items, .. } = &mut shown
        && order == "desc"
    {
        items.reverse();
    }
    sights.push(shown);
    if pages > 0 {
        let any = rng.random_range(1..=pages);
        let bucket = get(desk, instance, &history.at(owner, &format!("/pages/{any}"))).await;
        sights.extend(bucket.map(|bucket| page(history, &bucket)));
    }
    sights
}

async fn get(desk: &Desk, instance: usize, path: &str) -> Option<Value> {
    let answer = desk.instances[instance].try_send(Method::GET, path, |request| request.timeout(LONGEST));
    let answer = answer.await.ok()?;
    (answer.status == 200).then(|| answer.json())
}

fn page(history: &History, body: &Value) -> Sight {
    let item = |item: &Value| Item {
        number: history.number(item) as i64,
        date: millis(item[history.date].as_str().expect("a date")),
    };
    Sight::Page {
        page: body["page"].as_u64().expect("a page"),
        full: body["full"].as_bool().expect("whether it is full"),
        items: body["items"].as_array().expect("items").iter().map(item).collect(),
    }
}
