//! What a database really holds, to be compared with what was acknowledged.

use std::collections::HashMap;

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, DateTime, Document, doc};
use pagebucket::store::page_views::COLLECTION;

use crate::harness::Result;
use crate::harness::check::Verdict;
use crate::open_loop::Told;
use crate::views::{MinuteNumber, start};

/// What clients of a contender were told, by minute: some minutes are counted in again and again.
#[derive(Default)]
pub struct Ledger {
    told: HashMap<MinuteNumber, Told>,
}

impl Ledger {
    /// Adds what clients were told in a block, and compares all that they were ever told of these minutes with what
    /// is stored.
    pub async fn judge(
        &mut self,
        database: &Database,
        told: &HashMap<MinuteNumber, Told>,
    ) -> Result<Verdict> {
        let mut verdict = Verdict::default();
        let minutes: Result<Vec<(MinuteNumber, i64)>> =
            told.keys().map(|minute| Ok((*minute, start(*minute)?))).collect();
        let minutes = minutes?;
        let stored = stored(database, minutes.iter().map(|(_, start)| *start)).await?;
        for (minute, start) in minutes {
            let all = self.told.entry(minute).or_default();
            all.counted += told[&minute].counted;
            all.failed += told[&minute].failed;
            let Stored { total, seconds } = stored.get(&start).copied().unwrap_or_default();
            let more = total.saturating_sub(all.counted);
            verdict.lost += all.counted.saturating_sub(total);
            // More than can be explained by failed requests, or in no second.
            verdict.wrong += more.saturating_sub(all.failed) + total.abs_diff(seconds);
            verdict.unacknowledged += more.min(all.failed);
        }
        Ok(verdict)
    }
}

/// Views of all pages in a minute.
#[derive(Clone, Copy, Default)]
struct Stored {
    total: u64,
    /// The same by the second, added up.
    seconds: u64,
}

/// By the beginning of the minute.
async fn stored(database: &Database, starts: impl Iterator<Item = i64>) -> Result<HashMap<i64, Stored>> {
    let starts: Vec<Bson> = starts.map(|start| DateTime::from_millis(start).into()).collect();
    let seconds =
        doc! { "$sum": { "$map": { "input": { "$objectToArray": "$seconds" }, "in": "$$this.v" } } };
    let pipeline = vec![
        doc! { "$match": { "timestamp": { "$in": starts }, "totalViews": { "$gt": 0 } } },
        doc! { "$group": {
            "_id": "$timestamp",
            "total": { "$sum": { "$toLong": "$totalViews" } },
            "seconds": { "$sum": { "$toLong": seconds } },
        } },
    ];
    let mut found = database.collection::<Document>(COLLECTION).aggregate(pipeline).await?;
    let mut stored = HashMap::new();
    while let Some(found) = found.try_next().await? {
        let number = |field: &str| -> Result<u64> { Ok(u64::try_from(found.get_i64(field)?)?) };
        let of_minute = Stored { total: number("total")?, seconds: number("seconds")? };
        stored.insert(found.get_datetime("_id")?.timestamp_millis(), of_minute);
    }
    Ok(stored)
}
