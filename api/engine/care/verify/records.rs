//! Finds records of idempotency keys whose items no history has.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Binary, doc};
use pagebucket_model::domain::OwnerId;

use super::finding::{Finding, Mend, Rule};
use super::verifier::Verifier;
use crate::append::keys::{RECORDS, read_record};
use crate::mongo::majority::at_most;
use crate::mongo::values::binary;
use crate::mongo::{COMMAND, Deadline, Error, Result};
use crate::store::buckets::bucket_id::Tail;
use crate::store::buckets::tails::Tails;
use crate::store::collection::owner_in;

const MOST_RECORDS: usize = 1_000;

/// A scan of the records of idempotency keys, from one command to the next.
#[derive(Debug, Default)]
pub struct Records {
    after: Option<Binary>,
    /// Whether all were read.
    pub ended: bool,
}

/// A record that names items.
struct Named {
    id: Binary,
    /// The owner, once for each history whose owner's field it has.
    owners: Vec<Option<OwnerId>>,
    /// The last item, by its `seq`; 0 if the record names none; `None` if it is damaged.
    last: Option<u64>,
}

impl Verifier {
    /// Reads the next records, at most 1,000, and finds those that name items which no history has: an answer
    /// named them, and they are lost (invariant 6). A record does not say of which history it is, only whose:
    /// it is enough if one of `histories` has the items.
    pub async fn lost(histories: &[Self], scan: &mut Records, deadline: Deadline) -> Result<Vec<Finding>> {
        let histories: Vec<_> = histories.iter().map(|history| &*history.reader.source).collect();
        let Some(first) = histories.first() else {
            scan.ended = true;
            return Ok(Vec::new());
        };
        let filter = doc! { "_id": { "$gte": scan.after.clone().unwrap_or_else(|| binary([])) } };
        let command = at_most(RECORDS, filter, MOST_RECORDS + 1, doc! { "_id": 1 });
        let definitions: Vec<_> = histories.iter().map(|history| history.definition.clone()).collect();
        let read = move |document: &RawDocument| {
            let record = read_record(document).ok();
            let owners = definitions.iter().map(|definition| owner_in(document, &definition.owner)).collect();
            let last = record.map(|(_, record)| {
                record.outcome.iter().flatten().map(|range| range.last.get()).max().unwrap_or_default()
            });
            let id = document.get_binary("_id").expect("the query finds no other ids").to_binary();
            Ok(Named { id, owners, last })
        };
        let reads = &first.reads;
        let mut found = reads.find(command, deadline.or_within(COMMAND), read).await?;
        scan.ended = found.len() <= MOST_RECORDS;
        found.retain(|record| scan.after.as_ref() != Some(&record.id));
        scan.after = found.last().map(|record| record.id.clone()).or(scan.after.take());
        // Records of histories that are not defined here cannot be judged.
        let is_judged = |record: &&Named| record.owners.iter().any(Option::is_some);
        let (damaged, named): (Vec<&Named>, Vec<&Named>) =
            found.iter().filter(is_judged).partition(|record| record.last.is_none());
        let mut missing: Vec<&Named> = named.into_iter().filter(|record| record.last != Some(0)).collect();
        for (at, history) in histories.iter().enumerate() {
            let owners = missing.iter().filter_map(|record| record.owners[at].as_ref());
            let tails = Tails::read(history, owners, None, deadline.or_within(COMMAND)).await;
            let mut still = Vec::new();
            for record in missing {
                let has = |owner| match tails.of(owner) {
                    // The records of an erased owner go with its pages.
                    Err(Error::Gone(_)) => Ok(true),
                    // It is a finding by itself.
                    Err(Error::Corrupt(_)) => Ok(true),
                    tail => tail.map(|tail| Some(Tail::items(tail)) >= record.last),
                };
                if !record.owners[at].as_ref().map(has).transpose()?.unwrap_or(false) {
                    still.push(record);
                }
            }
            missing = still;
        }
        Ok(damaged.into_iter().chain(missing).map(Named::finding).collect())
    }
}

impl Named {
    fn finding(&self) -> Finding {
        let id = self.id.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let owner = self.owners.iter().flatten().next();
        let whose = owner.map_or_else(|| "an unknown owner".to_owned(), OwnerId::to_string);
        let (rule, what) = match self.last {
            None => (Rule::Model, format!("the record of a key of {whose} is damaged")),
            Some(last) => (
                Rule::Invariant(6),
                format!("an append of {whose} was answered with items up to {last}, which no history has"),
            ),
        };
        Finding {
            id,
            owner: None,
            page: None,
            rule,
            what,
            filter: doc! {},
            mend: Mend::LOST,
            is_repeat: false,
        }
    }
}
