//! One bucket: what is wrong with it alone.

use mongodb::bson::raw::{RawBsonRef, RawDocument};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Bson, DateTime, Document, doc};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Instant, OwnerId, PageNumber, PageSize};
use pagebucket_model::item;

use super::finding::{Finding, Mend, Rule, shown, value};
use super::kind::DocumentKind;
use crate::mongo::values::whole_number;
use crate::store::buckets::bucket_id::{BucketId, NO_ID};
use crate::store::buckets::identity::ItemKey;
use crate::store::collection::{owner_bson, owner_in, page_of};

/// Fields that a repair may set.
const MENDED: [&str; 4] = ["page", "count", "first", "last"];

/// A bucket as it is found: what is wrong with it alone, and what the invariants need to know of it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) id: String,
    /// Whether its `_id` is a text. The others come before or after all texts.
    pub(crate) is_text: bool,
    /// Whose bucket it is by its `_id`: the part before `_`.
    pub(crate) owner: Option<OwnerId>,
    pub(crate) kind: DocumentKind,
    /// Whether its `_id` has a place in the order of the owner's pages.
    pub(crate) is_placed: bool,
    /// `None` if the field is missing or no page number.
    pub(crate) page: Option<PageNumber>,
    /// What its field `page` holds.
    pub(crate) stored_page: Option<Bson>,
    /// How many elements `history` has.
    pub(crate) items: usize,
    /// The place of each item that has a key, from 0, with the key.
    pub(crate) keys: Vec<(usize, ItemKey)>,
    /// What is wrong with the bucket alone.
    faults: Vec<(Rule, String, Mend)>,
    /// What finds the bucket as it is now.
    filter: Document,
}

impl Seen {
    pub(crate) fn read(document: &RawDocument, definition: &Definition) -> Self {
        let text = document.get_str("_id").ok();
        let (is_text, id) = (text.is_some(), text.map_or_else(|| shown(document, "_id"), str::to_owned));
        let owner = text.and_then(|id| id.split_once('_'));
        let owner = owner.and_then(|(owner, _)| definition.owner.kind.parse_stored(owner));
        let is_placed = owner.as_ref().is_some_and(|owner| BucketId::parse(&id, owner).is_some());
        let kind = DocumentKind::of(document, owner.as_ref());
        let mut seen = Self {
            filter: filter(document, &id),
            id,
            is_text,
            owner,
            kind,
            is_placed,
            page: page_of(document),
            stored_page: value(document, "page"),
            items: 0,
            keys: Vec::new(),
            faults: Vec::new(),
        };
        let Some(owner) = seen.owner.clone() else { return seen };
        let field = &definition.owner.field;
        // Names the shard of a cluster.
        seen.filter.insert(field, owner_bson(&owner));
        if owner_in(document, &definition.owner).as_ref() != Some(&owner) {
            seen.fault(Rule::Model, format!("{field} is not what _id begins with"), Mend::WHOSE);
        }
        for (name, _) in document.iter().flatten() {
            let name = name.as_str();
            if name != &**field && !kind.has(name) {
                let name: String = name.escape_debug().take(64).collect();
                seen.fault(Rule::Model, format!("has the field {name}, which no {kind} has"), Mend::FIELDS);
            }
        }
        if kind != DocumentKind::Page {
            for what in kind.faults(document, &owner, definition.page_size) {
                seen.fault(Rule::Model, what, Mend::DELETED);
            }
            return seen;
        }
        if !is_placed {
            seen.fault(Rule::Model, format!("_id {NO_ID}"), Mend::WHOSE);
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
            let Ok(Some(item)) = element.map(RawBsonRef::as_document) else {
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
            match item.get(definition.key_field()) {
                Ok(None) => {}
                Ok(Some(RawBsonRef::Binary(key)))
                    if key.subtype == BinarySubtype::Generic && key.bytes.len() == ItemKey::LEN =>
                {
                    self.keys.extend(ItemKey::read(key.bytes).map(|key| (place, key)));
                }
                _ => {
                    // A repeat of its append would not find it.
                    let key = definition.key_field();
                    let what = format!("history.{place}.{key} is not a binary of {} bytes", ItemKey::LEN);
                    self.fault(Rule::Model, what, Mend::ITEMS);
                }
            }
        }
        self.filter.insert("history", doc! { "$size": self.items as i32 });
        let (items, size) = (self.items, definition.page_size.get());
        if items == 0 || items > size {
            let what = format!("holds {items} items, and not 1 to {size}");
            return self.fault(Rule::Invariant(2), what, Mend::ITEMS);
        }
        if document.get_i32("count").ok() != Some(items as i32) {
            let what = format!("count is {}, not {items} as int32", shown(document, "count"));
            let counted = value(document, "count").as_ref().and_then(whole_number);
            let mend = match counted {
                // Of a full page nothing can be missing.
                Some(counted) if items < size && counted > items as i64 => Mend::COUNT,
                _ => Mend::Set(doc! { "count": items as i32 }),
            };
            self.fault(Rule::Invariant(2), what, mend);
        }
        if dates.len() == items {
            self.dates(document, &dates);
        }
    }

    /// Compares `first` and `last` with the dates of all items.
    fn dates(&mut self, document: &RawDocument, dates: &[Instant]) {
        let of_items = [dates.iter().min(), dates.iter().max()];
        let of_items = of_items.map(|date| date.expect("a bucket without items has returned").millis());
        let stored =
            ["first", "last"].map(|field| document.get_datetime(field).ok().map(DateTime::timestamp_millis));
        if stored == of_items.map(Some) {
            return;
        }
        let is_of_an_item = |stored: &i64| dates.iter().any(|date| date.millis() == *stored);
        if !stored.iter().flatten().any(is_of_an_item) {
            let [first, last] = ["first", "last"].map(|field| shown(document, field));
            let what = format!("first is {first}, last is {last}, and no item has one of these dates");
            return self.fault(Rule::Model, what, Mend::DATES);
        }
        for (at, field) in ["first", "last"].into_iter().enumerate() {
            if stored[at] != Some(of_items[at]) {
                let what = format!("{field} is {}, and not a date of its items", shown(document, field));
                let date = DateTime::from_millis(of_items[at]);
                self.fault(Rule::Model, what, Mend::Set(doc! { field: date }));
            }
        }
    }

    fn fault(&mut self, rule: Rule, what: String, mend: Mend) {
        self.faults.push((rule, what, mend));
    }

    /// The `seq` of the last item, by the number of the page.
    pub(crate) fn last_seq(&self, size: PageSize) -> u64 {
        let page = self.page.map_or(1, PageNumber::get);
        (page - 1).saturating_mul(size.get() as u64).saturating_add(self.items as u64)
    }

    /// What is wrong with the bucket alone, as findings. They are taken.
    pub(crate) fn take_findings(&mut self) -> Vec<Finding> {
        let faults = std::mem::take(&mut self.faults).into_iter();
        faults.map(|(rule, what, mend)| self.finding(rule, what, mend)).collect()
    }

    /// A finding about this bucket.
    pub(crate) fn finding(&self, rule: Rule, what: String, mend: Mend) -> Finding {
        // No address has the number of a tombstone; it concerns all of them.
        let is_tombstone = matches!(self.kind, DocumentKind::Tombstone { .. });
        let page = if is_tombstone { Some(PageNumber::FIRST) } else { self.page };
        Finding {
            id: self.id.clone(),
            owner: self.owner.clone(),
            page,
            rule,
            what,
            filter: self.filter.clone(),
            mend,
            is_repeat: false,
        }
    }

    /// The finding that this is no owner's bucket.
    pub(crate) fn stray(&self) -> Finding {
        self.finding(Rule::Model, format!("_id {NO_ID}"), Mend::WHOSE)
    }
}

/// Finds a bucket while the fields that may be repaired have the values that they have now.
fn filter(document: &RawDocument, id: &str) -> Document {
    let mut filter = doc! { "_id": id };
    for field in MENDED {
        let value = value(document, field);
        filter.insert(field, value.unwrap_or_else(|| doc! { "$exists": false }.into()));
    }
    filter
}
