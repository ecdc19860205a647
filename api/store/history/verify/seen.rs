use mongodb::bson::raw::{RawBsonRef, RawDocument};
use mongodb::bson::{Bson, DateTime, Document, doc};

use super::finding::{Finding, Mend, Rule};
use crate::definition::Definition;
use crate::domain::{Instant, OwnerId, PageNumber, PageSize};
use crate::item;
use crate::store::history::bucket_id::{BucketId, NO_ID};
use crate::store::history::dedup::ItemKey;
use crate::store::history::marker::{Marker, tombstone_id};
use crate::store::history::source::{owner_bson, owner_in, page_of};

/// Fields that a repair may set.
const MENDED: [&str; 4] = ["page", "count", "first", "last"];

/// A bucket as it is found: what is wrong with it alone, and what the invariants need to know of it.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) id: String,
    /// Whose bucket it is by its `_id`.
    pub(super) owner: Option<OwnerId>,
    /// What it says if it is a marker, and no bucket of items.
    pub(super) marker: Option<Marker>,
    /// `None` if the field is missing or no page number.
    pub(super) page: Option<PageNumber>,
    /// How many elements `history` has.
    pub(super) items: usize,
    /// The place of each item that has a key, from 0, with the key.
    pub(super) keys: Vec<(usize, ItemKey)>,
    /// What is wrong with the bucket alone.
    pub(super) faults: Vec<(Rule, String, Mend)>,
    /// What finds the bucket as it is now.
    filter: Document,
}

impl Seen {
    pub(super) fn read(document: &RawDocument, definition: &Definition) -> Self {
        let id = document.get_str("_id").map_or_else(|_| format!("{:?}", document.get("_id")), str::to_owned);
        let kind = definition.owner.kind;
        let owner = id.rsplit_once('_').and_then(|(owner, _)| kind.parse(owner).ok());
        let is_place = |owner: &OwnerId| BucketId::parse(&id, owner).is_some() || id == tombstone_id(owner);
        let owner = owner.filter(is_place);
        // A damaged marker is a bucket without items.
        let marker = Marker::read(document).ok().flatten();
        let (page, filter) = (page_of(document).ok(), filter(document, &id));
        let (items, keys, faults) = Default::default();
        let mut seen = Self { id, owner, marker, page, items, keys, faults, filter };
        let field = &definition.owner.field;
        if seen.owner.is_some() && owner_in(document, &definition.owner) != seen.owner {
            seen.fault(Rule::Model, format!("{field} is not what _id begins with"), Mend::WHOSE);
        }
        if let Some(owner) = &seen.owner {
            // Names the shard of a cluster.
            seen.filter.insert(field, owner_bson(owner));
        }
        if seen.marker.is_some() {
            return seen;
        }
        match document.get("history") {
            Ok(Some(RawBsonRef::Array(history))) => seen.history(document, history, definition),
            _ => seen.fault(Rule::Model, "history is not an array".to_owned(), Mend::ITEMS),
        }
        seen
    }

    /// Reads the items, and compares what the bucket says of them.
    fn history(
        &mut self,
        document: &RawDocument,
        history: &mongodb::bson::raw::RawArray,
        definition: &Definition,
    ) {
        let mut dates: Vec<Instant> = Vec::new();
        for (place, element) in history.into_iter().enumerate() {
            self.items += 1;
            let Ok(Some(item)) = element.map(|value| value.as_document()) else {
                let what = format!("history.{place} is not a document");
                self.fault(Rule::Model, what, Mend::ITEMS);
                continue;
            };
            match item::check_stored(item, definition.key_field(), &definition.date.name) {
                Ok(date) => dates.push(date),
                Err(corrupt) => {
                    let what = format!("history.{place}.{} {}", corrupt.field, corrupt.detail);
                    self.fault(Rule::Model, what, Mend::ITEMS);
                }
            }
            let key = item.get_binary(definition.key_field()).ok();
            self.keys.extend(key.and_then(|key| Some((place, ItemKey::read(key.bytes)?))));
        }
        self.filter.insert("history", doc! { "$size": self.items as i32 });
        let (items, size) = (self.items, definition.page_size.get());
        if items == 0 || items > size {
            let what = format!("holds {items} items, and not 1 to {size}");
            return self.fault(Rule::Invariant(2), what, Mend::ITEMS);
        }
        if document.get_i32("count").ok() != Some(items as i32) {
            let what = format!("count is {}, not {items} as int32", shown(document, "count"));
            self.fault(Rule::Invariant(2), what, Mend::Set(doc! { "count": items as i32 }));
        }
        if dates.len() < items {
            return;
        }
        for (field, date) in [("first", dates.iter().min()), ("last", dates.iter().max())] {
            let millis = date.expect("a bucket without items has returned").millis();
            if document.get_datetime(field).ok().map(DateTime::timestamp_millis) != Some(millis) {
                let what = format!("{field} is {}, and not a date of its items", shown(document, field));
                self.fault(Rule::Model, what, Mend::Set(doc! { field: DateTime::from_millis(millis) }));
            }
        }
    }

    fn fault(&mut self, rule: Rule, what: String, mend: Mend) {
        self.faults.push((rule, what, mend));
    }

    /// The `seq` of the last item, by the number of the page.
    pub(super) fn last_seq(&self, size: PageSize) -> u64 {
        let page = self.page.map_or(1, PageNumber::get);
        (page - 1).saturating_mul(size.get() as u64).saturating_add(self.items as u64)
    }

    /// A finding about this bucket.
    pub(super) fn finding(&self, rule: Rule, what: String, mend: Mend) -> Finding {
        let (id, owner, filter) = (self.id.clone(), self.owner.clone(), self.filter.clone());
        Finding { id, owner, page: self.page, rule, what, filter, mend, is_repeat: false }
    }

    /// The finding that this is no owner's bucket.
    pub(super) fn stray(&self) -> Finding {
        self.finding(Rule::Model, format!("_id {NO_ID}"), Mend::WHOSE)
    }
}

/// Finds a bucket while the fields that may be repaired have the values that they have now.
fn filter(document: &RawDocument, id: &str) -> Document {
    let mut filter = doc! { "_id": id };
    for field in MENDED {
        let value = document.get(field).ok().flatten().and_then(|value| Bson::try_from(value).ok());
        filter.insert(field, value.unwrap_or_else(|| doc! { "$exists": false }.into()));
    }
    filter
}

/// A value as a sentence shows it.
fn shown(document: &RawDocument, field: &str) -> String {
    let value = document.get(field).ok().flatten().and_then(|value| Bson::try_from(value).ok());
    value.map_or_else(|| "missing".to_owned(), |value| value.to_string().chars().take(64).collect())
}
