//! What a database really holds, to be compared with what was acknowledged.

use std::collections::HashMap;

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, DateTime, Document, doc};
use pagebucket_page_views::COLLECTION;

use super::view::{MinuteNumber, start};
use crate::harness::{Result, Verdict};

/// What clients were told of the views of a minute.
#[derive(Clone, Copy, Default)]
pub struct Told {
    /// That they are counted.
    pub counted: u64,
    /// Something else, or nothing.
    pub failed: u64,
}

/// What clients of a contender were told, by minute: some minutes are counted in again and again.
#[derive(Default)]
pub struct Ledger {
    told: HashMap<MinuteNumber, Told>,
}

impl Ledger {
    pub fn note(&mut self, minute: MinuteNumber, counted: bool) {
        let told = self.told.entry(minute).or_default();
        *if counted { &mut told.counted } else { &mut told.failed } += 1;
    }

    /// Adds another's, whose minutes are the result.
    pub fn add(&mut self, other: Self) -> Vec<MinuteNumber> {
        for (minute, told) in &other.told {
            let all = self.told.entry(*minute).or_default();
            all.counted += told.counted;
            all.failed += told.failed;
        }
        other.told.into_keys().collect()
    }

    /// Compares all that clients were ever told of these minutes with what is stored.
    pub async fn judge(&self, database: &Database, minutes: &[MinuteNumber]) -> Result<Verdict> {
        let starts: Vec<i64> = minutes.iter().map(|minute| start(*minute)).collect();
        let stored = stored(database, &starts).await?;
        let mut verdict = Verdict::default();
        for (minute, start) in minutes.iter().zip(starts) {
            let Told { counted, failed } = self.told[minute];
            let (total, seconds) = stored.get(&start).copied().unwrap_or_default();
            verdict.add(Verdict::of(total, counted, failed));
            verdict.wrong += total.abs_diff(seconds);
        }
        Ok(verdict)
    }
}

/// Views of all pages by the beginning of their minute: the totals, and the seconds added up.
async fn stored(database: &Database, starts: &[i64]) -> Result<HashMap<i64, (u64, u64)>> {
    let starts: Vec<Bson> = starts.iter().map(|start| DateTime::from_millis(*start).into()).collect();
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
        let minute = found.get_datetime("_id")?.timestamp_millis();
        stored.insert(minute, (number("total")?, number("seconds")?));
    }
    Ok(stored)
}
