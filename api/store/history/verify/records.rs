use std::collections::BTreeSet;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, doc};

use super::finding::{Change, Finding, Mend, Rule};
use crate::definition::Owner;
use crate::domain::OwnerId;
use crate::store::history::bucket_id::Tail;
use crate::store::history::dedup::{RECORDS, read_record};
use crate::store::history::engine::Engine;
use crate::store::history::source::owner_of;
use crate::store::history::tails::Tails;
use crate::store::{COMMAND, Deadline, Error};

/// Most records of one command.
const MOST_RECORDS: i64 = 1_000;

/// A scan of the records of idempotency keys, from one command to the next.
#[derive(Debug, Default)]
pub struct Records {
    after: Option<Binary>,
    /// How many records were read.
    pub records: u64,
    /// Whether all were read.
    pub ended: bool,
}

/// A record that names items.
struct Named {
    id: Binary,
    /// The owner, once for each history whose owner's field it has.
    owners: Vec<Option<OwnerId>>,
    /// The last item, by its `seq`; 0 if the record names none.
    last: u64,
}

/// Reads the next records, at most 1,000, and finds those that name items which no history has: an answer named them, and they are
/// lost (invariant 6). A record does not say of which history it is, only whose: it is enough if one of `engines` has the items.
///
/// # Errors
/// The database does not answer in time, or a record is damaged.
pub async fn lost(engines: &[Engine], scan: &mut Records, deadline: Deadline) -> Result<Vec<Finding>, Error> {
    let Some(first) = engines.first() else {
        scan.ended = true;
        return Ok(Vec::new());
    };
    let after = scan.after.as_ref();
    let filter = after.map_or_else(|| doc! {}, |after| doc! { "_id": { "$gte": after } });
    let command = doc! {
        "find": RECORDS,
        "filter": filter,
        "sort": { "_id": 1 },
        "limit": MOST_RECORDS + 1,
        "batchSize": MOST_RECORDS + 1,
        "singleBatch": true,
        "hint": { "_id": 1 },
    };
    let definitions: Vec<_> = engines.iter().map(|engine| engine.definition().clone()).collect();
    let read = move |document: &RawDocument| {
        let (id, record) = read_record(document)?;
        let owner = |owner: &Owner| {
            let value = document.get(&*owner.field).ok().flatten();
            value.and_then(|value| owner_of(value, owner.kind))
        };
        let owners = definitions.iter().map(|definition| owner(&definition.owner)).collect();
        let last = record.outcome.iter().flatten().map(|range| range.last.get()).max();
        let id = Binary { subtype: BinarySubtype::Generic, bytes: id.bytes().to_vec() };
        Ok(Named { id, owners, last: last.unwrap_or_default() })
    };
    let reads = &first.0.source.reads;
    let mut found = reads.find(None, command, None, deadline.or_within(COMMAND), read).await?;
    scan.ended = found.len() as i64 <= MOST_RECORDS;
    found.retain(|record| scan.after.as_ref() != Some(&record.id));
    scan.records += found.len() as u64;
    scan.after = found.last().map(|record| record.id.clone()).or(scan.after.take());
    found.retain(|record| record.last > 0);
    let mut missing: Vec<&Named> = found.iter().collect();
    for (at, engine) in engines.iter().enumerate() {
        let owners: BTreeSet<_> = missing.iter().filter_map(|record| record.owners[at].clone()).collect();
        let owners = owners.into_iter().collect();
        let tails = Tails::read(&engine.0.source, owners, None, deadline.or_within(COMMAND)).await;
        let mut still = Vec::new();
        for record in missing {
            let has = |owner| match tails.of(owner) {
                // The records of an erased owner go with its pages.
                Err(Error::Gone(_)) => Ok(true),
                tail => tail.map(|tail| Tail::items(tail) >= record.last),
            };
            if !record.owners[at].as_ref().map(has).transpose()?.unwrap_or(false) {
                still.push(record);
            }
        }
        missing = still;
    }
    Ok(missing.into_iter().map(Named::finding).collect())
}

impl Named {
    fn finding(&self) -> Finding {
        let hex: String = self.id.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let owner = self.owners.iter().flatten().next();
        let whose = owner.map_or_else(|| "an unknown owner".to_owned(), OwnerId::to_string);
        Finding {
            id: hex,
            owner: None,
            page: None,
            rule: Rule::Invariant(6),
            what: format!(
                "an append of {whose} was answered with items up to {}, which no history has",
                self.last
            ),
            change: Change { filter: doc! {}, mend: Mend::No(Mend::LOST) },
            is_repeat: false,
        }
    }
}
